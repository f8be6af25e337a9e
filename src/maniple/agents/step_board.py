"""Where concurrent steps of a run wait for each other."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

Outcome = Mapping[str, Any]
"""The fields of a step that its work has changed, such as `status`; empty if it was not begun."""
NOT_BEGUN: Outcome = {}


class StepWave:
    """The steps that were sent to their members in one superstep of the graph.

    Each invocation waits here until the steps that it needs have ended and a place is free. All of them run
    in one event loop.
    """

    def __init__(self, limit: int) -> None:
        self._places = asyncio.Semaphore(limit)
        self._outcomes: dict[int, asyncio.Future[Outcome]] = {}
        self.restoring = asyncio.Lock()
        """Held while the outcomes that an earlier execution stored are read."""
        self.is_restored = False

    def end(self, step_id: int, outcome: Outcome) -> None:
        """Report how a step ended; the first report counts."""
        future = self._future(step_id)
        if not future.done():
            future.set_result(outcome)

    async def outcomes_of(self, step_ids: Iterable[int]) -> Mapping[int, Outcome] | None:
        """Wait for these steps and return their outcomes; None if one of them was not completed."""
        outcomes = {number: await self._future(number) for number in step_ids}
        if any(one.get("status") != "completed" for one in outcomes.values()):
            return None
        return outcomes

    @asynccontextmanager
    async def place(self, after: Iterable[int] = ()) -> AsyncGenerator[None]:
        """Hold one of the places for concurrent work, once the steps `after` have ended in any way."""
        for number in after:
            await self._future(number)
        async with self._places:
            yield

    def _future(self, step_id: int) -> asyncio.Future[Outcome]:
        if step_id not in self._outcomes:
            self._outcomes[step_id] = asyncio.get_running_loop().create_future()
        return self._outcomes[step_id]


class StepBoard:
    """The current wave of one run."""

    def __init__(self) -> None:
        self._number = 0
        self._wave: StepWave | None = None

    def wave(self, number: int, limit: int) -> StepWave:
        """Return the wave with this number; an earlier one is over."""
        if self._wave is None or number != self._number:
            self._number, self._wave = number, StepWave(limit)
        return self._wave
