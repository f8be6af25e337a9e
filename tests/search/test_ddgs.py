"""ddgs on loopback: its engines' addresses are ours, its connections and its reading are real."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from urllib.parse import parse_qs

import pytest
from ddgs.engines.duckduckgo import Duckduckgo
from ddgs.engines.mojeek import Mojeek

from maniple.config import SearchSettings
from maniple.errors import SearchError
from maniple.search.provider import ProviderFailure, RateLimited, SearchHit
from maniple.search.providers.ddgs import DdgsSearch, ddgs_region
from tests.crawler.web import Reply, Send, Site, open_site
from tests.search.responses import DUCKDUCKGO

pytestmark = pytest.mark.anyio


@pytest.fixture
async def site(anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    monkeypatch.delenv("DDGS_PROXY")
    async with open_site({}) as site:
        monkeypatch.setattr(Duckduckgo, "search_url", f"{site.url}/duckduckgo")
        monkeypatch.setattr(Mojeek, "search_url", f"{site.url}/mojeek")
        yield site


@pytest.fixture
async def provider(site: Site) -> AsyncIterator[DdgsSearch]:
    settings = SearchSettings(engines=("duckduckgo", "mojeek"), timeout_seconds=4)
    async with aclosing(DdgsSearch(settings)) as provider:
        yield provider


def paths(site: Site) -> list[str]:
    return [path.partition("?")[0] for _, path, _ in site.requests]


async def test_the_first_engine_that_finds_something_answers(provider: DdgsSearch, site: Site) -> None:
    site.pages["/duckduckgo"] = Reply(DUCKDUCKGO)
    assert await provider.search("bridges", limit=5) == [
        SearchHit("Arch", "https://a.test/", "An arch."),
        SearchHit("Beam", "https://b.test/", "A beam."),
    ]
    assert paths(site) == ["/duckduckgo"]
    assert len(await provider.search("bridges", limit=1)) == 1


async def test_an_engine_that_finds_nothing_or_refuses_is_followed_by_the_next(
    provider: DdgsSearch, site: Site
) -> None:
    item = '<li><a class="ob" href="https://c.test/"></a><h2><a href="https://c.test/">Cable</a></h2>'
    found = Reply(f'<ul class="results">{item}<p class="s">A cable.</p></li></ul>')
    for refusal in (Reply("<html></html>"), Reply("captcha", status=202), Reply("no", status=429)):
        site.requests.clear()
        site.pages.update({"/duckduckgo": refusal, "/mojeek": found})
        assert [hit.url for hit in await provider.search("bridges", limit=5)] == ["https://c.test/"]
        assert paths(site) == ["/duckduckgo", "/mojeek"]
    [(_, asked, _)] = [request for request in site.requests if "mojeek" in request[1]]
    assert parse_qs(asked.partition("?")[2])["q"] == ["bridges"]


async def test_when_all_engines_find_nothing_that_is_no_failure(provider: DdgsSearch, site: Site) -> None:
    site.pages.update({"/duckduckgo": Reply("<html></html>"), "/mojeek": Reply("<html></html>")})
    assert await provider.search("bridges", limit=5) == []


async def test_an_engine_that_finds_nothing_where_another_refuses_is_believed(
    provider: DdgsSearch, site: Site
) -> None:
    site.pages.update({"/duckduckgo": Reply("no", status=429), "/mojeek": Reply("<html></html>")})
    assert await provider.search("bridges", limit=5) == []


async def test_engines_that_all_refuse_have_not_found_nothing(provider: DdgsSearch, site: Site) -> None:
    challenge = Reply("<html><form id='captcha-form'></form></html>")
    for refusal in (Reply("no", status=429), Reply("<html></html>", status=202), challenge):
        site.pages.update({"/duckduckgo": Reply("no", status=429), "/mojeek": refusal})
        with pytest.raises(RateLimited, match=r"duckduckgo: .*429.*; mojeek: .*(429|202|200)"):
            await provider.search("bridges", limit=5)
    site.pages["/mojeek"] = Reply("no", status=403)
    with pytest.raises(ProviderFailure, match=r"duckduckgo: .*; mojeek: HTTP 403") as caught:
        await provider.search("bridges", limit=5)
    assert not isinstance(caught.value, RateLimited)


async def test_rate_limited_engines_are_skipped_until_the_first_is_ready(
    provider: DdgsSearch, site: Site
) -> None:
    for path, seconds in (("/duckduckgo", "600"), ("/mojeek", "300")):
        site.pages[path] = Reply("no", status=429, headers=(("Retry-After", seconds),))
    with pytest.raises(RateLimited) as caught:
        await provider.search("bridges", limit=5)
    assert caught.value.cooldown_seconds == 300


async def test_the_engine_receives_the_region_of_the_conversation(site: Site) -> None:
    site.pages["/duckduckgo"] = Reply(DUCKDUCKGO)
    settings = SearchSettings(engines=("duckduckgo",), timeout_seconds=4)
    async with aclosing(DdgsSearch(settings, lambda: "de-AT")) as provider:
        await provider.search("bridges", limit=5)
    assert [parse_qs(body.decode())["l"] for body in site.bodies] == [["at-de"]]


@pytest.mark.parametrize(
    ("locale", "region"),
    [
        *(("de-DE", "de-de"), ("de", "de-de"), ("en_GB", "uk-en"), ("zh-Hant-TW", "tw-tzh")),
        *(("", "us-en"), ("en", "us-en"), ("de-XX", "de-de"), ("xx-&x", "us-en"), ("-", "us-en")),
    ],
)
def test_only_regions_that_engines_support_are_sent(locale: str, region: str) -> None:
    assert ddgs_region(locale) == region


async def test_when_no_engine_can_be_reached_each_is_named(
    provider: DdgsSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_site({}) as gone:
        pass
    for engine in (Duckduckgo, Mojeek):
        monkeypatch.setattr(engine, "search_url", gone.url)
    with pytest.raises(ProviderFailure, match=r"ddgs answered: duckduckgo: .*; mojeek: ") as caught:
        await provider.search("bridges", limit=5)
    assert len(str(caught.value)) < 600


async def test_a_slow_engine_is_left_and_its_thread_is_free_again(site: Site) -> None:
    async def drip(send: Send) -> None:
        while True:
            await send(b" ")
            await asyncio.sleep(0.02)  # each piece comes in time, the whole never does

    site.pages["/duckduckgo"] = Reply(stream=drip)
    settings = SearchSettings(engines=("duckduckgo",), timeout_seconds=6)
    begun = time.monotonic()
    async with aclosing(DdgsSearch(settings)) as provider:
        with pytest.raises(ProviderFailure, match="duckduckgo: no answer"):
            await provider.search("bridges", limit=5)
        assert time.monotonic() - begun < 5.9, "one engine has half of the time"
        site.pages["/duckduckgo"] = Reply(DUCKDUCKGO)
        assert len(await provider.search("bridges", limit=5)) == 2
    working = [one for one in threading.enumerate() if one.name.startswith("ddgs")]
    await asyncio.to_thread(lambda: [one.join(5) for one in working])
    assert not any(one.is_alive() for one in working)


async def test_an_empty_query_is_not_sent(provider: DdgsSearch, site: Site) -> None:
    with pytest.raises(SearchError, match="empty"):
        await provider.search(" ", limit=5)
    assert site.requests == []
