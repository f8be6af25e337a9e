"""The text of a PDF's page, from the places of its characters: lines, headings and tables."""

import ctypes
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from maniple.reading.grids import format_table

MAX_PAGE_CHARACTERS = 60_000
"""A page with more is read without the places of its characters."""
_CELL_GAP = 1.2
"""The least gap between two cells of a row, in sizes of the font."""
_HEADING_RATIO = 1.15
_MAIN_HEADING_RATIO = 1.5
_MAX_HEADING_CHARACTERS = 160
_MAX_COLUMNS = 30
_MIN_ROWS = 2
_COLUMN_CHARACTERS = 30
"""The median length of cells from which two columns are columns of text, not of a table."""
_ROW_GAP = 3.0
"""The largest distance of two rows of a table, in sizes of the font."""
_HEADING_GAP = 1.6
"""The largest distance of two lines of a heading, in sizes of the font."""
_RAISED_RATIO = 0.85
_RAISED_BY = 0.2
_SAME_BASE = 0.1
"""The largest distance of the bases of one line, in sizes of the font."""
_BREAK = "\u0002"
"""What stands for a hyphen at the end of a line, where a word goes on in the next line."""
_BROKEN_WORD = re.compile(rf"([^\W\d_]*){_BREAK}([^\W\d_]*)")
_COMPOUND = re.compile(r"[^\W\d_]{2,}-[^\W\d_]{2,}")
_LIGATURES = str.maketrans(
    {
        "\ufb00": "ff",
        "\ufb01": "fi",
        "\ufb02": "fl",
        "\ufb03": "ffi",
        "\ufb04": "ffl",
        "\ufb05": "st",
        "\ufb06": "st",
        "\0": None,
        "\ufffe": _BREAK,
        "\u00ad": _BREAK,
        "\ufffd": None,
    }
)
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\Z")


@dataclass(slots=True)
class _Cell:
    text: str
    left: float
    right: float


@dataclass(slots=True)
class PageLine:
    """A line of a page; `cells` are its parts with wide gaps between them."""

    cells: list[_Cell] = field(default_factory=list["_Cell"])
    size: float = 0.0
    """Of its font, in points."""
    bottom: float = 0.0

    @property
    def text(self) -> str:
        """The whole line."""
        return " ".join(cell.text for cell in self.cells)


@dataclass(slots=True)
class _LineBuilder:
    """Collects the characters of one line."""

    line: PageLine = field(default_factory=PageLine)
    letters: list[str] = field(default_factory=list[str])
    sizes: Counter[float] = field(default_factory=Counter[float])
    left: float = 0.0
    right: float = 0.0
    size: float = 0.0
    base: float = 0.0
    is_raised: bool = False

    def add(self, letter: str, box: tuple[float, float, float], size: float) -> None:
        """Add a character with its left, right and base, which is in the font size `size`."""
        left, right, base = box
        if self.letters and left - self.right > _CELL_GAP * max(size, self.size):
            self.end_cell()
        if not self.letters:
            self.left = left
        elif letter.isalnum() and self._begins_raised(size, base):
            self.letters.append("^")
            self.is_raised = True
        if not self.is_raised or size > _RAISED_RATIO * self.size:
            self.size, self.base, self.is_raised = size, base, False
        self.letters.append(letter)
        self.sizes[round(size, 1)] += 1
        self.right = max(right, self.right)
        self.line.bottom = base

    def _begins_raised(self, size: float, base: float) -> bool:
        is_small = 0 < size < _RAISED_RATIO * self.size
        is_after_word = bool(self.letters) and self.letters[-1].isalnum()
        return is_small and is_after_word and not self.is_raised and base > self.base + _RAISED_BY * self.size

    def add_space(self) -> None:
        """Add a blank between two words."""
        if self.letters and self.letters[-1] != " ":
            self.letters.append(" ")

    def goes_on(self, box: tuple[float, float, float]) -> bool:
        """Return whether a character that pdfium puts in a new line stands in this one."""
        left, _, base = box
        is_level = self.size > 0 and abs(base - self.base) < _SAME_BASE * self.size
        return is_level and left > self.right - self.size / 2

    def end_cell(self) -> None:
        """End the cell, if there is one."""
        if text := "".join(self.letters).strip():
            self.line.cells.append(_Cell(text, self.left, self.right))
        self.letters.clear()
        self.right, self.size, self.is_raised = 0.0, 0.0, False

    def finish(self) -> PageLine:
        """Return the line."""
        self.end_cell()
        self.line.size = max(self.sizes, key=lambda size: self.sizes[size], default=0.0)
        return self.line


def read_lines(textpage: Any) -> list[PageLine]:
    """Return the lines of a text page of pypdfium2, in the order of the file, without blank ones."""
    count = textpage.count_chars()
    if count > MAX_PAGE_CHARACTERS:
        text = textpage.get_text_range().translate(_LIGATURES)
        return [PageLine([_Cell(line.strip(), 0, 0)]) for line in text.splitlines() if line.strip()]
    lines, is_ended = list[PageLine](), False
    builder = _LineBuilder()
    for letter, box, size in _characters(textpage, count):
        if letter == "\n":
            is_ended = True
        elif box is None:
            builder.add_space()
        else:
            if is_ended and builder.goes_on(box):
                builder.add_space()
            elif is_ended:
                lines.append(builder.finish())
                builder = _LineBuilder()
            is_ended = False
            builder.add(letter, box, size)
    lines.append(builder.finish())
    return [line for line in lines if line.cells]


def _characters(textpage: Any, count: int) -> Iterator[tuple[str, tuple[float, float, float] | None, float]]:
    """Yield each character with its box (None for one that pdfium adds between words) and its size."""
    import pypdfium2.raw as pdfium

    box, matrix, size, before = pdfium.FS_RECTF(), pdfium.FS_MATRIX(), 0.0, 0
    x, y = ctypes.c_double(), ctypes.c_double()
    for at in range(count):
        code = pdfium.FPDFText_GetUnicode(textpage, at)
        letter = chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
        if letter in "\r\n" or letter.isspace():
            yield ("\n" if letter in "\r\n" else " "), None, size
            before = 0
            continue
        if not pdfium.FPDFText_GetLooseCharBox(textpage, at, box):
            continue
        pdfium.FPDFText_GetCharOrigin(textpage, at, x, y)
        height = round(box.top - box.bottom, 2)
        if height != before and pdfium.FPDFText_GetMatrix(textpage, at, matrix):
            size = pdfium.FPDFText_GetFontSize(textpage, at) * math.hypot(matrix.c, matrix.d)
        before = height
        yield letter.translate(_LIGATURES), (box.left, box.right, y.value), size


def body_size(pages: Sequence[Sequence[PageLine]]) -> float:
    """Return the size of the font that most characters have."""
    sizes = Counter[float]()
    for lines in pages:
        for line in lines:
            sizes[line.size] += len(line.text)
    return max(sizes, key=lambda size: sizes[size], default=0.0)


def format_page(lines: Sequence[PageLine], body: float) -> str:
    """Return the lines of a page as Markdown; `body` is the size of the document's text, in points."""
    blocks, at = list[str](), 0
    while at < len(lines):
        rows = _count_rows(lines, at)
        if rows >= _MIN_ROWS and (table := _format_rows(lines[at : at + rows])):
            blocks.append(f"\n{table}\n")
            at += rows
            continue
        level = _heading_level(lines[at], body)
        if level and blocks and blocks[-1].startswith(f"\n{level} ") and _goes_on(lines[at - 1], lines[at]):
            blocks[-1] = f"{blocks[-1].rstrip()} {_escape(lines[at].text)}\n"
        elif level:
            blocks.append(f"\n{level} {lines[at].text.lstrip('# ')}\n")
        else:
            _add_line(blocks, _escape(lines[at].text))
        at += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(blocks)).strip()


def _goes_on(before: PageLine, line: PageLine) -> bool:
    """Return whether a line is of the same heading as the one before it."""
    return before.size == line.size and 0 <= before.bottom - line.bottom <= _HEADING_GAP * line.size


def _add_line(blocks: list[str], text: str) -> None:
    """Add a line, joined to the one before it if a word is divided between them."""
    before = blocks[-1] if blocks else ""
    if before.endswith(_BREAK):
        blocks[-1] = before + text
    elif _HYPHENATED.search(before):
        blocks[-1] = before[:-1] + _BREAK + text
    else:
        blocks.append(text)


def join_words(text: str) -> str:
    """Return the text of a document with the words joined that its lines divide.

    The hyphen stays before a capital letter or a digit, and in a compound that the text has elsewhere.
    """
    if _BREAK not in text:
        return text
    compounds = {found[0].lower() for found in _COMPOUND.finditer(text)}

    def join(found: re.Match[str]) -> str:
        first, second = found[1], found[2]
        is_word = bool(first) and second[:1].islower() and f"{first}-{second}".lower() not in compounds
        return f"{first}{second}" if is_word else f"{first}-{second}"

    return _BROKEN_WORD.sub(join, text)


def _escape(text: str) -> str:
    return f"\\{text}" if text.startswith("#") else text


def _heading_level(line: PageLine, body: float) -> str:
    is_large = body > 0 and line.size >= _HEADING_RATIO * body
    if not is_large or len(line.text) > _MAX_HEADING_CHARACTERS or not any(map(str.isalpha, line.text)):
        return ""
    return "###" if line.size >= _MAIN_HEADING_RATIO * body else "####"


def _count_rows(lines: Sequence[PageLine], at: int) -> int:
    """Return how many lines from `at` on have several cells and follow each other closely."""
    end = at
    while end < len(lines) and 2 <= len(lines[end].cells) <= _MAX_COLUMNS:
        gap = lines[end - 1].bottom - lines[end].bottom if end > at else 0
        if not 0 <= gap <= _ROW_GAP * max(lines[end].size, 1):
            break
        end += 1
    return end - at


def _format_rows(lines: Sequence[PageLine]) -> str:
    """Return rows as a table, two columns of text one after the other, or "" for what is neither."""
    cells = [cell for line in lines for cell in line.cells]
    columns = _find_columns(cells)
    if len(columns) < 2 or len(columns) > _MAX_COLUMNS:
        return ""
    grid = [[""] * len(columns) for _ in lines]
    for row, line in zip(grid, lines, strict=True):
        for cell in line.cells:
            at = next(at for at, (_, right) in enumerate(columns) if cell.left <= right)
            row[at] = f"{row[at]} {cell.text}".strip()
    if median(len(cell.text) for cell in cells) > _COLUMN_CHARACTERS:
        blocks = list[str]()
        for column in zip(*grid, strict=True):
            for text in filter(None, column):
                _add_line(blocks, _escape(text))
        return "\n".join(blocks)
    return format_table(grid)


def _find_columns(cells: Sequence[_Cell]) -> list[tuple[float, float]]:
    """Return the left and the right end of each column: what of the cells overlaps is one."""
    columns = list[tuple[float, float]]()
    for cell in sorted(cells, key=lambda one: one.left):
        if columns and cell.left <= columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], cell.right))
        else:
            columns.append((cell.left, cell.right))
    return columns
