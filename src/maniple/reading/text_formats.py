"""Readers of formats that are text: plain text, Markdown, JSON, and tables of separated values."""

import csv
import io
import json
from itertools import islice
from urllib.parse import urlsplit

from maniple.reading import MAX_CHARACTERS, MAX_TEXT_CHARACTERS, MarkdownDocument, truncation_note
from maniple.reading.grids import format_row
from maniple.text import fix_surrogates

_MAX_ROWS = 5_000
_MAX_COLUMNS = 50
_LONG_LINE = 500
# The limit of growth by indentation; deeply nested JSON would consist mostly of blanks.
_MAX_BLANKS = 4
_SNIFFED_CHARACTERS = 4_000


def read_text(text: str, url: str) -> MarkdownDocument:
    """Return plain text unchanged."""
    return _truncate(_file_name(url), text.strip("\n"), headed=False, longest=MAX_TEXT_CHARACTERS)


def read_markdown(text: str, url: str) -> MarkdownDocument:
    """Return Markdown unchanged."""
    return _truncate(_file_name(url), text.strip("\n"), headed=True, longest=MAX_TEXT_CHARACTERS)


def read_json(text: str, url: str) -> MarkdownDocument:
    """Return JSON with unescaped characters, and with one value per line if its lines are long.

    Invalid JSON is returned unchanged.
    """
    if "\\u" not in text and all(len(line) <= _LONG_LINE for line in text.splitlines()):
        return _truncate(_file_name(url), text.strip(), headed=False)
    try:
        laid_out = fix_surrogates(json.dumps(json.loads(text), indent=1, ensure_ascii=False))
    except (ValueError, RecursionError):
        laid_out = ""
    fits = 0 < len(laid_out) <= _MAX_BLANKS * len(text) + 100
    return _truncate(_file_name(url), laid_out if fits else text.strip(), headed=False)


def read_csv(text: str, url: str) -> MarkdownDocument:
    """Return comma-, semicolon-, tab- or pipe-separated values as a Markdown table."""
    first_line = text[:_SNIFFED_CHARACTERS].partition("\n")[0]
    delimiter = max(",;\t|", key=first_line.count)
    try:
        rows = list(islice(csv.reader(io.StringIO(text), delimiter=delimiter), _MAX_ROWS + 1))
    except csv.Error:
        return read_text(text, url)
    columns = min(max(map(len, rows), default=0), _MAX_COLUMNS)
    lines = [format_row([*row, *[""] * columns][:columns]) for row in rows[:_MAX_ROWS] if row]
    lines[1:1] = ["|" + " --- |" * columns]
    reading = _truncate(_file_name(url), "\n".join(lines), headed=False)
    if len(rows) <= _MAX_ROWS or reading.note:
        return reading
    return MarkdownDocument(
        reading.title, reading.markdown, False, f"Only the first {_MAX_ROWS:,} rows were read."
    )


def _truncate(title: str, text: str, headed: bool, longest: int = MAX_CHARACTERS) -> MarkdownDocument:
    if len(text) <= longest:
        return MarkdownDocument(title, text, headed)
    return MarkdownDocument(title, text[:longest], headed, truncation_note(longest))


def _file_name(url: str) -> str:
    return urlsplit(url).path.rstrip("/").rpartition("/")[2]
