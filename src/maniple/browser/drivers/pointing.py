"""Clicking."""

from typing import TYPE_CHECKING

from maniple.browser.actions import Action, ActionResult
from maniple.browser.drivers.failures import (
    STUCK,
    Unable,
    cover_of,
    has_crashed,
    has_ended,
    untouched,
    was_given,
)
from maniple.browser.drivers.outcome import after, before
from maniple.browser.drivers.tabs import Tab
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.browser.wording import done

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle

_ATTEMPTS = 3
# In milliseconds; nothing is waited for: who waits clicks what has become of the element meanwhile.
_NOW = 150.0
_AT_ONCE = 500.0


async def click_element(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Click an element; what covers it is cleared away once."""
    index = action.index or 0
    stood = before(window, await window.tabs.current())
    handle = await window.find(index)
    # What is in view and takes the click now is what was shown; all else is waited for first.
    if await _is_in_view(window, handle) and await _clicked(window, stood.tab, handle, _NOW):
        return await after(window, stood, aids, done(action))
    for _ in range(_ATTEMPTS - 1):
        if await _clicked(window, stood.tab, await _ready(window, stood.tab, index, aids), _AT_ONCE):
            break
    else:
        await press(window, stood.tab, await _ready(window, stood.tab, index, aids), _AT_ONCE)
    return await after(window, stood, aids, done(action))


async def press(window: Window, tab: Tab, handle: "ElementHandle", milliseconds: float | None = None) -> None:
    """Click an element as it is, within so many milliseconds; None is as long as any action may take."""
    from playwright.async_api import Error

    try:
        await handle.click(timeout=milliseconds or window.action_milliseconds, no_wait_after=True)
    except Error as error:
        if not await _is_taken(window, tab, error):
            raise await explained(window, tab, error) from error


async def _clicked(window: Window, tab: Tab, handle: "ElementHandle", milliseconds: float) -> bool:
    """Click; whether the time was enough for it."""
    from playwright.async_api import TimeoutError as TooSlow

    try:
        await press(window, tab, handle, milliseconds)
    except Unable as error:
        if not isinstance(error.__cause__, TooSlow) or tab.is_broken:
            raise
        return False
    return True


async def _is_in_view(window: Window, handle: "ElementHandle") -> bool:
    box = await handle.bounding_box()
    return (
        box is not None
        and min(box["x"], box["y"]) >= 0
        and box["x"] + box["width"] <= window.settings.viewport_width
        and box["y"] + box["height"] <= window.settings.viewport_height
    )


async def _ready(window: Window, tab: Tab, index: int, aids: Aids) -> "ElementHandle":
    """The element as soon as a click would reach it, if it is still the one that was shown by then."""
    from playwright.async_api import Error

    handle = await window.find(index)
    box = await handle.bounding_box()
    try:
        await _try(window, handle)
    except Error as error:
        if not cover_of(error) or not await _cleared(window, tab, handle, aids):
            raise await explained(window, tab, error) from error
        handle = await window.find(index)
        await _tried(window, tab, handle)
    if await handle.bounding_box() != box:
        # It was scrolled to, at which lists give their rows to other items.
        await _tried(window, tab, handle)
    return await window.find(index)


async def _try(window: Window, handle: "ElementHandle") -> None:
    await handle.click(trial=True, timeout=window.action_milliseconds)


async def _tried(window: Window, tab: Tab, handle: "ElementHandle") -> None:
    from playwright.async_api import Error

    try:
        await _try(window, handle)
    except Error as error:
        raise await explained(window, tab, error) from error


async def _cleared(window: Window, tab: Tab, handle: "ElementHandle", aids: Aids) -> bool:
    box = await handle.bounding_box()
    if box is None:
        return False
    at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    return await window.clear(tab, aids, at=at)


async def _is_taken(window: Window, tab: Tab, error: Exception) -> bool:
    """Whether the click was what closed the tab, or what it began kept the page from answering in time."""
    if has_ended(error):
        return tab.page.is_closed()
    if not was_given(error):
        return False
    if not window.dialogs.have_come and not await window.check(tab):
        raise Unable(STUCK) from error
    return True


async def explained(window: Window, tab: Tab, error: Exception) -> Exception:
    """What is to be raised for an element that did not take what was done to it."""
    if has_ended(error) or has_crashed(error):
        return error
    if "Timeout" in str(error) and not await window.check(tab):
        return Unable(STUCK)
    return Unable(untouched(error, window.settings.action_seconds))
