"""What a run's calls write, told while the run goes on."""

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from maniple.errors import StoreError
from maniple.runs.active import ActiveRun
from maniple.runs.outputs import Outputs, Share
from maniple.runs.recorder import Recorder


@dataclass(slots=True, eq=False)
class Harvest:
    """Looks after each call for files that are new, beside the run's own stream, which never waits for it.

    One look at a time; of calls that end meanwhile, one look sees what all of them wrote. All looks of a run
    have one share of files and bytes: what is beyond it, the run's end may tell.
    """

    outputs: Outputs
    active: ActiveRun
    recorder: Recorder
    _share: Share = field(default_factory=Share)
    _is_wanted: bool = False
    _looking: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Tell soon of what is new."""
        self._is_wanted = True
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="harvest")

    async def settle(self) -> None:
        """Finish the look that is under way, and begin no other."""
        self._is_wanted = False
        if self._looking is not None:
            await asyncio.wait([self._looking])

    async def __aenter__(self) -> "Harvest":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._looking is not None:
            self._looking.cancel()
        await self.settle()

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
