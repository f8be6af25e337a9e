"""A cancel takes effect where the graph can still close its stream, and nowhere else."""

import asyncio
from typing import Any, cast

import pytest

from maniple.runs.active_run import ActiveRun, RunPhase
from maniple.scope.budget import UsageMeter

pytestmark = pytest.mark.anyio


class _Graph:
    """Yields numbers for ever; after a cancellation `closing`, then it raises it."""

    def __init__(self, waits_at: int = -1) -> None:
        self.waits = asyncio.Event()
        self._waits_at = waits_at

    async def events(self):
        number, cancelled = 0, None
        try:
            while True:
                if number == self._waits_at:
                    self.waits.set()
                    await asyncio.Event().wait()
                yield number
                number += 1
        except asyncio.CancelledError as error:
            cancelled = error
        yield "closing"
        raise cancelled


def _active() -> ActiveRun:
    nothing = cast("Any", None)
    return ActiveRun(nothing, nothing, nothing, cast("UsageMeter", nothing), nothing, nothing)


async def _drive(active: ActiveRun, graph: _Graph, handle: Any) -> list[Any]:
    """Read the events like a driver; `handle` is awaited for each."""
    seen: list[Any] = []
    events = cast("Any", graph.events())
    with pytest.raises(asyncio.CancelledError):
        while (event := await active.next_event(events)) is not None:
            seen.append(event)
            if active.phase is RunPhase.NEW:
                active.enter(RunPhase.OPEN)
            await handle(event)
    return seen


async def test_a_cancel_while_an_event_is_handled_waits_until_it_is_handled():
    active, handled = _active(), []

    async def handle(event):
        if event == 1:
            active.cancel()
        await asyncio.sleep(0)
        handled.append(event)

    active.task = asyncio.create_task(_drive(active, _Graph(), handle))
    assert await active.task == [0, 1, "closing"] == handled


async def test_a_cancel_while_the_graph_works_is_raised_there():
    active, graph = _active(), _Graph(waits_at=2)
    active.task = asyncio.create_task(_drive(active, graph, lambda _: asyncio.sleep(0)))
    await graph.waits.wait()
    active.cancel()
    assert await active.task == [0, 1, "closing"]


async def test_a_cancel_before_the_first_event_comes_after_it():
    active = _active()
    active.cancel()
    active.task = asyncio.create_task(_drive(active, _Graph(), lambda _: asyncio.sleep(0)))
    assert await active.task == [0, "closing"]


async def test_a_second_cancel_does_not_cut_off_the_closing_events():
    active = _active()

    async def handle(event):
        if event == "closing":
            active.status = "cancelled"
        active.cancel()
        await asyncio.wait({asyncio.ensure_future(asyncio.sleep(0))})

    active.task = asyncio.create_task(_drive(active, _Graph(), handle))
    assert await active.task == [0, "closing"]
    await active.end()
