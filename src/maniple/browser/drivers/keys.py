"""Pressing keys: chords, named keys, and plain text."""

from maniple.browser.actions import Action, ActionResult
from maniple.browser.chords import pressed
from maniple.browser.drivers.outcome import after, before
from maniple.browser.drivers.tabs import Tab
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.browser.wording import MASK, done

_MAX_CHARACTERS = 10_000
_FOCUSED = """() => {
    let element = document.hasFocus() ? document.activeElement : null;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    return element?.localName === "input" && element.type === "password";
}"""


async def send_keys(window: Window, action: Action, aids: Aids) -> ActionResult:
    """Press a chord or named keys, or type a text where the focus is."""
    keys = (action.keys or "")[:_MAX_CHARACTERS]
    stood = before(window, await window.tabs.current())
    keyboard = stood.tab.page.keyboard
    words = done(action)
    if (presses := pressed(keys)) is not None:
        for press in presses:
            await keyboard.press(press)
    else:
        if await _is_secret(stood.tab):
            words = done(action.model_copy(update={"keys": MASK}))
        await keyboard.type(keys)
    return await after(window, stood, aids, words)


async def _is_secret(tab: Tab) -> bool:
    """Whether what is typed now goes into a password field."""
    from playwright.async_api import Error

    for frame in tab.page.frames:
        try:
            if await frame.evaluate(_FOCUSED):
                return True
        except Error:  # it has gone meanwhile
            continue
    return False
