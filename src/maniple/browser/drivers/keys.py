"""Pressing keys: chords, named keys, and plain text."""

import re

from maniple.browser.actions import Action, ActionResult
from maniple.browser.drivers.outcome import after, before
from maniple.browser.drivers.tabs import Tab
from maniple.browser.drivers.window import Window
from maniple.browser.page import Aids
from maniple.browser.wording import MASK, done

_MAX_CHARACTERS = 10_000
_MOST_PRESSES = 100
_MODIFIERS = {
    "control": "Control",
    "ctrl": "Control",
    "shift": "Shift",
    "alt": "Alt",
    "option": "Alt",
    "meta": "Meta",
    "cmd": "Meta",
    "command": "Meta",
    "controlormeta": "ControlOrMeta",
}
_NAMED = (
    *(
        "Enter",
        "Escape",
        "Tab",
        "Backspace",
        "Delete",
        "Insert",
        "Home",
        "End",
        "PageUp",
        "PageDown",
        "Space",
    ),
    *("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "CapsLock", "ContextMenu"),
    *(f"F{number}" for number in range(1, 13)),
)
_KEYS = {name.lower(): name for name in _NAMED}
# As other tools call them; in small letters they are words.
_ALIASES = {
    "Return": "Enter",
    "Esc": "Escape",
    "Del": "Delete",
    "Up": "ArrowUp",
    "Down": "ArrowDown",
    "Left": "ArrowLeft",
    "Right": "ArrowRight",
}
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


def pressed(keys: str) -> list[str] | None:
    """What is to be pressed one after another, in Playwright's names; None for a text to type."""
    tokens = keys.split()
    if not tokens or len(tokens) > _MOST_PRESSES or keys != keys.strip():
        return None
    # Of several words each must look like a key: "home delivery" is a text, "Tab Tab Enter" is none.
    if len(tokens) > 1 and not all(token[0].isupper() for token in tokens):
        return None
    chords = [_chord(token) for token in tokens]
    return None if None in chords else [chord for chord in chords if chord]


def _chord(token: str) -> str | None:
    """A key, or a key with modifiers such as `ctrl+shift+K`; None when it is a text."""
    *held, last = re.split(r"\+(?=.)", token)
    modifiers = [_MODIFIERS.get(part.lower()) for part in held]
    key = _ALIASES.get(last) or _KEYS.get(last.lower()) or (last if held and len(last) == 1 else None)
    if key is None or None in modifiers:
        return None
    return "+".join([*filter(None, modifiers), key])


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
