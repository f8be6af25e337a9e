"""Actions on dropdowns: native ones, and ARIA listboxes, comboboxes and menus."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maniple.browser.actions import Action, ActionResult, ElementIndex, Text, action, success_text
from maniple.browser.drivers.actions.interaction import click_handle, explain_failure
from maniple.browser.drivers.failures import ActionFailedError
from maniple.browser.drivers.tabs import OpenTab
from maniple.browser.drivers.window import BrowserWindow, page_script
from maniple.browser.listing import describe_options
from maniple.browser.page import PageServices

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle

_LISTED_OPTIONS = 20
_POLL_SECONDS = 0.05
# Opens comboboxes that a click does not open.
_OPENING_KEY = "ArrowDown"


class OptionsAction(Action):
    index: ElementIndex
    text: Text | None = None
    """Lists only options that contain it."""


class SelectAction(Action):
    index: ElementIndex
    text: Text


@dataclass(frozen=True, slots=True)
class _Option:
    text: str
    value: str
    index: int
    disabled: bool


@dataclass(frozen=True, slots=True)
class _Dropdown:
    """The state of a dropdown."""

    handle: "ElementHandle"
    kind: str
    open: bool
    editable: bool
    multiple: bool
    total: int
    count: int
    """The number of options that contain the text in question."""
    options: tuple[_Option, ...]
    """The first of those."""
    named: _Option | None
    """The option with the name or value in question."""
    kept: tuple[int, ...]
    """The positions of selected options that stay selected."""


@action(
    "get_dropdown_options",
    OptionsAction,
    kind="input",
    line="dropdown",
    prompt="get_dropdown_options (index; of a long list those with a text)",
)
async def get_dropdown_options(
    window: BrowserWindow, action: OptionsAction, services: PageServices
) -> ActionResult:
    """List the options; a list that had to be opened stays open."""
    start = window.start_action(await window.tabs.current())
    dropdown = await _open_dropdown(window, start.tab, action.index)
    if action.text:
        dropdown = await _read_dropdown(dropdown.handle, text=action.text)
    options = [{"text": one.text, "value": one.value, "index": one.index} for one in dropdown.options]
    result = describe_options(options, dropdown.count, dropdown.total, action.text)
    return await window.finish_action(start, services, result)


@action(
    "select_dropdown_option",
    SelectAction,
    kind="input",
    line="dropdown",
    prompt="select_dropdown_option (index, text)",
    done="Selected option '{text}' from dropdown at index {index}",
)
async def select_dropdown_option(
    window: BrowserWindow, action: SelectAction, services: PageServices
) -> ActionResult:
    """Select the option with a text or value."""
    start = window.start_action(await window.tabs.current())
    dropdown = await _open_dropdown(window, start.tab, action.index)
    dropdown = await _read_dropdown(dropdown.handle, name=action.text)
    if dropdown.named is None and dropdown.kind == "combobox" and dropdown.editable:
        dropdown = await _filter_by_typing(window, dropdown, action.text)
    if (option := dropdown.named) is None:
        raise ActionFailedError(_no_such_option(action.text, dropdown))
    if option.disabled:
        raise ActionFailedError(f"the option '{option.text}' is disabled")
    await _select(window, start.tab, dropdown, option)
    return await window.finish_action(start, services, success_text(action))


async def _select(window: BrowserWindow, tab: OpenTab, dropdown: _Dropdown, option: _Option) -> None:
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
                found = await dropdown.handle.evaluate_handle(await page_script("dropdown"), question)
                element = found.as_element()
                if element is None:
                    raise ActionFailedError("its options changed meanwhile; look at the page again")
                await click_handle(window, tab, element)
    except Error as error:
        raise await explain_failure(window, tab, error) from error


async def _open_dropdown(window: BrowserWindow, tab: OpenTab, index: int) -> _Dropdown:
    """Return the dropdown at `index`, opened if its options were not there."""
    handle = await window.find(index)
    dropdown = await _read_dropdown(handle)
    if dropdown.kind == "none":
        raise ActionFailedError("it is no dropdown; click it and look at what opens")
    if dropdown.kind != "combobox" or (dropdown.open and dropdown.options):
        if not dropdown.options:
            raise ActionFailedError(
                "the dropdown has no options now; something else may have to be filled in first"
            )
        return dropdown
    await click_handle(window, tab, handle)
    dropdown = await _wait_for_options(handle, window.settings.action_seconds / 2)
    if not dropdown.options:
        await handle.press(_OPENING_KEY, timeout=window.action_milliseconds)
        dropdown = await _wait_for_options(handle, window.settings.action_seconds / 2)
    if not dropdown.options and not dropdown.editable:
        raise ActionFailedError("it shows no options; click it and look at what opens")
    return dropdown


async def _filter_by_typing(window: BrowserWindow, dropdown: _Dropdown, name: str) -> _Dropdown:
    """Type the name: comboboxes may show only some of their options."""
    handle = dropdown.handle
    await handle.fill("", timeout=window.action_milliseconds)
    await handle.type(name[:200], timeout=window.settings.timeout_seconds * 1000)
    return await _wait_for_options(handle, window.settings.action_seconds, name)


async def _wait_for_options(handle: "ElementHandle", seconds: float, name: str | None = None) -> _Dropdown:
    """Return the dropdown when it has options, or the one of that name, or when the time is over."""
    dropdown = await _read_dropdown(handle, name=name)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not (dropdown.options if name is None else dropdown.named):
                await asyncio.sleep(_POLL_SECONDS)
                dropdown = await _read_dropdown(handle, name=name)
    return dropdown


async def _read_dropdown(handle: "ElementHandle", *, text: str = "", name: str | None = None) -> _Dropdown:
    # The page searches its own options: lists of countries or parts can be long.
    question = {"place": None, "text": text, "name": name}
    found: dict[str, Any] = await handle.evaluate(await page_script("dropdown"), question)
    options = tuple(_Option(**option) for option in found.pop("options"))
    named = found.pop("named")
    return _Dropdown(
        handle,
        **{**found, "kept": tuple(found["kept"])},
        options=options,
        named=None if named is None else _Option(**named),
    )


def _no_such_option(name: str, dropdown: _Dropdown) -> str:
    names = [f"'{option.text}'" for option in dropdown.options[:_LISTED_OPTIONS]]
    if dropdown.total > len(names):
        names.append(
            f"{dropdown.total - len(names)} more, which get_dropdown_options finds by a `text` in them"
        )
    return f"there is no option '{name}'; there are: {', '.join(names) or 'none'}"
