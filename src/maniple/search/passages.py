"""Passages of documents, each with its location, and the words by which they are indexed and found."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from maniple.text import fix_surrogates

PASSAGE_CHARACTERS = 1_000
MAX_PASSAGES = 2_000
"""Per document; the text after them is not indexed."""
# Text that is written without spaces (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) is indexed by
# pairs of neighbouring characters.
UNSPACED_CHARACTERS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
    "\U00020000-\U0003134f"
)
"""As ranges of a regular expression."""
LINE_FORMATS = frozenset({"text", "markdown"})
"""The keys of the formats whose text has the lines of their file."""
_WITHOUT_HEADINGS = LINE_FORMATS | {"csv", "json"}
_UNSPACED = re.compile(f"[{UNSPACED_CHARACTERS}]+")
_HEADING = re.compile(r"^#{1,6} +(\S.*)$", re.M)
_UNIT = re.compile(r"^## (?:Page|Sheet|Slide) \d+.*$", re.M)
"""The headings that readers write before each page, sheet and slide."""
_HEADING_CHARACTERS = 100
_STEM_CHARACTERS = 4


@dataclass(frozen=True, slots=True)
class TextPassage:
    """A part of a document, and where it begins."""

    line: int
    """In the document's text, from 1."""
    heading: str
    """The nearest one above, or ""."""
    text: str

    def locate(self, words: Sequence[str], format_key: str) -> str:
        """Return where the first of the `words` that the passage has stands, for people and models.

        `format_key` is a key of `maniple.reading.formats.FORMATS`; it decides how a location is named.
        """
        before = self.text[: _find_first(normalize_words(self.text), words)]
        inside = [] if format_key in _WITHOUT_HEADINGS else _HEADING.findall(before)
        return _name_place(self.line + before.count("\n"), inside[-1] if inside else self.heading, format_key)


def split_document(text: str, format_key: str = "text") -> Iterator[TextPassage]:
    """Yield the first `MAX_PASSAGES` passages; none of them runs over the end of a page, sheet or slide.

    `format_key` is a key of `maniple.reading.formats.FORMATS`.
    """
    text = fix_surrogates(text)
    left, line, counted = MAX_PASSAGES, 1, 0
    headings = [] if format_key in _WITHOUT_HEADINGS else list(_HEADING.finditer(text))
    passed = 0
    for start, end in _units(text, format_key):
        for first, last in _cut(text, start, end):
            piece = text[first:last]
            if not (shown := piece.strip()):
                continue
            if not left:
                return
            left -= 1
            first += len(piece) - len(piece.lstrip())
            line, counted = line + text.count("\n", counted, first), first
            while passed < len(headings) and headings[passed].start() <= first:
                passed += 1
            heading = headings[passed - 1][1] if passed else ""
            yield TextPassage(line, heading[:_HEADING_CHARACTERS], shown)


def _units(text: str, format_key: str) -> Iterator[tuple[int, int]]:
    """Yield the beginnings and ends of the pages, sheets or slides; the whole text where there are none."""
    cuts = [] if format_key in LINE_FORMATS else [one.start() for one in _UNIT.finditer(text)]
    bounds = sorted({0, *cuts, len(text)})
    yield from pairwise(bounds)


def _find_first(text: str, words: Sequence[str]) -> int:
    """Return where the first of the words begins that `text` has, in some form; 0 for none.

    Characters that the normalization makes longer or shorter move it by as much.
    """
    for word in words:
        stem = re.escape(word[: max(_STEM_CHARACTERS, len(word) - 2)])
        if found := re.search(stem if is_unspaced(word) else rf"\b{stem}", text):
            return found.start()
    return 0


def _name_place(line: int, heading: str, format_key: str) -> str:
    if format_key in LINE_FORMATS:
        return f"line {line}"
    if format_key == "csv":
        return f"row {max(1, line - 1)}"  # the second line of its table is a rule
    if not heading:
        return f"line {line} of its text"
    if _UNIT.match(f"## {heading}"):
        return heading[0].lower() + heading[1:_HEADING_CHARACTERS]
    return f"section {heading[:_HEADING_CHARACTERS]}"


def split_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield passages of at most `PASSAGE_CHARACTERS` with the line and the character of their beginning.

    They are cut at paragraphs, else lines, else words. A text without words yields an empty one, so that its
    name is found.
    """
    if not text.strip():
        yield 1, 1, ""
        return
    line, line_start = 1, 0
    for start, end in _cut(text, 0, len(text)):
        piece = text[start:end]
        if piece.strip():
            yield line, start - line_start + 1, piece
        if ends := piece.count("\n"):
            line += ends
            line_start = start + piece.rfind("\n") + 1


def _cut(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each piece: at paragraphs, else lines, else words."""
    while start < stop:
        end = min(start + PASSAGE_CHARACTERS, stop)
        if end < stop:
            middle = start + PASSAGE_CHARACTERS // 2
            cuts = (text.rfind(mark, middle, end) for mark in ("\n\n", "\n", " "))
            end = next((cut + 1 for cut in cuts if cut > 0), end)
        yield start, end
        start = end


def pair_unspaced(text: str, *, with_ends: bool = False) -> str:
    """Return `text` with every run of characters without spaces replaced by pairs of neighbours.

    Every character but the last of a run starts a pair. With `with_ends` the last one follows alone, so that
    a single character is found by a prefix query.
    """
    return _UNSPACED.sub(lambda run: f" {' '.join(_pairs(run[0], with_ends))} ", text)


def _pairs(letters: str, with_end: bool) -> list[str]:
    pairs = [letters[i : i + 2] for i in range(len(letters) - 1)]
    return [*pairs, letters[-1]] if with_end or not pairs else pairs


def is_unspaced(word: str) -> bool:
    """Return whether a word begins with a character of a script without spaces."""
    return _UNSPACED.match(word) is not None


def normalize_words(text: str) -> str:
    """Return `text` in one spelling: letters of one width and case, "ß" as "ss"."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
