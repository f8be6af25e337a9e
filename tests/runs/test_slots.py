"""Places are given out fairly."""

import asyncio

import pytest

from maniple.runs.scheduling import FairSemaphore, ThreadLocks

pytestmark = pytest.mark.anyio


async def waits(slots: FairSemaphore, owner: str, order: list[str]) -> None:
    async with slots.hold(owner):
        order.append(owner)


async def begun(slots: FairSemaphore, owners: str) -> tuple[list[str], list[asyncio.Task[None]]]:
    order: list[str] = []
    tasks = [asyncio.create_task(waits(slots, owner, order)) for owner in owners]
    await asyncio.sleep(0)  # each begins, and waits
    return order, tasks


async def test_owners_are_let_in_by_turns():
    slots = FairSemaphore(1)
    async with slots.hold("first"):
        order, tasks = await begun(slots, "aaaabbc")
    await asyncio.gather(*tasks)
    assert "".join(order) == "abcabaa"


async def test_a_waiter_that_leaves_the_queue_delays_no_other():
    slots = FairSemaphore(1)
    async with slots.hold("first"):
        order, tasks = await begun(slots, "ab")
        tasks[0].cancel()
        await asyncio.wait([tasks[0]])
    await tasks[1]
    assert order == ["b"]


async def test_a_place_that_came_too_late_goes_to_the_next():
    slots = FairSemaphore(1)
    async with slots.hold("first"):
        order, tasks = await begun(slots, "ab")
    tasks[0].cancel()  # the place is its own already, but it has not heard of it
    await asyncio.wait(tasks)
    assert order == ["b"]
    async with asyncio.timeout(60), slots.hold("c"):
        pass  # it is free


async def test_a_thread_without_work_is_removed():
    turns = ThreadLocks()
    async with turns.acquire("t"):
        assert turns.is_locked("t")
    assert not turns.is_locked("t")
