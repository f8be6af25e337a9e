"""The short lines below the title of a page, which say without any markup when it was published."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from maniple.reading.dates import find_dates
from maniple.reading.publication_signs import PUBLISHED_LABEL, UPDATED_LABEL

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_LINE_CHARACTERS = 200
_MAX_LINES = 12
_MAX_LEVELS = 3
_MAX_SIBLINGS = 20
_LABEL_CHARACTERS = 40
_FIRST_YEAR = "1990"
"""Earlier dates below a title are what the page is about."""
_SENTENCE_WORDS = 4
_SMALL_WORD = re.compile(r"(?<!\w)[^\W\d_A-Z]{3,}", re.IGNORECASE)
_DATELINE = re.compile(r"^[^a-z\d]{2,40}[^.!?]{0,60}?\d{4}\)?\s*(?:/[^/]{2,30}/)?\s*[-–—]")


def find_published_date(text: str, *, month_first: bool | None = None) -> str:
    """Return the date of publication in a short text; "" if there is none or only dates of updates.

    A date behind a word for "published" comes first, then one without a word for "updated" before it.
    """
    others = ""
    start = 0
    for date, begin, end in find_dates(text, month_first=month_first):
        before = text[max(start, begin - _LABEL_CHARACTERS) : begin].lower()
        start = end
        if PUBLISHED_LABEL.search(before) and not UPDATED_LABEL.search(before):
            return date
        if not others and not UPDATED_LABEL.search(before):
            others = date
    return others


def find_date_below_title(page: "HtmlElement", today: str, *, month_first: bool | None = None) -> str:
    """Return the date in a line below the title that is no sentence; "" if there is none. Linear."""
    title = next(page.iter("h1"), None)
    if title is None:
        return ""
    for line in islice(_lines_below(title), _MAX_LINES):
        date = find_published_date(line, month_first=month_first)
        if _FIRST_YEAR <= date <= today and (_is_line(line) or _DATELINE.match(line)):
            return date
    return ""


def _is_line(text: str) -> bool:
    """Whether a text is no sentence: what stands beside its dates are a few words."""
    if PUBLISHED_LABEL.search(text.lower()[:_LABEL_CHARACTERS]):
        return True
    rest = list(text)
    for _, begin, end in find_dates(text):
        rest[begin:end] = " " * (end - begin)
    words = [one for one in _SMALL_WORD.findall("".join(rest)) if one.islower()]
    return (len(words) < _SENTENCE_WORDS and not text.endswith((".", "!", "?", "。"))) or len(
        text
    ) <= _LABEL_CHARACTERS


def _lines_below(title: "HtmlElement") -> Iterator[str]:
    """Yield the short texts behind the title, up to the first long one."""
    node: HtmlElement | None = title
    for _ in range(_MAX_LEVELS):
        if node is None or node.tag in ("body", "html"):
            return
        for sibling in islice(node.itersiblings(), _MAX_SIBLINGS):
            for element in (sibling, *islice(sibling, _MAX_SIBLINGS)):
                text = _read_short(element)
                if text is None and element.tag == "p":
                    return
                if text:
                    yield text
                if text is not None and element is sibling:
                    break
        node = node.getparent()


def _read_short(element: "HtmlElement") -> str | None:
    """Return the text of an element; None if it is longer than a line."""
    if element.tag in ("script", "style", "noscript", "aside", "nav", "footer", "template"):
        return ""
    pieces: list[str] = []
    length = 0
    for piece in element.itertext():
        pieces.append(piece)
        length += len(piece.strip())
        if length > _LINE_CHARACTERS or len(pieces) > _LINE_CHARACTERS:
            return None
    return " ".join(" ".join(pieces).split())
