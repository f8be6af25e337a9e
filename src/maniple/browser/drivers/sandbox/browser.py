"""The browser of a sandbox: one for everybody, so one thread at a time has it."""

import asyncio

from maniple.browser.drivers.sandbox.actions import Hands
from maniple.browser.drivers.sandbox.api import AutomationApi
from maniple.browser.drivers.sandbox.page import SandboxPage
from maniple.browser.page import Aids, PageSource, PageText
from maniple.config import BrowserSettings
from maniple.egress import EgressResolver
from maniple.errors import BrowserError


class SandboxBrowser:
    """A `Browser` at `browser.sandbox_url`.

    Its API knows no contexts: cookies and tabs are everybody's who uses it. A thread has it alone until its
    page is closed, or was not used for `browser.idle_seconds`. What its pages reach is the sandbox's
    business; `resolve` says what maniple opens there by its address.
    """

    def __init__(self, url: str, settings: BrowserSettings, resolve: EgressResolver) -> None:
        self._settings = settings
        self._resolve = resolve
        self._api = AutomationApi(url, settings)
        self._lock = asyncio.Lock()
        self._page: SandboxPage | None = None

    async def page(self, thread: str, aids: Aids | None = None) -> SandboxPage:
        """See `Browser.page`.

        Raises:
            BrowserError: another thread has the browser.
        """
        async with self._lock:
            held = self._page
            if held is None or held.is_left:
                return self._new_page(thread, aids)
            if held.thread == thread:
                return held.take(aids or Aids())
            if held.idle_seconds < self._settings.idle_seconds:
                raise BrowserError(
                    "The sandbox has one browser, and another conversation is using it; "
                    "try again later, or do it without a browser."
                )
            await held.aclose()
            return self._new_page(thread, aids)

    async def read(self, url: str, *, thread: str) -> PageText:
        """See `Browser.read`; the API tells no links and no status.

        Raises:
            FetchError: the address is no public web page.
            BrowserError: the page did not load, or another thread has the browser.
        """
        held = self._page
        page = await self.page(thread)
        try:
            return await page.read_beside(url)
        finally:
            if page is not held:
                await page.aclose()

    async def source(self, url: str) -> PageSource:
        """See `Browser.source`; always raises `BrowserError`: the API gives no HTML."""
        raise BrowserError(f"The sandbox's browser gives no HTML of {url}; read the page without it.")

    async def print(self, html: str) -> bytes:
        """See `Browser.print`; always raises `BrowserError`: the API prints nothing."""
        raise BrowserError("The sandbox's browser cannot print; set `browser.backend: local`.")

    async def forget(self, thread: str) -> None:
        """See `Browser.forget`; what the sandbox keeps is its own."""
        if self._page is not None and self._page.thread == thread:
            await self._page.aclose()

    async def aclose(self) -> None:
        """Leave the browser as another one may use it, and close the connections."""
        if self._page is not None:
            await self._page.aclose()
        await self._api.aclose()

    def _new_page(self, thread: str, aids: Aids | None) -> SandboxPage:
        hands = Hands(self._api, self._resolve, self._settings)
        self._page = SandboxPage(thread, hands, self._settings.state_tokens).take(aids or Aids())
        return self._page
