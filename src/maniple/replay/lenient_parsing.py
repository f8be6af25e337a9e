"""Conversions of possibly malformed values. They never raise and always return the wanted type."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from maniple.text import fix_surrogates

LONGEST = 4_000
"""The default limit of a text, in characters."""
# Not allowed on a page: C0 and C1 except tab and newline, and characters that change the text direction.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def parse_json(data: object) -> Any:
    """Return the value of a JSON text; None for anything else."""
    try:
        return json.loads(data) if isinstance(data, str) else None
    except (ValueError, RecursionError):
        return None


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_mappings(value: object) -> Sequence[Mapping[str, Any]]:
    """Return the objects in `value` if it is a list, else an empty list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def as_text(value: object, longest: int = LONGEST) -> str:
    """Return a printable text, cut with an ellipsis; "" for None, and JSON for other types."""
    if value is None:
        return ""
    shown = value[: longest + 1] if isinstance(value, str) else to_json(value)
    shown = _CONTROL.sub("", fix_surrogates(shown))
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def to_json(value: object) -> str:
    """Return `value` as indented JSON; "" if it is nested too deeply."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except (ValueError, RecursionError):
        return ""
