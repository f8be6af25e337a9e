"""A thread's tabs, and the Playwright side of clearing overlays from them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from maniple.browser.drivers.failures import ActionFailedError
from maniple.browser.drivers.page_events import PageNotices
from maniple.browser.listing import to_one_line
from maniple.browser.overlays import OverlayClearer
from maniple.browser.page import Tab
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, FileChooser, Frame, Page

_MAX_TABS = 20
_TITLE_SECONDS = 1.0
_CLOSE_SECONDS = 3.0
_CATCH_UP_SECONDS = 0.5


@dataclass(slots=True, eq=False)
class OpenTab:
    """An open tab."""

    tab_id: int
    page: "Page"
    clearer: OverlayClearer
    opener: "OpenTab | None" = None
    chooser: "FileChooser | None" = None
    """Set while the page waits for a file."""
    devtools: "CDPSession | None" = None
    is_broken: bool = False
    """Its page crashed or does not answer."""

    async def catch_up(self) -> None:
        """Wait for the events that the page has already sent: a response comes after them."""
        from playwright.async_api import Error

        if self.devtools is not None:
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(_CATCH_UP_SECONDS):
                    await self.devtools.send("Runtime.evaluate", {"expression": "0"})


class OpenTabs:
    """The tabs of a context; pages that pages open become tabs as well.

    `watch` is called with the DevTools session of each tab.
    """

    def __init__(
        self,
        context: "BrowserContext",
        notices: PageNotices,
        watch: Callable[["CDPSession"], Awaitable[None]],
    ) -> None:
        self._context = context
        self._notices = notices
        self._watch = watch
        self._tabs: dict[Page, OpenTab] = {}
        self._current: OpenTab | None = None
        self._last_id = 0
        self._opening_here = 0
        """The number of pages that `open` and `replace` are opening."""
        self._arrived = asyncio.Event()
        self.announced = 0
        """The number of windows that pages began to open; each becomes a tab when its server answers."""
        self._tasks: set[asyncio.Task[None]] = set()
        context.on("page", self._on_page)

    async def current(self) -> OpenTab:
        """Return the current tab; an empty one if the last was closed or its page is broken."""
        tab = self._current
        if tab is None:
            return await self.open()
        if tab.is_broken:
            await self.replace(tab)
        return tab

    async def open(self, tab_id: int | None = None) -> OpenTab:
        """Open an empty tab and make it current; `tab_id` restores an earlier number.

        Raises:
            ActionFailedError: the limit of tabs is reached.
        """
        if len(self._tabs) >= _MAX_TABS:
            raise ActionFailedError(f"{_MAX_TABS} tabs are open; close one first")
        page = await self._new_page()
        tab = self._tabs.get(page) or self._add(page)
        if tab_id is not None:
            tab.tab_id, self._last_id = tab_id, max(self._last_id, tab_id)
        self._current = tab
        return tab

    def switch(self, tab_id: int) -> bool:
        """Make another tab current; return whether it exists."""
        for tab in self._tabs.values():
            if tab.tab_id == tab_id:
                self._current = tab
                return True
        return False

    async def close_current(self) -> None:
        """Close the current tab; its opener becomes current, else the newest tab."""
        tab = await self.current()
        await tab.page.close()
        self._on_close(tab.page)

    def newer_than(self, tab_id: int) -> list[OpenTab]:
        """Return the tabs that were opened after the tab of that number."""
        return [tab for tab in self._tabs.values() if tab.tab_id > tab_id]

    @property
    def last_id(self) -> int:
        """The number of the newest tab."""
        return self._last_id

    @property
    def ids(self) -> list[int]:
        """The numbers of the open tabs, oldest first."""
        return [tab.tab_id for tab in self._tabs.values()]

    def devtools(self, page: "Page") -> "CDPSession | None":
        """Return the DevTools session of a page; None before it is connected."""
        tab = self._tabs.get(page)
        return tab.devtools if tab else None

    def addresses(self) -> tuple[tuple[int, str], ...]:
        """Return number and address of each tab, the current one last."""
        tabs = sorted(self._tabs.values(), key=lambda tab: tab is self._current)
        return tuple((tab.tab_id, tab.page.url) for tab in tabs)

    async def views(self) -> tuple[Tab, ...]:
        """Return the tabs as agents see them; a page that does not answer has no title."""
        tabs = list(self._tabs.values())
        titles = await asyncio.gather(*(_title(tab) for tab in tabs))
        return tuple(
            Tab(tab.tab_id, title, tab.page.url, tab is self._current)
            for tab, title in zip(tabs, titles, strict=True)
        )

    async def aclose(self) -> None:
        """Cancel the work under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def replace(self, tab: OpenTab) -> None:
        """Replace the broken page of a tab by an empty one."""
        broken, tab.page = tab.page, await self._new_page()
        tab.clearer = OverlayClearer(PlaywrightSurface(tab.page))
        added = self._tabs.pop(tab.page, None)
        if added is not None and added.tab_id == self._last_id:
            self._last_id -= 1
        del self._tabs[broken]
        self._tabs[tab.page] = tab
        tab.chooser, tab.is_broken = None, False
        self._begin(_close(broken))

    async def _new_page(self) -> "Page":
        """Open a page of our own, which the limit of tabs does not concern."""
        self._opening_here += 1
        try:
            return await self._context.new_page()
        finally:
            self._opening_here -= 1

    def _announce(self, _: Any) -> None:
        self.announced += 1

    async def wait_for_new(self, after: int, seconds: float) -> None:
        """Wait for a tab newer than the one of that number, for at most `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._last_id <= after:
                    self._arrived.clear()
                    await self._arrived.wait()

    def _on_page(self, page: "Page") -> None:
        if len(self._tabs) >= _MAX_TABS and not self._opening_here:
            self._notices.add(f"The page opened more tabs than {_MAX_TABS}; the new ones were closed.")
            self._begin(_close(page))
            return
        tab = self._add(page)
        self._begin(self._connect(tab))
        self._arrived.set()

    def _add(self, page: "Page") -> OpenTab:
        self._last_id += 1
        tab = self._tabs[page] = OpenTab(self._last_id, page, OverlayClearer(PlaywrightSurface(page)))
        page.on("close", self._on_close)
        page.on("crash", lambda _: self._on_crash(tab))
        page.on("filechooser", lambda chooser: self._on_file_chooser(tab, chooser))
        return tab

    async def _connect(self, tab: OpenTab) -> None:
        from playwright.async_api import Error

        with suppress(Error):  # the page is closed already
            # Connected in advance: a page that is stuck accepts no new session.
            tab.devtools = await self._context.new_cdp_session(tab.page)
            tab.devtools.on("Page.windowOpen", self._announce)
            await self._watch(tab.devtools)
            opener = await tab.page.opener()
            tab.opener = self._tabs.get(opener) if opener else None

    def _on_close(self, page: "Page") -> None:
        tab = self._tabs.pop(page, None)
        if tab is None or tab is not self._current:
            return
        opener = tab.opener if tab.opener in self._tabs.values() else None
        self._current = opener or next(reversed(self._tabs.values()), None)

    def _on_crash(self, tab: OpenTab) -> None:
        tab.is_broken = True
        self._notices.add(f"The page in tab {tab.tab_id} crashed ({tab.page.url}); the tab is empty now.")

    def _on_file_chooser(self, tab: OpenTab, chooser: "FileChooser") -> None:
        tab.chooser = chooser
        self._notices.add(
            "The page asks for a file: give its path with input_text on the element that was clicked."
        )

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _title(tab: OpenTab) -> str:
    from playwright.async_api import Error

    with suppress(Error, TimeoutError):
        async with asyncio.timeout(_TITLE_SECONDS):
            return to_one_line(await tab.page.title(), 200)
    return ""


async def _close(page: "Page") -> None:
    from playwright.async_api import Error

    with suppress(Error, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await page.close()


_CLICK_MILLISECONDS = 1_000
_SCREENSHOT_MILLISECONDS = 3_000
_T = TypeVar("_T")


class PlaywrightSurface:
    """An `OverlaySurface`."""

    def __init__(self, page: "Page") -> None:
        self._page = page

    @property
    def document(self) -> "PlaywrightDocument":
        """See `OverlaySurface.document`."""
        return PlaywrightDocument(self._page.main_frame)

    async def press(self, key: str) -> None:
        """See `OverlaySurface.press`."""
        await _call(self._page.keyboard.press(key))

    async def click_at(self, x: float, y: float) -> None:
        """See `OverlaySurface.click_at`."""
        await _call(self._page.mouse.click(x, y))

    async def screenshot(self) -> bytes | None:
        """See `OverlaySurface.screenshot`."""
        from playwright.async_api import Error

        try:
            return await self._page.screenshot(
                type="jpeg", quality=60, scale="css", timeout=_SCREENSHOT_MILLISECONDS
            )
        except Error:
            return None


class PlaywrightDocument:
    """An `OverlayDocument`."""

    def __init__(self, frame: "Frame") -> None:
        self._frame = frame

    async def evaluate(self, script: str, argument: Any) -> Any:
        """See `OverlayDocument.evaluate`."""
        return await _call(self._frame.evaluate(script, argument))

    async def click(self, script: str, argument: Any) -> None:
        """See `OverlayDocument.click`; an element that is covered by then is not clicked."""
        from playwright.async_api import TimeoutError as NotClickableError

        handle = await _call(self._frame.evaluate_handle(script, argument))
        element = handle.as_element()
        if element is None:
            return
        try:
            await element.click(timeout=_CLICK_MILLISECONDS)
        except NotClickableError:
            return
        finally:
            await _call(handle.dispose())

    async def frame(self, script: str, argument: Any) -> "PlaywrightDocument | None":
        """See `OverlayDocument.frame`."""
        handle = await _call(self._frame.evaluate_handle(script, argument))
        element = handle.as_element()
        inner = await _call(element.content_frame()) if element else None
        return PlaywrightDocument(inner) if inner else None


async def _call(call: Awaitable[_T]) -> _T:
    from playwright.async_api import Error

    try:
        return await call
    except Error as error:
        raise BrowserError("The page went away while it was looked at; look again.") from error
