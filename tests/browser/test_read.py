import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maniple.browser import Browser, Link, open_browser
from maniple.config import BrowserSettings
from maniple.egress import AddressGuard
from maniple.errors import BrowserError
from tests.browser.processes import children, chromium_processes, command_of, until
from tests.crawler.web import Reply, Send, Site, redirect

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]


def environment_of_chromium() -> bytes:
    [process] = chromium_processes()
    return Path(f"/proc/{process}/environ").read_bytes()


async def test_a_page_is_read_as_a_person_would_see_it(browser: Browser, site: Site) -> None:
    site.pages |= {
        "/old": redirect("/new", 301),
        "/new": Reply(
            "<title>News</title><p>Good <b>news</b></p><p style='display:none'>secret</p><div id=late></div>"
            "<a href='/a'>First</a><a href='mailto:x@y.test'>Mail</a>"
            "<script>fetch('/data').then(r => r.text()).then(t => late.innerText = t)</script>"
        ),
        "/data": Reply("and more of it", content_type="text/plain"),
    }
    page = await browser.read(f"{site.url}/old", thread="t")
    assert (page.url, page.title, page.status) == (f"{site.url}/new", "News", 200)
    assert "Good news" in page.text
    assert "and more of it" in page.text
    assert "secret" not in page.text
    assert page.links == (Link("First", f"{site.url}/a"),)


async def test_a_refresh_is_followed(browser: Browser, site: Site) -> None:
    site.pages["/"] = Reply('<meta http-equiv=refresh content="0;url=/there">')
    site.pages["/there"] = Reply("<p>Arrived")
    page = await browser.read(site.url, thread="t")
    assert (page.url, page.text) == (f"{site.url}/there", "Arrived")


async def test_a_page_with_overridden_properties_breaks_nothing(browser: Browser, site: Site) -> None:
    site.pages["/"] = Reply(
        "<p>text</p><a href=/a>x</a><script>"
        "Object.defineProperty(document, 'title', {get: () => ({toString: 1})});"
        "Object.defineProperty(document, 'links', {get: () => [1, {innerText: 7, href: {}}]});"
        "</script>"
    )
    page = await browser.read(site.url, thread="t")
    assert (page.title, page.text, page.links) == ("", "text\n\nx", ())


async def test_cookies_end_with_the_call(browser: Browser, site: Site) -> None:
    site.pages["/"] = Reply("<p>Hello", headers=(("Set-Cookie", "who=you"),))
    for _ in range(2):
        await browser.read(site.url, thread="t")
    assert not any("who=you" in head for _, _, head in site.requests)


async def test_an_error_page_is_read_with_its_status(browser: Browser, site: Site) -> None:
    page = await browser.read(f"{site.url}/nowhere", thread="t")
    assert (page.status, page.text) == (404, "not here")


async def test_an_address_that_cannot_be_opened_is_reported(browser: Browser, site: Site) -> None:
    site.pages["/file"] = Reply(b"PK", content_type="application/zip")
    site.pages["/loop"] = redirect("/loop")
    with pytest.raises(BrowserError, match="a file to download"):
        await browser.read(f"{site.url}/file", thread="t")
    with pytest.raises(BrowserError, match="ERR_TOO_MANY_REDIRECTS"):
        await browser.read(f"{site.url}/loop", thread="t")
    with pytest.raises(BrowserError, match="cannot be reached"):
        await browser.read("http://127.0.0.2:9999/", thread="t")


@pytest.mark.slow
async def test_a_page_that_never_loads_is_left(guard: AddressGuard, site: Site) -> None:
    async def silent(send: Send) -> None:
        await asyncio.Event().wait()

    site.pages["/silent"] = Reply(stream=silent)
    site.pages["/busy"] = Reply("<script>while (true);</script>")
    async with open_browser(BrowserSettings(timeout_seconds=3), guard.resolve) as browser:
        for path in ("/silent", "/busy"):
            with pytest.raises(BrowserError, match="took too long"):
                await browser.read(f"{site.url}{path}", thread="t")


@pytest.mark.slow
async def test_pages_are_read_at_the_same_time(browser: Browser, site: Site) -> None:
    site.pages |= {f"/{n}": Reply(f"<title>{n}</title><p>page {n}") for n in range(12)}
    pages = await asyncio.gather(*(browser.read(f"{site.url}/{n}", thread=str(n)) for n in range(12)))
    assert [page.text for page in pages] == [f"page {n}" for n in range(12)]
    assert len(chromium_processes()) == 1


async def test_nothing_starts_before_the_first_page_and_nothing_stays_after(
    guard: AddressGuard, site: Site
) -> None:
    before = children()
    async with open_browser(BrowserSettings(), guard.resolve) as browser:
        assert children() == before
        await browser.read(site.url, thread="t")
        assert chromium_processes()
    await until(lambda: children() <= before)


async def test_no_secret_of_the_server_reaches_chromium(
    guard: AddressGuard, browser: Browser, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await browser.read(site.url, thread="t")
    for process in chromium_processes():
        os.kill(process, signal.SIGKILL)
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-canary")
    await until(lambda: not chromium_processes())
    await browser.read(site.url, thread="t")
    assert b"LANG=" in environment_of_chromium()
    assert b"tvly-canary" not in environment_of_chromium()


async def test_a_killed_browser_is_reported_and_replaced(browser: Browser, site: Site) -> None:
    arrived = asyncio.Event()

    async def hold(send: Send) -> None:
        arrived.set()
        await asyncio.Event().wait()

    site.pages |= {"/": Reply("<p>Back again"), "/hold": Reply(stream=hold)}
    reading = asyncio.create_task(browser.read(f"{site.url}/hold", thread="t"))
    await arrived.wait()
    for process in chromium_processes():
        os.kill(process, signal.SIGKILL)
    with pytest.raises(BrowserError, match="try again"):
        await reading
    assert (await browser.read(site.url, thread="t")).text == "Back again"


@pytest.fixture
async def playwright_may_complain(anyio_backend: str) -> AsyncIterator[None]:
    """Playwright leaves an unread future when its own process ends; that fails no test."""
    loop = asyncio.get_running_loop()
    handler = loop.get_exception_handler()
    loop.set_exception_handler(lambda *_: None)
    yield
    gc.collect()
    loop.set_exception_handler(handler)


@pytest.mark.slow
@pytest.mark.usefixtures("playwright_may_complain")
async def test_a_killed_driver_is_replaced_with_its_browser(guard: AddressGuard, site: Site) -> None:
    site.pages["/"] = Reply("<p>Back again")
    before = children()
    async with open_browser(BrowserSettings(), guard.resolve) as browser:
        await browser.read(site.url, thread="t")
        [driver] = [process for process in children() - before if "playwright/driver" in command_of(process)]
        os.kill(driver, signal.SIGKILL)
        assert (await browser.read(site.url, thread="t")).text == "Back again"
    await until(lambda: children() <= before)


async def test_a_cancelled_call_closes_its_page_and_no_other(browser: Browser, site: Site) -> None:
    arrived, left = asyncio.Event(), asyncio.Event()

    async def hold(send: Send) -> None:
        arrived.set()
        try:
            for _ in range(100_000):
                await send(b"x" * 1000)
                await asyncio.sleep(0.01)
        finally:
            left.set()

    site.pages |= {"/": Reply("<p>Still here"), "/hold": Reply(stream=hold)}
    reading = asyncio.create_task(browser.read(f"{site.url}/hold", thread="t"))
    async with asyncio.timeout(60):
        await arrived.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await left.wait()
    assert (await browser.read(site.url, thread="t")).text == "Still here"


@pytest.mark.slow
async def test_a_call_cancelled_while_the_browser_starts_leaves_a_browser_that_works(
    guard: AddressGuard, site: Site
) -> None:
    site.pages["/"] = Reply("<p>Up")
    before = children()
    async with open_browser(BrowserSettings(), guard.resolve) as browser:
        reading = asyncio.create_task(browser.read(site.url, thread="t"))
        await until(lambda: bool(children() - before))
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert (await browser.read(site.url, thread="t")).text == "Up"
    await until(lambda: children() <= before)
