"""A browser that Playwright drives."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from maniple.browser.actions import Action, ActionResult
from maniple.browser.drivers.connection import Contexts
from maniple.browser.drivers.keeping import KeptState
from maniple.browser.drivers.printing import Printer
from maniple.browser.drivers.reading import Reader
from maniple.browser.drivers.session import Session
from maniple.browser.drivers.threads import Threads
from maniple.browser.drivers.window import Fittings
from maniple.browser.page import Aids, Page, PageSource, PageText
from maniple.browser.state import BrowserState


class PlaywrightBrowser:
    """See `Browser`. `contexts` are shared by all; `own` makes those of one thread, if it is not to share."""

    def __init__(
        self, fittings: Fittings, contexts: Contexts, own: Callable[[], Contexts] | None = None
    ) -> None:
        settings = fittings.settings
        self._contexts = contexts
        self._reader = Reader(contexts, fittings.resolve, settings.timeout_seconds)
        self._printer = Printer(contexts, settings.timeout_seconds)
        self._fittings = fittings
        self._own = own
        self._threads = Threads(settings, self._session)

    async def read(self, url: str, *, thread: str) -> PageText:
        """See `Browser.read`; it is opened in a context of its own, whatever the thread has open."""
        return await self._reader.read(url)

    async def source(self, url: str) -> PageSource:
        """See `Browser.source`."""
        return await self._reader.source(url)

    async def print(self, html: str) -> bytes:
        """See `Browser.print`."""
        return await self._printer.print(html)

    async def page(self, thread: str, aids: Aids | None = None) -> Page:
        """See `Browser.page`."""
        return _ThreadPage(self._threads, thread, aids or Aids())

    async def forget(self, thread: str) -> None:
        """See `Browser.forget`."""
        await self._threads.close(thread, forget=True)

    async def aclose(self) -> None:
        """End the browser; calls that are running fail."""
        await self._threads.aclose()
        await self._contexts.aclose()
        await asyncio.gather(self._reader.aclose(), self._printer.aclose())

    def _session(self, thread: str) -> Session:
        storage = self._fittings.storage
        kept = KeptState(storage, thread) if storage is not None else None
        return Session(self._fittings, self._own or (lambda: _Lent(self._contexts)), kept)


class _ThreadPage:
    """See `Page`."""

    def __init__(self, threads: Threads, thread: str, aids: Aids) -> None:
        self._threads = threads
        self._thread = thread
        self._aids = aids

    async def observe(self, *, screenshot: bool = True) -> BrowserState:
        async with self._threads.used(self._thread) as session:
            return await session.observe(self._aids, screenshot=screenshot)

    async def act(self, action: Mapping[str, Any] | Action) -> ActionResult:
        asked = Action.of(action)
        async with self._threads.used(self._thread) as session:
            return await session.act(asked, self._aids)

    async def read(self) -> PageText:
        async with self._threads.used(self._thread) as session:
            return await session.read()

    async def aclose(self) -> None:
        await self._threads.close(self._thread)


class _Lent:
    """Contexts of a browser that others use as well."""

    def __init__(self, contexts: Contexts) -> None:
        self._contexts = contexts

    async def new_context(self, **options: Any) -> Any:
        return await self._contexts.new_context(**options)

    async def aclose(self) -> None:
        """Nothing: it goes on for the others."""
