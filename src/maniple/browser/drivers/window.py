"""A thread's window: an open context with its tabs and all that comes up in them."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from maniple.browser.actions import Action, ActionName, ActionResult
from maniple.browser.drivers.connection import Contexts
from maniple.browser.drivers.dialogs import Dialogs
from maniple.browser.drivers.downloads import Downloads
from maniple.browser.drivers.looking import Look
from maniple.browser.drivers.notices import Notices
from maniple.browser.drivers.tabs import Tab, Tabs
from maniple.browser.drivers.traffic import Traffic
from maniple.browser.page import Aids
from maniple.browser.storage import Storage
from maniple.config import BrowserSettings
from maniple.egress import EgressResolver
from maniple.errors import BrowserError
from maniple.reading.fork_server import ForkServer

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ElementHandle, Page

_CLOSE_SECONDS = 5.0
_ANSWER_SECONDS = 5.0


class Sight(Protocol):
    """How pages are looked at."""

    def recorder(self) -> str:
        """JavaScript that runs in each page before its own."""
        ...

    async def look(self, tab: "Page", earlier: Look | None, *, tokens: int) -> Look:
        """Look at a page; `earlier` is the thread's look before, of whatever page.

        Raises:
            BrowserError: the page does not answer.
        """
        ...

    async def find(self, look: Look, index: int) -> "ElementHandle":
        """The element that a look showed under `index`.

        Raises:
            BrowserError: there is none, or it is no longer what was shown.
        """
        ...

    async def screenshot(self, tab: "Page", look: Look, *, marks: bool) -> bytes:
        """The window as JPEG, with the indexes in it or without."""
        ...


class Act(Protocol):
    """One of the actions."""

    async def __call__(self, window: "Window", action: Action, aids: Aids, /) -> ActionResult:
        """Do it.

        Raises:
            ToolFailure: it could not be done; part of a sentence, or a whole one.
            playwright.async_api.Error: the same, in Playwright's words.
        """
        ...


@dataclass(frozen=True, slots=True)
class Fittings:
    """What all windows have in common."""

    settings: BrowserSettings
    resolve: EgressResolver
    sight: Sight
    acts: Mapping[ActionName, Act]
    fork_server: ForkServer
    """Reads pages into Markdown."""
    downloads: Path
    """A folder for files that nobody else keeps."""
    storage: Storage | None = None
    """Where cookies and local storage are kept, if they are."""


class Window:
    """An open context. Made by `open_window`; its parts are for the actions."""

    def __init__(self, context: "BrowserContext", fittings: Fittings) -> None:
        settings = fittings.settings
        self.context = context
        self.fittings = fittings
        self.settings = settings
        self.notices = Notices()
        self.traffic = Traffic(context)
        self.dialogs = Dialogs(context, settings.dialogs, self.notices)
        self.downloads = Downloads(
            context, fittings.downloads, settings.max_download_bytes, settings.timeout_seconds
        )
        self.tabs = Tabs(context, self.notices, self.downloads.watch)
        self.dialogs.devtools = self.tabs.devtools
        self.seen: Look | None = None
        """The last look, whichever tab it was of."""
        self.seen_tab: Tab | None = None
        self.ended = asyncio.Event()
        """Set when it is closed, or its browser is gone."""
        context.on("close", self._closed)

    @property
    def action_milliseconds(self) -> float:
        """How long an element may take to be acted on."""
        return self.settings.action_seconds * 1000

    async def find(self, index: int) -> "ElementHandle":
        """The element of that index in the current tab, as it was shown last; raises `BrowserError`."""
        if self.seen is None:
            raise BrowserError(f"Element with index {index} not found: the page was not looked at yet.")
        if self.seen_tab is not await self.tabs.current():
            raise BrowserError(
                f"Element with index {index} not found: another tab is shown now; look at the current state."
            )
        return await self.fittings.sight.find(self.seen, index)

    async def check(self, tab: Tab) -> bool:
        """Whether the page of `tab` answers within five seconds; one that does not is replaced."""
        from playwright.async_api import Error

        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_ANSWER_SECONDS):
                await tab.page.evaluate("0")
                return True
        tab.is_broken = True
        return False

    async def clear(self, tab: Tab, aids: Aids, at: tuple[float, float] | None = None) -> bool:
        """Get out of the way what covers the page of `tab`, or its point `at`; whether anything was done."""
        if not self.settings.obstacles:
            return False
        told = await tab.clearing.clear(aids.choose, at=at)
        for notice in told:
            self.notices.add(notice)
        return bool(told)

    async def aclose(self) -> None:
        """Close the context; what cannot be closed has gone with its browser."""
        from playwright.async_api import Error

        self.ended.set()
        await asyncio.gather(self.dialogs.aclose(), self.downloads.aclose(), self.tabs.aclose())
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.context.close()

    def _closed(self, _: "BrowserContext") -> None:
        self.ended.set()


async def open_window(
    contexts: Contexts, fittings: Fittings, state: Mapping[str, Any] | None = None
) -> Window:
    """Open a window and fit it out; raises Playwright's errors and `BrowserError`.

    `state` is what `BrowserContext.storage_state` gave; one that Chromium does not take is left out.
    """
    from playwright.async_api import Error

    settings = fittings.settings
    size = {"width": settings.viewport_width, "height": settings.viewport_height}
    options: dict[str, Any] = {"viewport": size, "accept_downloads": True}
    try:
        context = await contexts.new_context(**options, storage_state=state)
    except Error:
        if state is None:
            raise
        context = await contexts.new_context(**options)
    window = Window(context, fittings)
    await context.add_init_script(fittings.sight.recorder())
    return window
