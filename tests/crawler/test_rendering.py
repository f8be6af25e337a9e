"""Pages that say nothing without their scripts, with a browser that is a stand-in."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from maniple.config import FetchSettings
from maniple.crawler import Crawler, FetchedDocument
from maniple.errors import BrowserError, FetchError
from tests.crawler.web import Reply, Site, open_site

pytestmark = pytest.mark.anyio
SETTINGS = FetchSettings(allow_private=("127.0.0.0/8",), timeout_seconds=10)
EMPTY = Reply("<title>App</title><div id=root></div><script src=app.js></script>")
WANTS = Reply("<div id=root>Please enable JavaScript to use this site.</div><script src=app.js></script>")


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/": EMPTY}) as site:
        yield site


class Window:
    """Renders every page to the same words, or fails."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.opened: list[str] = []

    async def __call__(self, url: str, /) -> FetchedDocument:
        self.opened.append(url)
        if self.failure is not None:
            raise self.failure
        return FetchedDocument(url, "text/html", "utf-8", b"<p>What the scripts wrote.")


TITLED = Reply("<title>App</title><body>App<script src=app.js></script>")


LOADING = Reply("<title>App</title><div class=spinner>Loading…</div><script src=app.js></script>")
WAITING = Reply("<h1>Shop</h1><p>加载中，请稍候</p><script src=app.js></script>")
LINKS = Reply("<ul><li><a href=/a>News</a><li><a href=/b>Shop</a></ul><script src=app.js></script>")
ROOT = Reply("<p>About.</p><div id='app' class=x>Hello</div><script src=app.js></script>")


@pytest.mark.parametrize("reply", [EMPTY, WANTS, TITLED, LOADING, WAITING, LINKS, ROOT])
async def test_a_page_that_is_empty_without_scripts_is_rendered(reply: Reply, site: Site) -> None:
    site.pages["/"] = reply
    window = Window()
    assert (await Crawler(SETTINGS, window).crawl(site.url)).markdown == "What the scripts wrote."
    assert len(window.opened) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply("<p>Short, and all there is.</p><script>count()</script>"),
        Reply("<p>JavaScript is a language.</p>"),
        Reply("<p>" + "JavaScript is a language. " * 50 + "</p><script>count()</script>"),
        Reply("<script> in plain text, JavaScript", "text/plain"),
    ],
)
async def test_a_page_with_text_is_not_rendered(reply: Reply, site: Site) -> None:
    site.pages["/"] = reply
    window = Window()
    await Crawler(SETTINGS, window).crawl(site.url)
    assert window.opened == []


async def test_the_longer_of_the_page_and_its_rendering_is_used(site: Site) -> None:
    site.pages["/"] = Reply("<p>The bridge opens at nine, every day.</p><p>Loading…</p><script>go()</script>")
    window = Window()
    article = await Crawler(SETTINGS, window).crawl(site.url)
    assert "opens at nine" in article.markdown
    assert len(window.opened) == 1


async def test_an_empty_page_without_scripts_is_not_rendered(site: Site) -> None:
    site.pages["/"] = Reply("<div></div>")
    window = Window()
    with pytest.raises(FetchError, match="no readable text"):
        await Crawler(SETTINGS, window).crawl(site.url)
    assert window.opened == []


async def test_the_page_without_scripts_is_used_if_the_browser_fails(site: Site) -> None:
    site.pages["/"] = WANTS
    article = await Crawler(SETTINGS, Window(BrowserError("it ended"))).crawl(site.url)
    assert "Please enable JavaScript" in article.markdown


async def test_a_failed_browser_is_reported_if_there_is_no_other_text(site: Site) -> None:
    with pytest.raises(FetchError, match=r"JavaScript, .*failed: it ended"):
        await Crawler(SETTINGS, Window(BrowserError("it ended"))).crawl(site.url)


async def test_a_page_that_never_ends_rendering_is_left(site: Site) -> None:
    async def hang(url: str, /) -> FetchedDocument:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    with pytest.raises(FetchError, match="took too long"):
        await Crawler(SETTINGS.model_copy(update={"timeout_seconds": 0.3}), hang).crawl(site.url)


async def test_two_pages_at_most_are_rendered_at_once(site: Site) -> None:
    working, most = 0, 0
    full = asyncio.Event()

    async def render(url: str, /) -> FetchedDocument:
        nonlocal working, most
        working += 1
        most = max(most, working)
        if working == 2:
            full.set()
        await full.wait()
        working -= 1
        return FetchedDocument(url, "text/html", "utf-8", b"<p>Rendered.")

    crawler = Crawler(SETTINGS, render)
    await asyncio.gather(*(crawler.crawl(site.url) for _ in range(6)))
    assert most == 2


WALL = Reply("<title>Just a moment...</title><p>Checking your browser before accessing a.test.</p>")


async def test_a_wall_is_opened_once_in_the_browser(site: Site) -> None:
    site.pages["/"] = WALL
    window = Window()
    article = await Crawler(SETTINGS, window).crawl(site.url)
    assert (article.markdown, article.is_source) == ("What the scripts wrote.", True)
    assert len(window.opened) == 1


async def test_a_wall_that_the_browser_cannot_open_is_returned_as_one(site: Site) -> None:
    site.pages["/"] = WALL
    article = await Crawler(SETTINGS, Window(BrowserError("It crashed."))).crawl(site.url)
    assert (article.kind, article.is_source) == ("bot check", False)


async def test_a_page_that_does_not_exist_is_not_opened_in_the_browser(site: Site) -> None:
    site.pages["/"] = Reply("<title>Page not found</title><p>The page you requested does not exist.</p>")
    window = Window()
    assert (await Crawler(SETTINGS, window).crawl(site.url)).kind == "not found"
    assert window.opened == []
