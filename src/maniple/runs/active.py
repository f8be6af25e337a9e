"""One run while this process drives it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from langgraph.runtime import RunControl

from maniple.agents.budget import UsageMeter
from maniple.agents.plan_edits import PendingPlanEdits
from maniple.events import ErrorOccurred, Event, EventRedactor, RunStatusChanged, SessionState, StreamState
from maniple.runs.live import LiveLog
from maniple.runs.recorder import Recorder
from maniple.runs.request import RunRequest
from maniple.store import RunRecord
from maniple.types import RunStatus

CANCEL_SECONDS = 2.0
_CANCEL_TRIES = 5


@dataclass(slots=True, eq=False)
class ActiveRun:
    """A run's record, its log, and the task that drives it.

    `suspended` says that this program is about to stop: what the run tells from then on is not recorded,
    so that it goes on from its last checkpoint.
    """

    record: RunRecord
    request: RunRequest
    log: LiveLog
    meter: UsageMeter
    redacting: EventRedactor
    wishes: PendingPlanEdits
    control: RunControl = field(default_factory=RunControl)
    task: asyncio.Task[None] | None = None
    begun: bool = False
    cancelled: bool = False
    suspended: bool = False
    status: RunStatus | None = None
    failure: ErrorOccurred | None = None
    ended: bool = False
    """Whether its last event has been recorded."""

    def cancel(self) -> None:
        """End the run; its events still close properly, with status `cancelled`."""
        if self.cancelled or self.status is not None:
            return  # it is being done, or comes too late
        self.cancelled, self.suspended = True, False
        # A task cancelled before its first step would end without a word: it is cancelled when it begins.
        if self.task is not None and self.begun:
            self.task.cancel()

    async def end(self) -> None:
        """Cancel the run and wait for its end, though not for ever."""
        self.cancel()
        for _ in range(_CANCEL_TRIES):
            if self.task is None or (await asyncio.wait([self.task], timeout=CANCEL_SECONDS))[0]:
                return
            self.task.cancel()  # something in it took the first one for its own

    def suspend(self) -> None:
        """Stop at once, as if the process had died."""
        self.suspended = True
        if self.task is not None and not self.ended:
            self.task.cancel()

    def resume_after(self, stream: StreamState) -> None:
        """Take over the status that the stream has already sent; only its last events are missing then."""
        self.status = stream.status
        self.failure = stream.failure if stream.status is not None else None

    async def tell(self, events: AsyncGenerator[Event], recorder: Recorder) -> None:
        """Record what the run tells until it has ended or is suspended."""
        self.begun = True
        if self.cancelled and self.task is not None:
            self.task.cancel()
        async with aclosing(events):
            async for event in events:
                if self.suspended:
                    return
                await self.note(event, recorder)

    async def note(self, event: Event, recorder: Recorder) -> None:
        """Record one event without secrets, and what it says of the run's end."""
        for told in self.redacting.feed(event):
            if isinstance(told, RunStatusChanged):
                self.status = told.status
            elif isinstance(told, ErrorOccurred):
                self.failure = told
            await recorder.add(self.log, told)
            self.ended = isinstance(told, SessionState)
