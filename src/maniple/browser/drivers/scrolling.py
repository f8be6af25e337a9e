"""Scrolling the page, or the part of it that scrolls, and to a text."""

from typing import TYPE_CHECKING, Any

from maniple.browser.actions import Action, ActionResult
from maniple.browser.drivers.failures import first_line, has_crashed, has_ended
from maniple.browser.drivers.outcome import after, before
from maniple.browser.drivers.page_scripts import script
from maniple.browser.drivers.tabs import Tab
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.browser.wording import done
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Frame

_FRAMES = 30
_DEEPEST = 5


async def scroll_down(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Scroll down, by default by what the window shows."""
    return await _scroll(window, action, aids, 1)


async def scroll_up(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Scroll up, by default by what the window shows."""
    return await _scroll(window, action, aids, -1)


async def _scroll(window: Window, action: Action, aids: Aids, direction: int) -> ActionResult:
    stood = before(window, await window.tabs.current())
    page = stood.tab.page
    pixels = window.settings.viewport_height if action.scroll_amount is None else action.scroll_amount
    moved = await _moved(page.main_frame, direction * pixels)
    words = f"Scrolled {'down' if direction > 0 else 'up'} by {pixels} pixels"
    if moved is None:
        # Maps and drawings follow the wheel.
        await page.mouse.move(window.settings.viewport_width / 2, window.settings.viewport_height / 2)
        await page.mouse.wheel(0, direction * pixels)
        words += " - Nothing on this page scrolls; the wheel was turned over its middle"
    elif moved < pixels - 1:
        words += f" - Only {moved}: the {'end' if direction > 0 else 'beginning'} is reached"
    return await after(window, stood, aids, words)


async def _moved(frame: "Frame", pixels: int) -> int | None:
    """By how many pixels the page was scrolled; None when nothing of it scrolls."""
    for _ in range(_DEEPEST):
        moved = await frame.evaluate(await script("scroll"), pixels)
        if moved != "frame":
            return moved if isinstance(moved, int) else None
        inner = await _middle_frame(frame)
        if inner is None:
            return None
        frame = inner
    return None


async def _middle_frame(frame: "Frame") -> "Frame | None":
    handle = await frame.evaluate_handle("() => document.elementFromPoint(innerWidth / 2, innerHeight / 2)")
    element = handle.as_element()
    return await element.content_frame() if element else None


async def scroll_to_text(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Bring the first place where a text is seen into the window."""
    from playwright.async_api import Error

    stood = before(window, await window.tabs.current())
    try:
        found = await _show(window, stood.tab, action.text or "")
    except Error as error:
        if has_ended(error) or has_crashed(error):
            raise
        raise BrowserError(f"Failed to scroll to text: {first_line(error)}") from error
    if not found:
        raise BrowserError(
            f"Failed to scroll to text: '{action.text}' is not on this page as far as it is loaded; "
            "scroll down for more, or look for other words"
        )
    return await after(window, stood, aids, done(action))


async def _show(window: Window, tab: Tab, text: str) -> bool:
    for frame in tab.page.frames[:_FRAMES]:
        places: Any = frame.get_by_text(text).filter(visible=True)
        if await places.count():
            await places.first.scroll_into_view_if_needed(timeout=window.action_milliseconds)
            return True
    return False
