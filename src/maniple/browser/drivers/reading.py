"""Reading a page once, in a context of its own."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from maniple.browser.addresses import require_public
from maniple.browser.drivers.connection import Contexts
from maniple.browser.drivers.failures import is_download, unopened
from maniple.browser.drivers.visits import Visits
from maniple.browser.page import Link, PageSource, PageText
from maniple.egress import EgressResolver
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Page

_PAGES_AT_ONCE = 8
_SETTLE_MILLISECONDS = 3_000
_READ_ATTEMPTS = 3
_MAX_CHARACTERS = 200_000
_MAX_LINKS = 300
_MAX_LINK_CHARACTERS = 2_000
_MAX_SOURCE_CHARACTERS = 2_000_000
_READ = """([characters, links]) => ({
    title: document.title,
    text: (document.body?.innerText ?? "").slice(0, characters),
    links: Array.from(document.links).slice(0, links).map(link => [link.innerText, link.href]),
})"""
_Found = tuple[str, int | None, Any]
"""Where the browser ended, the HTTP status, and what the page answered."""
_SOURCE = "characters => document.documentElement.outerHTML.slice(0, characters)"


class Reader:
    """Opens a page, asks it one thing and forgets it."""

    def __init__(self, contexts: Contexts, resolve: EgressResolver, timeout_seconds: float) -> None:
        self._visits = Visits(contexts)
        self._resolve = resolve
        self._timeout_seconds = timeout_seconds
        self._slots = asyncio.Semaphore(_PAGES_AT_ONCE)

    async def read(self, url: str) -> PageText:
        """See `Browser.read`."""
        url, status, found = await self._found(url, _READ, [_MAX_CHARACTERS, _MAX_LINKS])
        return _page_text(url, status, found)

    async def source(self, url: str) -> PageSource:
        """See `Browser.source`."""
        url, _, html = await self._found(url, _SOURCE, _MAX_SOURCE_CHARACTERS)
        return PageSource(url, _text(html)[:_MAX_SOURCE_CHARACTERS])

    async def aclose(self) -> None:
        """Wait until what was opened is closed."""
        await self._visits.aclose()

    async def _found(self, url: str, question: str, argument: Any) -> _Found:
        # The proxy would refuse it too, but Chromium could not say why.
        await require_public(url, self._resolve)
        async with self._slots:
            browser_failures = await asyncio.to_thread(_playwright_error)
            try:
                async with asyncio.timeout(self._timeout_seconds), self._visits.page() as page:
                    response = await page.goto(
                        url, wait_until="domcontentloaded", timeout=self._timeout_seconds * 1000
                    )
                    found = await _asked(page, question, argument)
                    return page.url, response.status if response else None, found
            except TimeoutError as error:
                raise BrowserError(f"{url} took too long to load; try another source.") from error
            except browser_failures as error:
                if is_download(error):
                    raise BrowserError(
                        f"{url} is a file to download, not a page; look for a page about it."
                    ) from error
                raise BrowserError(unopened(url, error)) from error


async def text_of(page: "Page") -> PageText:
    """Return the text of an open page, as a person would read it; raises Playwright's errors."""
    found = await _asked(page, _READ, [_MAX_CHARACTERS, _MAX_LINKS])
    return _page_text(page.url, None, found)


async def _asked(page: "Page", question: str, argument: Any) -> Any:
    """What the page answers to a piece of JavaScript once it has settled."""
    from playwright.async_api import Error

    for attempt in range(1, _READ_ATTEMPTS + 1):
        await _settle(page)
        try:
            return await page.evaluate(question, argument)
        except Error as error:
            # The page went on to another one (a script, a refresh): read that.
            if attempt == _READ_ATTEMPTS or "Execution context was destroyed" not in str(error):
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


async def _settle(page: "Page") -> None:
    from playwright.async_api import TimeoutError as StillBusyError

    # Some pages never rest; what is there by then is read.
    with suppress(StillBusyError):
        await page.wait_for_load_state("networkidle", timeout=_SETTLE_MILLISECONDS)


def _page_text(url: str, status: int | None, found: Any) -> PageText:
    """What the page said about itself; its scripts may have made that anything."""
    found = found if isinstance(found, dict) else {}
    links = found.get("links")
    return PageText(
        url=url,
        title=" ".join(_text(found.get("title")).split())[:500],
        text=_text(found.get("text"))[:_MAX_CHARACTERS],
        links=tuple(_links(links if isinstance(links, list) else [])),
        status=status,
    )


def _links(found: list[Any]) -> list[Link]:
    pairs = (pair for pair in found[:_MAX_LINKS] if isinstance(pair, list) and len(pair) == 2)
    links = (Link(" ".join(_text(text).split())[:200], _text(url)) for text, url in pairs)
    return [
        link
        for link in links
        if link.url.startswith(("http://", "https://")) and len(link.url) <= _MAX_LINK_CHARACTERS
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _playwright_error() -> type[Exception]:
    from playwright.async_api import Error

    return Error
