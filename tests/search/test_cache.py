import asyncio
import gc
import weakref
from contextvars import ContextVar, copy_context

import pytest

from maniple.errors import SearchError
from maniple.search.cache import MAX_AGE_SECONDS, MAX_QUERIES, RunCache
from maniple.search.provider import ProviderFailure
from tests.search.shelves import Shelf, pages

pytestmark = pytest.mark.anyio


class Runs:
    """Which run asks."""

    def __init__(self) -> None:
        self.current = "run"

    def key(self) -> str:
        return self.current


@pytest.fixture
def runs() -> Runs:
    return Runs()


async def test_the_same_query_is_asked_once_in_a_run(runs: Runs) -> None:
    shelf = Shelf(pages("a"))
    search = RunCache(shelf, runs.key)
    first = await search.search("Stone  bridges", limit=5)
    first.clear()  # the caller's own
    assert await search.search(" stone bridges ", limit=5) == pages("a")
    assert len(shelf.asked) == 1


async def test_another_limit_run_or_query_is_asked(runs: Runs) -> None:
    shelf = Shelf(pages("a", "b"))
    search = RunCache(shelf, runs.key)
    await search.search("q", limit=1)
    assert len(await search.search("q", limit=2)) == 2
    await search.search("r", limit=2)
    runs.current = "another"
    await search.search("q", limit=2)
    assert len(shelf.asked) == 4


async def test_outside_of_a_run_nothing_is_kept(runs: Runs) -> None:
    shelf, runs.current = Shelf(pages("a")), ""
    search = RunCache(shelf, runs.key)
    for _ in range(2):
        await search.search("q", limit=5)
    assert len(shelf.asked) == 2


async def test_two_at_once_share_one_request(runs: Runs) -> None:
    shelf = Shelf(pages("a"), answers=False)
    search = RunCache(shelf, runs.key)
    both = [asyncio.create_task(search.search("q", limit=5)) for _ in range(2)]
    await asyncio.wait_for(shelf.reached.wait(), 5)
    shelf.gate.set()
    assert await asyncio.gather(*both) == [pages("a"), pages("a")]
    assert len(shelf.asked) == 1


async def test_one_of_two_that_leaves_takes_nothing_from_the_other(runs: Runs) -> None:
    shelf = Shelf(pages("a"), answers=False)
    search = RunCache(shelf, runs.key)
    leaving, staying = (asyncio.create_task(search.search("q", limit=5)) for _ in range(2))
    await asyncio.wait_for(shelf.reached.wait(), 5)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    shelf.gate.set()
    assert await staying == pages("a")
    assert (len(shelf.asked), shelf.left) == (1, 0)


async def test_the_last_that_leaves_ends_the_request_and_the_next_asks_anew(runs: Runs) -> None:
    shelf = Shelf(pages("a"), answers=False)
    search = RunCache(shelf, runs.key)
    task = asyncio.create_task(search.search("q", limit=5))
    await asyncio.wait_for(shelf.reached.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert shelf.left == 1
    shelf.gate.set()
    assert await search.search("q", limit=5) == pages("a")


async def test_failures_and_empty_results_are_not_kept(runs: Runs) -> None:
    shelf = Shelf(failure=ProviderFailure("down"))
    search = RunCache(shelf, runs.key)
    with pytest.raises(SearchError, match="down"):
        await search.search("q", limit=5)
    shelf.failure = None
    assert await search.search("q", limit=5) == []
    shelf.hits = pages("a")
    assert await search.search("q", limit=5) == pages("a")


async def test_what_is_kept_keeps_nothing_of_the_run_that_asked(runs: Runs) -> None:
    class Scope:
        """What a run brings along."""

    scope = Scope()
    current: ContextVar[Scope] = ContextVar("scope")
    kept = weakref.ref(scope)
    search = RunCache(Shelf(pages("a")), runs.key)
    context = copy_context()
    context.run(current.set, scope)
    await asyncio.create_task(search.search("q", limit=5), context=context)
    del context, scope
    await asyncio.sleep(0)  # the loop lets go of the context in which it woke us
    gc.collect()
    assert kept() is None


async def test_the_longest_unused_is_forgotten(runs: Runs) -> None:
    shelf = Shelf(pages("a"))
    search = RunCache(shelf, runs.key)
    for number in range(MAX_QUERIES):
        await search.search(str(number), limit=5)
    await search.search("0", limit=5)
    await search.search("one more", limit=5)
    shelf.asked.clear()
    for query in ("0", "1"):
        await search.search(query, limit=5)
    assert shelf.asked == ["1"]


async def test_what_is_old_is_asked_anew(runs: Runs) -> None:
    now = [0.0]
    shelf = Shelf(pages("a"))
    search = RunCache(shelf, runs.key, clock=lambda: now[0])
    for moment in (0, MAX_AGE_SECONDS, MAX_AGE_SECONDS + 1):
        now[0] = moment
        await search.search("q", limit=5)
    assert len(shelf.asked) == 2
