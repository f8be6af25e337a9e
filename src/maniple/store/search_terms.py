"""The words of a search, and how texts are compared with them in every database."""

import re
import unicodedata
from dataclasses import dataclass

MAX_INDEXED_CHARACTERS = 500_000
"""The most of a question, and of an answer, that is searched."""
MAX_TERMS = 16
_LEAST_TRIGRAM = 3
_TERM = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """What is searched: texts with all `terms`. `is_unspaced`: in a script without spaces between words."""

    terms: tuple[str, ...]
    is_unspaced: bool

    @classmethod
    def of(cls, query: str) -> "SearchTerms":
        """Return the terms of what a person typed; there may be none."""
        if has_unspaced(query):
            return cls(tuple(query.split()[:MAX_TERMS]), is_unspaced=True)
        return cls(tuple(_TERM.findall(query)[:MAX_TERMS]), is_unspaced=False)

    @property
    def has_trigrams(self) -> bool:
        """Whether each term is long enough for an index of three characters."""
        return all(len(term) >= _LEAST_TRIGRAM for term in self.terms)


def has_unspaced(text: str) -> bool:
    """Return whether a text has characters of a script that is written without spaces between words."""
    return _UNSPACED.search(text) is not None


def fold_text(text: str) -> str:
    """Return a text of the same length in small letters without accents."""
    if text.isascii():
        return text.lower()
    return "".join(map(_fold_character, text))


def _fold_character(one: str) -> str:
    return one.lower() if one.isascii() else unicodedata.normalize("NFD", one)[0].lower()[0]
