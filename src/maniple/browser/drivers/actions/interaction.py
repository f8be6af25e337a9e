"""Actions on what a page shows: clicking, filling in fields and pressing keys."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maniple.browser.actions import (
    MASK,
    Action,
    ActionResult,
    ElementIndex,
    Keys,
    Text,
    action,
    success_text,
)
from maniple.browser.arguments import parse_keys
from maniple.browser.drivers.failures import (
    PAGE_STUCK,
    ActionFailedError,
    covering_tag,
    explain_untouched,
    first_line,
    has_crashed,
    has_ended,
    is_delivered,
)
from maniple.browser.drivers.tabs import OpenTab
from maniple.browser.drivers.text_entry import TextEntry
from maniple.browser.drivers.window import BrowserWindow
from maniple.browser.page import PageServices
from maniple.media_types import media_type_of

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, FilePayload

_CLICK_ATTEMPTS = 3
# Short, because an element that is waited for may have become another one by the time of the click.
_FIRST_CLICK_MILLISECONDS = 150.0
# Of the time limit of an action.
_CLICK_SHARE = 0.25

_MAX_TEXT_CHARACTERS = 100_000
# What Playwright sends to a browser that does not see the file itself.
_MAX_SENT_BYTES = 50_000_000
# Types of fields that take a value as a whole, with an example of its format.
_VALUE_FORMATS = {
    "date": "2026-11-22",
    "time": "18:30",
    "datetime-local": "2026-11-22T18:30",
    "month": "2026-11",
    "week": "2026-W47",
    "color": "#1e90ff",
    "range": "a number",
    "number": "a number",
}
_CLICKED_TYPES = frozenset({"checkbox", "radio", "button", "submit", "reset", "image"})
_KIND = """element => {
    const tag = element.localName;
    const type = tag === "input" ? element.type : "";
    return {tag, type, editable: element.isContentEditable || tag === "textarea" || tag === "input"};
}"""
_FIELD = "input:not([type=hidden]), textarea, [contenteditable]:not([contenteditable=false])"

_MAX_KEYS_CHARACTERS = 10_000
_IS_PASSWORD_FOCUSED = """() => {
    let element = document.hasFocus() ? document.activeElement : null;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    return element?.localName === "input" && element.type === "password";
}"""


class ClickAction(Action):
    index: ElementIndex


class InputAction(Action):
    may_be_empty = frozenset({"text"})

    index: ElementIndex
    text: Text
    """"" empties the field."""


class KeysAction(Action):
    keys: Keys


@action(
    "click_element",
    ClickAction,
    kind="move",
    line="element",
    prompt="click_element (index)",
    done="Clicked element at index {index}",
)
async def click_element(window: BrowserWindow, action: ClickAction, services: PageServices) -> ActionResult:
    """Click an element. An overlay that covers it is cleared once."""
    start = window.start_action(await window.tabs.current())
    handle = await window.find(action.index)
    # An element in view that takes the click now is the one that was shown; all others are waited for first.
    if not (
        await _is_in_view(window, handle)
        and await _clicked_in_time(window, start.tab, handle, _FIRST_CLICK_MILLISECONDS)
    ):
        await _click_when_ready(window, start.tab, action.index, services)
    return await window.finish_action(start, services, success_text(action))


async def _click_when_ready(window: BrowserWindow, tab: OpenTab, index: int, services: PageServices) -> None:
    milliseconds = window.action_milliseconds * _CLICK_SHARE
    for _ in range(_CLICK_ATTEMPTS - 1):
        handle = await _ready_handle(window, tab, index, services)
        if await _clicked_in_time(window, tab, handle, milliseconds):
            return
    await click_handle(window, tab, await _ready_handle(window, tab, index, services), milliseconds)


async def click_handle(
    window: BrowserWindow, tab: OpenTab, handle: "ElementHandle", milliseconds: float | None = None
) -> None:
    """Click an element within a time; default: the time limit of an action.

    Raises:
        ActionFailedError: the element did not take the click.
        playwright.async_api.Error: the page crashed or the browser ended.
    """
    from playwright.async_api import Error

    try:
        await handle.click(timeout=milliseconds or window.action_milliseconds, no_wait_after=True)
    except Error as error:
        if not await _was_clicked(window, tab, error):
            raise await explain_failure(window, tab, error) from error


async def _clicked_in_time(
    window: BrowserWindow, tab: OpenTab, handle: "ElementHandle", milliseconds: float
) -> bool:
    """Click; return whether the time was enough."""
    from playwright.async_api import TimeoutError as TooSlow

    try:
        await click_handle(window, tab, handle, milliseconds)
    except ActionFailedError as error:
        if not isinstance(error.__cause__, TooSlow) or tab.is_broken:
            raise
        return False
    return True


_IS_HIT = """element => {
    const box = element.getBoundingClientRect();
    let hit = element.getRootNode().elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    while (hit && hit !== element) hit = hit.assignedSlot ?? hit.parentElement ?? hit.getRootNode().host;
    return hit === element;
}"""


async def _is_in_view(window: BrowserWindow, handle: "ElementHandle") -> bool:
    """Return whether a click reaches an element without scrolling, also within a part of the page."""
    box = await handle.bounding_box()
    return (
        box is not None
        and min(box["x"], box["y"]) >= 0
        and box["x"] + box["width"] <= window.settings.viewport_width
        and box["y"] + box["height"] <= window.settings.viewport_height
        and bool(await handle.evaluate(_IS_HIT))
    )


async def _ready_handle(
    window: BrowserWindow, tab: OpenTab, index: int, services: PageServices
) -> "ElementHandle":
    """Wait until a click would reach the element; return it if it is still the one that was shown."""
    from playwright.async_api import Error

    handle = await window.find(index)
    box = await handle.bounding_box()
    try:
        await _try_click(window, handle)
    except Error as error:
        await _require_unchanged(window, tab, index, error)
        if not covering_tag(error) or not await _uncover(window, tab, handle, services):
            raise await explain_failure(window, tab, error) from error
        handle = await window.find(index)
        await _require_clickable(window, tab, index, handle)
    if await handle.bounding_box() != box:
        # It was scrolled into view, at which virtual lists reuse their rows for other items.
        await _require_clickable(window, tab, index, handle)
    return await window.find(index)


async def _require_unchanged(window: BrowserWindow, tab: OpenTab, index: int, error: Exception) -> None:
    """Raise `BrowserError` if an element that did not take a click is not the one that was shown any more.

    A virtual list gives its rows to other items and moves them away; what lies there then covers nothing.
    """
    if not has_ended(error) and not has_crashed(error) and await window.is_responsive(tab):
        await window.find(index)


async def _try_click(window: BrowserWindow, handle: "ElementHandle") -> None:
    await handle.click(trial=True, timeout=window.action_milliseconds)


async def _require_clickable(
    window: BrowserWindow, tab: OpenTab, index: int, handle: "ElementHandle"
) -> None:
    from playwright.async_api import Error

    try:
        await _try_click(window, handle)
    except Error as error:
        await _require_unchanged(window, tab, index, error)
        raise await explain_failure(window, tab, error) from error


async def _uncover(
    window: BrowserWindow, tab: OpenTab, handle: "ElementHandle", services: PageServices
) -> bool:
    box = await handle.bounding_box()
    if box is None:
        return False
    at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    return await window.clear_overlays(tab, services, at=at)


async def _was_clicked(window: BrowserWindow, tab: OpenTab, error: Exception) -> bool:
    """Return whether the click itself closed the tab, or its effects prevented the page from answering in
    time.
    """
    if has_ended(error):
        return tab.page.is_closed()
    if not is_delivered(error):
        return False
    if not window.dialogs.have_come and not await window.is_responsive(tab):
        raise ActionFailedError(PAGE_STUCK) from error
    return True


async def explain_failure(window: BrowserWindow, tab: OpenTab, error: Exception) -> Exception:
    """Return the exception to raise for an element that did not take an action."""
    if has_ended(error) or has_crashed(error):
        return error
    if "Timeout" in str(error) and not await window.is_responsive(tab):
        return ActionFailedError(PAGE_STUCK)
    return ActionFailedError(explain_untouched(error, window.settings.action_seconds))


@action(
    "input_text",
    InputAction,
    kind="input",
    line="element",
    prompt='input_text (index, text): replaces what is there, "" empties it',
    done="Input '{text}' into element at index {index}",
    types_into="element",
)
async def input_text(window: BrowserWindow, action: InputAction, services: PageServices) -> ActionResult:
    """Replace the text of a field; for a file field or a button that asked for a file, it is a path."""
    text = action.text[:_MAX_TEXT_CHARACTERS]
    start = window.start_action(await window.tabs.current())
    handle = await window.find(action.index)
    kind = await handle.evaluate(_KIND)
    if kind["type"] == "file" or (start.tab.chooser is not None and not kind["editable"]):
        await _give_file(window, start.tab, handle if kind["type"] == "file" else None, text, services)
        return await window.finish_action(start, services, success_text(action))
    added = await _write(window, start.tab, handle, kind, text)
    shown = action.model_copy(update={"text": MASK}) if kind["type"] == "password" else action
    return await window.finish_action(start, services, success_text(shown) + added, catch_up=False)


async def _write(
    window: BrowserWindow, tab: OpenTab, handle: "ElementHandle", kind: dict[str, Any], text: str
) -> str:
    """Replace the text of a field; return what to add to the result, "" for nothing."""
    from playwright.async_api import Error

    if kind["tag"] == "select":
        raise ActionFailedError("it is a dropdown; use select_dropdown_option")
    if kind["type"] in _CLICKED_TYPES:
        raise ActionFailedError(f"it is a {kind['type']}; use click_element")
    field = handle if kind["editable"] else await handle.query_selector(_FIELD)
    if field is None:
        raise ActionFailedError("it is no field; click it, then use send_keys if it takes keys")
    if field is not handle:
        kind = await field.evaluate(_KIND)
    if kind["type"] in _VALUE_FORMATS:
        await _set_value(window, tab, field, kind["type"], text)
        return ""
    try:
        entry = TextEntry(window, tab, field, is_secret=kind["type"] == "password")
        return await entry.write(text, has_value=bool(kind["tag"] in ("input", "textarea")))
    except Error as error:
        raise await explain_failure(window, tab, error) from error


async def _set_value(
    window: BrowserWindow, tab: OpenTab, field: "ElementHandle", kind: str, text: str
) -> None:
    """Set the value of a field that takes only some, such as a date."""
    from playwright.async_api import Error

    held = ""
    try:
        await field.fill(text, timeout=window.action_milliseconds)
        held = await field.input_value()
    except Error as error:
        if "Timeout" in str(error):
            raise await explain_failure(window, tab, error) from error
    if not _is_accepted(text, held):
        raise ActionFailedError(
            f"a field of type {kind} does not take '{text}' and holds '{held}'; "
            f"write it as {_VALUE_FORMATS[kind]}"
        )


def _is_accepted(text: str, value: str) -> bool:
    text = text.strip().lower()
    if (number := _as_number(text)) is not None:
        return _as_number(value) == number
    return value.lower() == ("#000000" if text == "black" else text)


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _with_content(path: Path) -> "FilePayload":
    """Read a file for a browser that cannot; raises `ActionFailedError` for one that is too large."""
    if path.stat().st_size > _MAX_SENT_BYTES:
        raise ActionFailedError(f"the file is larger than {_MAX_SENT_BYTES} bytes, which no page gets here")
    return {"name": path.name, "mimeType": media_type_of(path.name), "buffer": path.read_bytes()}


async def _give_file(
    window: BrowserWindow, tab: OpenTab, field: "ElementHandle | None", path: str, services: PageServices
) -> None:
    from playwright.async_api import Error

    if services.open_file is None:
        raise ActionFailedError("no file can be given to pages here")
    found = await services.open_file(path)
    file = found if window.resources.isolation is None else await asyncio.to_thread(_with_content, found)
    chooser, tab.chooser = tab.chooser, None
    try:
        if field is not None:
            await field.set_input_files(file)
        elif chooser is not None:
            await chooser.set_files(file)
    except Error as error:
        if has_ended(error) or has_crashed(error):
            raise
        raise ActionFailedError(first_line(error)) from error


@action(
    "send_keys",
    KeysAction,
    kind="input",
    line="keyboard",
    prompt="send_keys (keys), such as Enter, Escape, Control+A, or plain text",
    done="Sent keys: {keys}",
    types_into="focus",
)
async def send_keys(window: BrowserWindow, action: KeysAction, services: PageServices) -> ActionResult:
    """Press a chord or named keys, or type a text where the focus is."""
    keys = action.keys[:_MAX_KEYS_CHARACTERS]
    start = window.start_action(await window.tabs.current())
    keyboard = start.tab.page.keyboard
    result = success_text(action)
    if (presses := parse_keys(keys)) is not None:
        for press in presses:
            await keyboard.press(press)
    else:
        if await _is_password_focused(start.tab):
            result = success_text(action.model_copy(update={"keys": MASK}))
        await keyboard.type(keys)
    return await window.finish_action(start, services, result)


async def _is_password_focused(tab: OpenTab) -> bool:
    from playwright.async_api import Error

    for frame in tab.page.frames:
        try:
            if await frame.evaluate(_IS_PASSWORD_FOCUSED):
                return True
        except Error:  # the frame is gone
            continue
    return False
