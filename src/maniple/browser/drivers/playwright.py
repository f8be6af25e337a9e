"""A browser that Playwright drives: pages of threads, and pages that are opened once to read or to print."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maniple.browser.actions import ACTIONS, Action, ActionName, ActionResult
from maniple.browser.arguments import require_public
from maniple.browser.drivers.chromium import ContextSource
from maniple.browser.drivers.diagrams import DiagramPainter
from maniple.browser.drivers.failures import explain_unopened, first_line, is_download
from maniple.browser.drivers.observation import (
    PAGE_TEXT_SCRIPT,
    evaluate_when_settled,
    page_text_limits,
    parse_page_text,
)
from maniple.browser.drivers.page_visits import PageVisits
from maniple.browser.drivers.session import BrowserSession, BrowserStorage, ThreadStorage
from maniple.browser.drivers.window import WindowResources
from maniple.browser.page import BrowserState, Page, PageServices, PageSource, PageText
from maniple.config import BrowserSettings
from maniple.egress import EgressResolver
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Route

_MAX_PARALLEL_READS = 8
_MAX_SOURCE_CHARACTERS = 2_000_000
_SOURCE_SCRIPT = "characters => document.documentElement.outerHTML.slice(0, characters)"
_MAX_PARALLEL_PRINTS = 2
# The tabs of so many threads are remembered while their windows are closed.
_MAX_SLOTS = 1_000
_UNUSED = "The browser was closed after a while without use and is open again."
_EVICTED = "The browser was closed to make way for others and is open again."


class PlaywrightBrowser:
    """See `Browser`.

    Args:
        contexts: the source of contexts that all threads share.
        open_own: opens the source of one thread's context; default: threads share `contexts`.
        storage: saves cookies and local storage of threads.
    """

    def __init__(
        self,
        resources: WindowResources,
        contexts: ContextSource,
        open_own: Callable[[], ContextSource] | None = None,
        storage: BrowserStorage | None = None,
    ) -> None:
        settings = resources.settings
        self._contexts = contexts
        self._reader = PageReader(contexts, resources.resolve, settings.timeout_seconds)
        self._printer = PdfPrinter(contexts, settings.timeout_seconds)
        self._painter = DiagramPainter(contexts, settings.timeout_seconds)
        self._resources = resources
        self._open_own = open_own
        self._storage = storage
        self._sessions = BrowserSessionPool(settings, self._new_session)

    @property
    def actions(self) -> tuple[ActionName, ...]:
        """See `Browser.actions`: all of them."""
        return ACTIONS.names

    async def read(self, url: str, *, thread: str) -> PageText:
        """See `Browser.read`; the page gets a context of its own, apart from the thread's tabs."""
        return await self._reader.read(url)

    async def source(self, url: str) -> PageSource:
        """See `Browser.source`."""
        return await self._reader.source(url)

    async def print(self, html: str) -> bytes:
        """See `Browser.print`."""
        return await self._printer.print(html)

    async def draw(self, page: Path, sources: Sequence[str], scale: int) -> list[bytes]:
        """See `Browser.draw`."""
        return await self._painter.draw(page, sources, scale)

    async def page(self, thread: str, services: PageServices | None = None) -> Page:
        """See `Browser.page`."""
        return _ThreadPage(self._sessions, thread, services or PageServices())

    async def forget(self, thread: str) -> None:
        """See `Browser.forget`."""
        await self._sessions.close(thread, forget=True)

    async def aclose(self) -> None:
        """End the browser; running calls fail."""
        await self._sessions.aclose()
        await self._contexts.aclose()
        await asyncio.gather(self._reader.aclose(), self._printer.aclose(), self._painter.aclose())

    def _new_session(self, thread: str) -> BrowserSession:
        storage = ThreadStorage(self._storage, thread) if self._storage is not None else None
        open_source = self._open_own or (lambda: _SharedContexts(self._contexts))
        return BrowserSession(self._resources, open_source, storage)


class _ThreadPage:
    """See `Page`."""

    def __init__(self, sessions: "BrowserSessionPool", thread: str, services: PageServices) -> None:
        self._sessions = sessions
        self._thread = thread
        self._services = services

    async def observe(self, *, screenshot: bool = True) -> BrowserState:
        async with self._sessions.use(self._thread) as session:
            return await session.observe(self._services, screenshot=screenshot)

    async def act(self, action: Mapping[str, Any] | Action) -> ActionResult:
        parsed = ACTIONS.parse(action)
        async with self._sessions.use(self._thread) as session:
            return await session.act(parsed, self._services)

    async def has_changed(self) -> bool:
        async with self._sessions.use(self._thread) as session:
            return await session.has_changed()

    async def read(self) -> PageText:
        async with self._sessions.use(self._thread) as session:
            return await session.read()

    async def aclose(self) -> None:
        await self._sessions.close(self._thread)


class _SharedContexts:
    """A `ContextSource` whose browser is shared: closing it does nothing."""

    def __init__(self, contexts: ContextSource) -> None:
        self._contexts = contexts

    async def new_context(self, **options: Any) -> Any:
        return await self._contexts.new_context(**options)

    async def aclose(self) -> None:
        """Do nothing: others use the browser."""


@dataclass(slots=True, eq=False)
class _SessionSlot:
    session: BrowserSession
    uses: int = 0
    is_admitted: bool = False
    """Whether it counts among the `max_contexts` open windows."""
    timer: asyncio.TimerHandle | None = None


class BrowserSessionPool:
    """A session for each thread; windows are limited to `max_contexts` and closed after `idle_seconds`."""

    def __init__(self, settings: BrowserSettings, new_session: Callable[[str], BrowserSession]) -> None:
        self._settings = settings
        self._new_session = new_session
        self._slots: OrderedDict[str, _SessionSlot] = OrderedDict()
        self._admission = asyncio.Lock()
        self._freed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    @asynccontextmanager
    async def use(self, thread: str) -> AsyncIterator[BrowserSession]:
        """Yield the thread's session and protect its window from eviction.

        Raises:
            BrowserError: the browser is closed, or all windows are in use for longer than the time limit.
        """
        if self._closed:
            raise BrowserError("The browser has been closed; start a new run.")
        slot = self._slot_of(thread)
        slot.uses += 1
        if slot.timer is not None:
            slot.timer.cancel()
        try:
            await self._admit(slot)
            yield slot.session
        finally:
            slot.uses -= 1
            self._release(slot)

    async def close(self, thread: str, *, forget: bool = False) -> None:
        """Close a thread's window; with `forget`, delete its storage."""
        slot = self._slots.pop(thread, None) or (_SessionSlot(self._new_session(thread)) if forget else None)
        if slot is not None:
            await self._end(slot, forget=forget)

    async def aclose(self) -> None:
        """Close all windows; running calls fail."""
        self._closed = True
        slots, self._slots = list(self._slots.values()), OrderedDict()
        await asyncio.gather(*self._tasks, *(self._end(slot) for slot in slots))

    def _slot_of(self, thread: str) -> _SessionSlot:
        slot = self._slots.get(thread)
        if slot is None:
            slot = self._slots[thread] = _SessionSlot(self._new_session(thread))
            self._drop_oldest()
        self._slots.move_to_end(thread)
        return slot

    def _drop_oldest(self) -> None:
        if len(self._slots) > _MAX_SLOTS:
            unused = (key for key, slot in self._slots.items() if not slot.is_admitted and not slot.uses)
            if (oldest := next(unused, None)) is not None:
                del self._slots[oldest]

    async def _admit(self, slot: _SessionSlot) -> None:
        if slot.is_admitted:
            return
        try:
            async with asyncio.timeout(self._settings.timeout_seconds), self._admission:
                while not slot.is_admitted:
                    await self._wait_for_room()
                    slot.is_admitted = True
        except TimeoutError as error:
            raise BrowserError(
                f"All {self._settings.max_contexts} browsers are in use; try again in a while."
            ) from error

    async def _wait_for_room(self) -> None:
        """Wait until one more window may open; evict the window that is idle for longest."""
        while sum(slot.is_admitted for slot in self._slots.values()) >= self._settings.max_contexts:
            idle = next((slot for slot in self._slots.values() if slot.is_admitted and not slot.uses), None)
            if idle is None:
                self._freed.clear()
                await self._freed.wait()
                continue
            # Before the window is closed: a call that comes meanwhile must be admitted again.
            idle.is_admitted = False
            await idle.session.suspend(_EVICTED)

    def _release(self, slot: _SessionSlot) -> None:
        self._freed.set()
        if slot.uses or not slot.is_admitted or self._closed:
            return
        loop = asyncio.get_running_loop()
        slot.timer = loop.call_later(self._settings.idle_seconds, self._close_idle, slot)

    def _close_idle(self, slot: _SessionSlot) -> None:
        if slot.uses or not slot.is_admitted:
            return
        slot.is_admitted = False
        task = asyncio.create_task(slot.session.suspend(_UNUSED))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end(self, slot: _SessionSlot, *, forget: bool = False) -> None:
        if slot.timer is not None:
            slot.timer.cancel()
        slot.is_admitted = False
        await slot.session.aclose(forget=forget)
        self._freed.set()


class PageReader:
    """Reads pages, at most 8 at a time."""

    def __init__(self, contexts: ContextSource, resolve: EgressResolver, timeout_seconds: float) -> None:
        self._visits = PageVisits(contexts)
        self._resolve = resolve
        self._timeout_seconds = timeout_seconds
        self._slots = asyncio.Semaphore(_MAX_PARALLEL_READS)

    async def read(self, url: str) -> PageText:
        """See `Browser.read`."""
        url, status, found = await self._evaluate(url, PAGE_TEXT_SCRIPT, page_text_limits())
        return parse_page_text(url, status, found)

    async def source(self, url: str) -> PageSource:
        """See `Browser.source`."""
        url, _, html = await self._evaluate(url, _SOURCE_SCRIPT, _MAX_SOURCE_CHARACTERS)
        return PageSource(url, html[:_MAX_SOURCE_CHARACTERS] if isinstance(html, str) else "")

    async def aclose(self) -> None:
        """Wait until all pages are closed."""
        await self._visits.aclose()

    async def _evaluate(self, url: str, script: str, argument: Any) -> tuple[str, int | None, Any]:
        """Open a page; return its final address, the HTTP status and the script's result."""
        # The proxy would refuse it as well, but Chromium could not report why.
        await require_public(url, self._resolve)
        async with self._slots:
            playwright_error = await asyncio.to_thread(_playwright_error)
            try:
                async with asyncio.timeout(self._timeout_seconds), self._visits.page() as page:
                    response = await page.goto(
                        url, wait_until="domcontentloaded", timeout=self._timeout_seconds * 1000
                    )
                    found = await evaluate_when_settled(page, script, argument)
                    return page.url, response.status if response else None, found
            except TimeoutError as error:
                raise BrowserError(f"{url} took too long to load; try another source.") from error
            except playwright_error as error:
                if is_download(error):
                    raise BrowserError(
                        f"{url} is a file to download, not a page; look for a page about it."
                    ) from error
                raise BrowserError(explain_unopened(url, error)) from error


class PdfPrinter:
    """Prints documents as PDF in contexts without scripts and network, at most 2 at a time."""

    def __init__(self, contexts: ContextSource, timeout_seconds: float) -> None:
        self._visits = PageVisits(contexts)
        self._timeout_seconds = timeout_seconds
        self._slots = asyncio.Semaphore(_MAX_PARALLEL_PRINTS)

    async def print(self, html: str) -> bytes:
        """See `Browser.print`."""
        playwright_error = await asyncio.to_thread(_playwright_error)
        try:
            async with self._slot(), asyncio.timeout(self._timeout_seconds):
                return await self._print(html)
        except TimeoutError as late:
            raise BrowserError(
                f"Printing took longer than {self._timeout_seconds:g} seconds (browser.timeout_seconds)."
            ) from late
        except playwright_error as failure:
            raise BrowserError(f"The browser could not print: {first_line(failure)}") from failure

    async def aclose(self) -> None:
        """Wait until all pages are closed."""
        await self._visits.aclose()

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        """Wait for a slot; the wait has a time limit of its own."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._slots.acquire()
        except TimeoutError as late:
            raise BrowserError("Others are being printed. Ask again in a while.") from late
        try:
            yield
        finally:
            self._slots.release()

    async def _print(self, html: str) -> bytes:
        async with self._visits.page(java_script_enabled=False, offline=True) as page:
            await page.route("**/*", _abort)
            await page.set_content(html, wait_until="load", timeout=self._timeout_seconds * 1000)
            return await page.pdf(prefer_css_page_size=True, print_background=True, outline=True, tagged=True)


async def _abort(route: "Route") -> None:
    await route.abort()


def _playwright_error() -> type[Exception]:
    from playwright.async_api import Error

    return Error
