"""Words of a page, made safe to show: on one line, nothing hidden, nothing that passes for an index."""

import re
import unicodedata

# Whatever a reader could take for `[12]`: other brackets and digits, blanks between them.
_INDEX = re.compile(r"[\[［〔【⟦❲]((?:[\s*\u200c\u200d]*\d)+[\s*\u200c\u200d]*)(?:[\]］〕】⟧❳]|\Z)")
_HIDDEN = frozenset({"Cf", "Cs", "Co", "Cn"})
# Persian and emoji need them.
_JOINERS = "\u200c\u200d"


def safe(words: str, limit: int) -> str:
    """Return `words` with at most `limit` characters."""
    kept = words[: limit * 4]
    if not (kept.isascii() and kept.isprintable()):
        kept = "".join(map(_visible, kept))
    text = _INDEX.sub(r"(\1)", " ".join(kept.split()))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cc":
        return " "
    return "" if category in _HIDDEN and character not in _JOINERS else character
