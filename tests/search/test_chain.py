import asyncio
import logging
import re

import pytest

from maniple.errors import SearchError
from maniple.search import SearchChain
from maniple.search.provider import ProviderFailure, RateLimited, SearchHit
from tests.search.shelves import Shelf, pages

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
    first, second = Shelf(pages("a", "b")), Shelf(pages("c"))
    answer = await SearchChain({"one": first, "two": second}).ask("q", limit=5)
    assert [(hit.url, hit.source) for hit in answer.hits] == [
        ("https://a.test/", "one"),
        ("https://b.test/", "one"),
    ]
    assert (second.asked, answer.failures) == ([], {})


@pytest.mark.parametrize(
    ("shelf", "said"),
    [
        (lambda: Shelf(failure=BROKEN), "The engine is down."),
        (lambda: Shelf(failure=RateLimited("Slow down.", rest_seconds=9)), "Slow down."),
        (lambda: Shelf(answers=False), "it took longer than 0.05 s to answer"),
        (Shelf, None),
    ],
    ids=["failing", "rate-limited", "silent", "empty"],
)
async def test_one_that_cannot_answer_is_followed_by_the_next(shelf, said: str | None) -> None:
    providers = {"one": shelf(), "two": Shelf(pages("c"))}
    answer = await SearchChain(providers, timeout_seconds=0.05).ask("q", limit=5)
    assert [(hit.url, hit.source) for hit in answer.hits] == [("https://c.test/", "two")]
    assert answer.failures == ({} if said is None else {"one": said})


async def test_a_page_that_is_told_twice_counts_once() -> None:
    twice = [*pages("a"), SearchHit("A", "http://www.a.test/?utm_source=x#top", "")]
    assert len(await SearchChain({"one": Shelf(twice)}).search("q", limit=5)) == 1


async def test_when_nobody_finds_anything_the_result_is_empty() -> None:
    chain = SearchChain({"one": Shelf(failure=BROKEN), "two": Shelf()})
    assert await chain.search("q", limit=5) == []


async def test_when_nobody_answers_each_reason_is_told() -> None:
    chain = SearchChain({"one": Shelf(failure=BROKEN), "two": Shelf(failure=RateLimited("Slow down."))})
    with pytest.raises(SearchError) as caught:
        await chain.search("q", limit=5)
    assert str(caught.value) == (
        "No search provider answered. one: The engine is down; two: Slow down. "
        "Search again later or go on without."
    )


async def test_an_empty_query_is_nobodys_fault() -> None:
    shelf = Shelf()
    with pytest.raises(SearchError, match="empty"):
        await SearchChain({"one": shelf}).search(" ", limit=5)
    assert shelf.asked == []


async def test_a_broken_provider_is_not_asked_for_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock, broken, good = Clock(), Shelf(failure=BROKEN), Shelf(pages("a"))
    chain = SearchChain({"one": broken, "two": good}, clock=clock)
    with caplog.at_level(logging.WARNING):
        await chain.search("q", limit=5)
    assert "Search by one is set aside for 60 s: The engine is down." in caplog.text
    clock.now += 59
    answer = await chain.ask("q", limit=5)
    assert answer.failures == {"one": "set aside for 1 s: The engine is down."}
    assert len(broken.asked) == 1
    clock.now += 2
    broken.failure, broken.hits = None, pages("b")
    assert urls(await chain.search("q", limit=5)) == ["https://b.test/"]


async def test_a_rate_limited_provider_is_not_asked_before_its_time_even_when_it_is_the_only_one() -> None:
    clock, limited = Clock(), Shelf(failure=RateLimited("Slow down.", rest_seconds=600))
    chain = SearchChain({"one": limited}, clock=clock)
    for _ in range(2):
        with pytest.raises(SearchError, match=r"Slow down\. Search again later"):
            await chain.search("q", limit=5)
        clock.now += 500
    assert len(limited.asked) == 1
    clock.now += 101
    limited.failure = None
    assert await chain.search("q", limit=5) == []


async def test_a_broken_provider_is_asked_all_the_same_when_it_is_the_only_one() -> None:
    shelf = Shelf(failure=BROKEN)
    chain = SearchChain({"one": shelf})
    with pytest.raises(SearchError):
        await chain.search("q", limit=5)
    shelf.failure, shelf.hits = None, pages("a")
    assert urls(await chain.search("q", limit=5)) == ["https://a.test/"]


async def test_a_query_that_is_at_fault_sets_nobody_aside() -> None:
    shelf = Shelf(failure=ProviderFailure("Too long.", rest_seconds=0))
    chain = SearchChain({"one": shelf, "two": Shelf(pages("a"))})
    for _ in range(2):
        await chain.search("q", limit=5)
    assert len(shelf.asked) == 2


async def test_all_together_have_a_time_too() -> None:
    silent = {name: Shelf(answers=False) for name in ("one", "two", "three")}
    chain = SearchChain(silent, timeout_seconds=5, total_seconds=0.05)
    with pytest.raises(SearchError, match=r"one: there was no time left.*three: there was no time left"):
        await chain.search("q", limit=5)
    assert [shelf.left for shelf in silent.values()] == [1, 0, 0]


@pytest.mark.parametrize("merges", [False, True])
async def test_what_is_no_search_error_is_a_bug_and_passes(merges: bool) -> None:
    chain = SearchChain({"one": Shelf(failure=KeyError("bug")), "two": Shelf(pages("a"))}, merges=merges)
    with pytest.raises(KeyError, match="bug"):
        await chain.search("q", limit=5)


async def test_merged_asks_all_at_once_and_tells_who_found_what() -> None:
    one, two = Shelf(pages("a", "b"), answers=False), Shelf(pages("b", "c"), answers=False)
    chain = SearchChain({"one": one, "two": two}, merges=True)
    search = asyncio.create_task(chain.search("q", limit=5))
    await asyncio.wait_for(asyncio.gather(one.reached.wait(), two.reached.wait()), 5)
    one.gate.set()
    two.gate.set()
    hits = await search
    assert [(hit.title, hit.source) for hit in hits] == [("B", "one, two"), ("A", "one"), ("C", "two")]
    assert [hit.score for hit in hits] == [0.9919, 0.5, 0.4919]


async def test_merged_goes_on_without_those_that_fail_or_are_late() -> None:
    late, broken = Shelf(pages("a"), answers=False), Shelf(failure=BROKEN)
    providers = {"late": late, "broken": broken, "good": Shelf(pages("b"))}
    answer = await SearchChain(providers, merges=True, total_seconds=0.05).ask("q", limit=5)
    assert urls(answer.hits) == ["https://b.test/"]
    assert answer.failures == {"late": "it took too long to answer", "broken": "The engine is down."}
    assert late.left == 1


@pytest.mark.parametrize("merges", [False, True])
async def test_a_cancelled_search_leaves_nobody_working(merges: bool) -> None:
    one, two = Shelf(answers=False), Shelf(answers=False)
    task = asyncio.create_task(SearchChain({"one": one, "two": two}, merges=merges).search("q", limit=5))
    await asyncio.wait_for(one.reached.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (one.left, two.left) == (1, 1 if merges else 0)


async def test_reasons_of_any_length_stay_readable() -> None:
    chain = SearchChain({name: Shelf(failure=ProviderFailure("x" * 9_000)) for name in "abc"})
    with pytest.raises(SearchError) as caught:
        await chain.search("q", limit=5)
    assert len(str(caught.value)) < 800
    assert re.match("No search provider answered", str(caught.value))
