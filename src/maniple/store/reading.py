"""A run's stored events, some at a time."""

from collections.abc import AsyncIterator, Sequence

from maniple.store.protocols import EventTable
from maniple.store.records import EventRecord

PAGE = 1_000


async def stored(events: EventTable, run_id: str, after: int = 0) -> AsyncIterator[Sequence[EventRecord]]:
    """Yield the events of a run after number `after`, at most `PAGE` at a time."""
    number = max(after, 0)
    while page := await events.read(run_id, number, PAGE):
        yield page
        number = page[-1].number
