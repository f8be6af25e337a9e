"""A page as HTML after its scripts ran, as the crawler gets it."""

from contextlib import suppress

import pytest

from maniple.browser import Browser
from maniple.capabilities.research import rendering
from maniple.config import FetchSettings
from maniple.crawler import Crawler
from maniple.errors import BrowserError, FetchError
from tests.browser.conftest import ALLOWED
from tests.crawler.web import Canary, Reply, Site, redirect

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]
APP = Reply(
    "<title>App</title><main id=root></main><script>fetch('/data').then(answer => answer.text()).then(text =>"
    " root.innerHTML = `<h1>Prices</h1><p>${text} <a href='/more'>More</a>`)</script>"
)


def crawler(browser: Browser) -> Crawler:
    return Crawler(FetchSettings(allow_private=(f"{ALLOWED}/32",)), rendering(browser))


async def test_a_page_that_only_scripts_can_write_is_read_with_its_links(
    browser: Browser, site: Site
) -> None:
    site.pages |= {"/": APP, "/data": Reply("Tea costs 3 euros.", "text/plain")}
    article = await crawler(browser).crawl(site.url)
    assert article.markdown == f"# Prices\n\nTea costs 3 euros. [More]({site.url}/more)"


async def test_the_source_is_that_of_the_page_where_the_browser_ended(browser: Browser, site: Site) -> None:
    site.pages |= {"/old": redirect("/new"), "/new": Reply("<p>文章")}
    source = await browser.source(f"{site.url}/old")
    assert source.url == f"{site.url}/new"
    assert "<p>文章</p>" in source.html


@pytest.mark.slow
async def test_an_endless_page_is_cut(browser: Browser, site: Site) -> None:
    site.pages["/"] = Reply("<p id=p></p><script>p.innerText = 'and on '.repeat(1_000_000)</script>")
    assert len((await browser.source(site.url)).html) == 2_000_000


async def test_a_page_that_answers_no_text_is_empty(browser: Browser, site: Site) -> None:
    lie = "Object.defineProperty(document.documentElement, 'outerHTML', {get: () => ({slice: () => 7})})"
    site.pages["/"] = Reply(f"<p>Hi<script>{lie}</script>")
    assert (await browser.source(site.url)).html == ""


@pytest.mark.parametrize(
    "script",
    [
        "location = 'http://127.0.0.1:{port}/'",
        "fetch('http://127.0.0.1:{port}/').then(a => a.text()).then(t => document.body.innerText = t)",
        "document.body.innerHTML = '<iframe src=http://127.0.0.1:{port}/></iframe>'",
        "document.body.innerHTML = '<img src=http://localhost:{port}/>'",
        "new WebSocket('ws://127.0.0.1:{port}/')",
        "open('http://[::1]:{port}/')",
        "navigator.sendBeacon('http://127.0.0.1:{port}/')",
    ],
)
async def test_a_rendered_page_reaches_nothing_internal(
    script: str, browser: Browser, site: Site, canary: Canary
) -> None:
    site.pages["/"] = Reply(f"<body><script>{script.replace('{port}', str(canary.port))}</script>")
    with suppress(FetchError):
        assert "sings" not in (await crawler(browser).crawl(site.url)).markdown
    assert canary.hits == []


async def test_an_internal_page_is_not_opened(browser: Browser, canary: Canary) -> None:
    with pytest.raises((FetchError, BrowserError)):
        await browser.source(f"http://127.0.0.1:{canary.port}/")
    assert canary.hits == []
