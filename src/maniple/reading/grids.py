"""Tables of documents as Markdown: each cell that spans several is repeated in all of them."""

from collections.abc import Iterable, Iterator, Sequence

_BLANK_CELL = ""


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


def trim_grid(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return rows without the blank rows and columns at their ends and between their first and last cells.

    Blank rows inside are left out, too; blank columns inside stay.
    """
    filled = [row for row in rows if any(row)]
    width = max((_width(row) for row in filled), default=0)
    first = min((_first(row) for row in filled), default=0)
    return [[*row[first:width]] for row in filled]


def _width(row: Sequence[str]) -> int:
    return next((at for at in range(len(row), 0, -1) if row[at - 1]), 0)


def _first(row: Sequence[str]) -> int:
    return next((at for at, cell in enumerate(row) if cell), 0)


def iterate_span(top: int, left: int, bottom: int, right: int) -> Iterator[tuple[int, int]]:
    """Yield the row and the column of each cell of a span; both ends are part of it."""
    for row in range(top, bottom + 1):
        for column in range(left, right + 1):
            yield row, column
