from collections.abc import Collection, Sequence

import pytest

from maniple.events import MessageChunk, MessageDelta
from maniple.runs.event_log import CACHED_EVENTS, RunEventLog
from maniple.store import EventRecord
from maniple.store.protocols import EVENT_PAGE_SIZE

pytestmark = pytest.mark.anyio


class Stored:
    """The stored events of one run; counts how often they are read."""

    def __init__(self) -> None:
        self.records: list[EventRecord] = []
        self.reads = 0

    async def append(self, batches: Sequence[tuple[str, Sequence[EventRecord]]]) -> None:
        for _, records in batches:
            self.records += records

    async def read(
        self, run_id: str, after: int = 0, limit: int = 1000, types: Collection[str] | None = None
    ) -> list[EventRecord]:
        self.reads += 1
        return self.records[after : after + limit]

    async def last(self, run_id: str) -> EventRecord | None:
        return self.records[-1] if self.records else None


async def tell(log: RunEventLog, store: Stored, count: int) -> None:
    event = MessageChunk(message_id="m", delta=MessageDelta(content="word"))
    records = [log.number(event) for _ in range(count)]
    await store.append([("r", records)])
    log.publish(records)


async def numbers(log: RunEventLog, after: int = 0) -> list[int]:
    told: list[int] = []
    async for page in log.follow(after):
        assert 0 < len(page) <= EVENT_PAGE_SIZE
        told += [record.number for record in page]
    return told


async def test_a_long_log_is_reported_in_pages_and_only_its_newest_part_is_retained():
    store = Stored()
    log = RunEventLog("r", store)
    for _ in range(5):
        await tell(log, store, CACHED_EVENTS - 1)
    log.close()
    count = 5 * (CACHED_EVENTS - 1)
    assert len(log._cached) == CACHED_EVENTS
    assert await numbers(log) == list(range(1, count + 1))
    store.reads = 0
    assert await numbers(log, after=count - CACHED_EVENTS) == list(
        range(count - CACHED_EVENTS + 1, count + 1)
    )
    assert store.reads == 0


async def test_a_slow_follower_receives_every_event_once():
    store = Stored()
    log = RunEventLog("r", store)
    await tell(log, store, 1)
    told: list[int] = []
    async for page in log.follow():
        told += [record.number for record in page]
        if len(told) == 1:
            await tell(log, store, 3 * CACHED_EVENTS)
            log.close()
    assert told == list(range(1, 3 * CACHED_EVENTS + 2))


async def test_a_run_taken_over_is_sent_from_its_beginning():
    store = Stored()
    await tell(RunEventLog("r", store), store, 1_500)
    log = RunEventLog("r", store, newest_number=1_500)
    await tell(log, store, 3)
    log.close()
    assert await numbers(log) == list(range(1, 1_504))
    assert await numbers(log, after=1_501) == [1_502, 1_503]
