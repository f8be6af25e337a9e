"""A thread's tabs: which there are, and which one is looked at."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maniple.browser.drivers.failures import Unable
from maniple.browser.drivers.notices import Notices
from maniple.browser.drivers.surface import PlaywrightSurface
from maniple.browser.obstacles import Clearing
from maniple.browser.state import Tab as TabView
from maniple.browser.wording import one_line

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, FileChooser, Page

_MOST = 20
_TITLE_SECONDS = 1.0
_CLOSE_SECONDS = 3.0
_CATCH_UP_SECONDS = 0.5


@dataclass(slots=True, eq=False)
class Tab:
    """An open tab."""

    tab_id: int
    page: "Page"
    clearing: Clearing
    opener: "Tab | None" = None
    chooser: "FileChooser | None" = None
    """The page asked for a file and waits for it."""
    devtools: "CDPSession | None" = None
    is_broken: bool = False
    """Its page crashed, or answers no more."""

    async def catch_up(self) -> None:
        """Wait until all is told that the page has begun so far: an answer comes after what was before."""
        from playwright.async_api import Error

        if self.devtools is not None:
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(_CATCH_UP_SECONDS):
                    await self.devtools.send("Runtime.evaluate", {"expression": "0"})


class Tabs:
    """The tabs of a context; pages that open by themselves become tabs as well.

    `watch` is given the DevTools of each.
    """

    def __init__(
        self, context: "BrowserContext", notices: Notices, watch: Callable[["CDPSession"], Awaitable[None]]
    ) -> None:
        self._context = context
        self._notices = notices
        self._watch = watch
        self._tabs: dict[Page, Tab] = {}
        self._current: Tab | None = None
        self._last_id = 0
        self._own = 0
        """How many pages are being opened here, and not by a page."""
        self._arrived = asyncio.Event()
        self.announced = 0
        """How many windows pages have begun to open; each is a tab as soon as its server answers."""
        self._tasks: set[asyncio.Task[None]] = set()
        context.on("page", self._came)

    async def current(self) -> Tab:
        """The tab that is looked at; an empty one when the last was closed, or its page is broken."""
        tab = self._current
        if tab is None:
            return await self.open()
        if tab.is_broken:
            await self.replace(tab)
        return tab

    async def open(self, tab_id: int | None = None) -> Tab:
        """Open an empty tab and look at it; `tab_id` is one that it had before.

        Raises:
            Unable: as many are open as there may be.
        """
        if len(self._tabs) >= _MOST:
            raise Unable(f"{_MOST} tabs are open; close one first")
        page = await self._new_page()
        tab = self._tabs.get(page) or self._add(page)
        if tab_id is not None:
            tab.tab_id, self._last_id = tab_id, max(self._last_id, tab_id)
        self._current = tab
        return tab

    def switch(self, tab_id: int) -> bool:
        """Look at another tab; whether there is one of that number."""
        for tab in self._tabs.values():
            if tab.tab_id == tab_id:
                self._current = tab
                return True
        return False

    async def close_current(self) -> None:
        """Close the tab that is looked at; then its opener's is, or the newest."""
        tab = await self.current()
        await tab.page.close()
        self._gone(tab.page)

    def newer_than(self, tab_id: int) -> list[Tab]:
        """The tabs that were opened after the one of that number."""
        return [tab for tab in self._tabs.values() if tab.tab_id > tab_id]

    @property
    def last_id(self) -> int:
        """The number of the tab that was opened last."""
        return self._last_id

    @property
    def ids(self) -> list[int]:
        """The numbers of the open tabs, as they were opened."""
        return [tab.tab_id for tab in self._tabs.values()]

    def devtools(self, page: "Page") -> "CDPSession | None":
        """DevTools of a page; None when they are not there yet."""
        tab = self._tabs.get(page)
        return tab.devtools if tab else None

    def addresses(self) -> tuple[tuple[int, str], ...]:
        """Number and address of each tab, the current one last."""
        tabs = sorted(self._tabs.values(), key=lambda tab: tab is self._current)
        return tuple((tab.tab_id, tab.page.url) for tab in tabs)

    async def views(self) -> tuple[TabView, ...]:
        """What is told of the tabs; a page that does not answer has no title."""
        tabs = list(self._tabs.values())
        titles = await asyncio.gather(*(_title(tab) for tab in tabs))
        return tuple(
            TabView(tab.tab_id, title, tab.page.url, tab is self._current)
            for tab, title in zip(tabs, titles, strict=True)
        )

    async def aclose(self) -> None:
        """Leave nothing half done."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def replace(self, tab: Tab) -> None:
        """Give a tab an empty page in place of one that is broken."""
        broken, tab.page = tab.page, await self._new_page()
        tab.clearing = Clearing(PlaywrightSurface(tab.page))
        added = self._tabs.pop(tab.page, None)
        if added is not None and added.tab_id == self._last_id:
            self._last_id -= 1
        del self._tabs[broken]
        self._tabs[tab.page] = tab
        tab.chooser, tab.is_broken = None, False
        self._begin(_close(broken))

    async def _new_page(self) -> "Page":
        """A page that was not opened by another, however many there are."""
        self._own += 1
        try:
            return await self._context.new_page()
        finally:
            self._own -= 1

    def _announce(self, _: Any) -> None:
        self.announced += 1

    async def arrival(self, after: int, seconds: float) -> None:
        """Wait for a tab that was opened after the one of that number, for so many seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._last_id <= after:
                    self._arrived.clear()
                    await self._arrived.wait()

    def _came(self, page: "Page") -> None:
        if len(self._tabs) >= _MOST and not self._own:
            self._notices.add(f"The page opened more tabs than {_MOST}; the new ones were closed.")
            self._begin(_close(page))
            return
        tab = self._add(page)
        self._begin(self._settled(tab))
        self._arrived.set()

    def _add(self, page: "Page") -> Tab:
        self._last_id += 1
        tab = self._tabs[page] = Tab(self._last_id, page, Clearing(PlaywrightSurface(page)))
        page.on("close", self._gone)
        page.on("crash", lambda _: self._crashed(tab))
        page.on("filechooser", lambda chooser: self._asked_for_file(tab, chooser))
        return tab

    async def _settled(self, tab: Tab) -> None:
        from playwright.async_api import Error

        with suppress(Error):  # it is closed already
            # Before it is needed: a page that is stuck takes no new ones.
            tab.devtools = await self._context.new_cdp_session(tab.page)
            tab.devtools.on("Page.windowOpen", self._announce)
            await self._watch(tab.devtools)
            opener = await tab.page.opener()
            tab.opener = self._tabs.get(opener) if opener else None

    def _gone(self, page: "Page") -> None:
        tab = self._tabs.pop(page, None)
        if tab is None or tab is not self._current:
            return
        opener = tab.opener if tab.opener in self._tabs.values() else None
        self._current = opener or next(reversed(self._tabs.values()), None)

    def _crashed(self, tab: Tab) -> None:
        tab.is_broken = True
        self._notices.add(f"The page in tab {tab.tab_id} crashed ({tab.page.url}); the tab is empty now.")

    def _asked_for_file(self, tab: Tab, chooser: "FileChooser") -> None:
        tab.chooser = chooser
        self._notices.add(
            "The page asks for a file: give its path with input_text on the element that was clicked."
        )

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _title(tab: Tab) -> str:
    from playwright.async_api import Error

    with suppress(Error, TimeoutError):
        async with asyncio.timeout(_TITLE_SECONDS):
            return one_line(await tab.page.title(), 200)
    return ""


async def _close(page: "Page") -> None:
    from playwright.async_api import Error

    with suppress(Error, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await page.close()
