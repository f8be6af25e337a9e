"""The log of a run that is under way: numbered, stored, and only then told."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from maniple.errors import StoreError
from maniple.events import Event
from maniple.store import EventRecord, EventTable
from maniple.store.protocols import EVENT_PAGE_SIZE

KEPT = 2_000


class LiveLog:
    """The events of one run while this process drives it.

    The newest `KEPT` events are here until the run has ended. What is older, or was told before this process
    took the run over, is read from the store.
    """

    def __init__(self, run_id: str, events: EventTable, *, told: int = 0) -> None:
        self.run_id = run_id
        self.closed = False
        self.failure: StoreError | None = None
        self._store = events
        self._numbered = self._older = told
        self._told: list[EventRecord] = []
        self._changed = asyncio.Event()
        self._followers = 0

    @property
    def is_followed(self) -> bool:
        """Whether somebody reads along right now."""
        return self._followers > 0

    def number(self, event: Event, data: str) -> EventRecord:
        """Return the record of the next event."""
        self._numbered += 1
        return EventRecord(self._numbered, event.type, data, round(event.at, 3))

    def publish(self, records: Sequence[EventRecord]) -> None:
        """Tell those who follow what has been stored."""
        self._told.extend(records)
        if (surplus := len(self._told) - KEPT) > 0:
            del self._told[:surplus]
            self._older += surplus
        self._wake()

    def close(self, failure: StoreError | None = None) -> None:
        """Say that nothing follows here; `failure` is why what follows could not be stored."""
        self.closed, self.failure = True, self.failure or failure
        self._wake()

    async def follow(self, after: int = 0) -> AsyncIterator[Sequence[EventRecord]]:
        """Yield what comes after number `after`, at most `PAGE` events at a time, until the log is closed.

        Raises the `StoreError` that kept the run from being recorded, or its events from being read.
        """
        number = max(after, 0)
        self._followers += 1
        try:
            while True:
                changed = self._changed
                if number < self._older:
                    older = self._older
                    page = await self._store.read(self.run_id, number, min(EVENT_PAGE_SIZE, older - number))
                    if not page:
                        number = older  # the run was deleted meanwhile
                        continue
                else:
                    begin = number - self._older
                    page = self._told[begin : begin + EVENT_PAGE_SIZE]
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
