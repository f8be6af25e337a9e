"""One look at a thread's window."""

import asyncio
from contextlib import suppress

from maniple.browser.drivers.looking import Look
from maniple.browser.drivers.tabs import Tab
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.browser.state import BrowserState, ScrollInfo
from maniple.errors import BrowserError

_ATTEMPTS = 3
_ARRIVE_SECONDS = 5.0
_LOOK_SECONDS = 10.0
_ASKED = (
    'The page asks in a window of its own: {prompt}\nAnswer with send_keys: the text alone, or "Enter" for '
    'what stands there, or "Escape" for Cancel. Any other action cancels it.'
)


async def observed(window: Window, aids: Aids, *, screenshot: bool) -> BrowserState:
    """Look at the current tab; raises Playwright's errors and `BrowserError`."""
    tab = await window.tabs.current()
    if window.dialogs.prompt is not None:
        return await _asking(window, tab, window.dialogs.prompt)
    await window.traffic.arrive(tab.page, _ARRIVE_SECONDS)
    await window.clear(tab, aids)
    try:
        async with asyncio.timeout(_LOOK_SECONDS):
            look, picture = await _seen(window, tab, screenshot=screenshot)
            tabs = await window.tabs.views()
    except BrowserError:
        await window.check(tab)
        raise
    window.seen, window.seen_tab = look, tab
    for kept in await window.downloads.kept(aids):
        window.notices.add(f"{kept.words}.")
    return BrowserState(
        snapshot_id=look.snapshot_id,
        url=tab.page.url,
        title=next((view.title for view in tabs if view.is_current), ""),
        tabs=tabs,
        interactive_elements=look.text,
        elements=look.elements,
        scroll_info=look.scroll_info,
        viewport_height=look.viewport_height,
        screenshot=picture,
        notices=window.notices.take(),
    )


async def _seen(window: Window, tab: Tab, *, screenshot: bool) -> tuple[Look, bytes | None]:
    look = await _look(window, tab)
    if not screenshot:
        return look, None
    return look, await window.fittings.sight.screenshot(tab.page, look, marks=True)


async def _look(window: Window, tab: Tab) -> Look:
    """Look until the page stays the same for as long as that takes."""
    from playwright.async_api import Error

    sight, tokens = window.fittings.sight, window.settings.state_tokens
    for _ in range(_ATTEMPTS - 1):
        with suppress(Error):
            return await sight.look(tab.page, window.seen, tokens=tokens)
        await window.traffic.arrive(tab.page, _ARRIVE_SECONDS)
    return await sight.look(tab.page, window.seen, tokens=tokens)


async def _asking(window: Window, tab: Tab, prompt: str) -> BrowserState:
    # Its scripts stand still, so that nothing of it can be seen.
    tabs = await window.tabs.views()
    return BrowserState(
        snapshot_id=f"prompt-{tab.tab_id}",
        url=tab.page.url,
        title=next((view.title for view in tabs if view.is_current), ""),
        tabs=tabs,
        interactive_elements=_ASKED.format(prompt=prompt),
        elements=(),
        scroll_info=ScrollInfo(0, 0),
        viewport_height=window.settings.viewport_height,
        notices=window.notices.take(),
    )
