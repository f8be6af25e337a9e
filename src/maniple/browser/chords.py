"""Which words for `send_keys` are keys and chords; all others are a text."""

import re

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
