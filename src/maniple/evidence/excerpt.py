"""The place in what was read that comes nearest to a quotation."""

import re
from collections.abc import Iterable

EXCERPT_CHARACTERS = 500
MOST_SEARCHED = 300_000
"""Characters of the texts together, the first ones."""
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_RUNS = (4, 3, 2)
_MOST_TRIES = 60


def excerpt_near(quotation: str, texts: Iterable[str]) -> str:
    """Return what stands around the first words that `quotation` has in common with `texts`, or ""."""
    words = _WORD.findall(quotation)
    known, room = [], MOST_SEARCHED
    for text in texts:
        known.append(text[:room])
        room -= len(known[-1])
    for length in _RUNS:
        for start in range(min(len(words) - length + 1, _MOST_TRIES)):
            # Between two words of a page may stand a line's end or a mark.
            run = r"\W{0,4}".join(map(re.escape, words[start : start + length]))
            pattern = re.compile(run, re.IGNORECASE)
            for text in known:
                if found := pattern.search(text):
                    first = max(found.start() - EXCERPT_CHARACTERS // 2, 0)
                    return text[first : first + EXCERPT_CHARACTERS].strip()
    return ""
