"""The teams that drive runs: the one of the settings, and one for each other model that a run has chosen."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from maniple.errors import UnconfiguredModel
from maniple.graph import Team


async def _do_nothing() -> None:
    return None


def _refuse_all(model: str) -> Team:
    raise UnconfiguredModel(model, ())


@dataclass(frozen=True, slots=True)
class TeamSource:
    """The team over one set of models, and how the same team is built over another one of them."""

    team: Team
    build: Callable[[str], Team] = _refuse_all
    """Returns the team whose basic model has this name; raises `UnconfiguredModel`. Blocks."""
    load: Callable[[], Awaitable[None]] = _do_nothing
    """Loads the clients of the models; awaited before a run works, and fast when repeated."""
    close: Callable[[], Awaitable[None]] = _do_nothing
    """Closes the models, after the last run that uses them when others have taken their place."""


@dataclass(slots=True, eq=False)
class _OpenSource:
    """A source with the teams that were built, and the number of runs that use it."""

    source: TeamSource
    built: dict[str, Team] = field(default_factory=dict[str, Team])
    users: int = 0
    building: asyncio.Lock = field(default_factory=asyncio.Lock)


class Teams:
    """The teams of an engine. They can be replaced; a run keeps the one with which it began to work."""

    def __init__(self, source: Team | TeamSource) -> None:
        self._current = _OpenSource(source if isinstance(source, TeamSource) else TeamSource(source))
        self._replaced: list[_OpenSource] = []

    @property
    def default(self) -> Team:
        """The team of runs that choose no model. Teams differ in their models alone."""
        return self._current.source.team

    @asynccontextmanager
    async def use(self, model: str) -> AsyncGenerator[tuple[Team, TeamSource]]:
        """Yield the team for a run that chose `model` ("": none); it stays open inside.

        Raises `UnconfiguredModel`.
        """
        opened = self._current
        opened.users += 1
        try:
            yield await self._get(opened, model), opened.source
        finally:
            opened.users -= 1
            await self._close_unused()

    async def replace(self, source: TeamSource) -> None:
        """Have runs that begin to work from now on use other models."""
        self._replaced.append(self._current)
        self._current = _OpenSource(source)
        await self._close_unused()

    async def close(self) -> None:
        """Close the models that took the place of the first ones; no run may be at work."""
        for one in (*self._replaced, self._current):
            await one.source.close()
        self._replaced.clear()

    async def _get(self, opened: _OpenSource, model: str) -> Team:
        if not model:
            return opened.source.team
        async with opened.building:
            if model not in opened.built:
                opened.built[model] = await asyncio.to_thread(opened.source.build, model)
            return opened.built[model]

    async def _close_unused(self) -> None:
        unused = [one for one in self._replaced if not one.users]
        self._replaced = [one for one in self._replaced if one.users]
        for one in unused:
            await one.source.close()
