"""Shared state of the concurrent steps of a run, and the cancellation of a running step."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from maniple.agents.plan_edits import PendingPlanEdits

T = TypeVar("T")
W = TypeVar("W")


class StepBoard:
    """The waves of concurrent steps of one run: the current wave of each of its graphs."""

    def __init__(self) -> None:
        self._waves: dict[str, tuple[int, Any]] = {}

    def wave(self, graph: str, number: int, make: Callable[[], W]) -> W:
        """Return the wave with this number of a graph (its checkpoint namespace), replacing older ones."""
        known = self._waves.get(graph)
        if known is None or known[0] != number:
            known = self._waves[graph] = (number, make())
        wave: W = known[1]
        return wave

    def forget(self, graph: str, wave: object) -> None:
        """Remove an aborted wave, so that its next execution starts from the stored records."""
        if (known := self._waves.get(graph)) is not None and known[1] is wave:
            del self._waves[graph]


async def run_unless_stopped(
    work: Coroutine[Any, Any, T], edits: PendingPlanEdits | None, is_stopped: Callable[[], bool]
) -> T | None:
    """Return the result of `work`; if a change of the plan stops it, cancel it and return None.

    `work` has ended when this function returns or raises.
    """
    if edits is None:
        return await work
    task = asyncio.ensure_future(work)
    try:
        while not task.done() and not is_stopped():
            await asyncio.wait({task, edits.next_change()}, return_when=asyncio.FIRST_COMPLETED)
        # A result that is complete is still discarded if the step was stopped in the meantime.
        return None if is_stopped() else await task
    finally:
        while not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # otherwise asyncio would log that it was never retrieved
