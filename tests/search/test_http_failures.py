"""Failures of engines over HTTP and their messages."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from maniple.config import SearchSettings
from maniple.errors import SearchError
from maniple.search import SearchProvider
from maniple.search.provider import (
    DEFAULT_COOLDOWN_SECONDS,
    MAX_COOLDOWN_SECONDS,
    MAX_RESPONSE_BYTES,
    ClosableProvider,
    ProviderFailure,
    RateLimited,
    cooldown_from_headers,
)
from maniple.search.providers.arxiv import ArxivSearch
from maniple.search.providers.brave import BraveSearch
from maniple.search.providers.crossref import CrossrefSearch
from maniple.search.providers.openalex import OpenAlexSearch
from maniple.search.providers.pubmed import PubmedSearch
from maniple.search.providers.searxng import SearxngSearch
from maniple.search.providers.semantic_scholar import SemanticScholarSearch
from maniple.search.providers.wikipedia import WikipediaSearch
from tests.crawler.web import Reply, Send, Site, open_site
from tests.search.responses import as_json

pytestmark = pytest.mark.anyio

PATHS = {
    "brave": "/res/v1/web/search",
    "searxng": "/search",
    "wikipedia": "/w/api.php",
    "arxiv": "/api/query",
    "openalex": "/works",
    "crossref": "/works",
    "semantic_scholar": "/graph/v1/paper/search",
    "pubmed": "/entrez/eutils/esearch.fcgi",
}


def made(name: str, url: str, seconds: float = 5) -> ClosableProvider:
    settings = SearchSettings(brave_api_key=SecretStr("k"), searxng_url=url, timeout_seconds=seconds)
    match name:
        case "brave":
            return BraveSearch(settings, url)
        case "searxng":
            return SearxngSearch(settings)
        case "wikipedia":
            return WikipediaSearch(settings, base_url=url)
        case "openalex":
            return OpenAlexSearch(settings, base_url=url)
        case "crossref":
            return CrossrefSearch(settings, base_url=url)
        case "semantic_scholar":
            return SemanticScholarSearch(settings, base_url=url)
        case "pubmed":
            return PubmedSearch(settings, base_url=url)
        case _:
            return ArxivSearch(settings, url)


@pytest.fixture(params=PATHS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({}) as site:
        yield site


async def failure(provider: SearchProvider) -> ProviderFailure:
    with pytest.raises(ProviderFailure) as caught:
        await provider.search("x", limit=5)
    return caught.value


async def test_a_rate_limited_engine_reports_the_waiting_time(name: str, site: Site) -> None:
    site.pages[PATHS[name]] = as_json({}, 429, Retry_After="7")
    provider = made(name, site.url)
    limited = await failure(provider)
    await provider.aclose()
    assert (type(limited), limited.cooldown_seconds) == (RateLimited, 7)
    assert "not asked for 7 s" in str(limited)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply("oops", status=500), "returned HTTP 500"),
        (Reply("moved", status=302, headers=(("Location", "/"),)), "returned HTTP 302"),
        (Reply("not <json"), "malformed"),
        (as_json([1]), "malformed"),
        (as_json({"web": {"results": 1}, "results": 1, "query": 1}), "malformed"),
        (Reply("[" * 100_000), "malformed"),
        (Reply(b"x" * (MAX_RESPONSE_BYTES + 1)), "more than 2,000,000 bytes"),
    ],
    ids=["500", "redirect", "garbled", "array", "other shape", "deep", "endless"],
)
async def test_any_other_failure_sets_it_aside(reply: Reply, said: str, name: str, site: Site) -> None:
    site.pages[PATHS[name]] = reply
    provider = made(name, site.url)
    failed = await failure(provider)
    await provider.aclose()
    assert (said in str(failed), failed.cooldown_seconds) == (True, DEFAULT_COOLDOWN_SECONDS), failed


async def test_a_silent_engine_is_left_in_time(name: str, site: Site) -> None:
    async def drip(send: Send) -> None:
        for _ in range(1_000):
            await send(b" ")
            await asyncio.sleep(0.01)  # slowly is the point: each piece comes in time, the whole does not

    site.pages[PATHS[name]] = Reply(stream=drip)
    provider = made(name, site.url, 0.2)
    begun = time.monotonic()
    assert "0.2 s" in str(await failure(provider))
    assert time.monotonic() - begun < 8
    await provider.aclose()


async def test_an_unreachable_engine_is_reported(name: str) -> None:
    async with open_site({}) as gone:
        pass
    provider = made(name, gone.url)
    assert "could not be reached" in str(await failure(provider))
    await provider.aclose()


async def test_an_empty_query_is_not_sent(name: str, site: Site) -> None:
    with pytest.raises(SearchError, match="empty"):
        await made(name, site.url).search(" \n", limit=5)
    assert site.requests == []


async def test_a_search_that_is_cancelled_leaves_its_connection(name: str, site: Site) -> None:
    left = asyncio.Event()

    async def silent(send: Send) -> None:
        reached.set()
        try:
            while True:
                await send(b" ")
                await asyncio.sleep(0.01)  # the site notices only what it cannot send
        finally:
            left.set()

    reached = asyncio.Event()
    site.pages[PATHS[name]] = Reply(stream=silent)
    provider = made(name, site.url)
    task = asyncio.create_task(provider.search("x", limit=5))
    await asyncio.wait_for(reached.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(left.wait(), 60)
    await provider.aclose()


@pytest.mark.parametrize(("value", "seconds"), [("7", 7), ("86400", MAX_COOLDOWN_SECONDS), ("soon", None)])
def test_a_retry_after_is_capped_at_one_hour(value: str, seconds: float | None) -> None:
    assert cooldown_from_headers({"retry-after": value}) == seconds
