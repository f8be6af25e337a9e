"""Schedules and their ticks, in every database."""

import asyncio
from dataclasses import replace

import pytest

from maniple.store import Schedule, ScheduleTick

pytestmark = pytest.mark.anyio
DAILY = Schedule("s1", "ann", "Sums \ud800", "0 8 * * *", "UTC", "skip", True, None, "{}", 5.0, 100.0)
TICK = ScheduleTick("s1", 100.0, "r1")


async def test_a_schedule_is_stored_changed_and_deleted_with_its_ticks(store):
    table = store.schedules
    await table.add(DAILY)
    await table.add(replace(DAILY, schedule_id="s2", owner="bob"))
    assert await table.get("s1", "bob") is None
    stored = await table.get("s1", "ann")
    assert stored == replace(DAILY, name=stored.name) and stored.catch_up is True
    assert [one.schedule_id for one in await table.list("ann")] == ["s1"]
    assert [one.schedule_id for one in await table.list(None)] == ["s2", "s1"]
    assert await table.count("ann") == 1
    changed = replace(stored, overlap="queue", catch_up=False, thread_id="t", paused_at=7.5)
    assert await table.update(changed)
    assert await table.get("s1", None) == changed
    await table.add_tick(TICK)
    assert not await table.delete("s1", "bob")
    assert await table.delete("s1", "ann")
    assert await table.list_ticks("s1") == []
    assert not await table.update(changed)


async def test_a_schedule_is_due_at_its_time_unless_it_is_paused_or_over(store):
    table = store.schedules
    await table.add(DAILY)
    await table.add(replace(DAILY, schedule_id="s2", next_at=50.0))
    await table.add(replace(DAILY, schedule_id="s3", paused_at=1.0))
    await table.add(replace(DAILY, schedule_id="s4", next_at=None))
    assert await table.list_due(49.9) == []
    assert [one.schedule_id for one in await table.list_due(100.0)] == ["s2", "s1"]


async def test_only_the_time_that_was_due_is_moved_on(store):
    table = store.schedules
    await table.add(DAILY)
    await table.advance("s1", 99.0, 300.0)
    assert (await table.get("s1", None)).next_at == 100.0
    await table.advance("s1", 100.0, 200.0)
    await table.advance("s1", 100.0, 300.0)
    assert (await table.get("s1", None)).next_at == 200.0
    await table.advance("s1", 200.0, None)
    assert (await table.get("s1", None)).next_at is None


async def test_a_tick_is_stored_once_and_settled_once(store):
    table = store.schedules
    await table.add(DAILY)
    await asyncio.gather(*(table.add_tick(replace(TICK, run_id=f"r{n}")) for n in range(5)))
    [pending] = await table.list_pending()
    assert pending.tick == 100.0
    await table.settle(replace(pending, state="started"))
    await table.settle(replace(pending, state="failed", reason="late"))
    await table.add_tick(pending)
    assert await table.list_pending() == []
    assert await table.list_ticks("s1") == [replace(pending, state="started")]


async def test_ticks_of_deleted_and_paused_schedules_do_not_wait(store):
    table = store.schedules
    await table.add_tick(TICK)
    await table.add(replace(DAILY, paused_at=1.0))
    await table.add_tick(TICK)
    assert await table.list_pending() == []
    await table.update(DAILY)
    assert await table.list_pending() == [TICK]


async def test_the_newest_ticks_come_first(store):
    table = store.schedules
    await table.add(DAILY)
    for number in range(5):
        state = "skipped" if number % 2 else "pending"
        await table.add_tick(ScheduleTick("s1", float(number), f"r{number}", state))
    assert [one.tick for one in await table.list_ticks("s1", 2)] == [4.0, 3.0]
    assert [one.tick for one in await table.list_ticks("s1", state="skipped")] == [3.0, 1.0]
