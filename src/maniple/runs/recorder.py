"""Writes the events of all runs in groups: one transaction for whatever came while the last was written."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from maniple.errors import StoreError
from maniple.events import Event, as_json
from maniple.runs.live import LiveLog
from maniple.store import EventRecord, EventTable

if TYPE_CHECKING:
    from maniple.telemetry.metrics import Metrics

WAITING_EVENTS = 2_000
RETRY_SECONDS = (0.1, 0.5, 1.0)
GROUP_SECONDS = 0.005
"""How soon after one group the next is written: a token is seen as soon, and a burst costs a tenth."""

_Entry = tuple[LiveLog, EventRecord]


class Recorder:
    """Stores events before they are told (`docs/wire.md`: "stored before they are sent")."""

    def __init__(self, events: EventTable, metrics: "Metrics | None" = None) -> None:
        self._events = events
        self._metrics = metrics
        self._waiting: list[_Entry] = []
        self._wanted = asyncio.Event()
        self._next: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._current: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._current.set_result(None)

    async def add(self, log: LiveLog, event: Event) -> None:
        """Record the next event of a run; waits while the disk is far behind.

        Raises the `StoreError` by which an earlier event of this run was lost.
        """
        if log.failure is not None:
            raise log.failure
        if self._metrics is not None:
            self._metrics.observe(event, log.run_id)
        record = log.number(event, as_json(event))
        self._waiting.append((log, record))
        self._wanted.set()
        if len(self._waiting) > WAITING_EVENTS:
            await self.settled()

    async def settled(self) -> None:
        """Wait until everything added so far is stored or lost."""
        await asyncio.wait([self._next if self._waiting else self._current])

    async def write(self) -> None:
        """Write what is added, until cancelled; then what is still waiting."""
        try:
            while True:
                await self._wanted.wait()
                await self._write_waiting()
                await asyncio.sleep(GROUP_SECONDS)
        finally:
            await self._write_waiting()

    async def _write_waiting(self) -> None:
        self._wanted.clear()
        entries, self._waiting = self._waiting, []
        self._current, self._next = self._next, asyncio.get_running_loop().create_future()
        try:
            await self._store(entries)
        finally:
            self._current.set_result(None)

    async def _store(self, entries: Sequence[_Entry]) -> None:
        grouped: dict[LiveLog, list[EventRecord]] = {}
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

    async def _store_each(self, grouped: Mapping[LiveLog, Sequence[EventRecord]]) -> None:
        """Store what can be stored: one run's trouble is not to be another's."""
        for log, records in grouped.items():
            try:
                await self._events.append([(log.run_id, records)])
            except StoreError as error:
                log.close(error)
            else:
                log.publish(records)

    async def _append(self, batches: Sequence[tuple[str, Sequence[EventRecord]]]) -> None:
        """Append, and try again for a while what may pass, such as a file that another process holds."""
        for pause in RETRY_SECONDS:
            try:
                return await self._events.append(batches)
            except StoreError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(pause)
        return await self._events.append(batches)


@asynccontextmanager
async def open_recorder(events: EventTable, metrics: "Metrics | None" = None) -> AsyncIterator[Recorder]:
    """Open a recorder; on leaving, what was added is written."""
    recorder = Recorder(events, metrics)
    writing = asyncio.create_task(recorder.write(), name="recorder")
    try:
        yield recorder
    finally:
        await recorder.settled()
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
