"""The worked examples for small models, and the check that an answer does not repeat their material.

A small model that cannot relate a request to anything copies an example: it planned `Compute 12*9` for "and
plus 10?". The examples' own numbers, names and subjects are listed beside them, so that code can refuse them.
"""

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

_MATERIAL = "material"
"""The key of the phrases that belong to the examples alone, each with the part that a request has to have."""
_NUMBER = re.compile(r"\d+")
_SPACE = re.compile(r"\s+")


@cache
def read_examples() -> dict[str, list[tuple[str, Any]]]:
    """Return the worked examples, by name: pairs of a question and its answer."""
    return {name: value for name, value in _read_file().items() if name != _MATERIAL}


@cache
def read_material() -> dict[str, str]:
    """Return the phrases of the examples, each with the text that allows it in a request."""
    return dict(_read_file()[_MATERIAL])


def find_copied(written: str, *given: str) -> str:
    """Return the first phrase of the examples that is in `written` and that no `given` text allows, or "".

    White space and letter case do not count. A phrase is also allowed if all of its numbers are given: "12
    times 9" allows `12*9`.
    """
    text, known = _fold(written), "\n".join(given)
    numbers, folded = set(_NUMBER.findall(known)), _fold(known)
    return next(
        (
            phrase
            for phrase, needed in read_material().items()
            if _contains(text, phrase) and not _contains(folded, needed) and not _has_numbers(numbers, phrase)
        ),
        "",
    )


def _contains(folded: str, phrase: str) -> bool:
    """Return whether `phrase` is in the folded text, and not as the middle of longer numbers."""
    escaped = re.escape(_fold(phrase))
    before = r"(?<!\d)" if phrase[0].isdigit() else ""
    after = r"(?!\d)" if phrase[-1].isdigit() else ""
    return re.search(f"{before}{escaped}{after}", folded) is not None


def _has_numbers(given: set[str], phrase: str) -> bool:
    needed = set(_NUMBER.findall(phrase))
    return bool(needed) and needed <= given


def _fold(text: str) -> str:
    return _SPACE.sub("", text).casefold()


def _read_file() -> dict[str, Any]:
    folder = files("maniple.prompts") / "compact"
    return json.loads((folder / "examples.json").read_text(encoding="utf-8"))
