"""Finds the passage of the texts read that is most similar to a quotation."""

import re
from collections.abc import Iterable

EXCERPT_CHARACTERS = 500
MAX_SEARCHED = 300_000
"""The number of characters, from the beginning of the texts, that are searched."""
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_RUNS = (4, 3, 2)
_MAX_TRIES = 60


def find_excerpt(quotation: str, texts: Iterable[str]) -> str:
    """Return the text around the first run of words that `quotation` has in common with `texts`, or ""."""
    words = _WORD.findall(quotation)
    known, room = list[str](), MAX_SEARCHED
    for text in texts:
        known.append(text[:room])
        room -= len(known[-1])
    for length in _RUNS:
        for start in range(min(len(words) - length + 1, _MAX_TRIES)):
            # Two words of a page may be separated by a line break or punctuation.
            run = r"\W{0,4}".join(map(re.escape, words[start : start + length]))
            pattern = re.compile(run, re.IGNORECASE)
            for text in known:
                if found := pattern.search(text):
                    first = max(found.start() - EXCERPT_CHARACTERS // 2, 0)
                    return text[first : first + EXCERPT_CHARACTERS].strip()
    return ""
