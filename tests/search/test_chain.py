import asyncio
import logging
from dataclasses import replace

import pytest

from maniple.errors import SearchError
from maniple.search import SearchChain, SearchGaps, find_gaps
from maniple.search.chain import RunSearchCache
from maniple.search.provider import ProviderFailure, RateLimited, SearchHit
from tests.search.fake_providers import FakeProvider, pages

pytestmark = pytest.mark.anyio

BROKEN = ProviderFailure("The engine is down.")


def urls(hits: list[SearchHit]) -> list[str]:
    return [hit.url for hit in hits]


class Clock:
    """A time that is set."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def test_the_first_that_finds_something_answers_and_is_named() -> None:
    first, second = FakeProvider(pages("a", "b")), FakeProvider(pages("c"))
    answer = await SearchChain({"one": first, "two": second}).ask("q", limit=5)
    assert [(hit.url, hit.source) for hit in answer.hits] == [
        ("https://a.test/", "one"),
        ("https://b.test/", "one"),
    ]
    assert (second.asked, answer.failures) == ([], {})


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        (lambda: FakeProvider(failure=BROKEN), "The engine is down."),
        (lambda: FakeProvider(failure=RateLimited("Slow down.", cooldown_seconds=9)), "Slow down."),
        (lambda: FakeProvider(answers=False), "no answer in 0.05 s"),
        (FakeProvider, None),
    ],
    ids=["failing", "rate-limited", "silent", "empty"],
)
async def test_one_that_cannot_answer_is_followed_by_the_next(provider, said: str | None) -> None:
    providers = {"one": provider(), "two": FakeProvider(pages("c"))}
    answer = await SearchChain(providers, timeout_seconds=0.05).ask("q", limit=5)
    assert [(hit.url, hit.source) for hit in answer.hits] == [("https://c.test/", "two")]
    assert answer.failures == ({} if said is None else {"one": said})


@pytest.mark.parametrize(
    ("is_weak", "web", "found"),
    [
        (True, pages("web"), ["https://web.test/", "https://own.test/"]),
        (True, [], ["https://own.test/"]),
        (False, pages("web"), ["https://own.test/"]),
    ],
)
async def test_the_next_one_is_asked_too_where_the_best_hit_is_weak(
    is_weak: bool, web: list[SearchHit], found: list[str]
) -> None:
    own = [replace(hit, is_weak=is_weak) for hit in pages("own")]
    chain = SearchChain({"own": FakeProvider(own), "web": FakeProvider(web)})
    assert urls(await chain.search("q", limit=5)) == found


async def test_a_weak_hit_stays_where_the_next_one_fails() -> None:
    own = [replace(hit, is_weak=True) for hit in pages("own")]
    broken = FakeProvider(failure=BROKEN)
    answer = await SearchChain({"own": FakeProvider(own), "web": broken}).ask("q", limit=5)
    assert (urls(answer.hits), list(answer.failures)) == (["https://own.test/"], ["web"])


async def test_a_page_that_occurs_twice_counts_once() -> None:
    twice = [*pages("a"), SearchHit("A", "http://www.a.test/?utm_source=x#top", "")]
    assert len(await SearchChain({"one": FakeProvider(twice)}).search("q", limit=5)) == 1


async def test_without_any_hit_the_result_is_empty() -> None:
    chain = SearchChain({"one": FakeProvider(failure=BROKEN), "two": FakeProvider()})
    assert await chain.search("q", limit=5) == []


async def test_if_all_providers_fail_each_reason_is_reported() -> None:
    chain = SearchChain(
        {"one": FakeProvider(failure=BROKEN), "two": FakeProvider(failure=RateLimited("Slow down."))}
    )
    with pytest.raises(SearchError) as caught:
        await chain.search("q", limit=5)
    assert "one: The engine is down; two: Slow down." in str(caught.value)


async def test_an_empty_query_is_nobodys_fault() -> None:
    provider = FakeProvider()
    with pytest.raises(SearchError, match="empty"):
        await SearchChain({"one": provider}).search(" ", limit=5)
    assert provider.asked == []


async def test_a_failed_provider_is_skipped_for_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock, broken, good = Clock(), FakeProvider(failure=BROKEN), FakeProvider(pages("a"))
    chain = SearchChain({"one": broken, "two": good}, clock=clock)
    with caplog.at_level(logging.WARNING):
        await chain.search("q", limit=5)
    [record] = caplog.records
    assert record.args == ("one", 60.0, BROKEN)
    clock.now += 59
    answer = await chain.ask("q", limit=5)
    assert answer.failures == {"one": f"paused for 1 s: {BROKEN}"}
    assert len(broken.asked) == 1
    clock.now += 2
    broken.failure, broken.hits = None, pages("b")
    assert urls(await chain.search("q", limit=5)) == ["https://b.test/"]


async def test_a_rate_limited_provider_is_skipped_even_if_it_is_the_only_one() -> None:
    clock, limited = Clock(), FakeProvider(failure=RateLimited("Slow down.", cooldown_seconds=600))
    chain = SearchChain({"one": limited}, clock=clock)
    for _ in range(2):
        with pytest.raises(SearchError, match=r"Slow down\. Search again"):
            await chain.search("q", limit=5)
        clock.now += 500
    assert len(limited.asked) == 1
    clock.now += 101
    limited.failure = None
    assert await chain.search("q", limit=5) == []


async def test_a_failed_provider_is_still_used_if_it_is_the_only_one() -> None:
    provider = FakeProvider(failure=BROKEN)
    chain = SearchChain({"one": provider})
    with pytest.raises(SearchError):
        await chain.search("q", limit=5)
    provider.failure, provider.hits = None, pages("a")
    assert urls(await chain.search("q", limit=5)) == ["https://a.test/"]


async def test_an_invalid_query_does_not_open_the_circuit_of_a_provider() -> None:
    provider = FakeProvider(failure=ProviderFailure("Too long.", cooldown_seconds=0))
    chain = SearchChain({"one": provider, "two": FakeProvider(pages("a"))})
    for _ in range(2):
        await chain.search("q", limit=5)
    assert len(provider.asked) == 2


async def test_all_together_have_a_time_too() -> None:
    silent = {name: FakeProvider(answers=False) for name in ("one", "two", "three")}
    chain = SearchChain(silent, timeout_seconds=5, total_seconds=0.05)
    with pytest.raises(SearchError, match=r"(?s)one: .*total_seconds.*three: .*total_seconds"):
        await chain.search("q", limit=5)
    assert [provider.left for provider in silent.values()] == [1, 0, 0]


@pytest.mark.parametrize("merges", [False, True])
async def test_what_is_no_search_error_is_a_bug_and_passes(merges: bool) -> None:
    chain = SearchChain(
        {"one": FakeProvider(failure=KeyError("bug")), "two": FakeProvider(pages("a"))}, merges=merges
    )
    with pytest.raises(KeyError, match="bug"):
        await chain.search("q", limit=5)


async def test_merged_queries_all_concurrently_and_reports_who_found_what() -> None:
    one, two = FakeProvider(pages("a", "b"), answers=False), FakeProvider(pages("b", "c"), answers=False)
    chain = SearchChain({"one": one, "two": two}, merges=True)
    search = asyncio.create_task(chain.search("q", limit=5))
    await asyncio.wait_for(asyncio.gather(one.reached.wait(), two.reached.wait()), 60)
    one.gate.set()
    two.gate.set()
    hits = await search
    assert [(hit.title, hit.source) for hit in hits] == [("B", "one, two"), ("A", "one"), ("C", "two")]
    assert [hit.score for hit in hits] == [0.9919, 0.5, 0.4919]


async def test_merged_goes_on_without_those_that_fail_or_are_late() -> None:
    late, broken = FakeProvider(pages("a"), answers=False), FakeProvider(failure=BROKEN)
    providers = {"late": late, "broken": broken, "good": FakeProvider(pages("b"))}
    answer = await SearchChain(providers, merges=True, total_seconds=0.05).ask("q", limit=5)
    assert urls(answer.hits) == ["https://b.test/"]
    assert answer.failures == {"late": "no answer within search.total_seconds", "broken": str(BROKEN)}
    assert late.left == 1


@pytest.mark.parametrize("merges", [False, True])
async def test_a_cancelled_search_cancels_all_requests(merges: bool) -> None:
    one, two = FakeProvider(answers=False), FakeProvider(answers=False)
    task = asyncio.create_task(SearchChain({"one": one, "two": two}, merges=merges).search("q", limit=5))
    await asyncio.wait_for(one.reached.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (one.left, two.left) == (1, 1 if merges else 0)


async def test_reasons_of_any_length_stay_readable() -> None:
    chain = SearchChain({name: FakeProvider(failure=ProviderFailure("x" * 9_000)) for name in "abc"})
    with pytest.raises(SearchError) as caught:
        await chain.search("q", limit=5)
    assert len(str(caught.value)) < 800


class GappyProvider(FakeProvider):
    """Cannot find everything."""

    async def find_gaps(self) -> SearchGaps:
        return SearchGaps("One file is locked.", is_passing=True)


async def test_what_a_provider_cannot_find_is_reported_by_all_around_it() -> None:
    chain = SearchChain({"one": FakeProvider(pages("a")), "two": GappyProvider(pages("b"))})
    assert await RunSearchCache(chain, str).find_gaps() == SearchGaps("One file is locked.", True)
    assert await find_gaps(FakeProvider(pages("a"))) == SearchGaps()


async def test_hits_of_a_search_that_finds_more_soon_are_not_cached() -> None:
    provider = GappyProvider(pages("a"))
    cache = RunSearchCache(provider, lambda: "run")
    for _ in range(2):
        await cache.search("q", limit=5)
    assert len(provider.asked) == 2
