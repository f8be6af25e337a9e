import asyncio
import gc
import weakref
from contextvars import ContextVar, copy_context

import pytest

from maniple.errors import SearchError
from maniple.search.chain import MAX_CACHE_AGE_SECONDS, MAX_CACHED_QUERIES, RunSearchCache
from maniple.search.provider import ProviderFailure
from tests.search.fake_providers import FakeProvider, pages

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


async def test_a_query_is_sent_once_in_a_run(runs: Runs) -> None:
    provider = FakeProvider(pages("a"))
    search = RunSearchCache(provider, runs.key)
    first = await search.search("Stone  bridges", limit=5)
    first.clear()  # the caller's own
    assert await search.search(" stone bridges ", limit=5) == pages("a")
    assert len(provider.asked) == 1


async def test_another_limit_run_or_query_is_sent(runs: Runs) -> None:
    provider = FakeProvider(pages("a", "b"))
    search = RunSearchCache(provider, runs.key)
    await search.search("q", limit=1)
    assert len(await search.search("q", limit=2)) == 2
    await search.search("r", limit=2)
    runs.current = "another"
    await search.search("q", limit=2)
    assert len(provider.asked) == 4


async def test_outside_of_a_run_nothing_is_retained(runs: Runs) -> None:
    provider, runs.current = FakeProvider(pages("a")), ""
    search = RunSearchCache(provider, runs.key)
    for _ in range(2):
        await search.search("q", limit=5)
    assert len(provider.asked) == 2


async def test_two_at_once_share_one_request(runs: Runs) -> None:
    provider = FakeProvider(pages("a"), answers=False)
    search = RunSearchCache(provider, runs.key)
    both = [asyncio.create_task(search.search("q", limit=5)) for _ in range(2)]
    await asyncio.wait_for(provider.reached.wait(), 60)
    provider.gate.set()
    assert await asyncio.gather(*both) == [pages("a"), pages("a")]
    assert len(provider.asked) == 1


async def test_one_of_two_that_leaves_takes_nothing_from_the_other(runs: Runs) -> None:
    provider = FakeProvider(pages("a"), answers=False)
    search = RunSearchCache(provider, runs.key)
    leaving, staying = (asyncio.create_task(search.search("q", limit=5)) for _ in range(2))
    await asyncio.wait_for(provider.reached.wait(), 60)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    provider.gate.set()
    assert await staying == pages("a")
    assert (len(provider.asked), provider.left) == (1, 0)


async def test_the_last_waiter_cancels_the_request_and_the_next_sends_it_again(runs: Runs) -> None:
    provider = FakeProvider(pages("a"), answers=False)
    search = RunSearchCache(provider, runs.key)
    task = asyncio.create_task(search.search("q", limit=5))
    await asyncio.wait_for(provider.reached.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert provider.left == 1
    provider.gate.set()
    assert await search.search("q", limit=5) == pages("a")


async def test_failures_and_empty_results_are_not_cached(runs: Runs) -> None:
    provider = FakeProvider(failure=ProviderFailure("down"))
    search = RunSearchCache(provider, runs.key)
    with pytest.raises(SearchError, match="down"):
        await search.search("q", limit=5)
    provider.failure = None
    assert await search.search("q", limit=5) == []
    provider.hits = pages("a")
    assert await search.search("q", limit=5) == pages("a")


async def test_a_cached_result_holds_no_reference_to_its_run(runs: Runs) -> None:
    class Scope:
        """What a run brings along."""

    scope = Scope()
    current: ContextVar[Scope] = ContextVar("scope")
    kept = weakref.ref(scope)
    search = RunSearchCache(FakeProvider(pages("a")), runs.key)
    context = copy_context()
    context.run(current.set, scope)
    await asyncio.create_task(search.search("q", limit=5), context=context)
    del context, scope
    await asyncio.sleep(0)  # the loop lets go of the context in which it woke us
    gc.collect()
    assert kept() is None


async def test_the_longest_unused_is_forgotten(runs: Runs) -> None:
    provider = FakeProvider(pages("a"))
    search = RunSearchCache(provider, runs.key)
    for number in range(MAX_CACHED_QUERIES):
        await search.search(str(number), limit=5)
    await search.search("0", limit=5)
    await search.search("one more", limit=5)
    provider.asked.clear()
    for query in ("0", "1"):
        await search.search(query, limit=5)
    assert provider.asked == ["1"]


async def test_an_expired_result_is_requested_again(runs: Runs) -> None:
    now = [0.0]
    provider = FakeProvider(pages("a"))
    search = RunSearchCache(provider, runs.key, clock=lambda: now[0])
    for moment in (0, MAX_CACHE_AGE_SECONDS, MAX_CACHE_AGE_SECONDS + 1):
        now[0] = moment
        await search.search("q", limit=5)
    assert len(provider.asked) == 2
