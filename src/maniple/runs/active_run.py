"""An active run: its event log, the recorder of all runs, and the task that drives it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langgraph.runtime import RunControl

from maniple.agents.budget import UsageMeter
from maniple.agents.inbox import Inbox
from maniple.errors import StoreError
from maniple.events import (
    ErrorOccurred,
    Event,
    EventRedactor,
    RunStatusChanged,
    SessionState,
    StreamState,
    WorkflowEnded,
    record_of,
)
from maniple.graph import Team
from maniple.runs.engine_config import EngineConfig, RunTelemetry
from maniple.runs.request import RunRequest
from maniple.store import EventRecord, EventTable, RunRecord, Store
from maniple.store.protocols import EVENT_PAGE_SIZE
from maniple.types import RunStatus

if TYPE_CHECKING:
    from maniple.telemetry.metrics import Metrics

CACHED_EVENTS = 2_000


class RunEventLog:
    """The events of one run while this process drives it.

    The newest `CACHED_EVENTS` events are cached until the run has ended. Older events, and those that another
    process recorded earlier, are read from the store.
    """

    def __init__(self, run_id: str, events: EventTable, *, newest_number: int = 0) -> None:
        self.run_id = run_id
        self.closed = False
        self.failure: StoreError | None = None
        self._store = events
        self._newest_number = self._oldest_cached = newest_number
        self._cached: list[EventRecord] = []
        self._changed = asyncio.Event()
        self._followers = 0

    @property
    def newest_number(self) -> int:
        """The number of the newest event, which may not be stored yet."""
        return self._newest_number

    @property
    def is_followed(self) -> bool:
        """Whether a client follows the run now."""
        return self._followers > 0

    def number(self, event: Event) -> EventRecord:
        """Return the record of the next event."""
        self._newest_number += 1
        return record_of(event, self._newest_number)

    def publish(self, records: Sequence[EventRecord]) -> None:
        """Send stored events to the followers."""
        self._cached.extend(records)
        if (surplus := len(self._cached) - CACHED_EVENTS) > 0:
            del self._cached[:surplus]
            self._oldest_cached += surplus
        self._wake()

    def close(self, failure: StoreError | None = None) -> None:
        """End the log for its followers; `failure` is the error that prevented more events."""
        self.closed, self.failure = True, self.failure or failure
        self._wake()

    async def follow(self, after: int = 0) -> AsyncIterator[Sequence[EventRecord]]:
        """Yield the events after number `after`, in pages, until the log is closed.

        Raises the `StoreError` that prevented events from being recorded or read.
        """
        number = max(after, 0)
        self._followers += 1
        try:
            while True:
                changed = self._changed
                if number < self._oldest_cached:
                    older = self._oldest_cached
                    page = await self._store.read(self.run_id, number, min(EVENT_PAGE_SIZE, older - number))
                    if not page:
                        number = older  # the run was deleted meanwhile
                        continue
                else:
                    begin = number - self._oldest_cached
                    page = self._cached[begin : begin + EVENT_PAGE_SIZE]
                if page:
                    yield page
                    number = page[-1].number
                elif self.closed:
                    break
                else:
                    await changed.wait()
        finally:
            self._followers -= 1
        if self.failure is not None:
            raise self.failure

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


WAITING_EVENTS = 2_000
RETRY_SECONDS = (0.1, 0.5, 1.0)
GROUP_SECONDS = 0.005
"""The pause between two groups. It delays a token by as much, and makes a burst ten times cheaper.

What a client waits for, the end of a run, is not delayed.
"""

_Entry = tuple[RunEventLog, EventRecord]


class Recorder:
    """Stores events of all runs in groups, before they are sent (`docs/wire.md`)."""

    def __init__(self, events: EventTable, metrics: "Metrics | None" = None) -> None:
        self._events = events
        self._metrics = metrics
        self._waiting: list[_Entry] = []
        self._wanted = asyncio.Event()
        self._urgent = asyncio.Event()
        self._next: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._current: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._current.set_result(None)

    async def add(self, log: RunEventLog, event: Event) -> None:
        """Record the next event of a run; wait while many events are not stored yet.

        Raises the `StoreError` that lost an earlier event of this run.
        """
        if log.failure is not None:
            raise log.failure
        if self._metrics is not None:
            self._metrics.observe(event, log.run_id)
        record = log.number(event)
        self._waiting.append((log, record))
        self._wanted.set()
        if isinstance(event, WorkflowEnded | SessionState):
            self._urgent.set()
        if len(self._waiting) > WAITING_EVENTS:
            await self.wait_until_stored()

    async def wait_until_stored(self) -> None:
        """Wait until everything added so far is stored or lost."""
        self._urgent.set()
        await asyncio.wait([self._next if self._waiting else self._current])

    async def write(self) -> None:
        """Write added events until cancelled; then write the rest."""
        try:
            while True:
                await self._wanted.wait()
                await self._write_waiting()
                with suppress(TimeoutError):
                    async with asyncio.timeout(GROUP_SECONDS):
                        await self._urgent.wait()
        finally:
            await self._write_waiting()

    async def _write_waiting(self) -> None:
        self._wanted.clear()
        self._urgent.clear()
        entries, self._waiting = self._waiting, []
        self._current, self._next = self._next, asyncio.get_running_loop().create_future()
        try:
            await self._store(entries)
        finally:
            self._current.set_result(None)

    async def _store(self, entries: Sequence[_Entry]) -> None:
        grouped: dict[RunEventLog, list[EventRecord]] = {}
        for log, record in entries:
            grouped.setdefault(log, []).append(record)
        if not grouped:
            return
        batches = [(log.run_id, records) for log, records in grouped.items()]
        try:
            with self._metrics.storing() if self._metrics else nullcontext():
                await self._append(batches)
        except StoreError:
            await self._store_each(grouped)
            return
        for log, records in grouped.items():
            log.publish(records)

    async def _store_each(self, grouped: Mapping[RunEventLog, Sequence[EventRecord]]) -> None:
        """Store the events of each run separately, so that one run's error does not affect the others."""
        for log, records in grouped.items():
            try:
                await self._events.append([(log.run_id, records)])
            except StoreError as error:
                log.close(error)
            else:
                log.publish(records)

    async def _append(self, batches: Sequence[tuple[str, Sequence[EventRecord]]]) -> None:
        """Append; retry a retryable error, such as a locked file, for a while."""
        for pause in RETRY_SECONDS:
            try:
                return await self._events.append(batches)
            except StoreError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(pause)
        return await self._events.append(batches)


@asynccontextmanager
async def open_recorder(events: EventTable, metrics: "Metrics | None" = None) -> AsyncGenerator[Recorder]:
    """Open a recorder; on leaving, all added events are written."""
    recorder = Recorder(events, metrics)
    writing = asyncio.create_task(recorder.write(), name="recorder")
    try:
        yield recorder
    finally:
        await recorder.wait_until_stored()
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing


@dataclass(frozen=True, slots=True)
class RunServices:
    """What all runs of an engine share."""

    team: Team
    store: Store
    recorder: Recorder
    config: EngineConfig
    telemetry: RunTelemetry


CANCEL_SECONDS = 2.0
_CANCEL_TRIES = 5


@dataclass(slots=True, eq=False)
class ActiveRun:
    """A run's record, its log, and the task that drives it.

    `suspended` is set when this program is about to stop: later events of the run are not recorded, so that
    it continues from its last checkpoint.
    """

    record: RunRecord
    request: RunRequest
    log: RunEventLog
    meter: UsageMeter
    redactor: EventRedactor
    inbox: Inbox
    control: RunControl = field(default_factory=RunControl)
    task: asyncio.Task[None] | None = None
    begun: bool = False
    """Whether the graph has sent its first event."""
    awaits_event: bool = False
    """Whether the task waits for the next event of the graph."""
    cancelled: bool = False
    is_cancel_sent: bool = False
    """Whether the cancellation has been raised in the graph."""
    suspended: bool = False
    status: RunStatus | None = None
    failure: ErrorOccurred | None = None
    ended: bool = False
    """Whether its last event has been recorded."""
    is_returned: bool = False
    """Whether the digest of the conversation that it returns is stored."""
    is_streaming: bool = False
    """Whether events that are not the graph's may be recorded: after the first event, before the status."""
    shown_inputs: set[str] = field(default_factory=set[str])
    """The ids of the inputs whose events are recorded."""
    shown_replies: set[str] = field(default_factory=set[str])
    """The ids of the inputs whose replies are recorded."""
    next_runs: list[RunRecord] = field(default_factory=list[RunRecord])
    """The runs that unanswered messages become once the end of this run is stored."""

    @property
    def can_be_steered(self) -> bool:
        """Whether a message of the user can be added to the run now."""
        return self.status is None and not (self.cancelled or self.suspended)

    def cancel(self) -> None:
        """End the run; its events still close properly, with status `cancelled`."""
        if self.cancelled or self.status is not None:
            return  # already in progress, or too late
        self.cancelled, self.suspended = True, False
        self._send_cancel()

    def _send_cancel(self) -> None:
        """Cancel the task where closing events follow a cancellation; elsewhere `next_event` does it."""
        if self.task is not None and self.awaits_event:
            self.is_cancel_sent = True
            self.task.cancel()

    async def next_event(self, events: AsyncGenerator[Event]) -> Event | None:
        """Return the next event of the graph, or None after the last one.

        A cancellation takes effect here alone: what is done with an event, such as storing it, is finished.
        """
        is_due = self.cancelled and not self.is_cancel_sent and self.status is None
        self.awaits_event = True
        try:
            if is_due and self.begun:  # a generator that has not begun would send no closing events
                self.is_cancel_sent = True
                return await events.athrow(asyncio.CancelledError())
            return await anext(events)
        except StopAsyncIteration:
            return None
        finally:
            self.begun, self.awaits_event = True, False

    async def end(self) -> None:
        """Cancel the run and wait for its end, for a limited time."""
        self.cancel()
        for _ in range(_CANCEL_TRIES):
            if self.task is None or (await asyncio.wait([self.task], timeout=CANCEL_SECONDS))[0]:
                return
            if self.status is None:
                self._send_cancel()  # code in the task has suppressed the first one

    def suspend(self) -> None:
        """Stop immediately, as if the process had died."""
        self.suspended = True
        if self.task is not None and not self.ended:
            self.task.cancel()

    def resume_after(self, stream: StreamState) -> None:
        """Continue with the status that the stream has already sent.

        Then only its last events are missing.
        """
        self.status = stream.status
        self.failure = stream.failure if stream.status is not None else None

    async def record_all(self, events: AsyncGenerator[Event], recorder: Recorder) -> None:
        """Record the events of the run until it has ended or is suspended."""
        async with aclosing(events):
            async for event in events:
                if self.suspended:
                    return
                await self.record_event(event, recorder)

    async def record_event(self, event: Event, recorder: Recorder) -> None:
        """Record one event without secrets, and store the status and the error that it reports."""
        for redacted in self.redactor.feed(event):
            if isinstance(redacted, RunStatusChanged):
                self.status = redacted.status
            elif isinstance(redacted, ErrorOccurred):
                self.failure = redacted
            await recorder.add(self.log, redacted)
            self.ended = isinstance(redacted, SessionState)
