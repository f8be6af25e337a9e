"""Read JSON that a model nearly got right, within bounds that no model can make slow."""

import json
from typing import Any

import json_repair

MAX_REPAIRED_CHARACTERS = 20_000
MAX_DEPTH = 32


def read_json(text: str) -> Any:
    """Return the JSON value in `text`, repaired where need be; raises `ValueError` with words.

    Right JSON is read whatever its size. The repair takes time that grows with length and depth (11 s for
    20,000 characters 500 levels deep), so it is left to texts of a size that plans and calls have. Blocks
    for up to a second: call it in a thread.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if len(text) > MAX_REPAIRED_CHARACTERS:
        raise ValueError(f"it is no JSON, and with {len(text)} characters too long to be repaired")
    if _depth(text) > MAX_DEPTH:
        raise ValueError("it is no JSON, and nested too deeply to be repaired")
    return json_repair.loads(text[text.find("{") :] if "{" in text else "")


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        if character in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}]":
            depth = max(0, depth - 1)
    return deepest
