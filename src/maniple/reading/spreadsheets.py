"""The reader of workbooks: XLSX, XLSM, XLSB, XLS and ODS.

Each sheet is a section with the range of its cells in the heading, and a table whose first column has the
numbers of the rows, so that a citation can name a cell.
"""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import islice
from math import isfinite
from string import digits
from typing import TYPE_CHECKING, Any

from maniple.reading import MAX_CHARACTERS, MarkdownDocument, UnreadableDocument
from maniple.reading.cell_formats import Formats, format_date, format_number
from maniple.reading.containers import open_archive
from maniple.reading.grids import format_row, iterate_span
from maniple.reading.workbook_parts import WorkbookParts, read_workbook_parts
from maniple.text import counted, shorten

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

MAX_SHEET_ROWS = 10_000
MAX_COLUMNS = 100
_MAX_SHEETS = 200
_MAX_SPANS = 2_000
_MAX_SPAN_CELLS = 10_000
_CELL_CHARACTERS = 2_000
_NAMED_SHEETS = 10
"""In a note."""
_SHEET_NAME_CHARACTERS = 60
_DIGITS = 15
"""The digits of a number that Excel stores."""
_ZIP = b"PK"

_NO_DIGITS = {code: None for code in range(0x250) if chr(code) not in digits}
Cells = dict[tuple[int, int], str]


@dataclass(slots=True)
class _Sheet:
    """The rows of a sheet that were read, and those that there are; rows and columns count from 0."""

    number: int
    name: str
    start: tuple[int, int] = (0, 0)
    end: tuple[int, int] = (-1, -1)
    lines: list[str] = field(default_factory=list[str])
    rows: list[int] = field(default_factory=list[int])
    """The row of each line."""
    last: int = -1
    """The last row that was read."""
    characters: int = 0
    comments: str = ""

    @property
    def columns(self) -> int:
        """The columns that are read."""
        return min(self.end[1] - self.start[1] + 1, MAX_COLUMNS)

    def add(self, row: int, cells: Sequence[str]) -> bool:
        """Add a row; return whether another one may fit."""
        self.last = row
        if any(cells):
            line = format_row([str(row + 1), *cells])
            self.lines.append(line)
            self.rows.append(row)
            self.characters += len(line) + 1
        return self.characters <= MAX_CHARACTERS

    def cut(self, characters: int) -> None:
        """Leave out the last rows, so that at most about `characters` remain."""
        while self.lines and self.characters > characters:
            self.characters -= len(self.lines.pop()) + 1
            self.last = self.rows.pop() - 1

    @property
    def markdown(self) -> str:
        """The sheet as a section."""
        head = f"## Sheet {self.number}: {self.name}"
        if self.last < 0:
            return f"{head}\n\n[no cells]"
        (top, left), (bottom, right) = self.start, self.end
        shape = f"{column_name(left)}{top + 1}:{column_name(right)}{bottom + 1}"
        return f"{head} ({shape})\n\n{_with_head(self.lines, self.columns)}{self.comments}"

    @property
    def note(self) -> str:
        """What of the sheet is left out."""
        rows, columns = self.end[0] + 1, self.end[1] - self.start[1] + 1
        cut = [f"rows up to {self.last + 1:,} of {rows:,}"] if self.last < self.end[0] else []
        cut += [f"{self.columns} of {columns:,} columns"] if self.columns < columns else []
        name = repr(shorten(self.name, _SHEET_NAME_CHARACTERS))
        return f"Of sheet {name}, only {' and '.join(cut)} were read." if cut else ""


def read_workbook(body: bytes, url: str) -> MarkdownDocument:
    """Return the visible sheets of a workbook as Markdown tables; merged cells have their value in each cell.

    Raises:
        UnreadableDocument: it is damaged, locked, or too large when it is unpacked.
    """
    import python_calamine

    parts = WorkbookParts()
    if body.startswith(_ZIP):
        with open_archive(body, "a workbook") as archive:
            parts = read_workbook_parts(archive, MAX_SHEET_ROWS)
    try:
        with python_calamine.load_workbook(io.BytesIO(body)) as workbook:
            sheets, notes = _read_sheets(workbook, parts)
    except python_calamine.PasswordError as error:
        raise UnreadableDocument(
            "is a workbook that is locked with a password; ask for one without"
        ) from error
    except (python_calamine.CalamineError, ValueError, OSError) as error:
        raise UnreadableDocument("is a damaged workbook") from error
    _share_room(sheets)
    notes += [note for note in [sheet.note for sheet in sheets] if note][:_NAMED_SHEETS]
    if parts.unsaved:
        notes.append(
            f"{counted(parts.unsaved, 'cell')} with a formula without a saved result: shown blank; open the "
            "workbook with Python to calculate them."
        )
    if parts.errors:
        notes.append(f"{counted(parts.errors, 'cell')} with an error such as #DIV/0!: shown blank.")
    return MarkdownDocument("", "\n\n".join(sheet.markdown for sheet in sheets), note=" ".join(notes))


def _read_sheets(workbook: "CalamineWorkbook", parts: WorkbookParts) -> tuple[list[_Sheet], list[str]]:
    """Return the visible sheets, and notes about the others."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    sheets, hidden, unread, rounded = list[_Sheet](), list[str](), list[str](), 0
    for number, about in enumerate(workbook.sheets_metadata, 1):
        if about.visible != SheetVisibleEnum.Visible:
            hidden.append(about.name)
        elif about.typ != SheetTypeEnum.WorkSheet or len(sheets) == _MAX_SHEETS:
            unread.append(about.name)
        else:
            source = workbook.get_sheet_by_index(number - 1)
            sheet, formatted = _read_sheet(number, source, parts.formats.get(about.name, {}))
            sheet.comments = parts.comments.get(about.name, "")
            sheet.characters += len(sheet.comments)
            sheets.append(sheet)
            rounded += formatted
    notes = [
        f"{counted(rounded, 'number')} shown rounded, as the workbook does." if rounded else "",
        _name_sheets("Hidden sheets are not read", hidden),
        _name_sheets("Not read are the sheets", unread),
    ]
    return sheets, list(filter(None, notes))


def _name_sheets(what: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(repr(shorten(name, _SHEET_NAME_CHARACTERS)) for name in names[:_NAMED_SHEETS])
    more = f" and {len(names) - _NAMED_SHEETS:,} more" if len(names) > _NAMED_SHEETS else ""
    return f"{what}: {shown}{more}."


def _share_room(sheets: Sequence[_Sheet]) -> None:
    """Cut the longest sheets, so that all fit together and none is cut for the sake of a longer one."""
    room, left = MAX_CHARACTERS, len(sheets)
    for sheet in sorted(sheets, key=lambda one: one.characters):
        sheet.cut(room // left)
        room, left = room - sheet.characters, left - 1


def _read_sheet(number: int, source: "CalamineSheet", formats: Formats) -> tuple[_Sheet, int]:
    """Return the sheet, and how many of its numbers are shown rounded."""
    sheet, rounded = _Sheet(number, " ".join(source.name.split())), 0
    if source.start is None or source.end is None:
        return sheet, 0
    sheet.start, sheet.end = source.start, source.end
    (top, left), spans = source.start, _spanned(source, formats)
    for row, cells in enumerate(islice(source.iter_rows(), MAX_SHEET_ROWS), top):
        texts = [
            _format_cell(cell, formats.get((row, column), "")) or spans.get((row, column), "")
            for column, cell in enumerate(cells[: sheet.columns], left)
        ]
        rounded += sum(
            _is_rounded(cell, text) for cell, text in zip(cells, texts, strict=False) if type(cell) is float
        )
        if not sheet.add(row, texts):
            break
    return sheet, rounded


def _is_rounded(value: float, text: str) -> bool:
    """Return whether `text` has fewer digits than `value`."""
    digits = text.translate(_NO_DIGITS).strip("0")
    return bool(digits) and len(digits) < len(_format_cell(abs(value)).translate(_NO_DIGITS).strip("0"))


def _with_head(lines: Sequence[str], columns: int) -> str:
    """Return the rows as a table; the first one is the head, in whose first cell the row's number stays."""
    if not lines:
        return "[no values]"
    return "\n".join([lines[0].replace("| ", "| row ", 1), "|" + " --- |" * (columns + 1), *lines[1:]])


def _spanned(sheet: "CalamineSheet", formats: Formats) -> Cells:
    """Return the values of the cells that are merged with others."""
    spans = (sheet.merged_cell_ranges or [])[:_MAX_SPANS]
    if not spans or sheet.start is None:
        return {}
    wanted = {first for first, _ in spans}
    values = _values_at(sheet, wanted, formats)
    cells: Cells = {}
    for (top, left), (bottom, right) in spans:
        bottom, right = min(bottom, top + MAX_SHEET_ROWS), min(right, left + MAX_COLUMNS)
        if value := values.get((top, left), ""):
            places = islice(iterate_span(top, left, bottom, right), _MAX_SPAN_CELLS)
            cells.update(dict.fromkeys(places, value))
    return cells


def _values_at(sheet: "CalamineSheet", wanted: Iterable[tuple[int, int]], formats: Formats) -> Cells:
    top, left = sheet.start or (0, 0)
    rows: dict[int, list[int]] = {}
    for row, column in wanted:
        rows.setdefault(row, []).append(column)
    found: Cells = {}
    for row, cells in enumerate(islice(sheet.iter_rows(), MAX_SHEET_ROWS), top):
        for column in rows.get(row, ()):
            if 0 <= column - left < len(cells):
                found[row, column] = _format_cell(cells[column - left], formats.get((row, column), ""))
    return found


def column_name(column: int) -> str:
    """Return the letters of a column, which counts from 0: A, B, …, Z, AA."""
    name = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def _format_cell(value: Any, code: str = "") -> str:
    """Return a value as text; a number as the format `code` shows it, a whole date always as YYYY-MM-DD."""
    if isinstance(value, str):
        return shorten(value, _CELL_CHARACTERS)
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, date) and code and (shown := format_date(value, code)):
        return shown
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if code and isfinite(value) and (shown := format_number(value, code)) is not None:
        return shown
    return str(value) if isinstance(value, int) else format(value, f".{_DIGITS}g")
