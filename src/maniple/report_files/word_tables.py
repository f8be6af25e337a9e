"""The tables of a Word document."""

from collections.abc import Iterator, Sequence
from typing import Any

from markdown_it.token import Token

from maniple.report_files.word_runs import Runs
from maniple.report_files.word_xml import element, paragraph, preserved, run

_MOST_COLUMNS = 63
"""What Word takes."""
_FULL_WIDTH = 5_000
"""In fiftieths of a percent."""
_TEXT_WIDTH = 9_400
"""Of the page, in twentieths of a point."""


def table(tokens: Sequence[Token], runs: Runs) -> list[Any]:
    """Return the elements of a table, from what stands between its opening and its closing token."""
    rows = list(_rows(tokens))
    columns = max((len(row) for row in rows), default=0)
    if not columns:
        return []
    if columns > _MOST_COLUMNS:
        return [paragraph(*_joined(row, runs)) for row in rows]
    borders = element("tblBorders", *(element(side, **_LINE) for side in ("top", "bottom", "insideH")))
    margins = element("tblCellMar", *(element(side, w=90, type="dxa") for side in ("left", "right")))
    properties = element("tblPr", element("tblW", w=_FULL_WIDTH, type="pct"), borders, margins)
    grid = element("tblGrid", *(element("gridCol", w=_TEXT_WIDTH // columns) for _ in range(columns)))
    made = element("tbl", properties, grid, *(_row(row, runs, columns) for row in rows))
    # Two tables in a row would be one, and a cell's end needs a paragraph behind it.
    return [made, paragraph(properties=(element("spacing", before=0, after=60),))]


_LINE: dict[str, str | int] = {"val": "single", "sz": 4, "space": 0, "color": "D1D9E0"}


def _rows(tokens: Sequence[Token]) -> Iterator[list[tuple[Token, Token]]]:
    """Yield the cells of each row: opening token and words."""
    row: list[tuple[Token, Token]] = []
    for index, token in enumerate(tokens):
        if token.type == "tr_open":
            row = []
        elif token.type in ("th_open", "td_open"):
            row.append((token, tokens[index + 1]))
        elif token.type == "tr_close":
            yield row


def _row(row: Sequence[tuple[Token, Token]], runs: Runs, columns: int) -> Any:
    is_head = bool(row) and row[0][0].type == "th_open"
    properties = element("trPr", element("cantSplit"), *([element("tblHeader")] if is_head else []))
    missing = [element("tc", paragraph()) for _ in range(columns - len(row))]
    return element("tr", properties, *(_cell(opening, words, runs) for opening, words in row), *missing)


def _cell(opening: Token, words: Token, runs: Runs) -> Any:
    side = element("jc", val=str(opening.attrGet("class") or "left"))
    spacing = element("spacing", before=40, after=40, line=240, lineRule="auto")
    return element("tc", paragraph(*_shown(opening, words, runs), properties=(spacing, side)))


def _shown(opening: Token, words: Token, runs: Runs) -> list[Any]:
    children = words.children or []
    if opening.type == "th_open":
        children = [Token("strong_open", "strong", 1), *children, Token("strong_close", "strong", -1)]
    return runs.of(children)


def _joined(row: Sequence[tuple[Token, Token]], runs: Runs) -> Iterator[Any]:
    for opening, words in row:
        yield from _shown(opening, words, runs)
        yield run(preserved("t", " | "))
