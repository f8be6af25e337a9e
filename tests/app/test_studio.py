"""The team as LangGraph's development server asks for it: often, and without a word at the end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from maniple.errors import ModelError
from maniple.graph import Team
from maniple.studio import SharedTeam
from tests.openai_server import SIMPLE
from tests.team import scripted_team


class Door:
    """Opens the real graph and counts; the first `broken` times there is no model."""

    def __init__(self, broken: int = 0) -> None:
        self.broken = broken
        self.opened = self.closed = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Team]:
        self.opened += 1
        if self.opened <= self.broken:
            raise ModelError("There is no model.", code="model_not_configured")
        try:
            async with scripted_team(SIMPLE) as scripted:
                yield scripted.team
        finally:
            self.closed += 1


def test_two_accesses_open_one_team_and_the_end_of_the_loop_closes_it() -> None:
    door = Door()
    shared = SharedTeam(door.open)

    async def serve() -> None:
        first, second = await asyncio.gather(shared.get(), shared.get())
        assert first is second
        assert await shared.get() is first
        assert (door.opened, door.closed) == (1, 0)

    asyncio.run(serve())
    assert (door.opened, door.closed) == (1, 1)
    asyncio.run(serve_once(shared))
    assert (door.opened, door.closed) == (2, 2)


async def serve_once(shared: SharedTeam) -> None:
    assert (await shared.get()).name


def test_a_failure_reaches_all_waiters_and_the_next_access_tries_again() -> None:
    shared = SharedTeam(Door(broken=1).open)

    async def serve() -> None:
        results = await asyncio.gather(shared.get(), shared.get(), return_exceptions=True)
        assert [str(result) for result in results] == ["There is no model."] * 2
        await serve_once(shared)

    asyncio.run(serve())


def test_one_who_stops_waiting_leaves_the_others_their_team() -> None:
    door = Door()
    shared = SharedTeam(door.open)

    async def serve() -> None:
        impatient, patient = asyncio.create_task(shared.get()), asyncio.create_task(shared.get())
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await patient).name
        with pytest.raises(asyncio.CancelledError):
            await impatient

    asyncio.run(serve())
    assert door.opened == 1
