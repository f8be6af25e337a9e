"""Words of a page, made safe to show: on one line, nothing hidden, nothing that passes for an index of ours."""

import re
import unicodedata

_INDEX = re.compile(r"[\[［〔【⟦❲⦗]((?:[\s*\u200c\u200d]*\d)+[\s*\u200c\u200d]*)([\]］〕】⟧❳⦘]?)")
_HIDDEN = frozenset({"Cf", "Cs", "Co", "Cn"})
# Persian and emoji need them.
_JOINERS = "\u200c\u200d"


def safe(words: str, limit: int) -> str:
    """Return `words` with at most `limit` characters."""
    kept = words[: limit * 4]
    if not (kept.isascii() and kept.isprintable()):
        kept = "".join(map(_visible, kept))
    text = _INDEX.sub(_round, " ".join(kept.split()))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cc":
        return " "
    return "" if category in _HIDDEN and character not in _JOINERS else character


def _round(match: re.Match[str]) -> str:
    return f"({match[1]}{')' if match[2] else ''}"
