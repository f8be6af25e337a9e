"""Lays out a report on slides: which text, table or figure is on which of them.

A heading begins a slide. What does not fit goes on a further slide of the same title. Lengths are in points;
they are estimated, because they are needed before there is a slide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Literal

from maniple.document import MARK, nodes
from maniple.report_document.code_colors import CodeColorer
from maniple.report_document.html_writer import DONE, OPEN
from maniple.report_document.report_nodes import (
    AnchoredHeadingNode,
    FootnoteListNode,
    ReportBlock,
    SourceItemNode,
    describe_figure,
    number_footnotes,
    shown_text,
)
from maniple.report_document.table_layout import TablePart, TableSheet, lay_out_table, measure_text, read_rows
from maniple.report_files.document import ReportFile
from maniple.report_files.slide_text import (
    BOLD,
    CODE,
    DIM,
    ITALIC,
    MARKED,
    PieceReader,
    Pieces,
    TextPiece,
    cut_pieces,
    shorten_pieces,
    text_of,
)

BODY_WIDTH, BODY_HEIGHT = 868.0, 380.0
"""The room for text, a table or a figure, in points."""
SHEET = TableSheet(BODY_WIDTH, sizes=(14.0, 12.0, 11.0, 10.0), split_size=12.0)
INDENT = 20
"""The indentation of each level of a list, in points."""
LINE_SPACING, SPACE_BEFORE = 1.2, 6
CELL_MARGIN = 4
"""The space above and below the text of a cell, in points."""
LineKind = Literal["text", "item", "heading", "code", "source"]
SIZES: dict[LineKind, float] = {"text": 18, "item": 18, "heading": 18, "code": 12, "source": 14}
MAX_SLIDES = 1_000
"""Further slides are left out, which the cover says: the library needs quadratic time for many."""
_DEEPEST_TITLE = 3
_DEEPEST_LEVEL = 8
_CODE_CHARACTERS = 2_000
"""A longer line of code is continued on the next slide."""
_WIDE_BULLET = 3
"""The characters from which on a bullet needs two indentations."""
_TAB = "    "


@dataclass(frozen=True, slots=True)
class SlideLine:
    """A paragraph on a slide. `bullet` is what is before an item; `level` counts from 0.

    `whole` is the text of a paragraph that is shortened, otherwise "".
    """

    pieces: Pieces
    kind: LineKind = "text"
    level: int = 0
    bullet: str = ""
    whole: str = ""
    anchor: str = ""

    @property
    def size(self) -> float:
        """The size of its letters, in points."""
        return SIZES[self.kind]

    @property
    def hanging(self) -> int:
        """The room for the bullet, in points."""
        return (INDENT if len(self.bullet) < _WIDE_BULLET else 2 * INDENT) if self.bullet else 0

    @property
    def left(self) -> int:
        """The indentation of its text, in points."""
        return INDENT * self.level + self.hanging

    @property
    def height(self) -> float:
        """The height that it needs, in points."""
        space = 0 if self.kind == "code" else SPACE_BEFORE
        return _height(self.pieces, self.size, BODY_WIDTH - self.left) + space


@dataclass(frozen=True, slots=True)
class SlideTable:
    """A part of a table, its head first. Cells are None where a row has none."""

    part: TablePart
    rows: Sequence[Sequence[Pieces | None]]
    alignments: Sequence[nodes.Alignment]
    heads: int


@dataclass(frozen=True, slots=True)
class SlideFigure:
    """A figure by its path, with its caption, and with its description for those who cannot see it."""

    path: str
    caption: str
    description: str


@dataclass(frozen=True, slots=True)
class DeckSlide:
    """A slide: its title, and lines, a table or a figure; without any of them, the begin of a section."""

    title: Pieces
    content: tuple[SlideLine, ...] | SlideTable | SlideFigure


@dataclass(slots=True)
class Deck:
    """The slides of a report in order; the first is the cover, whose lines are about the whole report.

    `anchors` are the indices of slides by the ids in them.
    """

    slides: list[DeckSlide] = field(default_factory=list[DeckSlide])
    anchors: dict[str, int] = field(default_factory=dict[str, int])
    left_out: int = 0
    """The number of slides beyond `MAX_SLIDES`."""


def lay_out_deck(report: ReportFile) -> Deck:
    """Return a report as slides. Blocks for up to some seconds."""
    return _DeckBuilder(report).build()


class _DeckBuilder:
    """Builds the slides of one report."""

    def __init__(self, report: ReportFile) -> None:
        self._report = report
        self._document = report.document
        self._notes = number_footnotes(report.document.body)
        self._reader = PieceReader(report.document.sources, self._notes)
        self._colorer = CodeColorer()
        self._deck = Deck()
        self._title: Pieces = ()
        self._uses = 0
        """How many slides have the title."""
        self._lines: list[SlideLine] = []
        self._height = 0.0
        self._level = -1
        """The level of the list that is open, from 0; -1 outside of lists."""
        self._bullet = ""
        self._anchor = ""
        self._quotes = 0

    def build(self) -> Deck:
        """Return all slides."""
        document = self._document
        self._deck.slides.append(DeckSlide((TextPiece(document.title),), ()))
        if document.contents:
            self._begin((TextPiece(document.texts.contents),))
            for one in document.contents:
                piece = TextPiece(one.text, target=f"#{one.id}")
                self._add(SlideLine((piece,), "source", max(one.level - 2, 0)))
        self._flush()
        self._begin((TextPiece(document.title),))
        self._blocks(document.body)
        self._flush()
        is_cut = any(
            isinstance(slide.content, tuple) and any(one.whole for one in slide.content)
            for slide in self._deck.slides
        )
        self._deck.slides[0] = DeckSlide((TextPiece(document.title),), tuple(self._about(is_cut)))
        return self._deck

    def _about(self, is_cut: bool) -> Iterator[SlideLine]:
        texts = self._document.texts
        if self._report.date:
            yield SlideLine((TextPiece(self._report.date),))
        if self._report.is_partial:
            yield SlideLine((TextPiece(texts.partial),))
        if self._document.marks:
            mark = TextPiece(MARK, frozenset({MARKED}))
            yield SlideLine((mark, TextPiece(f" {texts.unverified}")))
        if is_cut:
            yield SlideLine((TextPiece(texts.in_notes),))
        if self._deck.left_out:
            yield SlideLine((TextPiece(texts.left_out.format(self._deck.left_out)),))

    def _begin(self, title: Pieces) -> None:
        self._title, self._uses = title, 0

    def _blocks(self, blocks: Iterable[ReportBlock]) -> None:
        for one in blocks:
            match one:
                case nodes.HeadingNode():
                    self._heading(one)
                case nodes.ParagraphNode(children=children):
                    self._paragraph(children)
                case nodes.ListNode():
                    self._list(one)
                case nodes.TableNode():
                    self._table(one)
                case nodes.BlockQuoteNode():
                    self._quote(one)
                case FootnoteListNode():
                    self._footnotes(one)
                case _:
                    self._leaf(one)

    def _leaf(self, one: ReportBlock) -> None:
        match one:
            case nodes.FigureNode():
                self._figure(one)
            case nodes.MathNode():
                self._add(self._line(self._reader.formula(one)))
            case nodes.CodeBlockNode(text=text, language=language):
                self._code(text, language)
            case nodes.MermaidNode(text=text):
                self._code(text, "")
            case _:
                return

    def _code(self, text: str, language: str) -> None:
        parts = self._colorer.color(text.rstrip("\n").replace("\t", _TAB), language)
        pieces = [TextPiece(one.text, frozenset({CODE, one.kind} - {""})) for one in parts]
        for line in _split_lines(pieces):
            for piece in _split_pieces(line, _CODE_CHARACTERS):
                self._add(SlideLine(piece, "code", max(self._level, 0)))

    def _heading(self, heading: nodes.HeadingNode) -> None:
        pieces = self._reader.read(heading.children)
        if heading.level > _DEEPEST_TITLE or self._level >= 0 or self._quotes:
            self._add(SlideLine(pieces, "heading", max(self._level, 0)))
            return
        self._flush(is_section_end=True)
        self._begin(pieces)
        if isinstance(heading, AnchoredHeadingNode):
            self._deck.anchors[heading.id] = len(self._deck.slides)

    def _paragraph(self, children: Sequence[nodes.InlineNode]) -> None:
        pieces = self._reader.read(children, frozenset({ITALIC}) if self._quotes else frozenset())
        self._add(self._line(pieces))
        self._figures(children)

    def _line(self, pieces: Pieces) -> SlideLine:
        """Return a paragraph, which is the begin of an item if one waits for its text."""
        bullet, self._bullet = self._bullet, ""
        anchor, self._anchor = self._anchor, ""
        level = max(self._level, 0)
        if anchor:
            return SlideLine(pieces, "source", level, bullet, anchor=anchor)
        shown = shorten_pieces(pieces)
        whole = "" if shown == pieces else text_of(pieces)
        return SlideLine(shown, "item" if self._level >= 0 else "text", level, bullet, whole)

    def _list(self, list_: nodes.ListNode) -> None:
        self._level = min(self._level + 1, _DEEPEST_LEVEL)
        for index, item in enumerate(list_.items):
            self._bullet = "•" if list_.first is None else f"{list_.first + index}."
            if item.is_done is not None:
                self._bullet = DONE if item.is_done else OPEN
            if isinstance(item, SourceItemNode):
                self._source(item)
            else:
                self._blocks(item.children)
                self._end_item()
        self._level -= 1

    def _source(self, item: SourceItemNode) -> None:
        first, *others = item.children
        pieces = self._reader.read(first.children) if isinstance(first, nodes.ParagraphNode) else ()
        if item.got_on:
            pieces += (TextPiece(f"{self._document.texts.comma}{item.got_on}", frozenset({DIM})),)
        self._bullet, self._anchor = f"[{item.number}]", f"source-{item.number}"
        self._add(self._line(pieces))
        self._blocks(others)

    def _end_item(self) -> None:
        if self._bullet:  # an item without text
            self._add(self._line(()))

    def _quote(self, quote: nodes.BlockQuoteNode) -> None:
        self._quotes += 1
        if quote.callout:
            kind = TextPiece(quote.callout.capitalize(), frozenset({BOLD}))
            self._add(SlideLine((kind,), "heading", max(self._level, 0)))
        self._blocks(quote.children)
        self._quotes -= 1

    def _footnotes(self, notes: FootnoteListNode) -> None:
        self._flush(is_section_end=True)
        self._begin((TextPiece(self._document.texts.footnotes),))
        self._level = 0
        for number, note in enumerate(notes.footnotes, start=1):
            self._bullet, self._anchor = f"{number}", f"footnote-{number}"
            self._blocks(note.children)
            self._end_item()
        self._level = -1

    def _figures(self, inside: Iterable[nodes.InlineNode | nodes.CellNode]) -> None:
        """Show the figures within a text or a table, which has their captions, on slides of their own."""
        for node in inside:
            for one in nodes.iterate_nodes(node):
                if isinstance(one, nodes.FigureNode):
                    self._figure(one)

    def _figure(self, figure: nodes.FigureNode) -> None:
        self._flush()
        if figure.target in self._report.figures:
            self._append(SlideFigure(figure.target, shown_text(figure.children), describe_figure(figure)))

    def _table(self, table: nodes.TableNode) -> None:
        self._flush()
        rows = read_rows(table)
        pieces = [
            [self._reader.read(one.children, frozenset({BOLD} if one.is_head else ())) for one in row]
            for row in rows
        ]
        for part in lay_out_table(rows, SHEET):
            chosen = [[row[one] if one < len(row) else None for one in part.columns] for row in pieces]
            head, body = chosen[: len(table.head)], chosen[len(table.head) :]
            alignments: list[nodes.Alignment] = [table.alignments[one] for one in part.columns]
            for page in _paginate(head, body, part):
                self._append(SlideTable(part, [*head, *page], alignments, len(head)))
        self._figures(cell for row in (*table.head, *table.body) for cell in row)

    def _add(self, line: SlideLine) -> None:
        if self._lines and self._height + line.height > BODY_HEIGHT:
            self._flush()
        if line.anchor:
            self._deck.anchors[line.anchor] = len(self._deck.slides)
        self._lines.append(line)
        self._height += line.height

    def _flush(self, *, is_section_end: bool = False) -> None:
        """End the slide of text. At the end of a section, a title without any slide gets one."""
        lines, self._lines, self._height = tuple(self._lines), [], 0.0
        is_heading_alone = is_section_end and not self._uses and len(self._deck.slides) > 1
        if lines or (is_heading_alone and self._title != (TextPiece(self._document.title),)):
            self._append(lines)

    def _append(self, content: tuple[SlideLine, ...] | SlideTable | SlideFigure) -> None:
        self._uses += 1
        if len(self._deck.slides) >= MAX_SLIDES:
            self._deck.left_out += 1
            return
        number = (TextPiece(f" ({self._uses})", frozenset({DIM})),) if self._uses > 1 else ()
        self._deck.slides.append(DeckSlide((*self._title, *number), content))


Row = Sequence[Pieces | None]


def _paginate(head: Sequence[Row], body: Sequence[Row], part: TablePart) -> Iterator[list[Row]]:
    """Yield the rows of each slide. A row that is higher than a slide is continued on the next one."""
    room = max(BODY_HEIGHT - sum(_row_height(one, part) for one in head), BODY_HEIGHT / 3)
    page: list[Row] = []
    used = 0.0
    for row in (piece for one in body for piece in _split_row(one, part, room)):
        height = _row_height(row, part)
        if page and used + height > room:
            yield page
            page, used = [], 0.0
        page.append(row)
        used += height
    if page or not body:
        yield page


def _row_height(row: Row, part: TablePart) -> float:
    sides = 2 * CELL_MARGIN
    cells = zip(row, part.widths, strict=True)
    return max((_height(one or (), part.size, width - sides) for one, width in cells), default=0) + sides


def _split_row(row: Row, part: TablePart, room: float) -> Iterator[Row]:
    """Yield a row as one or more rows, of which each fits on a slide."""
    if _row_height(row, part) <= room:
        yield row
        return
    limits = [
        max(int((room / part.size / LINE_SPACING - 3) * (width - 2 * CELL_MARGIN) / part.size * 0.9), 10)
        for width in part.widths
    ]
    pieces = [_split_pieces(one or (), limit) for one, limit in zip(row, limits, strict=True)]
    for index in range(max(map(len, pieces))):
        yield [one[index] if index < len(one) else None for one in pieces]


def _split_pieces(pieces: Pieces, limit: int) -> list[Pieces]:
    """Divide a text into parts of at most `limit` characters, at spaces if there are any."""
    text, start = text_of(pieces), 0
    parts: list[Pieces] = []
    while len(text) - start > limit:
        space = text.rfind(" ", start + limit // 2, start + limit)
        end = space + 1 if space > 0 else start + limit
        parts.append(cut_pieces(pieces, start, end))
        start = end
    return [*parts, cut_pieces(pieces, start, len(text))]


def _split_lines(pieces: Sequence[TextPiece]) -> list[Pieces]:
    """Divide pieces at their line feeds."""
    lines: list[list[TextPiece]] = [[]]
    for one in pieces:
        for number, text in enumerate(one.text.split("\n")):
            if number:
                lines.append([])
            if text:
                lines[-1].append(replace(one, text=text))
    return [tuple(one) for one in lines]


def _height(pieces: Pieces, size: float, width: float) -> float:
    """Return the height of a text, in points; a long word may be broken."""
    lines = text_of(pieces).split("\n")
    rows = sum(max(ceil(measure_text(one) * size / max(width, size)), 1) for one in lines)
    return rows * size * LINE_SPACING
