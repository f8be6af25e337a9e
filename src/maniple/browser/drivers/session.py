"""A thread's browser over its whole life: opened at first use, and again when it has gone."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress

from maniple.browser.actions import Action, ActionResult
from maniple.browser.drivers.connection import Contexts
from maniple.browser.drivers.failures import STUCK, EndedError, Unable, first_line, has_crashed, unopened
from maniple.browser.drivers.keeping import KeptState
from maniple.browser.drivers.performance import perform
from maniple.browser.drivers.reading import text_of
from maniple.browser.drivers.seeing import observed
from maniple.browser.drivers.window import Fittings, Window, open_window
from maniple.browser.page import Aids, PageText
from maniple.browser.state import BrowserState
from maniple.browser.wording import failed
from maniple.errors import BrowserError, FetchError, FileError, SearchError

_REOPENED_TABS = 5
_REOPEN_SECONDS = 10.0
_PROBE_SECONDS = 2.0
_READ_SECONDS = 10.0
_NEW = "A new browser was started, for the one before ended: its tabs, logins and what was typed are lost."
_REOPENED = "{why} Its tabs were opened anew; logins and what was typed may be lost."
_ENDED = "the browser ended. The next action starts a new one with an empty page: open the address again"
_TOO_SLOW = "it took too long: the page is very large or busy. Try again, or use another page"
_CRASHED = "the page crashed. Its tab is empty now: open another address, or this one once more"


class Session:
    """One thread's window, one call at a time. A window's context comes from what `supply` gives.

    `kept` holds cookies and local storage between one window and the next.
    """

    def __init__(
        self, fittings: Fittings, supply: Callable[[], Contexts], kept: KeptState | None = None
    ) -> None:
        self._kept = kept
        self._fittings = fittings
        self._supply = supply
        self._lock = asyncio.Lock()
        self._window: Window | None = None
        self._opening: asyncio.Task[Window] | None = None
        self._resources = AsyncExitStack()
        self._tabs: tuple[tuple[int, str], ...] = ()
        """As they were after the last call: a browser that ends takes its tabs along first."""
        self._left: tuple[tuple[int, str], ...] = ()
        self._news = ""

    async def act(self, action: Action, aids: Aids) -> ActionResult:
        """See `Page.act`."""
        try:
            async with self._in_window() as window:
                return await perform(window, action, aids)
        except (Unable, FetchError, SearchError, FileError) as error:
            raise BrowserError(failed(action.action, str(error))) from error

    async def observe(self, aids: Aids, *, screenshot: bool) -> BrowserState:
        """See `Page.observe`."""
        with _said():
            async with self._in_window() as window:
                return await observed(window, aids, screenshot=screenshot)

    async def read(self) -> PageText:
        """See `Page.read`."""
        with _said():
            async with self._in_window() as window, asyncio.timeout(_READ_SECONDS):
                return await text_of((await window.tabs.current()).page)

    async def suspend(self, why: str) -> None:
        """Close the window, if nothing is done in it; its tabs are opened again at the next call."""
        if self._lock.locked():
            return
        async with self._lock:
            if self._window is not None:
                self._remember(why)
                await self._close()

    async def aclose(self, *, forget: bool = False) -> None:
        """Close the window; `forget`: keep nothing of it."""
        async with self._lock:
            if forget and self._kept is not None:
                await self._kept.remove()
                self._kept = None
            await self._close()
            self._left, self._news = (), ""

    @asynccontextmanager
    async def _in_window(self) -> AsyncIterator[Window]:
        from playwright.async_api import Error

        async with self._lock:
            try:
                window = await self._opened()
            except Error as error:
                raise Unable(_ENDED) from error
            try:
                yield window
                self._tabs = window.tabs.addresses()
                if self._kept is not None:
                    await self._kept.save_now_and_then(window.context)
            except (Unable, BrowserError):
                if not window.ended.is_set():
                    raise
                raise Unable(await self._lost()) from None
            except (Error, TimeoutError, EndedError) as error:
                raise Unable(await self._why(window, error)) from error

    async def _why(self, window: Window, error: Exception) -> str:
        """What an error means, and what is left after it."""
        if window.ended.is_set() or not await _is_there(window):
            return await self._lost()
        tab = await window.tabs.current()
        if has_crashed(error):
            return _CRASHED
        if isinstance(error, TimeoutError):
            return _TOO_SLOW if await window.check(tab) else STUCK
        return first_line(error)

    async def _lost(self) -> str:
        """The browser ended in the middle of a call: what made it end is not opened again."""
        self._left, self._news = (), _NEW
        await self._close()
        return _ENDED

    async def _opened(self) -> Window:
        window = self._window
        if window is not None and window.ended.is_set():
            self._remember("The browser had ended and was started again.")
            await self._close()
        if self._window is not None:
            return self._window
        # In a task of its own: who is cancelled while it opens leaves it to the next.
        opening = self._opening = self._opening or asyncio.create_task(self._open())
        try:
            window = await asyncio.shield(opening)
        finally:
            if opening.done():
                self._opening = None
        self._window = window
        await self._reopen(window)
        return window

    async def _open(self) -> Window:
        async with AsyncExitStack() as stack:
            contexts = self._supply()
            stack.push_async_callback(contexts.aclose)
            state = await self._kept.load() if self._kept else None
            window = await open_window(contexts, self._fittings, state)
            stack.push_async_callback(window.aclose)
            self._resources = stack.pop_all()
        return window

    async def _close(self) -> None:
        window, self._window = self._window, None
        if self._opening is not None:
            # One that is interrupted would leave something behind.
            await asyncio.wait([self._opening])
            self._opening = None
        if window is not None and self._kept is not None and not window.ended.is_set():
            await self._kept.save(window.context)
        await asyncio.shield(self._resources.aclose())

    def _remember(self, why: str) -> None:
        tabs = [tab for tab in self._tabs if tab[1].startswith(("http://", "https://"))]
        self._left = tuple(tabs[-_REOPENED_TABS:])
        self._news = _REOPENED.format(why=why) if self._left else why

    async def _reopen(self, window: Window) -> None:
        """Open again what was open; what cannot be opened now is left empty."""
        from playwright.async_api import Error

        left, self._left = self._left, ()
        if self._news:
            window.notices.add(self._news)
            self._news = ""
        for tab_id, url in left:
            tab = await window.tabs.open(tab_id)
            try:
                await tab.page.goto(url, wait_until="domcontentloaded", timeout=_REOPEN_SECONDS * 1000)
            except Error as error:
                window.notices.add(unopened(url, error))


@contextmanager
def _said() -> Iterator[None]:
    try:
        yield
    except Unable as error:
        raise BrowserError(f"The page could not be seen: {error}.") from error


async def _is_there(window: Window) -> bool:
    """Whether the browser of a window still does what it is asked."""
    with suppress(TimeoutError, *_playwright_errors()):
        async with asyncio.timeout(_PROBE_SECONDS):
            await window.context.cookies("http://localhost/")
            return True
    return False


def _playwright_errors() -> tuple[type[Exception], ...]:
    from playwright.async_api import Error

    return (Error,)
