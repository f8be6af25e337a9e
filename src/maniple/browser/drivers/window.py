"""A thread's browser window: an open context with its tabs, and what an action begins and ends with."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maniple.browser.actions import ActionFunction, ActionName, ActionResult
from maniple.browser.drivers.chromium import ContextSource
from maniple.browser.drivers.failures import explain_unopened, is_navigated
from maniple.browser.drivers.observation import PageObservation, PageObserver
from maniple.browser.drivers.page_events import PageDialogs, PageDownloads, PageNotices, PageTraffic
from maniple.browser.drivers.tabs import OpenTab, OpenTabs
from maniple.browser.isolation import ChromiumIsolation
from maniple.browser.listing import to_one_line
from maniple.browser.page import PageServices
from maniple.config import BrowserSettings
from maniple.egress import EgressResolver
from maniple.errors import BrowserError
from maniple.reading.fork_server import ForkServer

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ElementHandle, Page

_CLOSE_SECONDS = 5.0
_RESPONSE_SECONDS = 5.0
# A navigation that is broken off may be a download, whose event comes a moment later.
_DOWNLOAD_SECONDS = 0.5
_LOAD_MILLISECONDS = 5_000
_NEW_TAB_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class WindowResources:
    """What all windows share."""

    settings: BrowserSettings
    resolve: EgressResolver
    observer: PageObserver
    fork_server: ForkServer
    """Converts pages to Markdown."""
    downloads: Path
    """The folder for files that `PageServices.save_file` does not take."""
    overrides: Mapping[ActionName, ActionFunction] = field(default_factory=dict)
    """Functions of a backend that replace the registered ones."""
    isolation: ChromiumIsolation | None = None
    """What holds a Chromium that is started here; it sees no file that it is not given as bytes."""


@dataclass(frozen=True, slots=True)
class ActionStart:
    """The state of a window before an action."""

    tab: OpenTab
    last_tab: int
    announced: int
    begun: int
    broken_off: int


class BrowserWindow:
    """An open context. Made by `open_window`; its parts are for the actions."""

    def __init__(self, context: "BrowserContext", resources: WindowResources) -> None:
        settings = resources.settings
        self.context = context
        self.resources = resources
        self.settings = settings
        self.notices = PageNotices()
        self.traffic = PageTraffic(context)
        self.dialogs = PageDialogs(context, settings.dialogs, self.notices)
        self.downloads = PageDownloads(
            context, resources.downloads, settings.max_download_bytes, settings.timeout_seconds
        )
        self.downloads.are_untrusted = resources.isolation is not None
        self.tabs = OpenTabs(context, self.notices, self.downloads.watch)
        self.dialogs.devtools = self.tabs.devtools
        self.observation: PageObservation | None = None
        """The last observation, of any tab."""
        self.observed_tab: OpenTab | None = None
        self.observed_url = ""
        self._used: tuple[OpenTab, ElementHandle] | None = None
        self.ended = asyncio.Event()
        """Set when the window is closed or its browser ended."""
        context.on("close", self._closed)

    @property
    def action_milliseconds(self) -> float:
        """The time limit for an action on one element."""
        return self.settings.action_seconds * 1000

    async def find(self, index: int) -> "ElementHandle":
        """Return the element at `index` of the last observation, if it is of the current tab.

        Raises:
            BrowserError: there is no such element, or it has changed since.
        """
        if self.observation is None:
            raise BrowserError(f"Element with index {index} not found: the page was not looked at yet.")
        tab = await self.tabs.current()
        if self.observed_tab is not tab:
            raise BrowserError(
                f"Element with index {index} not found: another tab is shown now; look at the current state."
            )
        handle = await self.resources.observer.find(self.observation, index)
        self._used = (tab, handle)
        return handle

    async def has_changed(self) -> bool:
        """Return whether another page is shown than at the last observation, or other controls are on it.

        Raises:
            playwright.async_api.Error: the page does not answer.
        """
        tab, observation = await self.tabs.current(), self.observation
        if observation is None or self.observed_tab is not tab or tab.page.url != self.observed_url:
            return True
        if self.dialogs.prompt is not None:
            return True
        return await self.resources.observer.has_changed(tab.page, observation)

    def last_used(self, tab: OpenTab) -> "ElementHandle | None":
        """Return the element that was used last, if it was in `tab`; it may be gone."""
        return self._used[1] if self._used is not None and self._used[0] is tab else None

    async def is_responsive(self, tab: OpenTab) -> bool:
        """Return whether the page of `tab` answers within five seconds; mark the tab as broken if not."""
        from playwright.async_api import Error

        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_RESPONSE_SECONDS):
                while not await has_evaluated(tab.page):
                    pass
                return True
        tab.is_broken = True
        return False

    async def clear_overlays(
        self, tab: OpenTab, services: PageServices, at: tuple[float, float] | None = None
    ) -> bool:
        """Clear what covers the page of `tab`, or its point `at`; return whether anything was cleared."""
        if not self.settings.obstacles:
            return False
        notices = await tab.clearer.clear(services.choose, at=at)
        for notice in notices:
            self.notices.add(notice)
        return bool(notices)

    def start_action(self, tab: OpenTab) -> ActionStart:
        """Record the state before an action in `tab`."""
        self.traffic.failure = None
        self.downloads.begun.clear()
        tabs, traffic = self.tabs, self.traffic
        return ActionStart(tab, tabs.last_id, tabs.announced, traffic.begun, traffic.broken_off)

    async def finish_action(
        self, start: ActionStart, services: PageServices, text: str, *, catch_up: bool = True
    ) -> ActionResult:
        """Wait for what the action began, follow a new tab and save downloads; `text` begins the result.

        Args:
            catch_up: wait for events that the page has already sent.
        """
        if catch_up:
            await start.tab.catch_up()
        await self._settle(start)
        texts = [text]
        downloads: list[Path] = []
        await self.downloads.finish()
        for outcome in await self.downloads.save(services):
            texts.append(outcome.text)
            downloads += [outcome.path] if outcome.path else []
        if opened := await self._follow_new_tab(start):
            texts.append(opened)
        elif start.tab.page.is_closed():
            texts.append("The tab was closed")
        if self.traffic.failure is not None and not downloads:
            texts.append(explain_unopened(*self.traffic.failure))
        return ActionResult(" - ".join(texts), downloads=tuple(downloads))

    async def wait_for_download(self) -> bool:
        """Return whether a download begins within half a second."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DOWNLOAD_SECONDS):
                await self.downloads.begun.wait()
        return self.downloads.begun.is_set()

    async def aclose(self) -> None:
        """Close the context. An error while closing means that the browser has ended, and is ignored."""
        from playwright.async_api import Error

        self.ended.set()
        await asyncio.gather(self.dialogs.aclose(), self.downloads.aclose(), self.tabs.aclose())
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.context.close()

    async def _settle(self, start: ActionStart) -> None:
        traffic, tabs = self.traffic, self.tabs
        if traffic.begun > start.begun:
            await traffic.settle(start.tab.page, start.begun, self.settings.timeout_seconds)
        if tabs.announced > start.announced:
            await tabs.wait_for_new(start.last_tab, _NEW_TAB_SECONDS)
        if traffic.broken_off > start.broken_off:
            await self.wait_for_download()

    async def _follow_new_tab(self, start: ActionStart) -> str:
        from playwright.async_api import Error

        opened = [tab for tab in self.tabs.newer_than(start.last_tab) if not tab.page.is_closed()]
        if not opened:
            return ""
        tab = opened[-1]
        self.tabs.switch(tab.tab_id)
        with suppress(Error):  # it is slow, or closed again: the next observation shows which
            await tab.page.wait_for_load_state("domcontentloaded", timeout=_LOAD_MILLISECONDS)
        return f"Opened new tab {tab.tab_id} with {to_one_line(tab.page.url, 300)}"

    def _closed(self, _: "BrowserContext") -> None:
        self.ended.set()


async def open_window(
    contexts: ContextSource, resources: WindowResources, state: Mapping[str, Any] | None = None
) -> BrowserWindow:
    """Open a window.

    Args:
        state: the result of `BrowserContext.storage_state`; ignored if Chromium does not accept it.

    Raises:
        BrowserError: there is no browser.
        playwright.async_api.Error: it ended.
    """
    from playwright.async_api import Error

    settings = resources.settings
    size = {"width": settings.viewport_width, "height": settings.viewport_height}
    options: dict[str, Any] = {"viewport": size, "accept_downloads": True}
    try:
        context = await contexts.new_context(**options, storage_state=state)
    except Error:
        if state is None:
            raise
        context = await contexts.new_context(**options)
    window = BrowserWindow(context, resources)
    await context.add_init_script(resources.observer.recorder())
    return window


async def page_script(name: str) -> str:
    """Return the JavaScript function in `scripts/{name}.js`."""
    return await asyncio.to_thread(_read_script, name)


@cache
def _read_script(name: str) -> str:
    return (files("maniple.browser.drivers") / "scripts" / f"{name}.js").read_text(encoding="utf-8")


async def has_evaluated(page: "Page") -> bool:
    """Return whether the page ran a script; false when it went to another document meanwhile.

    Raises:
        playwright.async_api.Error: the page crashed or the browser ended.
    """
    from playwright.async_api import Error

    try:
        await page.evaluate("0")
    except Error as error:
        if not is_navigated(error):
            raise
        return False
    return True
