"""How the tables of a report are laid out on pages, so that no cell is cut off and no word is broken.

A table that is too wide for the page gets smaller letters, or a turned page if it is long enough to fill one;
else it is split into parts that repeat the first column. Widths are estimated from the characters, because
they are needed before there is a page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from unicodedata import category, east_asian_width

from maniple.document import nodes
from maniple.report_document.report_nodes import shown_text

SIZES = (9.5, 8.5, 7.5, 7.0)
"""The sizes of a table's letters in points, from the normal one to the smallest that is well readable."""
TURNED_ROWS = 12
"""A table of fewer rows is not worth a page of its own."""
CELL_PADDING = 9
"""The room that each column needs besides its text, in points."""
MAX_SHARE = 0.45
"""The largest share of the page's width for one column, from which on its words may be broken."""
MAX_CELLS = 40
"""The number of cells of a column whose whole texts count for its share of the width."""
LONG_WORD = 24
"""A longer word may be broken behind the punctuation in it, as in addresses and paths."""
LINE_ENDS = re.compile(r"(?<=[/?&=._#,;:~+@-])(?=\w)")
"""Where a long word may be broken."""
_IDEOGRAPH = "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]"
_SPACE = re.compile(
    rf"[ \t\n\u2000-\u2006\u2008-\u200b\u205f\u3000]+|(?<={_IDEOGRAPH})(?=.)|(?<=.)(?={_IDEOGRAPH})"
)
# A number, its unit of at most two words, and a mark or a citation.
_QUANTITY = re.compile(r"[^\w\s]{0,3}\s?\d[\W\d]*+(?:[^\W\d]\S{0,9}\s?){0,2}[\W\d]{0,5}")
_MAX_QUANTITY_LENGTH = 24
_BOLD = 1.12
_WIDE = frozenset("mwMWQ@%&—…‰™œæŒÆ")
_NARROW = frozenset("fijlrtI.,:;'!|()[]{}-/\\ \u00a0")


@dataclass(frozen=True, slots=True)
class TableSheet:
    """What a table is laid out on. All lengths are in points.

    `width` is that of the text, `turned` that on a turned page, if there may be one. `sizes` are the sizes of
    the letters, the largest first; `split_size` is that in a table that has to be split in any case.
    """

    width: float
    turned: float | None = None
    sizes: tuple[float, ...] = SIZES
    split_size: float = 8.5


UPRIGHT_PAPER = TableSheet(480)
"""An A4 page."""
PAPER = TableSheet(480, turned=725)
"""An A4 page, or the same in landscape format."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with its text, whose width is estimated."""

    children: tuple[nodes.InlineNode, ...]
    alignment: nodes.Alignment
    is_head: bool
    text: str

    @property
    def is_quantity(self) -> bool:
        """Whether it is a number, unit or date that is kept on one line."""
        text = self.text.strip()
        return not self.is_head and len(text) <= _MAX_QUANTITY_LENGTH and bool(_QUANTITY.fullmatch(text))


@dataclass(frozen=True, slots=True)
class TablePart:
    """A table or a part of one that fits on a page."""

    columns: Sequence[int]
    size: float
    """The size of the letters, in points."""
    is_turned: bool
    """Whether it needs a page in landscape format."""
    widths: Sequence[float]
    """The width of each column, in points. They fill the page."""
    broken: frozenset[int]
    """The columns with words that are longer than a share of the page, and have to be broken."""


def read_rows(table: nodes.TableNode) -> list[list[Cell]]:
    """Return the cells of each row of a table, the rows of its head first."""
    return [
        [
            Cell(cell.children, alignment, is_head, shown_text(cell.children))
            for cell, alignment in zip(row, table.alignments, strict=False)
        ]
        for rows, is_head in ((table.head, True), (table.body, False))
        for row in rows
    ]


def lay_out_table(rows: Sequence[Sequence[Cell]], sheet: TableSheet = PAPER) -> list[TablePart]:
    """Return the parts in which a table is shown: one, unless it is too wide for the sheet."""
    needs = [_Need.of([row[column] for row in rows if column < len(row)]) for column in range(_width(rows))]
    if not needs:
        return []
    every = range(len(needs))
    turned = sheet.turned if len(rows) >= TURNED_ROWS else None
    for room, is_turned in ((sheet.width, False), *([(turned, True)] if turned else [])):
        for size in sheet.sizes:
            if sum(one.least(size, room) for one in needs) <= room:
                part = _part(every, needs, size, room)
                return [replace(part, is_turned=is_turned)]
    size, room = sheet.split_size, sheet.width
    return [_part(columns, needs, size, room) for columns in _split(needs, size, room)]


def _width(rows: Sequence[Sequence[Cell]]) -> int:
    return max(map(len, rows), default=0)


@dataclass(frozen=True, slots=True)
class _Need:
    """What a column needs, in units of the size of its letters."""

    word: float
    """The width of its longest word."""
    text: float
    """The width of its longest cell on one line."""

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> _Need:
        word = text = 0.0
        for number, cell in enumerate(cells):
            shown = cell.text
            is_bold = cell.is_head or any(isinstance(one, nodes.StrongNode) for one in cell.children)
            factor = _BOLD if is_bold else 1
            pieces = [shown] if cell.is_quantity else _split_words(shown)
            word = max(word, factor * max(map(measure_text, pieces), default=0))
            if number < MAX_CELLS:
                text = max(text, factor * measure_text(shown[:500]))
        return cls(word, max(text, word))

    def least(self, size: float, room: float) -> float:
        """Return the width that keeps the words whole, unless one is longer than a share of the page."""
        return min(self.word * size + CELL_PADDING, MAX_SHARE * room)

    def most(self, size: float) -> float:
        return self.text * size + CELL_PADDING


def _split(needs: Sequence[_Need], size: float, room: float) -> list[list[int]]:
    """Divide the columns so that each part fits on a page; the first column is in all parts."""
    first = needs[0].least(size, room)
    parts, used = [[0]], first
    for column in range(1, len(needs)):
        width = needs[column].least(size, room)
        if used + width > room and len(parts[-1]) > 1:
            parts.append([0])
            used = first
        parts[-1].append(column)
        used += width
    return parts


def _part(columns: Sequence[int], needs: Sequence[_Need], size: float, room: float) -> TablePart:
    """Return a part whose columns share the rest of the width by the length of their texts."""
    least = [needs[one].least(size, room) for one in columns]
    more = [max(needs[one].most(size) - width, 1) for one, width in zip(columns, least, strict=True)]
    rest = max(room - sum(least), 0)
    widths = [width + rest * wish / sum(more) for width, wish in zip(least, more, strict=True)]
    broken = frozenset(one for one in columns if needs[one].word * size + CELL_PADDING > MAX_SHARE * room)
    return TablePart(tuple(columns), size, False, widths, broken)


def _split_words(text: str) -> list[str]:
    """Return the pieces of a text that are kept on one line; ideographs are pieces of their own."""
    words = _SPACE.split(text)
    return [piece for word in words for piece in break_word(word)]


def break_word(word: str) -> list[str]:
    """Return the pieces of a long word between which a line may end."""
    return LINE_ENDS.split(word) if len(word) > LONG_WORD else [word]


def measure_text(text: str) -> float:
    """Return the width of a text in units of its size, in a wide font without serifs."""
    return sum(map(_measure_character, text))


def _measure_character(character: str) -> float:
    if character in _NARROW:
        return 0.42
    if character in _WIDE:
        return 1.0
    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    if character.isascii():
        return 0.72 if character.isupper() else 0.64
    return 1.0 if east_asian_width(character) in "WF" or not character.isalpha() else 0.8
