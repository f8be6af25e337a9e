"""What a run's calls write, told while the run goes on."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from maniple.errors import StoreError
from maniple.events import ArtifactCreated
from maniple.runs.active import ActiveRun
from maniple.runs.outputs import Outputs, Share
from maniple.runs.recorder import Recorder


@dataclass(slots=True, eq=False)
class Harvest:
    """Looks after each call for files that are new, beside the run's own stream, which never waits for it.

    One look at a time; of calls that end meanwhile, one look sees what all of them wrote. A path is told of
    once while the run goes on and, if it has changed since, once at its end. All looks have one share of
    files and bytes, half of which is left for the end.
    """

    outputs: Outputs
    active: ActiveRun
    recorder: Recorder
    _share: Share = field(default_factory=Share.half)
    _is_wanted: bool = False
    _looking: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Tell soon of what is new."""
        self._is_wanted = True
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="harvest")

    async def last(self) -> AsyncGenerator[ArtifactCreated]:
        """Finish the look that is under way, and yield what the run leaves at its end and was not told."""
        await self._settle()
        self._share.complete()
        async for made in self.outputs.collect(self.active.record, self._share):
            yield made

    async def _settle(self) -> None:
        """Finish the look that is under way, and begin no other."""
        self._is_wanted = False
        if self._looking is not None:
            await asyncio.wait([self._looking])

    async def __aenter__(self) -> "Harvest":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._looking is not None:
            self._looking.cancel()
        await self._settle()

    async def _look(self) -> None:
        # What could not be recorded fails the run by its own next event.
        with suppress(StoreError):
            while self._is_wanted:
                self._is_wanted = False
                async with aclosing(self.outputs.collect(self.active.record, self._share)) as found:
                    async for made in found:
                        if self.active.suspended:
                            return
                        await self.active.note(made, self.recorder)
