"""Keys of MCP servers that are nearly ours: a slip, which would protect nobody, or another program's word."""

import difflib
from collections.abc import Iterable

_NEAR = 0.75
_FOREIGN = frozenset({"disabledtools", "transporttype", "isdisabled"})
"""Of other programs, although they are as near."""


def near_misses(written: Iterable[object], known: Iterable[str]) -> dict[str, str]:
    """Return of the keys that are `written` and not `known` those that are nearly, with what was meant."""
    ours = {_plain(name): name for name in known}
    found: dict[str, str] = {}
    for key in written:
        if not isinstance(key, str) or key in ours.values() or _plain(key) in _FOREIGN:
            continue
        if near := difflib.get_close_matches(_plain(key)[:40], ours, n=1, cutoff=_NEAR):
            found[key] = ours[near[0]]
    return found


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()
