"""From settings to a browser."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from maniple.browser.drivers.playwright import PlaywrightBrowser
from maniple.browser.executable import find_executable
from maniple.browser.page import Browser
from maniple.config import BrowserSettings
from maniple.egress import Resolve
from maniple.types import Unavailable


@asynccontextmanager
async def open_browser(settings: BrowserSettings, resolve: Resolve) -> AsyncIterator[Browser | Unavailable]:
    """The browser, or why there is none; no process starts before the first page.

    Every connection of Chromium's goes where `resolve` says, and nowhere when it raises.
    """
    if not settings.enabled:
        yield Unavailable("The browser is turned off.", "set `browser.enabled: true`.")
        return
    executable = await asyncio.to_thread(find_executable, settings)
    if isinstance(executable, Unavailable):
        yield executable
        return
    async with aclosing(PlaywrightBrowser(settings, executable, resolve)) as browser:
        yield browser
