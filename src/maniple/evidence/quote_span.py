"""Finds where a quotation stands in the text of a source, whatever its typography and Markdown."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from maniple.evidence.wording import GAP_CHARACTERS, Quotation, blank_markup, searchable, split_at_ellipses

MAX_PLACES = 50
"""Places of the first words of a quotation that are tried."""
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_EDGE_CHARACTERS = 4


@dataclass(frozen=True, slots=True)
class QuoteSpan:
    """Where a quotation stands: from `start` to `end` in a text, in characters.

    `left_out` are the parts of the text that its ellipses stand for.
    """

    start: int
    end: int
    left_out: tuple[str, ...] = ()


def find_quote(quote: str, text: str) -> QuoteSpan | None:
    """Return where a quotation stands in a text; None if it does not. Takes linear time.

    White space, quotation marks, letter case, Markdown and hyphens at line ends do not matter. Between the
    parts of a quotation with ellipses, the text may have `GAP_CHARACTERS` more.
    """
    parts = [key for part in split_at_ellipses(quote) if (key := "".join(_fold(blank_markup(part))))]
    if not parts:
        return None
    words = _TextWords.of(text)
    quoted = Quotation.of(quote)
    for places in words.find_parts(parts):
        start, end = places[0][0], _with_edge(quote, text, places[-1][1])
        if quoted.occurs_in(searchable(text[start:end])):
            gaps = [text[one[1] : other[0]] for one, other in pairwise(places)]
            return QuoteSpan(start, end, tuple(gaps))
    return None


def _fold(text: str) -> Iterator[str]:
    return (_fold_word(word[0]) for word in _WORD.finditer(text))


def _fold_word(word: str) -> str:
    return word.casefold() if word.isascii() else unicodedata.normalize("NFKC", word).casefold()


def _with_edge(quote: str, text: str, end: int) -> int:
    """Return the end of a quotation with the signs behind its last word, such as a percent sign."""
    last = [*_WORD.finditer(quote)][-1].end()
    for sign in quote[last : last + _EDGE_CHARACTERS]:
        if text[end : end + 1] != sign:
            break
        end += 1
    return end


@dataclass(frozen=True, slots=True)
class _TextWords:
    """The words of a text, folded and joined without anything between them."""

    joined: str
    begins: Sequence[int]
    """Where each word begins in `joined`."""
    spans: Sequence[tuple[int, int]]
    """Where each word stands in the text."""

    @classmethod
    def of(cls, text: str) -> "_TextWords":
        pieces, begins, spans, at = list[str](), list[int](), list[tuple[int, int]](), 0
        for word in _WORD.finditer(blank_markup(text)):
            pieces.append(_fold_word(word[0]))
            begins.append(at)
            spans.append(word.span())
            at += len(pieces[-1])
        begins.append(at)
        return cls("".join(pieces), begins, spans)

    def find_parts(self, parts: Sequence[str]) -> Iterator[list[tuple[int, int]]]:
        """Yield the spans in the text of all parts, which follow each other, for each place of the first."""
        at = 0
        for _ in range(MAX_PLACES):
            first = self._find(parts[0], at, len(self.joined))
            if first is None:
                return
            if (places := self._follow(first, parts[1:])) is not None:
                yield places
            at = self.begins[first[0] + 1]

    def _follow(self, first: tuple[int, int], parts: Sequence[str]) -> list[tuple[int, int]] | None:
        found = [first]
        for part in parts:
            begin = self.begins[found[-1][1]]
            following = self._find(part, begin, begin + GAP_CHARACTERS + len(part))
            if following is None:
                return None
            found.append(following)
        return [(self.spans[one][0], self.spans[after - 1][1]) for one, after in found]

    def _find(self, key: str, at: int, limit: int) -> tuple[int, int] | None:
        """Return the first word of a part and the one behind its last; it has whole words only."""
        found = self.joined.find(key, at, limit)
        for _ in range(MAX_PLACES):
            if found < 0:
                return None
            one, after = self._word_at(found), self._word_at(found + len(key))
            if one is not None and after is not None:
                return one, after
            found = self.joined.find(key, found + 1, limit)
        return None

    def _word_at(self, place: int) -> int | None:
        index = bisect_left(self.begins, place)
        return index if index < len(self.begins) and self.begins[index] == place else None
