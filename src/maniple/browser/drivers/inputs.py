"""Filling in fields."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from maniple.browser.actions import Action, ActionResult
from maniple.browser.drivers.failures import Unable, first_line, has_crashed, has_ended
from maniple.browser.drivers.outcome import after, before
from maniple.browser.drivers.pointing import explained
from maniple.browser.drivers.tabs import Tab
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.browser.wording import MASK, done, one_line

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
_HAS_FOCUS = "element => element.getRootNode().activeElement === element"
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
    await _fill(window, stood.tab, handle, kind, text)
    if kind["type"] != "password":
        words += await _other(handle, text)
    return await after(window, stood, aids, words, may_begin=False)


async def _fill(window: Window, tab: Tab, handle: "ElementHandle", kind: dict[str, Any], text: str) -> None:
    from playwright.async_api import Error

    if kind["tag"] == "select":
        raise Unable("it is a dropdown; use select_dropdown_option")
    if kind["type"] in _CLICKED:
        raise Unable(f"it is a {kind['type']}; use click_element")
    field = handle if kind["editable"] else await handle.query_selector(_FIELD)
    if field is None:
        raise Unable("it is no field; click it, then use send_keys if it takes keys")
    form = _FORMS.get(kind["type"])
    # All at once, but the last character by its key: some pages listen for nothing else.
    by_key = text[-1:] if form is None and text[-1:].isprintable() else ""
    try:
        await _put(window, tab, field, text, by_key)
        taken = form is None or _is_taken(text, await field.input_value())
    except Error as error:
        if form is None or "Timeout" in str(error):
            raise await explained(window, tab, error) from error
        taken = False
    if not taken:
        raise Unable(f"a field of type {kind['type']} does not take '{text}'; write it as {form}")


async def _put(window: Window, tab: Tab, field: "ElementHandle", text: str, by_key: str) -> None:
    """Put a text into a field, its last character by key if that is given."""
    await field.fill(text.removesuffix(by_key), timeout=window.action_milliseconds)
    if not by_key:
        return
    if await field.evaluate(_HAS_FOCUS):
        await tab.page.keyboard.type(by_key)
    else:  # the page went on to another field, or drew this one anew
        await field.fill(text, timeout=window.action_milliseconds)


async def _other(handle: "ElementHandle", text: str) -> str:
    """What is to be told of a field that made something else of the text."""
    from playwright.async_api import Error

    with suppress(Error):  # it has gone meanwhile, or holds no text of its own
        value = await handle.input_value()
        if " ".join(value.split()) != " ".join(text.split()):
            return f" - the field holds '{one_line(value, 200)}' now"
    return ""


def _is_taken(text: str, value: str) -> bool:
    # What it does not understand, a date is empty after, and a colour black.
    return bool(value) == bool(text) and (value != "#000000" or text.lower() in ("black", value))


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
