"""Choosing from dropdowns: native ones, and what ARIA calls a listbox, a combobox or a menu."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maniple.browser.actions import Action, ActionResult
from maniple.browser.drivers.failures import Unable
from maniple.browser.drivers.outcome import after, before
from maniple.browser.drivers.page_scripts import script
from maniple.browser.drivers.pointing import explained, press
from maniple.browser.drivers.tabs import Tab
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.browser.wording import done, options_listed

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle

_NAMED_OPTIONS = 20
_POLL_SECONDS = 0.05
# Comboboxes that do not open at a click do at this key.
_OPENING_KEY = "ArrowDown"


@dataclass(frozen=True, slots=True)
class _Option:
    text: str
    value: str
    index: int
    disabled: bool


@dataclass(frozen=True, slots=True)
class _Dropdown:
    """What a dropdown shows at one time."""

    handle: "ElementHandle"
    kind: str
    open: bool
    editable: bool
    multiple: bool
    total: int
    count: int
    """Of the options that hold the text that was asked for."""
    options: tuple[_Option, ...]
    """The first of those."""
    named: _Option | None
    """The option whose name, or value, was asked for, wherever it stands."""
    kept: tuple[int, ...]
    """Where options stand that are selected and may stay so."""


async def get_dropdown_options(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Say what can be chosen; a list that had to be opened for that stays open."""
    stood = before(window, await window.tabs.current())
    dropdown = await _opened(window, stood.tab, action.index or 0)
    if action.text:
        dropdown = await _seen(dropdown.handle, text=action.text)
    told = [{"text": one.text, "value": one.value, "index": one.index} for one in dropdown.options]
    words = options_listed(told, dropdown.count, dropdown.total, action.text)
    return await after(window, stood, aids, words)


async def select_dropdown_option(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Choose the option of a text, or a value."""
    stood = before(window, await window.tabs.current())
    name = action.text or ""
    dropdown = await _opened(window, stood.tab, action.index or 0)
    dropdown = await _seen(dropdown.handle, name=name)
    if dropdown.named is None and dropdown.kind == "combobox" and dropdown.editable:
        dropdown = await _filtered(window, dropdown, name)
    if (option := dropdown.named) is None:
        raise Unable(_no_option(name, dropdown))
    if option.disabled:
        raise Unable(f"the option '{option.text}' is disabled")
    await _choose(window, stood.tab, dropdown, option)
    return await after(window, stood, aids, done(action))


async def _choose(window: Window, tab: Tab, dropdown: _Dropdown, option: _Option) -> None:
    from playwright.async_api import Error

    milliseconds = window.action_milliseconds
    try:
        match dropdown.kind:
            case "select":
                await dropdown.handle.select_option(
                    index=[*dropdown.kept, option.index], timeout=milliseconds
                )
            case "datalist":
                await dropdown.handle.fill(option.value or option.text, timeout=milliseconds)
            case _:
                question = {"place": option.index}
                found = await dropdown.handle.evaluate_handle(await script("dropdown"), question)
                element = found.as_element()
                if element is None:
                    raise Unable("its options changed meanwhile; look at the page again")
                await press(window, tab, element)
    except Error as error:
        raise await explained(window, tab, error) from error


async def _opened(window: Window, tab: Tab, index: int) -> _Dropdown:
    """The dropdown at `index` with its options in sight."""
    handle = await window.find(index)
    dropdown = await _seen(handle)
    if dropdown.kind == "none":
        raise Unable("it is no dropdown; click it and look at what opens")
    if dropdown.kind != "combobox" or (dropdown.open and dropdown.options):
        if not dropdown.options:
            raise Unable("the dropdown has no options now; something else may have to be filled in first")
        return dropdown
    await press(window, tab, handle)
    dropdown = await _with_options(handle, window.settings.action_seconds / 2)
    if not dropdown.options:
        await handle.press(_OPENING_KEY, timeout=window.action_milliseconds)
        dropdown = await _with_options(handle, window.settings.action_seconds / 2)
    if not dropdown.options and not dropdown.editable:
        raise Unable("it shows no options; click it and look at what opens")
    return dropdown


async def _filtered(window: Window, dropdown: _Dropdown, name: str) -> _Dropdown:
    """What is offered when the name is typed; comboboxes show only some of their options at once."""
    handle = dropdown.handle
    await handle.fill("", timeout=window.action_milliseconds)
    await handle.type(name[:200], timeout=window.settings.timeout_seconds * 1000)
    return await _with_options(handle, window.settings.action_seconds, name)


async def _with_options(handle: "ElementHandle", seconds: float, name: str | None = None) -> _Dropdown:
    """What is there as soon as there are options, or one of that name; or after so many seconds."""
    dropdown = await _seen(handle, name=name)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not (dropdown.options if name is None else dropdown.named):
                await asyncio.sleep(_POLL_SECONDS)
                dropdown = await _seen(handle, name=name)
    return dropdown


async def _seen(handle: "ElementHandle", *, text: str = "", name: str | None = None) -> _Dropdown:
    # It is searched inside the page: lists of countries, towns or parts can be long.
    question = {"place": None, "text": text, "name": name}
    found: dict[str, Any] = await handle.evaluate(await script("dropdown"), question)
    options = tuple(_Option(**option) for option in found.pop("options"))
    named = found.pop("named")
    return _Dropdown(
        handle,
        **{**found, "kept": tuple(found["kept"])},
        options=options,
        named=None if named is None else _Option(**named),
    )


def _no_option(name: str, dropdown: _Dropdown) -> str:
    names = [f"'{option.text}'" for option in dropdown.options[:_NAMED_OPTIONS]]
    if dropdown.total > len(names):
        names.append(
            f"{dropdown.total - len(names)} more, which get_dropdown_options finds by a `text` in them"
        )
    return f"there is no option '{name}'; there are: {', '.join(names) or 'none'}"
