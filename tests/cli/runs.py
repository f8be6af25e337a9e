"""Runs that tell prepared events, with the interface of `maniple.runs`."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from maniple.events import Event
from maniple.runs import RunRequest
from tests.cli.events import ending


class ScriptedRun:
    """Tells `events`; one that `hangs` then waits to be cancelled, and ends as cancelled runs do."""

    def __init__(self, events: Sequence[Event], *, hangs: bool = False) -> None:
        self.run_id = self.thread_id = "scripted"
        self.cancellations = 0
        self._events = events
        self._hangs = hangs
        self._cancelled = asyncio.Event()
        self.waiting = asyncio.Event()

    async def events(self, after: int = 0) -> AsyncIterator[tuple[int, Event]]:
        """Yield what was prepared."""
        for number, event in enumerate(self._events, start=1):
            yield number, event
        if self._hangs:
            self.waiting.set()
            await self._cancelled.wait()
            for number, event in enumerate(ending("cancelled"), start=len(self._events) + 1):
                yield number, event

    def cancel(self) -> None:
        """Note the wish, and end a hanging run."""
        self.cancellations += 1
        self._cancelled.set()


class ScriptedRuns:
    """Starts the prepared runs in order; `requests` are what was asked."""

    def __init__(self, *runs: ScriptedRun) -> None:
        self.requests: list[RunRequest] = []
        self._runs = list(runs)

    def start(self, request: RunRequest) -> ScriptedRun:
        """Start the next one."""
        self.requests.append(request)
        return self._runs.pop(0)
