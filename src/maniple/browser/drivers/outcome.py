"""What came of an action besides what was meant: another page, a new tab, files."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from maniple.browser.actions import ActionResult
from maniple.browser.drivers.failures import unopened
from maniple.browser.drivers.tabs import Tab
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.browser.wording import one_line

# A page that is not to come may be a file; that one begins is told a moment later.
_DOWNLOAD_SECONDS = 0.5
_LOAD_MILLISECONDS = 5_000
_NEW_TAB_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Before:
    """How things stood before an action."""

    tab: Tab
    last_tab: int
    announced: int
    begun: int
    broken_off: int


def before(window: Window, tab: Tab) -> Before:
    """Note how things stand."""
    window.traffic.failure = None
    window.downloads.begun.clear()
    return Before(
        tab, window.tabs.last_id, window.tabs.announced, window.traffic.begun, window.traffic.broken_off
    )


async def after(
    window: Window, stood: Before, aids: Aids, words: str, *, may_begin: bool = True
) -> ActionResult:
    """Wait for what an action began, follow a new tab, take files; `words` and what else is to be told.

    `may_begin`: it is waited for what the page does at once.
    """
    if may_begin:
        await stood.tab.catch_up()
    await _settled(window, stood)
    told = [words]
    downloads: list[Path] = []
    await window.downloads.finish()
    for kept in await window.downloads.kept(aids):
        told.append(kept.words)
        downloads += [kept.path] if kept.path else []
    if opened := await _followed(window, stood):
        told.append(opened)
    elif stood.tab.page.is_closed():
        told.append("The tab was closed")
    if window.traffic.failure is not None and not downloads:
        told.append(unopened(*window.traffic.failure))
    return ActionResult(" - ".join(told), downloads=tuple(downloads))


async def _settled(window: Window, stood: Before) -> None:
    traffic, tabs = window.traffic, window.tabs
    if traffic.begun > stood.begun:
        await traffic.settle(stood.tab.page, stood.begun, window.settings.timeout_seconds)
    if tabs.announced > stood.announced:
        await tabs.arrival(stood.last_tab, _NEW_TAB_SECONDS)
    if traffic.broken_off > stood.broken_off:
        await download_begun(window)


async def download_begun(window: Window) -> bool:
    """Whether a download begins about now."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DOWNLOAD_SECONDS):
            await window.downloads.begun.wait()
    return window.downloads.begun.is_set()


async def _followed(window: Window, stood: Before) -> str:
    from playwright.async_api import Error

    opened = [tab for tab in window.tabs.newer_than(stood.last_tab) if not tab.page.is_closed()]
    if not opened:
        return ""
    tab = opened[-1]
    window.tabs.switch(tab.tab_id)
    with suppress(Error):  # it is slow, or is closed again: the next look tells
        await tab.page.wait_for_load_state("domcontentloaded", timeout=_LOAD_MILLISECONDS)
    return f"Opened new tab {tab.tab_id} with {one_line(tab.page.url, 300)}"
