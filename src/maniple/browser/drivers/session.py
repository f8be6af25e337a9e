"""A thread's browser over its whole life: opened at first use, and again after it ended."""

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maniple.browser.actions import ACTIONS, Action, ActionResult, failure_text, success_text
from maniple.browser.drivers.chromium import ContextSource
from maniple.browser.drivers.failures import (
    PAGE_STUCK,
    ActionFailedError,
    BrowserEndedError,
    explain_unopened,
    first_line,
    has_crashed,
)
from maniple.browser.drivers.observation import PageObservation, read_page_text
from maniple.browser.drivers.tabs import OpenTab
from maniple.browser.drivers.window import BrowserWindow, WindowResources, open_window
from maniple.browser.page import BrowserState, PageServices, PageText, ScrollInfo
from maniple.errors import BrowserError, FetchError, FileError, SearchError
from maniple.private_files import private_draft

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

_LOG = logging.getLogger(__name__)

_REOPENED_TABS = 5
_REOPEN_SECONDS = 10.0
_PROBE_SECONDS = 2.0
_READ_SECONDS = 10.0
_NEW = "A new browser was started, for the one before ended: its tabs, logins and what was typed are lost."
_REOPENED = "{why} Its tabs were opened again; logins and typed text may be lost."
_ENDED = "the browser ended. The next action starts a new one with an empty page: open the address again"
_TOO_SLOW = "it took too long: the page is very large or busy. Try again, or use another page"
_CRASHED = "the page crashed. Its tab is empty now: open another address, or this one once more"

_SPARE_SECONDS = 10.0
_CANCELLED = "The page's question {prompt} was answered with Cancel, for no answer was sent."

_OBSERVE_ATTEMPTS = 3
_ARRIVE_SECONDS = 5.0
_OBSERVE_SECONDS = 10.0
_PROMPT = (
    'The page asks in a window of its own: {prompt}\nAnswer with send_keys: the text alone, or "Enter" for '
    'what stands there, or "Escape" for Cancel. Any other action cancels it.'
)

_MAX_STORAGE_BYTES = 5_000_000
# A browser may be killed at any time; reading its storage costs some milliseconds for each site.
_SAVE_INTERVAL_SECONDS = 30.0
_SAVE_SECONDS = 5.0


class BrowserStorage:
    """Cookies and local storage of threads: a file for each in `folder`, readable by its owner alone.

    Every method blocks on disk. Any text is a valid thread.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, thread: str) -> Mapping[str, Any] | None:
        """Return the saved storage in Playwright's format; None if there is none that can be read."""
        try:
            with self._file(thread).open("rb") as file:
                state = json.loads(file.read(_MAX_STORAGE_BYTES + 1))
        except (OSError, ValueError):
            return None
        is_whole = isinstance(state, dict) and all(
            isinstance(state.get(key), list) for key in ("cookies", "origins")
        )
        return state if is_whole else None

    def save(self, thread: str, state: Mapping[str, Any]) -> None:
        """Replace the storage of a thread. A state of more than 5 MB is not saved.

        Raises:
            OSError: it cannot be written.
        """
        content = json.dumps(state).encode()
        if len(content) > _MAX_STORAGE_BYTES:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with private_draft(self._file(thread)) as draft:
            draft.write_bytes(content)

    def remove(self, thread: str) -> None:
        """Delete the storage of a thread."""
        with suppress(OSError):
            self._file(thread).unlink()

    def _file(self, thread: str) -> Path:
        name = hashlib.sha256(thread.encode(errors="surrogatepass")).hexdigest()
        return self._folder / f"{name}.json"


class ThreadStorage:
    """The storage of one thread."""

    def __init__(self, storage: BrowserStorage, thread: str) -> None:
        self._storage = storage
        self._thread = thread
        self._saved = float("-inf")

    async def load(self) -> Mapping[str, Any] | None:
        """See `BrowserStorage.load`."""
        return await asyncio.to_thread(self._storage.load, self._thread)

    async def save_if_due(self, context: "BrowserContext") -> None:
        """Save the storage of a context, at most every 30 seconds."""
        if asyncio.get_running_loop().time() - self._saved > _SAVE_INTERVAL_SECONDS:
            await self.save(context)

    async def save(self, context: "BrowserContext") -> None:
        """Save the storage of a context; if the context does not answer, the last saved one stays."""
        from playwright.async_api import Error

        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_SAVE_SECONDS):
                state = await context.storage_state()
            try:
                await asyncio.to_thread(self._storage.save, self._thread, dict(state))
            except OSError as error:
                _LOG.warning("The browser's storage of a thread could not be saved: %s", error)
            self._saved = asyncio.get_running_loop().time()

    async def remove(self) -> None:
        """See `BrowserStorage.remove`."""
        await asyncio.to_thread(self._storage.remove, self._thread)


class BrowserSession:
    """One thread's window, one call at a time.

    `open_source` gives the source of the context when a window is opened; `storage` keeps cookies and local
    storage from one window to the next.
    """

    def __init__(
        self,
        resources: WindowResources,
        open_source: Callable[[], ContextSource],
        storage: ThreadStorage | None = None,
    ) -> None:
        self._storage = storage
        self._resources = resources
        self._open_source = open_source
        self._lock = asyncio.Lock()
        self._window: BrowserWindow | None = None
        self._opening: asyncio.Task[BrowserWindow] | None = None
        self._stack = AsyncExitStack()
        self._tabs: tuple[tuple[int, str], ...] = ()
        """The tabs after the last call: a browser that ends closes its tabs first."""
        self._to_reopen: tuple[tuple[int, str], ...] = ()
        self._notice = ""

    async def act(self, action: Action, services: PageServices) -> ActionResult:
        """See `Page.act`."""
        try:
            async with self._in_window() as window:
                return await perform_action(window, action, services)
        except (ActionFailedError, FetchError, SearchError, FileError) as error:
            raise BrowserError(failure_text(action.action, str(error))) from error

    async def observe(self, services: PageServices, *, screenshot: bool) -> BrowserState:
        """See `Page.observe`."""
        with _as_browser_error():
            async with self._in_window() as window:
                return await observe_window(window, services, screenshot=screenshot)

    async def has_changed(self) -> bool:
        """See `Page.has_changed`."""
        with _as_browser_error():
            async with self._in_window() as window, asyncio.timeout(_OBSERVE_SECONDS):
                return await window.has_changed()

    async def read(self) -> PageText:
        """See `Page.read`."""
        with _as_browser_error():
            async with self._in_window() as window, asyncio.timeout(_READ_SECONDS):
                return await read_page_text((await window.tabs.current()).page)

    async def suspend(self, why: str) -> None:
        """Close the window if no call is running; the next call opens its tabs again."""
        if self._lock.locked():
            return
        async with self._lock:
            if self._window is not None:
                self._remember_tabs(why)
                await self._close()

    async def aclose(self, *, forget: bool = False) -> None:
        """Close the window; with `forget`, delete its storage."""
        async with self._lock:
            if forget and self._storage is not None:
                await self._storage.remove()
                self._storage = None
            await self._close()
            self._to_reopen, self._notice = (), ""

    @asynccontextmanager
    async def _in_window(self) -> AsyncIterator[BrowserWindow]:
        from playwright.async_api import Error

        async with self._lock:
            try:
                window = await self._open_window()
            except Error as error:
                raise ActionFailedError(_ENDED) from error
            try:
                yield window
                self._tabs = window.tabs.addresses()
                if self._storage is not None:
                    await self._storage.save_if_due(window.context)
            except (ActionFailedError, BrowserError):
                if not window.ended.is_set():
                    raise
                raise ActionFailedError(await self._handle_end()) from None
            except (Error, TimeoutError, BrowserEndedError) as error:
                raise ActionFailedError(await self._explain(window, error)) from error

    async def _explain(self, window: BrowserWindow, error: Exception) -> str:
        """Return what an error means for the model; close the window if its browser ended."""
        if window.ended.is_set() or not await _is_alive(window):
            return await self._handle_end()
        tab = await window.tabs.current()
        if has_crashed(error):
            return _CRASHED
        if isinstance(error, TimeoutError):
            return _TOO_SLOW if await window.is_responsive(tab) else PAGE_STUCK
        return first_line(error)

    async def _handle_end(self) -> str:
        """Close the window. Its tabs are not opened again, because one of them may have ended the browser."""
        self._to_reopen, self._notice = (), _NEW
        await self._close()
        return _ENDED

    async def _open_window(self) -> BrowserWindow:
        window = self._window
        if window is not None and window.ended.is_set():
            self._remember_tabs("The browser had ended and was started again.")
            await self._close()
        if self._window is not None:
            return self._window
        # In a task of its own: if this call is cancelled, the next one takes the window over.
        opening = self._opening = self._opening or asyncio.create_task(self._open())
        try:
            window = await asyncio.shield(opening)
        finally:
            if opening.done():
                self._opening = None
        self._window = window
        await self._reopen_tabs(window)
        return window

    async def _open(self) -> BrowserWindow:
        async with AsyncExitStack() as stack:
            contexts = self._open_source()
            stack.push_async_callback(contexts.aclose)
            state = await self._storage.load() if self._storage else None
            window = await open_window(contexts, self._resources, state)
            stack.push_async_callback(window.aclose)
            self._stack = stack.pop_all()
        return window

    async def _close(self) -> None:
        window, self._window = self._window, None
        if self._opening is not None:
            # An interrupted start would leave a process behind.
            await asyncio.wait([self._opening])
            self._opening = None
        if window is not None and self._storage is not None and not window.ended.is_set():
            await self._storage.save(window.context)
        await asyncio.shield(self._stack.aclose())

    def _remember_tabs(self, why: str) -> None:
        tabs = [tab for tab in self._tabs if tab[1].startswith(("http://", "https://"))]
        self._to_reopen = tuple(tabs[-_REOPENED_TABS:])
        self._notice = _REOPENED.format(why=why) if self._to_reopen else why

    async def _reopen_tabs(self, window: BrowserWindow) -> None:
        """Open the remembered tabs; a tab whose address cannot be opened stays empty."""
        from playwright.async_api import Error

        tabs, self._to_reopen = self._to_reopen, ()
        if self._notice:
            window.notices.add(self._notice)
            self._notice = ""
        for tab_id, url in tabs:
            tab = await window.tabs.open(tab_id)
            try:
                await tab.page.goto(url, wait_until="domcontentloaded", timeout=_REOPEN_SECONDS * 1000)
            except Error as error:
                window.notices.add(explain_unopened(url, error))


@contextmanager
def _as_browser_error() -> Iterator[None]:
    try:
        yield
    except ActionFailedError as error:
        raise BrowserError(f"The page could not be seen: {error}.") from error


async def _is_alive(window: BrowserWindow) -> bool:
    """Return whether the browser of a window still answers."""
    from playwright.async_api import Error

    with suppress(TimeoutError, Error):
        async with asyncio.timeout(_PROBE_SECONDS):
            await window.context.cookies("http://localhost/")
            return True
    return False


async def perform_action(window: BrowserWindow, action: Action, services: PageServices) -> ActionResult:
    """Perform an action within its time limit, even if the page blocks.

    Raises:
        ToolFailure: it could not be done.
        BrowserEndedError: the browser ended.
        TimeoutError: the page held it up for too long.
        playwright.async_api.Error: it could not be done.
    """
    window.dialogs.begin_action()
    if (prompt := window.dialogs.prompt) is not None:
        if action.action == "send_keys":
            return await _answer_prompt(window, action, services)
        window.notices.add(_CANCELLED.format(prompt=prompt))
        await window.dialogs.answer(None)
    work = asyncio.create_task(_run_in_time(window, action, services))
    asked = asyncio.create_task(window.dialogs.asked.wait())
    ended = asyncio.create_task(window.ended.wait())
    try:
        await asyncio.wait((work, asked, ended), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        if window.ended.is_set():
            raise BrowserEndedError
        return ActionResult(f"{success_text(action)} - The page asks: {window.dialogs.prompt}")
    finally:
        for task in (work, asked, ended):
            task.cancel()
        await asyncio.gather(work, asked, ended, return_exceptions=True)


async def _answer_prompt(window: BrowserWindow, action: Any, services: PageServices) -> ActionResult:
    keys = action.keys
    start = window.start_action(await window.tabs.current())
    match keys.strip().lower():
        case "escape" | "esc":
            await window.dialogs.answer(None)
        case "enter" | "return":
            await window.dialogs.answer("")
        case _:
            await window.dialogs.answer(keys.removesuffix("\n"))
    return await window.finish_action(start, services, success_text(action))


async def _run_in_time(window: BrowserWindow, action: Action, services: PageServices) -> ActionResult:
    definition = ACTIONS[action.action]
    run = window.resources.overrides.get(action.action, definition.run)
    if definition.has_own_limits:
        return await run(window, action, services)
    settings = window.settings
    async with asyncio.timeout(settings.timeout_seconds + 2 * settings.action_seconds + _SPARE_SECONDS):
        return await run(window, action, services)


async def observe_window(window: BrowserWindow, services: PageServices, *, screenshot: bool) -> BrowserState:
    """Observe the current tab; raises Playwright's errors and `BrowserError`."""
    tab = await window.tabs.current()
    if window.dialogs.prompt is not None:
        return await _prompt_state(window, tab, window.dialogs.prompt)
    await window.traffic.wait_for_navigation(tab.page, _ARRIVE_SECONDS)
    await window.clear_overlays(tab, services)
    try:
        async with asyncio.timeout(_OBSERVE_SECONDS):
            observation = await _observe(window, tab)
            picture = None
            if screenshot:
                picture = await window.resources.observer.screenshot(tab.page, observation, marks=True)
            tabs = await window.tabs.views()
    except BrowserError:
        await window.is_responsive(tab)
        raise
    window.observation, window.observed_tab, window.observed_url = observation, tab, tab.page.url
    for outcome in await window.downloads.save(services):
        window.notices.add(f"{outcome.text}.")
    return BrowserState(
        snapshot_id=observation.snapshot_id,
        url=tab.page.url,
        title=next((view.title for view in tabs if view.is_current), ""),
        tabs=tabs,
        interactive_elements=observation.text,
        elements=observation.elements,
        scroll_info=observation.scroll_info,
        viewport_height=observation.viewport_height,
        screenshot=picture,
        notices=window.notices.take(),
    )


async def _observe(window: BrowserWindow, tab: OpenTab) -> PageObservation:
    """Observe a tab; try again if it navigates meanwhile."""
    from playwright.async_api import Error

    observer, tokens = window.resources.observer, window.settings.state_tokens
    for _ in range(_OBSERVE_ATTEMPTS - 1):
        with suppress(Error):
            return await observer.observe(tab.page, window.observation, tokens=tokens)
        await window.traffic.wait_for_navigation(tab.page, _ARRIVE_SECONDS)
    return await observer.observe(tab.page, window.observation, tokens=tokens)


async def _prompt_state(window: BrowserWindow, tab: OpenTab, prompt: str) -> BrowserState:
    # The dialog blocks the page's scripts, so that the page itself cannot be observed.
    tabs = await window.tabs.views()
    return BrowserState(
        snapshot_id=f"prompt-{tab.tab_id}",
        url=tab.page.url,
        title=next((view.title for view in tabs if view.is_current), ""),
        tabs=tabs,
        interactive_elements=_PROMPT.format(prompt=prompt),
        elements=(),
        scroll_info=ScrollInfo(0, 0),
        viewport_height=window.settings.viewport_height,
        notices=window.notices.take(),
    )
