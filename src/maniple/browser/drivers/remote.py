"""A Chromium that somebody else started, reached by its DevTools."""

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from maniple.browser.drivers.connection import Connection
from maniple.browser.drivers.failures import first_line
from maniple.browser.endpoint import require_endpoint
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Browser as Connected
    from playwright.async_api import Playwright

_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
_SCHEMES = ("http", "https", "ws", "wss")


class RemoteChromium(Connection):
    """`Contexts` of our own in the Chromium at `url`, which is `browser.cdp_url`.

    What others opened there stays theirs. Its pages reach what it can reach: our proxy is not in between.

    Raises:
        ConfigError: that is no address.
    """

    def __init__(self, url: str, timeout_seconds: float) -> None:
        super().__init__(self._attach)
        self._url = require_endpoint("browser.cdp_url", url, _SCHEMES)
        self._timeout_seconds = timeout_seconds

    async def _attach(self, playwright: "Playwright", stack: AsyncExitStack) -> "Connected":
        from playwright.async_api import Error

        try:
            return await playwright.chromium.connect_over_cdp(
                self._url,
                timeout=self._timeout_seconds * 1000,
                # Files that come and go are handed over by the disk.
                is_local=urlsplit(self._url).hostname in _THIS_MACHINE,
                # Whoever works in it goes on as before.
                no_defaults=True,
            )
        except Error as error:
            raise BrowserError(f"The Chromium at {_shown(self._url)} {_why(str(error))}") from error


def _why(message: str) -> str:
    if "ECONNREFUSED" in message or "ENOTFOUND" in message or "EHOSTUNREACH" in message:
        return "cannot be reached. Start it with --remote-debugging-port, or correct browser.cdp_url."
    if "Timeout" in message:
        return "does not answer. Is browser.cdp_url the address of a Chromium's DevTools?"
    if "Unexpected status" in message or "404" in message or "JSON" in message:
        return "is none: what answers there is no DevTools. Correct browser.cdp_url."
    return f"cannot be used ({first_line(message)}). Is browser.cdp_url the address of a current Chromium?"


def _shown(url: str) -> str:
    # Hosted browsers take their key in the address.
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
