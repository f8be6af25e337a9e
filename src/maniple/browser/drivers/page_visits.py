"""Visits to single pages, each in a browser context of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from maniple.browser.drivers.chromium import ContextSource
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext
    from playwright.async_api import Page as PlaywrightPage

_CLOSE_SECONDS = 5.0


class PageVisits:
    """Opens pages once, each in a context of its own that is deleted afterwards."""

    def __init__(self, contexts: ContextSource) -> None:
        self._contexts = contexts
        self._closings: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def page(self, **options: Any) -> AsyncIterator["PlaywrightPage"]:
        """Open a page in a new context with Playwright's `options`.

        Raises:
            BrowserError: there is no browser, and none can be started.
            playwright.async_api.Error: it ended.
        """
        # Opened and closed in tasks of their own: a cancelled call must not leave a context behind.
        opening = asyncio.create_task(self._contexts.new_context(accept_downloads=False, **options))
        try:
            context = await asyncio.shield(opening)
            yield await context.new_page()
        finally:
            closing = asyncio.create_task(_close_context(opening))
            self._closings.add(closing)
            closing.add_done_callback(self._closings.discard)
            await asyncio.shield(closing)

    async def aclose(self) -> None:
        """Wait until all pages are closed."""
        await asyncio.gather(*self._closings)


async def _close_context(opening: "asyncio.Task[BrowserContext]") -> None:
    from playwright.async_api import Error

    # A context that cannot be closed has ended with its browser, or was never opened; the call reports that.
    with suppress(Error, BrowserError, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await (await opening).close()
