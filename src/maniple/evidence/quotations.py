"""Finds quotations: between the quotation marks of many languages, or between HTML tags."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import unescape

from maniple.evidence.citation import Citation, index_spans
from maniple.evidence.links import remove_addresses
from maniple.evidence.prose import Prose, Span, Unescaped
from maniple.evidence.wording import LEAST_WORDS_BEFORE, count_words

_CLOSING = {
    "“": '”"',
    "„": '“”"',
    "‟": "”",
    "”": "”",
    "«": "»",
    "»": "«»",
    "‚": "‘’",
    "‘": "’",
    "’": "’",
    "‹": "›",
    "›": "‹›",
    "「": "」",
    "『": "』",
    "〝": "〟〞",
    "｢": "｣",
    "❝": "❞",
    "❛": "❜",
    "`": "'’",
    '"': '"”',
    "＂": "＂",
    "'": "'",
}
"""Opening quotation marks, with the marks that may close each."""
_MARKS = "".join(dict.fromkeys([*_CLOSING, *"".join(_CLOSING.values())]))
_MARK = re.compile(f"[{_MARKS}]")
_SURE_OPENINGS = frozenset("“„«「『〝")
_SURE_CLOSINGS = frozenset("”」』")
_EITHER = frozenset("\"'’‘”»›＂`")
_APOSTROPHES = frozenset("'’")
_MAX_OPEN = 8
_FIGURE = re.compile(r"\d")
_TAG = re.compile(r"<(/?)(q|blockquote)(?:\s[^<>]{0,1000})?>", re.IGNORECASE)
_VALUE = re.compile(r"<[a-zA-Z][^<>]{0,1000}?=(\"[^\"<>]*\"|'[^'<>]*')")
_ANY_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,1000}>")
# A letter of a script that separates words by spaces.
_SPACED = re.compile(r"[^\W\d_\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]|\d")


@dataclass(slots=True)
class _Open:
    mark: str
    start: int
    perhaps: int = 0
    """The end if no other mark closes it. An apostrophe after an s may be a possessive or a closing mark."""


def find_quotations(prose: Prose) -> Iterator[Citation]:
    """Yield the outermost quotations of at least two words or with a number, in order; takes linear time.

    A quotation without an end extends to the end of its paragraph, list item or cell. One without a beginning
    starts there. So an unpaired mark cannot hide a quotation.
    """
    clear = Unescaped(prose.text)
    spans = [(clear.clear(start), clear.clear(end)) for start, end in prose.pieces]
    found = [*_tagged(clear.text), *(pair for span in spans for pair in _marked(clear.text, *span))]
    shown = Unescaped(prose.shown)
    end_of_value = index_spans((value.start(1), value.end()) for value in _VALUE.finditer(clear.text))
    for start, end in _outermost(one for one in found if not end_of_value(one[0])):
        first, last = clear.raw(start), clear.raw(end)
        words = strip_tags(shown.text[shown.clear(first) : shown.clear(last)]).strip(_MARKS).strip()
        text = remove_addresses(words)
        if count_words(text) >= LEAST_WORDS_BEFORE or _FIGURE.search(text):
            yield Citation("quotation", first, last, words)


def strip_tags(text: str) -> str:
    """Return a text without HTML tags and with HTML entities resolved."""
    return unescape(_ANY_TAG.sub("", text)).strip()


def _outermost(spans: Iterable[Span]) -> Iterator[Span]:
    end = 0
    for span in sorted(spans, key=lambda one: (one[0], -one[1])):
        if span[0] >= end:
            yield span
            end = span[1]


def _tagged(text: str) -> Iterator[Span]:
    depth, start = 0, 0
    for tag in _TAG.finditer(text):
        if not tag[1]:
            start, depth = (start, depth + 1) if depth else (tag.start(), 1)
        elif depth:
            depth -= 1
            if depth == 0:
                yield start, tag.end()
    if depth:
        yield start, len(text)


def _marked(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the spans between quotation marks in one piece of a text."""
    waiting: list[_Open] = []
    for found in _MARK.finditer(text, start, end):
        at, mark = found.start(), found[0]
        before, behind = (
            text[at - 1 : at] if at > start else "",
            text[at + 1 : at + 3] if at + 1 < end else "",
        )
        opened = _opened_by(waiting, mark) if _may_close(mark, before, behind) else None
        if opened is not None:
            if mark in _APOSTROPHES and _ends_a_word(before, behind):
                waiting[opened].perhaps = waiting[opened].perhaps or at + 1
                continue
            yield waiting[opened].start, at + 1
            yield from _unfinished(waiting[opened + 1 :])
            del waiting[opened:]
        elif _may_open(mark, before, behind):
            waiting.append(_Open(mark, at))
        elif mark in _SURE_CLOSINGS and not (waiting or before.isdecimal()):
            yield start, at + 1
    yield from _unfinished(waiting)
    if waiting and waiting[0].mark in _SURE_OPENINGS:
        yield waiting[0].start, end


def _opened_by(waiting: list[_Open], mark: str) -> int | None:
    """Return the index of the innermost opening mark that `mark` closes."""
    for place in range(len(waiting) - 1, max(len(waiting) - 1 - _MAX_OPEN, -1), -1):
        if mark in _CLOSING[waiting[place].mark]:
            return place
    return None


def _unfinished(waiting: Iterable[_Open]) -> Iterator[Span]:
    for one in waiting:
        if one.perhaps:
            yield one.start, one.perhaps


def _may_close(mark: str, before: str, behind: str) -> bool:
    if mark not in _EITHER or mark in "”»›":
        return True
    return bool(before.strip()) and not _SPACED.match(behind)


def _may_open(mark: str, before: str, behind: str) -> bool:
    if mark not in _CLOSING or not behind:
        return False
    if mark in _EITHER:
        letters = mark not in "'’‘" or not behind[0].isdecimal()
        return letters and bool(behind.strip()) and not behind[0].isspace() and not _SPACED.match(before)
    # In another language the same mark may close a quotation; then it follows a word.
    return mark in "„«「『〝‹‚" or not (_SPACED.match(before) and behind[0].isspace())


def _ends_a_word(before: str, behind: str) -> bool:
    """Whether a mark may be the apostrophe of a plural possessive that is followed by a word."""
    return before in "sS" and behind[:1] == " " and behind[1:2].isalpha()
