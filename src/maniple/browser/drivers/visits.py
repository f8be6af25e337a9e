"""Pages that are opened once, each in a context of its own, and forgotten."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from maniple.browser.drivers.connection import Contexts
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

_CLOSE_SECONDS = 5.0


class Visits:
    """Opens pages in `contexts`."""

    def __init__(self, contexts: Contexts) -> None:
        self._contexts = contexts
        self._closings: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def page(self, **options: Any) -> AsyncIterator["Page"]:
        """A page in a context of its own with Playwright's `options`; nothing is left of it afterwards.

        Raises:
            BrowserError: there is no browser, and none can be started.
            playwright.async_api.Error: it ended.
        """
        # Opened and closed in tasks of their own: a cancelled call must leave no context behind.
        opening = asyncio.create_task(self._contexts.new_context(accept_downloads=False, **options))
        try:
            context = await asyncio.shield(opening)
            yield await context.new_page()
        finally:
            closing = asyncio.create_task(_close(opening))
            self._closings.add(closing)
            closing.add_done_callback(self._closings.discard)
            await asyncio.shield(closing)

    async def aclose(self) -> None:
        """Wait until what was opened is closed."""
        await asyncio.gather(*self._closings)


async def _close(opening: "asyncio.Task[BrowserContext]") -> None:
    from playwright.async_api import Error

    # What cannot be closed has gone with its browser, or never came; the call itself says why.
    with suppress(Error, BrowserError, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await (await opening).close()
