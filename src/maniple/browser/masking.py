"""What may be told of an action before it is done: nothing that goes into a password field."""

from collections.abc import Mapping
from typing import Any

from maniple.browser.actions import ACTIONS, Action
from maniple.browser.chords import pressed
from maniple.browser.state import BrowserState
from maniple.browser.wording import MASK
from maniple.errors import BrowserError

_TYPED = ("text", "keys")


def masked(given: Mapping[str, Any], seen: BrowserState | None) -> dict[str, Any]:
    """Return the action `given` as it may be told, its index as a number; `seen` is the last look.

    Where nobody knows yet which field it is for, a text is masked as soon as there may be a password field:
    text for `send_keys` goes to whatever has the focus, and an index may be none.
    """
    index = _index_of(given)
    told = {**given, "index": index} if index is not None and given.get("index") is not None else {**given}
    if _may_be_secret(given, index, seen):
        told |= {key: MASK for key in _TYPED if told.get(key)}
    return told


def _index_of(given: Mapping[str, Any]) -> int | None:
    try:
        return Action.of(given).index
    except BrowserError:
        return None


def _may_be_secret(given: Mapping[str, Any], index: int | None, seen: BrowserState | None) -> bool:
    secret = {one.index for one in seen.elements if "password" in one.role} if seen else None
    match given.get("action"):
        case "input_text" if secret is not None and index is not None:
            return index in secret
        case "send_keys" if isinstance(keys := given.get("keys"), str) and pressed(keys) is not None:
            return False
        case name if name in ACTIONS and name not in ("input_text", "send_keys"):
            return False
    return secret is None or bool(secret)
