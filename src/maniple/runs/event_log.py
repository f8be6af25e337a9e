"""The event log of a run while this process drives it, and the recorder of the events of all runs."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from maniple.errors import StoreError
from maniple.events import Event, SessionState, WorkflowEnded, record_of
from maniple.store import EventRecord, EventTable
from maniple.store.protocols import EVENT_PAGE_SIZE
from maniple.store.waiting import StoreWait, WaitLimit, waiting

if TYPE_CHECKING:
    from maniple.telemetry.metrics import Metrics

CACHED_EVENTS = 2_000
WAITING_EVENTS = 2_000
RETRY_SECONDS = (0.1, 0.5, 1.0)
GROUP_SECONDS = 0.005
"""The pause between two groups. It delays a token by as much, and makes a burst ten times cheaper.

What a client waits for, the end of a run, is not delayed.
"""


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


_Entry = tuple[RunEventLog, EventRecord]


class Recorder:
    """Stores events of all runs in groups, before they are sent (`docs/wire.md`)."""

    def __init__(
        self, events: EventTable, metrics: "Metrics | None" = None, group_seconds: float = GROUP_SECONDS
    ) -> None:
        self._events = events
        self._group_seconds = group_seconds
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
                    async with asyncio.timeout(self._group_seconds):
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


async def newest_number(events: EventTable, run_id: str) -> int:
    """Return the number of the newest stored event of a run; 0 if there is none."""
    last = await events.last(run_id)
    return last.number if last else 0


@asynccontextmanager
async def open_recorder(
    events: EventTable,
    metrics: "Metrics | None" = None,
    *,
    limit: WaitLimit | None = None,
    group_seconds: float = GROUP_SECONDS,
) -> AsyncGenerator[Recorder]:
    """Open a recorder; on leaving, all added events are written.

    While the store is away, they wait up to `limit`; without one, they are lost after a few seconds.
    """
    recorder = Recorder(events, metrics, group_seconds)
    with waiting(StoreWait(limit or WaitLimit(0))):
        writing = asyncio.create_task(recorder.write(), name="recorder")
    try:
        yield recorder
    finally:
        await recorder.wait_until_stored()
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
