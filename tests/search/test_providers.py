"""What each engine's API is asked and how its answer is read, over loopback."""

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from maniple.config import SearchSettings
from maniple.errors import SearchError
from maniple.search.provider import ProviderFailure, RateLimited, SearchHit
from maniple.search.providers.arxiv import ArxivSearch
from maniple.search.providers.brave import BraveSearch
from maniple.search.providers.searxng import SearxngSearch
from maniple.search.providers.wikipedia import WikipediaSearch
from tests.crawler.web import Reply, Send, Site, open_site
from tests.search import responses
from tests.search.responses import as_json

pytestmark = pytest.mark.anyio

ARCH = SearchHit("Arch", "https://a.test/", "An arch.")
BEAM = SearchHit("Beam", "https://b.test/", "A beam.")


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({}) as site:
        yield site


def asked(site: Site) -> dict[str, list[str]]:
    """Return the parameters of the only request."""
    [(method, path, head)] = site.requests
    assert method == "GET"
    assert "user-agent: maniple/" in head.lower()
    return parse_qs(urlsplit(path).query)


@pytest.fixture
async def brave(site: Site) -> AsyncIterator[BraveSearch]:
    provider = BraveSearch(SearchSettings(brave_api_key=SecretStr("BSA-k")), site.url)
    yield provider
    await provider.aclose()


@pytest.fixture
async def searxng(site: Site) -> AsyncIterator[SearxngSearch]:
    provider = SearxngSearch(SearchSettings(searxng_url=f"{site.url}/"))
    yield provider
    await provider.aclose()


@pytest.fixture
async def wikipedia(site: Site) -> AsyncIterator[WikipediaSearch]:
    provider = WikipediaSearch(SearchSettings(), base_url=f"{site.url}/{{language}}")
    yield provider
    await provider.aclose()


@pytest.fixture
async def arxiv(site: Site) -> AsyncIterator[ArxivSearch]:
    provider = ArxivSearch(SearchSettings(), site.url, pause_seconds=0.05)
    yield provider
    await provider.aclose()


async def test_brave_receives_its_key_and_only_web_pages_are_hits(brave: BraveSearch, site: Site) -> None:
    site.pages["/res/v1/web/search"] = as_json(responses.BRAVE)
    assert await brave.search("stone  bridges", limit=5) == [ARCH, BEAM]
    assert "X-Subscription-Token: BSA-k" in site.requests[0][2]
    sent = asked(site)
    assert (sent["q"], sent["count"], sent["text_decorations"]) == (["stone bridges"], ["5"], ["false"])
    assert len(await brave.search("stone bridges", limit=1)) == 1


async def test_a_query_is_cut_to_what_brave_takes(brave: BraveSearch, site: Site) -> None:
    site.pages["/res/v1/web/search"] = as_json(responses.BRAVE)
    await brave.search("ab " * 200, limit=5)
    assert asked(site)["q"] == [" ".join(["ab"] * 50)]


async def test_brave_without_any_page_found_nothing(brave: BraveSearch, site: Site) -> None:
    site.pages["/res/v1/web/search"] = as_json({"type": "search", "query": {"original": "x"}})
    assert await brave.search("x", limit=5) == []


@pytest.mark.parametrize("status", [401, 422])
async def test_a_key_that_brave_refuses_is_to_be_corrected(
    status: int, brave: BraveSearch, site: Site
) -> None:
    site.pages["/res/v1/web/search"] = as_json({"type": "ErrorResponse"}, status)
    with pytest.raises(SearchError, match="Correct BRAVE_API_KEY"):
        await brave.search("x", limit=5)


async def test_searxng_is_queried_as_json_and_its_unbounded_scores_are_left_out(
    searxng: SearxngSearch, site: Site
) -> None:
    site.pages["/search"] = as_json(responses.SEARXNG)
    assert await searxng.search("bridges", limit=5) == [ARCH, BEAM]
    assert asked(site)["format"] == ["json"]


async def test_a_searxng_without_json_is_reported_with_its_setting(
    searxng: SearxngSearch, site: Site
) -> None:
    site.pages["/search"] = Reply("Forbidden", status=403)
    with pytest.raises(SearchError, match=r"json .*search\.formats"):
        await searxng.search("x", limit=5)


async def test_a_searxng_whose_engines_are_all_silent_has_failed(searxng: SearxngSearch, site: Site) -> None:
    site.pages["/search"] = as_json({**responses.SEARXNG, "results": []})
    with pytest.raises(SearchError, match=r"SearXNG's engines answered.*CAPTCHA"):
        await searxng.search("x", limit=5)
    site.pages["/search"] = as_json({"results": [], "unresponsive_engines": []})
    assert await searxng.search("x", limit=5) == []


async def test_wikipedias_pages_come_in_the_order_of_their_ranks(
    wikipedia: WikipediaSearch, site: Site
) -> None:
    site.pages["/en/w/api.php"] = as_json(responses.WIKIPEDIA)
    assert await wikipedia.search("bridges", limit=5) == [
        SearchHit("Arch bridge", "https://en.wikipedia.org/wiki/Arch_bridge", "An arch bridge is curved."),
        SearchHit("Beam bridge", "https://en.wikipedia.org/wiki/Beam_bridge", "A beam bridge is simple."),
    ]
    sent = asked(site)
    assert (sent["gsrsearch"], sent["gsrlimit"]) == (["bridges"], ["5"])


async def test_a_query_is_put_to_the_wikipedia_of_its_language(
    wikipedia: WikipediaSearch, site: Site
) -> None:
    site.pages["/zh/w/api.php"] = as_json({"batchcomplete": True})
    assert await wikipedia.search("赵州桥", limit=5) == []
    assert len(site.requests) == 1


async def test_what_wikipedia_does_not_understand_is_the_querys_fault(
    wikipedia: WikipediaSearch, site: Site
) -> None:
    site.pages["/en/w/api.php"] = as_json({"error": {"code": "cirrussearch-too-many", "info": "x"}})
    with pytest.raises(ProviderFailure, match="cirrussearch-too-many") as caught:
        await wikipedia.search("x", limit=5)
    assert caught.value.cooldown_seconds == 0
    site.pages["/en/w/api.php"] = as_json({"error": {"code": "ratelimited", "info": "x"}})
    with pytest.raises(RateLimited):
        await wikipedia.search("x", limit=5)


async def test_an_arxiv_paper_is_reported_with_its_authors_and_day(arxiv: ArxivSearch, site: Site) -> None:
    site.pages["/api/query"] = responses.ARXIV
    assert await arxiv.search("attention: is/all (you) need", limit=5) == [
        SearchHit(
            "Attention Is All You Need",
            "https://arxiv.org/abs/1706.03762v7",
            "The dominant models are recurrent.",
            kind="paper",
            published="2017-06-12",
            author="Ashish Vaswani, Noam Shazeer",
            publisher="arXiv",
            full_text_url="https://arxiv.org/pdf/1706.03762v7",
        )
    ]
    words = "all:attention AND all:is AND all:all AND all:you AND all:need"
    assert asked(site)["search_query"] == [words]


async def test_arxiv_without_any_paper_found_nothing(arxiv: ArxivSearch, site: Site) -> None:
    site.pages["/api/query"] = responses.ARXIV_NOTHING
    assert await arxiv.search("x", limit=5) == []


async def test_an_error_of_arxiv_is_no_paper(arxiv: ArxivSearch, site: Site) -> None:
    site.pages["/api/query"] = responses.ARXIV_WRONG
    with pytest.raises(SearchError, match="incorrect id format"):
        await arxiv.search("x", limit=5)


async def test_requests_to_arxiv_are_sequential_with_a_pause_and_a_short_queue(
    arxiv: ArxivSearch, site: Site
) -> None:
    at_once, most, times = 0, 0, []

    async def watched(send: Send) -> None:
        nonlocal at_once, most
        times.append(time.monotonic())
        at_once += 1
        most = max(most, at_once)
        await send(str(responses.ARXIV.body).encode())
        at_once -= 1

    site.pages["/api/query"] = Reply(stream=watched)
    ended = await asyncio.gather(*(arxiv.search("x", limit=5) for _ in range(4)), return_exceptions=True)
    assert [type(one) for one in ended] == [list, list, list, RateLimited]
    assert most == 1
    assert all(later - earlier >= 0.05 for earlier, later in pairwise(times))


async def test_an_empty_query_is_not_sent_to_arxiv(arxiv: ArxivSearch, site: Site) -> None:
    with pytest.raises(SearchError, match="no words"):
        await arxiv.search("?!", limit=5)
    assert site.requests == []


async def test_a_feed_with_entities_of_its_own_reads_no_file_and_does_not_grow(
    arxiv: ArxivSearch, site: Site
) -> None:
    entities = '<!DOCTYPE feed [<!ENTITY f SYSTEM "file:///etc/passwd">'
    entities += '<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefg", "bcdefgh", strict=True)
    )
    entry = "<entry><id>https://arxiv.org/abs/1</id><title>x&f;</title><summary>&h;</summary></entry>"
    feed = f'{entities}]><feed xmlns="http://www.w3.org/2005/Atom">{entry}</feed>'
    site.pages["/api/query"] = Reply(feed, "application/atom+xml")
    [paper] = await arxiv.search("x", limit=5)
    assert (paper.title, len(paper.content) < 100) == ("x", True)
