"""Clicking."""

from typing import TYPE_CHECKING

from maniple.browser.actions import Action, ActionResult
from maniple.browser.drivers.failures import STUCK, Unable, cover_of, has_crashed, has_ended, untouched
from maniple.browser.drivers.outcome import after, before
from maniple.browser.drivers.tabs import Tab
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.browser.wording import done

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle


async def click_element(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Click an element; what covers it is cleared away once."""
    index = action.index or 0
    stood = before(window, await window.tabs.current())
    handle = await window.find(index)
    if await pressed(window, stood.tab, handle, aids):
        # It may be another one now that something has gone.
        await press(window, stood.tab, await window.find(index))
    return await after(window, stood, aids, done(action))


async def pressed(window: Window, tab: Tab, handle: "ElementHandle", aids: Aids) -> bool:
    """Click; whether that is to be tried again, because what covered the element was cleared away."""
    from playwright.async_api import Error

    try:
        await handle.click(timeout=window.action_milliseconds, no_wait_after=True)
    except Error as error:
        if _is_taken(window, tab, error):
            return False
        if cover_of(error) and await _cleared(window, tab, handle, aids):
            return True
        raise await explained(window, tab, error) from error
    return False


async def press(window: Window, tab: Tab, handle: "ElementHandle") -> None:
    """Click an element as it is."""
    from playwright.async_api import Error

    try:
        await handle.click(timeout=window.action_milliseconds, no_wait_after=True)
    except Error as error:
        if not _is_taken(window, tab, error):
            raise await explained(window, tab, error) from error


async def _cleared(window: Window, tab: Tab, handle: "ElementHandle", aids: Aids) -> bool:
    box = await handle.bounding_box()
    if box is None:
        return False
    at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    return await window.clear(tab, aids, at=at)


def _is_taken(window: Window, tab: Tab, error: Exception) -> bool:
    """Whether the click was what closed the tab, or made the page open dialogs until its time was over."""
    if has_ended(error):
        return tab.page.is_closed()
    return "Timeout" in str(error) and window.dialogs.have_come


async def explained(window: Window, tab: Tab, error: Exception) -> Exception:
    """What is to be raised for an element that did not take what was done to it."""
    if has_ended(error) or has_crashed(error):
        return error
    if "Timeout" in str(error) and not await window.check(tab):
        return Unable(STUCK)
    return Unable(untouched(error, window.settings.action_seconds))
