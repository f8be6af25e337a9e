"""Tables of documents as Markdown: each cell that spans several is repeated in all of them."""

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_SPAN = 100
_MAX_ROW_SPAN = 1_000
_MAX_COPIES = 20_000
_BLANK_CELL = ""
# A character that no text has: the converter of HTML leaves it as it is, and would not escape a pipe.
_PIPE_MARK = "\ue07c"


def format_row(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table, each cell in one line with its pipes escaped."""
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a Markdown table whose head is the first row; "" for no rows."""
    width = max(map(len, rows), default=0)
    if width == 0:
        return ""
    lines = [format_row([*row, *[_BLANK_CELL] * (width - len(row))]) for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def iterate_span(top: int, left: int, bottom: int, right: int) -> Iterator[tuple[int, int]]:
    """Yield the row and the column of each cell of a span; both ends are part of it."""
    for row in range(top, bottom + 1):
        for column in range(left, right + 1):
            yield row, column


def expand_spans(source: str) -> str:
    """Return HTML whose tables have a cell in each place: what spans several cells is repeated in them.

    The first row of each table becomes its head. At most 20,000 cells are added. Pipes in cells are marked,
    for `restore_pipes`.
    """
    from lxml import html

    if "<table" not in source:
        return source
    root = html.fromstring(f"<div>{source}</div>")
    left = _MAX_COPIES
    for table in list(root.iter("table")):
        left = _expand_table(table, left)
        for element in table.iter():
            element.text = (element.text or "").replace("|", _PIPE_MARK)
            if element is not table:
                element.tail = (element.tail or "").replace("|", _PIPE_MARK)
    return str(html.tostring(root, encoding="unicode"))


def restore_pipes(markdown: str) -> str:
    """Return the Markdown of what `expand_spans` returned, with its pipes escaped."""
    return markdown.replace(_PIPE_MARK, "\\|")


def _expand_table(table: "HtmlElement", left: int) -> int:
    """Expand the spans of a table, by at most `left` cells; return how many may still be added."""
    waiting: dict[int, tuple[HtmlElement, int]] = {}
    rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
    for number, row in enumerate(rows):
        cells, placed, column = [one for one in row if one.tag in ("td", "th")], list["HtmlElement"](), 0
        while cells or column in waiting:
            if column in waiting:
                cell, more = waiting.pop(column)
                placed.append(deepcopy(cell))
                if more > 1 and left > 0:
                    waiting[column] = (cell, more - 1)
                column, left = column + 1, left - 1
                continue
            cell = cells.pop(0)
            wide, high = _span_of(cell, "colspan", MAX_SPAN), _span_of(cell, "rowspan", _MAX_ROW_SPAN)
            wide = min(wide, max(left, 1))
            for at in range(wide):
                placed.append(deepcopy(cell) if at else cell)
                if high > 1 and left > 0:
                    waiting[column + at] = (cell, high - 1)
            column, left = column + wide, left - wide + 1
        for cell in placed:
            cell.tag = "th" if number == 0 else cell.tag
        row[:] = placed
    return left


def _span_of(cell: "HtmlElement", name: str, most: int) -> int:
    value = cell.attrib.pop(name, "1")
    return min(max(int(value), 1), most) if value.isdecimal() else 1
