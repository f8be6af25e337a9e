"""Jina's reader: when it is used, what it receives, and what happens when it fails."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from maniple.config import FetchSettings
from maniple.crawler import Crawler
from maniple.errors import FetchError
from tests.crawler.test_evasions import resolver
from tests.crawler.web import Reply, Site, open_site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2"])]
PUBLIC = "93.184.216.34"
KEY = SecretStr("jina-key")
READ = Reply("<title>T</title><p>As Jina saw it.", "text/plain; charset=utf-8")


@pytest.fixture
async def jina(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/": READ}, "127.0.0.2") as site:
        yield site


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/": Reply("<p>As it is.")}) as site:
        yield site


@pytest.fixture(autouse=True)
def public_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """`public.test` looks public to the check of addresses for Jina, and otherwise resolves to loopback."""
    import socket

    import maniple.crawler.jina as room

    monkeypatch.setattr(socket, "getaddrinfo", resolver({"public.test": lambda: ["127.0.0.1"]}))

    class Outside:
        def __init__(self, settings: FetchSettings) -> None:
            self.guard = inner(settings)

        async def resolve(self, host: str, port: int) -> str:
            return PUBLIC if host == "public.test" else await self.guard.resolve(host, port)

    inner = room.AddressGuard
    monkeypatch.setattr(room, "AddressGuard", Outside)


def crawler(jina: Site, mode: str = "auto", key: SecretStr | None = KEY, **settings: Any) -> Crawler:
    return Crawler(
        FetchSettings(
            allow_private=("127.0.0.1/32",),
            timeout_seconds=5,
            jina=mode,
            jina_api_key=key,
            jina_base_url=jina.url,
            **settings,
        )
    )


def public(site: Site, path: str = "/") -> str:
    return f"http://public.test:{site.port}{path}"


async def read(crawling: Crawler, url: str) -> str:
    return (await crawling.crawl(url)).markdown


async def test_with_a_key_pages_come_through_jina(jina: Site, site: Site) -> None:
    article = await crawler(jina).crawl(public(site))
    assert (article.url, article.title, article.markdown) == (public(site), "T", "As Jina saw it.")
    assert site.requests == []
    [(method, path, head)] = jina.requests
    assert (method, path) == ("POST", "/")
    assert "authorization: Bearer jina-key\r\n" in head and "x-return-format: html\r\n" in head
    assert json.loads(jina.bodies[0]) == {"url": public(site)}


@pytest.mark.parametrize(("mode", "key"), [("auto", None), ("never", KEY), ("fallback", KEY)])
async def test_else_pages_come_from_their_sites(
    mode: str, key: SecretStr | None, jina: Site, site: Site
) -> None:
    assert await read(crawler(jina, mode, key), public(site)) == "As it is."
    assert jina.requests == []


async def test_the_mode_always_needs_no_key(jina: Site, site: Site) -> None:
    assert await read(crawler(jina, "always", None), public(site)) == "As Jina saw it."
    assert "authorization" not in jina.requests[0][2].lower()


@pytest.mark.parametrize(
    "reply",
    [
        Reply("keep out", status=403),
        Reply("broken", status=500),
        Reply("busy", status=429),
        Reply("<div id=root></div><script>render()</script>"),
        Reply("squeezed", headers=(("Content-Encoding", "zstd"),)),
    ],
)
async def test_what_cannot_be_fetched_falls_back_to_jina_where_that_is_set(
    reply: Reply, jina: Site, site: Site
) -> None:
    site.pages["/"] = reply
    assert await read(crawler(jina, "fallback", None), public(site)) == "As Jina saw it."
    for mode in ("never", "auto"):
        with pytest.raises(FetchError):
            await crawler(jina, mode, None).crawl(public(site))
    assert len(jina.requests) == 1


@pytest.mark.parametrize("status", [401, 404, 410, 451])
async def test_a_page_that_does_not_exist_is_not_requested_again(status: int, jina: Site, site: Site) -> None:
    site.pages["/"] = Reply("no", status=status)
    with pytest.raises(FetchError, match=str(status)):
        await crawler(jina, "fallback").crawl(public(site))
    assert jina.requests == []


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply("no", status=401), "JINA_API_KEY"),
        (Reply("no", status=402), "JINA_API_KEY"),
        (Reply("no", status=429), "limits requests"),
        (Reply("no", status=503), "answered 503"),
        (Reply("x" * 5_000_001), "larger than"),
        (Reply(""), "no readable text"),
    ],
)
async def test_when_jina_fails_the_page_is_fetched_directly_unless_it_is_always_jina(
    reply: Reply, said: str, jina: Site, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    jina.pages["/"] = reply
    assert await read(crawler(jina), public(site)) == "As it is."
    assert said in caplog.text and "jina-key" not in caplog.text
    with pytest.raises(FetchError, match=said):
        await crawler(jina, "always").crawl(public(site))


async def test_an_unreachable_jina_is_reported(jina: Site, site: Site) -> None:
    async with open_site({}, "127.0.0.2") as gone:
        pass
    assert await read(crawler(gone), public(site)) == "As it is."
    with pytest.raises(FetchError, match="Jina's reader"):
        await crawler(gone, "always").crawl(public(site))


@pytest.mark.parametrize("mode", ["auto", "always", "fallback"])
async def test_a_private_address_is_never_sent_to_jina(mode: str, jina: Site, site: Site) -> None:
    assert await read(crawler(jina, mode), site.url) == "As it is."
    site.pages["/"] = Reply("broken", status=500)
    for url in (site.url, "http://10.0.0.1/", "http://169.254.169.254/", "http://[::1]/", "file:///x"):
        with pytest.raises(FetchError):
            await crawler(jina, mode).crawl(url)
    assert jina.requests == []


@pytest.mark.parametrize("mode", ["auto", "always", "fallback"])
async def test_what_robots_txt_closes_is_not_read_through_jina(mode: str, jina: Site, site: Site) -> None:
    site.pages["/robots.txt"] = Reply("User-agent: *\nDisallow: /", "text/plain")
    with pytest.raises(FetchError, match="closed to robots"):
        await crawler(jina, mode).crawl(public(site))
    assert jina.requests == []
    assert await read(crawler(jina, mode, robots=False), public(site)) in ("As it is.", "As Jina saw it.")


async def test_an_unreachable_site_is_read_through_jina(jina: Site, site: Site) -> None:
    site.pages["/robots.txt"] = Reply("broken", status=500)
    assert await read(crawler(jina, "fallback"), public(site)) == "As Jina saw it."


async def test_a_wall_falls_back_to_jina_where_that_is_set(jina: Site, site: Site) -> None:
    site.pages["/"] = Reply("<title>Just a moment...</title><p>Checking your browser before accessing.</p>")
    assert await read(crawler(jina, "fallback"), public(site)) == "As Jina saw it."
    jina.pages["/"] = site.pages["/"]
    article = await crawler(jina, "fallback").crawl(public(site))
    assert (article.kind, len(jina.requests)) == ("bot check", 2)
