"""What a thread's pages ask for, so that an action is over when a person would say so."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Frame, Page, Request

# What changes what is seen, and ends: pictures may come late, sockets and event streams never end.
_AWAITED = frozenset({"document", "stylesheet", "script", "xhr", "fetch"})
_QUIET_SECONDS = 0.06
_BUSY_SECONDS = 2.0
_MOST = 2_000


@dataclass(frozen=True, slots=True)
class _Asked:
    number: int
    page: "Page | None"
    """None for the first of a page that is not there yet."""
    leads: bool
    """It is to be the next page, or one in a new tab."""


class Traffic:
    """The requests of a context that are under way."""

    def __init__(self, context: "BrowserContext") -> None:
        self._requests: dict[Request, _Asked] = {}
        self._leading: dict[Request, _Asked] = {}
        self._changed = asyncio.Event()
        self.begun = 0
        """How many there were so far."""
        self.broken_off = 0
        """How many pages did not come because something else did, such as a download."""
        self.failure: tuple[str, str] | None = None
        """The address that a tab was to go to last and could not, and Chromium's word for it."""
        context.on("request", self._came)
        context.on("requestfinished", self._went)
        context.on("requestfailed", self._failed)
        context.on("framenavigated", self._arrived)

    async def settle(self, page: "Page", since: int, navigation_seconds: float) -> None:
        """Wait until what began after `begun` was `since` is there: the next page, or parts of this one.

        What does not end is left after two seconds, a page that does not come
        after `navigation_seconds`.
        """
        await self.arrive(page, navigation_seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(_BUSY_SECONDS):
                await self._quiet(page, since)

    async def arrive(self, page: "Page", seconds: float) -> None:
        """Wait until the next page is there, if one is under way; or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(asked.page in (page, None) for asked in self._leading.values()):
                    await self._wait_for_change(None)

    async def _quiet(self, page: "Page", since: int) -> None:
        while True:
            begun = self.begun
            while any(asked.page is page and asked.number > since for asked in self._requests.values()):
                await self._wait_for_change(None)
            # A page that was told something often asks for more.
            await self._wait_for_change(_QUIET_SECONDS)
            if begun == self.begun:
                return

    async def _wait_for_change(self, seconds: float | None) -> None:
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    def _came(self, request: "Request") -> None:
        if request.resource_type not in _AWAITED or len(self._requests) >= _MOST:
            return
        self.begun += 1
        page = _page_of(request)
        leads = request.is_navigation_request() and (page is None or request.frame is page.main_frame)
        asked = self._requests[request] = _Asked(self.begun, page, leads)
        if leads:
            self._leading[request] = asked
        self._changed.set()

    def _arrived(self, frame: "Frame") -> None:
        if frame.parent_frame is None:
            self._leading = {
                request: asked
                for request, asked in self._leading.items()
                if asked.page is not frame.page and not (asked.page is None and request.url == frame.url)
            }
            self._changed.set()

    def _went(self, request: "Request") -> None:
        # An answer that is no page (204) leaves the one that is there.
        self._leading.pop(request, None)
        self._requests.pop(request, None)
        self._changed.set()

    def _failed(self, request: "Request") -> None:
        asked = self._requests.get(request)
        if asked is not None and asked.leads:
            failure = request.failure or ""
            if "ERR_ABORTED" in failure:
                self.broken_off += 1
            else:
                self.failure = (request.url, failure)
        self._went(request)


def _page_of(request: "Request") -> "Page | None":
    from playwright.async_api import Error

    try:
        return request.frame.page
    except Error:  # it is not there yet
        return None
