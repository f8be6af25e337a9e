"""Documents of text without markup: notes, JSON, and tables of comma-separated values."""

import csv
import io
import json
from itertools import islice
from urllib.parse import urlsplit

from maniple.reading.result import MAX_CHARACTERS, Reading, left_out
from maniple.text import whole

MAX_TEXT_CHARACTERS = 2_000_000
"""Of plain text and Markdown, which need no converting; as much as the folder's index takes."""

_MAX_ROWS = 5_000
_MAX_COLUMNS = 50
_LONG_LINE = 500
# Laying JSON out may make it this much longer; of an endless depth it would be most of all blanks.
_MOST_BLANKS = 4


def read_text(text: str, url: str) -> Reading:
    """Plain text, as it is."""
    return _bounded(_name(url), text.strip("\n"), headed=False, longest=MAX_TEXT_CHARACTERS)


def read_markdown(text: str, url: str) -> Reading:
    """Markdown, as it is."""
    return _bounded(_name(url), text.strip("\n"), headed=True, longest=MAX_TEXT_CHARACTERS)


def read_json(text: str, url: str) -> Reading:
    """JSON, with a line for each value where its own lines are long, and its characters as themselves.

    What is none stays as it is.
    """
    if "\\u" not in text and all(len(line) <= _LONG_LINE for line in text.splitlines()):
        return _bounded(_name(url), text.strip(), headed=False)
    try:
        laid_out = whole(json.dumps(json.loads(text), indent=1, ensure_ascii=False))
    except (ValueError, RecursionError):
        laid_out = ""
    fits = 0 < len(laid_out) <= _MOST_BLANKS * len(text) + 100
    return _bounded(_name(url), laid_out if fits else text.strip(), headed=False)


def read_csv(text: str, url: str) -> Reading:
    """A table of comma-, semicolon- or tab-separated values as one of Markdown."""
    first_line = text[:4_000].partition("\n")[0]
    delimiter = max(",;\t|", key=first_line.count)
    try:
        rows = list(islice(csv.reader(io.StringIO(text), delimiter=delimiter), _MAX_ROWS + 1))
    except csv.Error:
        return read_text(text, url)
    columns = min(max(map(len, rows), default=0), _MAX_COLUMNS)
    lines = [_line([*row, *[""] * columns][:columns]) for row in rows[:_MAX_ROWS] if row]
    lines[1:1] = ["|" + " --- |" * columns]
    reading = _bounded(_name(url), "\n".join(lines), headed=False)
    if len(rows) <= _MAX_ROWS or reading.note:
        return reading
    return Reading(reading.title, reading.markdown, False, f"Only the first {_MAX_ROWS:,} rows were read.")


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _bounded(title: str, text: str, headed: bool, longest: int = MAX_CHARACTERS) -> Reading:
    if len(text) <= longest:
        return Reading(title, text, headed)
    return Reading(title, text[:longest], headed, left_out(longest))


def _name(url: str) -> str:
    return urlsplit(url).path.rstrip("/").rpartition("/")[2]
