"""A Chromium for one thread alone, with browser-use beside it."""

import asyncio
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maniple.browser.drivers.browser_use.eyes import Eyes
from maniple.browser.drivers.browser_use.sight import BrowserUseSight
from maniple.browser.drivers.chromium import Chromium
from maniple.config import BrowserSettings
from maniple.egress import EgressResolver

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext


class WatchedChromium:
    """`Contexts` that `sight` sees; browser-use sees all of a browser, so no two threads may share one."""

    def __init__(
        self, settings: BrowserSettings, executable: Path, resolve: EgressResolver, sight: BrowserUseSight
    ) -> None:
        port = _free_port()
        self._chromium = Chromium(settings, executable, resolve, port)
        self._eyes = Eyes(port, settings.viewport_width, settings.viewport_height)
        self._sight = sight

    async def new_context(self, **options: Any) -> "BrowserContext":
        """See `Contexts.new_context`."""
        context = await self._chromium.new_context(**options)
        self._sight.attach(context, self._eyes)
        return context

    async def aclose(self) -> None:
        """End both processes."""
        await asyncio.gather(self._eyes.aclose(), self._chromium.aclose())


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
