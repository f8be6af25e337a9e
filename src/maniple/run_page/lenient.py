"""Reading what may be malformed: whatever comes, something of the wanted kind goes out."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from maniple.text import fix_surrogates

LONGEST = 4_000
"""Characters of a text, unless it is said otherwise."""
# What no page may hold or show: C0 and C1 but tab and newline, and what turns the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def parsed(data: object) -> Any:
    """Return what a JSON text says; None for any other."""
    try:
        return json.loads(data) if isinstance(data, str) else None
    except (ValueError, RecursionError):
        return None


def mapping(value: object) -> Mapping[str, Any]:
    """Return the object that `value` is, or an empty one."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> Sequence[Mapping[str, Any]]:
    """Return the objects in the list that `value` is."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text(value: object, longest: int = LONGEST) -> str:
    """Return a text as it can be shown, cut with an ellipsis; of anything else its JSON, of None ""."""
    if value is None:
        return ""
    shown = value[: longest + 1] if isinstance(value, str) else written(value)
    shown = _CONTROL.sub("", fix_surrogates(shown))
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def written(value: object) -> str:
    """Return `value` as JSON over several lines; "" for what is nested too deeply to be read."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except (ValueError, RecursionError):
        return ""


def number(value: object) -> float | None:
    """Return a number that is not negative; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        real = float(value)
    except OverflowError:
        return None
    return real if math.isfinite(real) and real >= 0 else None


def count(value: object) -> int:
    """Return a whole number that is not negative; 0 for any other value."""
    return int(number(value) or 0)


def flag(value: object) -> bool | None:
    """Return a truth value; None for any other."""
    return value if isinstance(value, bool) else None
