"""Reading pages with Playwright."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from maniple.browser.drivers.chromium import Chromium
from maniple.browser.page import Link, PageSource, PageText
from maniple.config import BrowserSettings
from maniple.egress import Resolve
from maniple.errors import BrowserError, FetchError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

_PAGES_AT_ONCE = 8
_SETTLE_MILLISECONDS = 3_000
_CLOSE_SECONDS = 5.0
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


class PlaywrightBrowser:
    """A `Browser` with one Chromium for everybody and a context of its own for each call."""

    def __init__(self, settings: BrowserSettings, executable: Path, resolve: Resolve) -> None:
        self._timeout_seconds = settings.timeout_seconds
        self._resolve = resolve
        self._chromium = Chromium(settings, executable, resolve)
        self._slots = asyncio.Semaphore(_PAGES_AT_ONCE)
        self._closings: set[asyncio.Task[None]] = set()

    async def read(self, url: str, *, thread: str) -> PageText:
        """See `Browser.read`. Cookies and storage end with the call, so `thread` separates nothing yet."""
        url, status, found = await self._found(url, _READ, [_MAX_CHARACTERS, _MAX_LINKS])
        return _page_text(url, status, found)

    async def source(self, url: str) -> PageSource:
        """See `Browser.source`."""
        url, _, html = await self._found(url, _SOURCE, _MAX_SOURCE_CHARACTERS)
        return PageSource(url, _text(html)[:_MAX_SOURCE_CHARACTERS])

    async def _found(self, url: str, question: str, argument: Any) -> _Found:
        await self._require_public(url)
        async with self._slots:
            browser_failures = await asyncio.to_thread(_playwright_error)
            try:
                async with asyncio.timeout(self._timeout_seconds), self._page() as page:
                    response = await page.goto(
                        url, wait_until="domcontentloaded", timeout=self._timeout_seconds * 1000
                    )
                    found = await _asked(page, question, argument)
                    return page.url, response.status if response else None, found
            except TimeoutError as error:
                raise BrowserError(f"{url} took too long to load; try another source.") from error
            except browser_failures as error:
                raise BrowserError(_sentence(url, str(error))) from error

    async def aclose(self) -> None:
        """End the browser; calls that are running fail."""
        await self._chromium.aclose()
        await asyncio.gather(*self._closings)

    async def _require_public(self, url: str) -> None:
        # The proxy would refuse it too, but Chromium could not say why.
        if not url.lower().startswith(("http://", "https://")):
            raise FetchError(f"{url} is not a web address; it must start with http:// or https://.")
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise FetchError(f"{url} is not a valid address: {error}.") from error
        if not parts.hostname:
            raise FetchError(f"{url} names no host; write the whole address.")
        await self._resolve(parts.hostname, port)

    @asynccontextmanager
    async def _page(self) -> AsyncIterator["Page"]:
        # Opened and closed in tasks of their own: a cancelled call must leave no context behind.
        opening = asyncio.create_task(self._chromium.new_context())
        try:
            context = await asyncio.shield(opening)
            yield await context.new_page()
        finally:
            closing = asyncio.create_task(_close(opening))
            self._closings.add(closing)
            closing.add_done_callback(self._closings.discard)
            await asyncio.shield(closing)


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


async def _close(opening: "asyncio.Task[BrowserContext]") -> None:
    from playwright.async_api import Error

    # What cannot be closed has gone with its browser, or never came; the call itself says why.
    with suppress(Error, BrowserError, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await (await opening).close()


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


def _sentence(url: str, message: str) -> str:
    # Chromium's code comes before the address in the message, which may hold any words.
    code = match[1] if (match := re.search(r"net::(ERR_\w+)", message)) else ""
    if code == "ERR_ABORTED" or "Download is starting" in message:
        return f"{url} is a file to download, not a page; look for a page about it."
    if code.startswith("ERR_SOCKS"):
        return f"{url} cannot be reached, or leads to an address that is not public; use another page."
    if code.startswith("ERR_CERT"):
        return f"{url} has no certificate that can be trusted; use another source."
    if not code and any(word in message for word in ("closed", "crashed", "Connection")):
        return f"The browser ended while it read {url}; try again, a new one will be started."
    return f"The browser could not open {url} ({code or message.partition(chr(10))[0]}); use another source."
