"""Filling in fields."""

from typing import TYPE_CHECKING, Any

from maniple.browser.actions import Action, ActionResult
from maniple.browser.drivers.failures import Unable, first_line, has_crashed, has_ended, untouched
from maniple.browser.drivers.outcome import after, before
from maniple.browser.drivers.tabs import Tab
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.browser.wording import MASK, done

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle

_MAX_CHARACTERS = 100_000
# Fields that take a value as a whole, and in which form.
_FORMS = {
    "date": "2026-11-22",
    "time": "18:30",
    "datetime-local": "2026-11-22T18:30",
    "month": "2026-11",
    "week": "2026-W47",
    "color": "#1e90ff",
    "range": "a number",
    "number": "a number",
}
_CLICKED = frozenset({"checkbox", "radio", "button", "submit", "reset", "image"})
_KIND = """element => {
    const tag = element.localName;
    const type = tag === "input" ? element.type : "";
    return {tag, type, editable: element.isContentEditable || tag === "textarea" || tag === "input"};
}"""
_FIELD = "input:not([type=hidden]), textarea, [contenteditable]:not([contenteditable=false])"


async def input_text(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Put a text into a field in place of what is there; of a file field or button, it is a path."""
    text = (action.text or "")[:_MAX_CHARACTERS]
    stood = before(window, await window.tabs.current())
    handle = await window.find(action.index or 0)
    kind = await handle.evaluate(_KIND)
    words = done(action)
    if kind["type"] == "file" or (stood.tab.chooser is not None and not kind["editable"]):
        await _give_file(stood.tab, handle if kind["type"] == "file" else None, text, aids)
        return await after(window, stood, aids, words)
    if kind["type"] == "password":
        words = done(action.model_copy(update={"text": MASK}))
    await _fill(window, handle, kind, text)
    return await after(window, stood, aids, words)


async def _fill(window: Window, handle: "ElementHandle", kind: dict[str, Any], text: str) -> None:
    from playwright.async_api import Error

    if kind["tag"] == "select":
        raise Unable("it is a dropdown; use select_dropdown_option")
    if kind["type"] in _CLICKED:
        raise Unable(f"it is a {kind['type']}; use click_element")
    field = handle if kind["editable"] else await handle.query_selector(_FIELD)
    if field is None:
        raise Unable("it is no field; click it, then use send_keys if it takes keys")
    try:
        await _typed(window, field, kind, text)
    except Error as error:
        if has_ended(error) or has_crashed(error):
            raise
        if form := _FORMS.get(kind["type"]):
            raise Unable(
                f"a field of type {kind['type']} does not take {text!r}; write it as {form}"
            ) from error
        raise Unable(untouched(error, window.settings.action_seconds)) from error


async def _typed(window: Window, field: "ElementHandle", kind: dict[str, Any], text: str) -> None:
    """Fill in all at once, but the last character by its key: some pages listen for nothing else."""
    by_key = text[-1:] if kind["type"] not in _FORMS and text[-1:].isprintable() else ""
    milliseconds = window.action_milliseconds
    if not by_key:
        await field.fill(text, timeout=milliseconds)
        return
    await field.fill(text[:-1], timeout=milliseconds)
    await field.press("End", timeout=milliseconds)
    await field.type(by_key, timeout=milliseconds)


async def _give_file(tab: Tab, field: "ElementHandle | None", path: str, aids: Aids) -> None:
    from playwright.async_api import Error

    if aids.open_file is None:
        raise Unable("no file can be given to pages here")
    file = await aids.open_file(path)
    chooser, tab.chooser = tab.chooser, None
    try:
        if field is not None:
            await field.set_input_files(file)
        elif chooser is not None:
            await chooser.set_files(file)
    except Error as error:
        if has_ended(error) or has_crashed(error):
            raise
        raise Unable(first_line(error)) from error
