"""Actions that scroll a page or a part of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from maniple.browser.actions import (
    Action,
    ActionResult,
    ElementIndex,
    ScrollPixels,
    Text,
    action,
    success_text,
)
from maniple.browser.drivers.failures import first_line, has_crashed, has_ended
from maniple.browser.drivers.tabs import OpenTab
from maniple.browser.drivers.window import BrowserWindow, page_script
from maniple.browser.page import PageServices
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame

_MAX_FRAMES = 30
_MAX_FRAME_DEPTH = 5


class ScrollAction(Action):
    scroll_amount: ScrollPixels | None = None
    """CSS pixels; default: the visible height of what scrolls."""
    index: ElementIndex | None = None
    """An element in the part to scroll; default: the part that was used last, else the page."""


class ScrollToTextAction(Action):
    text: Text


@dataclass(frozen=True, slots=True)
class _Scrolled:
    """What `scroll.js` answers."""

    moved: int | Literal["frame"] | None
    pixels: int = 0
    part: int = 0
    others: int = 0


@action(
    "scroll_down",
    ScrollAction,
    kind="move",
    line="scrolling",
    prompt="scroll_down (scroll_amount in pixels; without it what is visible of what scrolls; index of an "
    "element in the part to scroll, without it the part used last, else the page)",
)
async def scroll_down(window: BrowserWindow, action: ScrollAction, services: PageServices) -> ActionResult:
    """Scroll down."""
    return await _scroll(window, action, services, 1)


@action("scroll_up", ScrollAction, kind="move", line="scrolling", prompt="scroll_up (likewise)")
async def scroll_up(window: BrowserWindow, action: ScrollAction, services: PageServices) -> ActionResult:
    """Scroll up."""
    return await _scroll(window, action, services, -1)


async def _scroll(
    window: BrowserWindow, action: ScrollAction, services: PageServices, direction: int
) -> ActionResult:
    start = window.start_action(await window.tabs.current())
    scroller = _Scroller(window, start.tab, direction, action.scroll_amount)
    if action.index is None:
        handle = window.last_used(start.tab)
        scrolled = await scroller.scroll_around_last(handle) if handle is not None else None
        scrolled = scrolled or await scroller.scroll_page()
    else:
        handle = await window.find(action.index)
        scrolled = await scroller.scroll_around(handle)
    if scrolled.moved is None:
        result = await scroller.turn_wheel(handle if action.index is not None else None)
    else:
        result = _describe(scrolled, direction, action.index)
    return await window.finish_action(start, services, result)


def _describe(scrolled: _Scrolled, direction: int, index: int | None) -> str:
    result = f"Scrolled {'down' if direction > 0 else 'up'} by {scrolled.pixels} pixels"
    if scrolled.part:
        result += f" - In a part of the page, {scrolled.part} pixels high"
    if isinstance(scrolled.moved, int) and scrolled.moved < scrolled.pixels - 1:
        result += f" - Only {scrolled.moved}: the {'end' if direction > 0 else 'beginning'} is reached"
        if scrolled.others and index is None:
            result += "; for another part that scrolls, give the index of an element in it"
    return result


class _Scroller:
    """Scrolls a tab once."""

    def __init__(self, window: BrowserWindow, tab: OpenTab, direction: int, pixels: int | None) -> None:
        self._window = window
        self._page = tab.page
        self._direction = direction
        self._pixels = pixels

    async def scroll_page(self) -> _Scrolled:
        """Scroll the page, or what scrolls at its middle."""
        frame: Frame = self._page.main_frame
        room = None
        for _ in range(_MAX_FRAME_DEPTH):
            scrolled = await self._run(frame, None, room=room)
            if scrolled.moved != "frame":
                return scrolled
            element = await _middle_element(frame)
            inner = await element.content_frame() if element else None
            if inner is None:
                break
            frame, room = inner, await self._visible_height(element)
        return _Scrolled(None)

    async def scroll_around(self, handle: "ElementHandle") -> _Scrolled:
        """Scroll the innermost part that `handle` is in, or that is in it."""
        frame = await handle.owner_frame()
        for _ in range(_MAX_FRAME_DEPTH):
            if frame is None:
                break
            around = await frame.frame_element() if frame.parent_frame else None
            room = await self._visible_height(around) if around else None
            scrolled = await self._run(frame, handle, room=room, strict=True)
            if scrolled.moved is not None or around is None:
                return scrolled
            handle, frame = around, frame.parent_frame
        return _Scrolled(None)

    async def scroll_around_last(self, handle: "ElementHandle") -> _Scrolled | None:
        """Scroll the part that was used last; None if it is gone or is the whole page, at its end."""
        from playwright.async_api import Error

        try:
            if not await handle.evaluate("element => element.isConnected"):
                return None
            frame = await handle.owner_frame()
            if frame is None:
                return None
            around = await frame.frame_element() if frame.parent_frame else None
            room = await self._visible_height(around) if around else None
            scrolled = await self._run(frame, handle, room=room)
        except Error as error:
            if has_ended(error) or has_crashed(error):
                raise
            return None  # its page was left
        return scrolled if isinstance(scrolled.moved, int) and (scrolled.moved or scrolled.part) else None

    async def turn_wheel(self, handle: "ElementHandle | None") -> str:
        """Turn the wheel over an element or the middle of the window: maps and canvases follow it."""
        settings, mouse = self._window.settings, self._page.mouse
        pixels = settings.viewport_height if self._pixels is None else self._pixels
        box = await handle.bounding_box() if handle is not None else None
        x, y = settings.viewport_width / 2, settings.viewport_height / 2
        if box is not None:
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        await mouse.move(x, y)
        await mouse.wheel(0, self._direction * pixels)
        result = f"Scrolled {'down' if self._direction > 0 else 'up'} by {pixels} pixels"
        if box is None:
            return f"{result} - Nothing on this page scrolls; the wheel was turned over its middle"
        return f"{result} - Nothing around this element scrolls; the wheel was turned over it"

    async def _run(
        self, frame: "Frame", element: "ElementHandle | None", *, room: int | None, strict: bool = False
    ) -> _Scrolled:
        question: dict[str, Any] = {
            "element": element,
            "direction": self._direction,
            "pixels": self._pixels,
            "room": room,
            "strict": strict,
        }
        return _Scrolled(**await frame.evaluate(await page_script("scroll"), question))

    async def _visible_height(self, frame_element: "ElementHandle | None") -> int | None:
        box = await frame_element.bounding_box() if frame_element else None
        if box is None:
            return None
        seen = min(box["y"] + box["height"], self._window.settings.viewport_height) - max(box["y"], 0)
        return max(round(seen), 1)


async def _middle_element(frame: "Frame") -> "ElementHandle | None":
    handle = await frame.evaluate_handle("() => document.elementFromPoint(innerWidth / 2, innerHeight / 2)")
    return handle.as_element()


@action(
    "scroll_to_text",
    ScrollToTextAction,
    kind="move",
    line="scrolling",
    prompt="scroll_to_text (text)",
    done="Scrolled to text: '{text}'",
)
async def scroll_to_text(
    window: BrowserWindow, action: ScrollToTextAction, services: PageServices
) -> ActionResult:
    """Scroll to the first visible occurrence of a text."""
    from playwright.async_api import Error

    start = window.start_action(await window.tabs.current())
    try:
        is_found = await _scroll_into_view(window, start.tab, action.text)
    except Error as error:
        if has_ended(error) or has_crashed(error):
            raise
        raise BrowserError(f"Failed to scroll to text: {first_line(error)}") from error
    if not is_found:
        raise BrowserError(
            f"Failed to scroll to text: '{action.text}' is not on this page as far as it is loaded; "
            "scroll down for more, or look for other words"
        )
    return await window.finish_action(start, services, success_text(action))


async def _scroll_into_view(window: BrowserWindow, tab: OpenTab, text: str) -> bool:
    for frame in tab.page.frames[:_MAX_FRAMES]:
        matches: Any = frame.get_by_text(text).filter(visible=True)
        if await matches.count():
            await matches.first.scroll_into_view_if_needed(timeout=window.action_milliseconds)
            return True
    return False
