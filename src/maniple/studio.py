"""The graph as `langgraph dev` and LangGraph Studio load it (`langgraph.json`)."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import Context

from maniple.app import open_team
from maniple.graph import Team


class SharedTeam:
    """One open team, shared by all callers on the same event loop.

    The development server requests the team for every run and every view of the graph, and never closes it. A
    separate task therefore holds the team open until the end of the loop cancels the task.
    """

    def __init__(self, opener: Callable[[], AbstractAsyncContextManager[Team]]) -> None:
        self._opener = opener
        self._teams: dict[asyncio.AbstractEventLoop, asyncio.Future[Team]] = {}
        self._keepers: set[asyncio.Task[None]] = set()

    async def get(self) -> Team:
        """Return the open team; the first call opens it, and so does one after a failure.

        Raises what opening raises: `ConfigError`, `ModelError`, `EmbeddedModelError`.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._teams:
            opening = self._teams[loop] = loop.create_future()
            # The team outlives the request that opened it, and keeps nothing of it.
            keeper = loop.create_task(self._keep_open(opening), context=Context())
            self._keepers.add(keeper)
            keeper.add_done_callback(self._keepers.discard)
        # One who stops waiting leaves the others their team.
        return await asyncio.shield(self._teams[loop])

    async def _keep_open(self, opening: asyncio.Future[Team]) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with self._opener() as team:
                opening.set_result(team)
                await loop.create_future()
        except Exception as error:
            if opening.done():
                raise
            opening.set_exception(error)  # it belongs to those who wait
        finally:
            opening.cancel()
            del self._teams[loop]


_shared = SharedTeam(open_team)


async def team() -> Team:
    """Return the team with the settings of the working directory; the server brings the checkpointer."""
    return await _shared.get()
