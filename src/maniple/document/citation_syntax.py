"""The forms of citations by number in a text without markup."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_JOINTS = r"[,;、，–&-]|and|und|et|y|和|及"
_NUMBER = r"(?:(?:sources?|来源|來源|s|#) ?)?\d{1,4}"
_SEVERAL = rf"{_NUMBER}(?: ?(?:{_JOINTS}) ?{_NUMBER}){{0,30}}"
_BRACKETS = rf"\\?[\[【［] ?(?:{_SEVERAL}) ?(?:†[^\]】］\n]{{0,80}})?\\?[\]】］]"
# A superscript after a unit or another short word is an exponent.
_CITATION = re.compile(
    rf"(?P<brackets>{_BRACKETS}(?: ?[–-] ?\\?\[\d{{1,4}}\\?\])?)"
    rf"|(?:(?<=[.,;:!?)\]”\"。，；])|(?<=[^\W\d_]{{4}})) ?<sup>(?P<superscript>{_SEVERAL})</sup>",
    re.IGNORECASE,
)
_DETAILS = re.compile(r"†[^\]】］\n]{0,80}")
_BETWEEN = re.compile(r"[,;、，&]|and|und|et|y|和|及")
_ONE_NUMBER = re.compile(r"[\[【［] ?(\d{1,4}) ?[\]】］]")
_NO_NUMBER = re.compile(r"[^\d-]")
_DIGITS = re.compile(r"\d{1,4}")
# An element of a list in a program or formula: `a[7]`, `x_1[7]`, `values[7] = 3`, `m[1][2] = 3`. A letter
# behind a number is a unit: `5 m[7]`.
_VARIABLE = re.compile(
    r"(?:(?<![^\W_])(?<!\d )(?<!\d\u00a0)[a-z\u03b1-\u03c9]|(?:\A|[-+*/=([{,;])\s?[A-Z]"
    r"|(?<![^\W_])[^\W_]+(?:_[^\W_]+)+)(?:\[\d{1,4}\]){0,3}\Z"
)
_ASSIGNMENT = re.compile(r"(?:\[\d{1,4}\]){0,3} ?[-+*/]?=(?![=>])|(?:\[\d{1,4}\]){0,3}\.[a-z_]+\(")
_NAME_END = re.compile(r"[A-Za-z0-9_\u03b1-\u03c9\]]\Z")
_VARIABLE_CHARACTERS = 40
_MOST_IMPLIED = 50
_NOT_A_NUMBER_FROM = 1_000


@dataclass(frozen=True, slots=True)
class NumberCitation:
    """The span of a citation in a text, its numbers, and the spans of the numbers that are written."""

    start: int
    end: int
    numbers: tuple[int, ...]
    parts: tuple[tuple[int, int], ...]


def find_number_citations(text: str) -> Iterator[NumberCitation]:
    """Yield the citations in `text`. An index such as `a[7]` is none. Takes linear time."""
    for found in _CITATION.finditer(text):
        if found["brackets"] and _is_index(text, found.start(), found.end()):
            continue
        details = _DETAILS.search(text, found.start(), found.end())
        end = details.start() if details else found.end()
        if numbers := read_numbers(text[found.start() : end]):
            parts = tuple(one.span() for one in _DIGITS.finditer(text, found.start(), end))
            yield NumberCitation(found.start(), found.end(), numbers, parts)


def read_numbers(written: str) -> tuple[int, ...]:
    """Return the numbers that `3, 9` or `2–4` stands for; none if it is a date, a year or contains 0."""
    if one := _ONE_NUMBER.fullmatch(written):
        number = int(one[1])
        return (number,) if 0 < number < _NOT_A_NUMBER_FROM else ()
    numbers: list[int] = []
    for part in _BETWEEN.split(written.casefold()):
        ends = [int(end) for end in _NO_NUMBER.sub("", part.replace("–", "-")).split("-") if end]
        if not 0 < len(ends) < 3:
            return ()
        span = range(min(ends), max(ends) + 1)
        numbers += span if len(span) <= _MOST_IMPLIED else (span[0], span[-1])
    is_citation = all(0 < number < _NOT_A_NUMBER_FROM for number in numbers)
    return tuple(dict.fromkeys(numbers)) if is_citation else ()


def _is_index(text: str, start: int, end: int) -> bool:
    """Whether brackets follow the name of a variable, or are assigned to."""
    before = text[max(start - _VARIABLE_CHARACTERS, 0) : start]
    if text[start] != "[" or not _NAME_END.search(before):
        return False
    return _VARIABLE.search(before) is not None or _ASSIGNMENT.match(text, end) is not None
