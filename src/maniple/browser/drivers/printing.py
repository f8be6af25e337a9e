"""Printing documents of ours as PDF."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from maniple.browser.drivers.connection import Contexts
from maniple.browser.drivers.failures import first_line
from maniple.browser.drivers.visits import Visits
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Route

_AT_ONCE = 2


class Printer:
    """Prints in contexts that run no scripts and have no network, two documents at once."""

    def __init__(self, contexts: Contexts, timeout_seconds: float) -> None:
        self._visits = Visits(contexts)
        self._timeout_seconds = timeout_seconds
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def print(self, html: str) -> bytes:
        """See `Browser.print`."""
        error = await asyncio.to_thread(_playwright_error)
        try:
            async with self._slot(), asyncio.timeout(self._timeout_seconds):
                return await self._printed(html)
        except TimeoutError as late:
            raise BrowserError(
                f"Printing took longer than {self._timeout_seconds:g} seconds (browser.timeout_seconds)."
            ) from late
        except error as failure:
            raise BrowserError(f"The browser could not print: {first_line(failure)}") from failure

    async def aclose(self) -> None:
        """Wait until what was opened is closed."""
        await self._visits.aclose()

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        """Wait for a place as long as a document may take, which is not time of its own."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._slots.acquire()
        except TimeoutError as late:
            raise BrowserError("Others are being printed. Ask again in a while.") from late
        try:
            yield
        finally:
            self._slots.release()

    async def _printed(self, html: str) -> bytes:
        async with self._visits.page(java_script_enabled=False, offline=True) as page:
            await page.route("**/*", _refuse)
            await page.set_content(html, wait_until="load", timeout=self._timeout_seconds * 1000)
            return await page.pdf(prefer_css_page_size=True, print_background=True, outline=True, tagged=True)


async def _refuse(route: "Route") -> None:
    await route.abort()


def _playwright_error() -> type[Exception]:
    from playwright.async_api import Error

    return Error
