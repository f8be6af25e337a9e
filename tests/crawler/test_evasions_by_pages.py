"""The ways by which a page or a site may send its readers inside, other than by HTTP's redirects."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from maniple.config import FetchSettings
from maniple.crawler import Crawler, FetchedDocument
from maniple.errors import FetchError
from tests.crawler.allowed import ALLOWED
from tests.crawler.allowed import canary as canary
from tests.crawler.allowed import site as site
from tests.crawler.test_evasions import LOCATIONS, resolver
from tests.crawler.test_evasions import names as names
from tests.crawler.web import Canary, Reply, Site, open_site, redirect

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

PAGE = Reply("<p>A public page.</p>")


def crawler(**settings: Any) -> Crawler:
    return Crawler(FetchSettings(allow_private=(f"{ALLOWED}/32",), timeout_seconds=5, **settings))


@pytest.fixture
async def jina(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/": PAGE}, ALLOWED) as jina:
        yield jina


@pytest.mark.parametrize("location", LOCATIONS)
async def test_no_refresh_reaches_an_internal_address(location: str, canary: Canary, site: Site) -> None:
    target = location.format(port=canary.port)
    site.pages["/go"] = Reply(f'<meta http-equiv="refresh" content="0; url={target}"><p>Wait.')
    if target == "http://[::1":  # no address at all, so no refresh either
        assert (await crawler().crawl(f"{site.url}/go")).markdown == "Wait."
    else:
        with pytest.raises(FetchError):
            await crawler().crawl(f"{site.url}/go")
    assert canary.hits == []


@pytest.mark.parametrize("location", [*LOCATIONS, "/again"])
async def test_no_frame_reaches_an_internal_address(location: str, canary: Canary, site: Site) -> None:
    target = location.format(port=canary.port)
    site.pages |= {
        "/go": Reply(f'<frameset><frame src="{target}"></frameset>'),
        "/again": redirect(f"http://127.0.0.1:{canary.port}/"),
    }
    with pytest.raises(FetchError):
        await crawler().crawl(f"{site.url}/go")
    assert canary.hits == []


async def test_a_base_address_leads_a_refresh_no_further_inside(canary: Canary, site: Site) -> None:
    base = f"<base href='http://127.0.0.1:{canary.port}/'>"
    site.pages |= {
        "/refresh": Reply(f"{base}<meta http-equiv=refresh content='0; url=in'>"),
        "/frames": Reply(f"{base}<frameset><frame src=in></frameset>"),
    }
    for path in site.pages:
        with pytest.raises(FetchError):
            await crawler().crawl(f"{site.url}{path}")
    assert canary.hits == []


@pytest.mark.parametrize("location", LOCATIONS)
async def test_no_robots_txt_reaches_an_internal_address(location: str, canary: Canary, site: Site) -> None:
    site.pages |= {"/": PAGE, "/robots.txt": redirect(location.format(port=canary.port))}
    with pytest.raises(FetchError):
        await crawler().crawl(site.url)
    assert canary.hits == []


@pytest.mark.parametrize("mode", ["auto", "always", "fallback"])
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "inside.test", "mixed.test", "[::ffff:7f00:1]", "metadata.test"]
)
async def test_no_internal_address_is_sent_to_jina_or_reached_through_it(
    mode: str, host: str, canary: Canary, jina: Site
) -> None:
    reading = crawler(jina=mode, jina_api_key="k", jina_base_url=jina.url)
    with pytest.raises(FetchError):
        await reading.crawl(f"http://{host}:{canary.port}/")
    assert (canary.hits, jina.requests) == ([], [])


async def test_a_page_from_jina_leads_nowhere(
    canary: Canary, site: Site, jina: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maniple.crawler.jina.JinaReader.is_allowed", _taken)
    reading = crawler(jina="always", jina_base_url=jina.url)
    inside = f"http://127.0.0.1:{canary.port}/"
    for leading in (
        redirect(inside),
        Reply(f"<meta http-equiv=refresh content='0; url={inside}'><p>Text."),
        Reply(f"<frameset><frame src={inside}></frameset><p>Text."),
    ):
        jina.pages["/"] = leading
        with suppress(FetchError):
            await reading.crawl(f"{site.url}/")
    assert canary.hits == []


async def _taken(_: object, url: str) -> bool:
    return True


async def test_a_cached_page_is_not_served_for_a_name_that_now_is_internal(
    canary: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = [ALLOWED]
    monkeypatch.setattr("socket.getaddrinfo", resolver({"moving.test": lambda: addresses}))
    reading = crawler()
    tagged = Reply("<p>A public page.</p>", headers=(("ETag", '"1"'),))
    async with open_site({"/": tagged}, ALLOWED) as site:
        url = f"http://moving.test:{site.port}/"
        assert (await reading.crawl(url)).markdown == "A public page."
        addresses[:] = ["127.0.0.1"]
        with pytest.raises(FetchError, match="not public"):
            await reading.crawl(url)
    assert canary.hits == []


async def test_only_pages_that_were_let_through_are_rendered(canary: Canary, site: Site) -> None:
    rendered: list[str] = []

    async def render(url: str) -> FetchedDocument:
        rendered.append(url)
        return FetchedDocument(url, "text/html", "utf-8", b"<p>Rendered.")

    inside = f"http://127.0.0.1:{canary.port}/"
    empty = Reply("<div id=root></div><script>render()</script>")
    site.pages |= {"/": empty, "/go": redirect(inside), "/on": redirect("/")}
    reading = Crawler(FetchSettings(allow_private=(f"{ALLOWED}/32",), timeout_seconds=5), render)
    for url in (inside, f"{site.url}/go", "file:///etc/passwd"):
        with pytest.raises(FetchError):
            await reading.crawl(url)
    assert rendered == []
    assert (await reading.crawl(f"{site.url}/on")).markdown == "Rendered."
    assert (rendered, canary.hits) == ([f"{site.url}/"], [])
