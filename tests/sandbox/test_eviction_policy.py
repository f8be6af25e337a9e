"""Who is let in, and who has to make room."""

import asyncio
from collections.abc import Callable

import pytest

from maniple.sandbox.sessions import EvictionPolicy, SessionPool

pytestmark = pytest.mark.anyio

_LONG = 60.0


class _Hall:
    """Places whose holders leave as soon as they are asked to."""

    def __init__(self, number: int, rest_seconds: float = _LONG, patience_seconds: float = _LONG) -> None:
        self.asked: list[str] = []
        self.places = SessionPool(number, self._ask, EvictionPolicy(rest_seconds, patience_seconds))

    def _ask(self, key: str) -> None:
        self.asked.append(key)
        asyncio.get_running_loop().call_soon(self.places.release, key)

    async def enter(self, *keys: str) -> None:
        """Let each hold a place and rest."""
        for key in keys:
            await self.places.acquire()
            self.places.mark_idle(key)

    async def waiting(self) -> asyncio.Task[None]:
        """Somebody more who has begun to wait."""
        task = asyncio.create_task(self.places.acquire())
        await asyncio.sleep(0)
        return task


async def _soon(task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(60):
        await task


async def test_who_has_rested_for_longest_makes_room() -> None:
    hall = _Hall(3, rest_seconds=0)
    await hall.enter("a", "b", "c")
    hall.places.mark_busy("a")
    hall.places.mark_idle("a")
    await _soon(await hall.waiting())
    assert hall.asked == ["b"]


async def test_each_who_waits_is_made_room_for_once() -> None:
    hall = _Hall(3, rest_seconds=0)
    await hall.enter("a", "b", "c")
    for task in [await hall.waiting(), await hall.waiting()]:
        await _soon(task)
    assert hall.asked == ["a", "b"]


async def test_who_has_just_begun_to_rest_is_left_alone_until_its_time_is_over() -> None:
    hall = _Hall(1, rest_seconds=0.2)
    await hall.enter("a")
    task = await hall.waiting()
    assert hall.asked == []
    await _soon(task)
    assert hall.asked == ["a"]


async def test_whose_run_is_over_makes_room_at_once_and_before_those_who_rest_for_longer() -> None:
    hall = _Hall(3)
    await hall.enter("a", "b", "c")
    hall.places.mark_done("b")
    assert hall.asked == [], "nobody needs the place"
    await _soon(await hall.waiting())
    assert hall.asked == ["b"]
    task = await hall.waiting()
    hall.places.mark_done("c")
    await _soon(task)
    assert hall.asked == ["b", "c"]


async def test_who_works_again_is_done_no_more() -> None:
    hall = _Hall(2)
    await hall.enter("a", "b")
    for key in "ab":
        hall.places.mark_done(key)
    hall.places.mark_busy("a")
    hall.places.mark_done("a")
    await _soon(await hall.waiting())
    task = await hall.waiting()
    assert hall.asked == ["b"]
    hall.places.mark_idle("a")
    assert hall.asked == ["b"], "its next run has begun"
    hall.places.mark_done("a")
    await _soon(task)


async def test_who_works_again_in_time_keeps_its_place() -> None:
    hall = _Hall(2, rest_seconds=0.1)
    await hall.enter("a", "b")
    task = await hall.waiting()
    hall.places.mark_busy("a")
    await _soon(task)
    assert hall.asked == ["b"]


async def test_when_patience_ends_the_rest_of_a_holder_is_cut_short() -> None:
    hall = _Hall(1, patience_seconds=0.1)
    await hall.enter("a")
    await _soon(await hall.waiting())
    assert hall.asked == ["a"]


async def test_a_holder_that_is_never_idle_learns_that_a_waiter_is_overdue() -> None:
    hall = _Hall(1, patience_seconds=0)
    await hall.places.acquire()
    assert not hall.places.is_overdue, "nobody waits"
    task = await hall.waiting()
    assert hall.places.is_overdue
    hall.places.release("a")
    await _soon(task)
    assert not hall.places.is_overdue


async def test_one_eviction_per_waiter_is_enough() -> None:
    asked: list[str] = []
    ask: Callable[[str], None] = asked.append
    places = SessionPool(2, ask, EvictionPolicy(rest_seconds=0, patience_seconds=0))
    await places.acquire()
    await places.acquire()
    places.mark_idle("a")
    task = asyncio.create_task(places.acquire())
    await asyncio.sleep(0)
    assert asked == ["a"]
    assert not places.is_overdue
    places.release("a")
    await _soon(task)


async def test_who_stops_waiting_takes_no_place_not_even_one_that_was_just_given() -> None:
    hall = _Hall(1)
    await hall.places.acquire()
    first, second, third = await hall.waiting(), await hall.waiting(), await hall.waiting()
    first.cancel()
    hall.places.release("a")
    second.cancel()
    await _soon(third)
    assert (first.cancelled(), second.cancelled()) == (True, True)
    hall.places.release("third")
    await _soon(await hall.waiting())


async def test_a_free_slot_is_taken_immediately_without_an_eviction() -> None:
    hall = _Hall(2, rest_seconds=0)
    await hall.enter("a")
    await _soon(await hall.waiting())
    assert hall.asked == []
