"""A report as a Word document: its styles, lists, tables and text."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maniple.document import MARK, nodes
from maniple.report_document.code_colors import CodeColorer, CodePart
from maniple.report_document.html_writer import DONE, OPEN
from maniple.report_document.layout import ContentsEntry
from maniple.report_document.report_nodes import (
    AnchoredHeadingNode,
    FootnoteListNode,
    ReportBlock,
    SourceItemNode,
    number_footnotes,
    shown_text,
)
from maniple.report_document.table_layout import (
    SIZES,
    UPRIGHT_PAPER,
    Cell,
    TablePart,
    lay_out_table,
    read_rows,
)
from maniple.report_files.document import ReportFile
from maniple.report_files.office_files import CODE_COLORS, describe_file
from maniple.report_files.word_notes import (
    NOTE_STYLE,
    add_note,
    add_notes_part,
    find_word_notes,
    note_reference,
)
from maniple.report_files.word_runs import (
    BOLD,
    DIM,
    NO_FORMATS,
    LinkTargets,
    Runs,
    add_bookmark,
    element,
    field,
    internal_link,
    paragraph,
    run,
    text_element,
    text_run,
)

if TYPE_CHECKING:
    from docx.document import Document as WordDocument
    from docx.styles.styles import Styles

_FONT, _CODE_FONT = "Calibri", "Consolas"
_EAST = {"ja": "Yu Gothic", "ko": "Malgun Gothic"}
_EAST_LOCALES = {"ja": "ja-JP", "ko": "ko-KR"}
_INK, _DIM, _LINK = "1F2328", "59636E", "0550AE"
_HEADINGS = {
    "Title": (24, 0, 4),
    "TOC Heading": (11, 14, 4),
    "Heading 1": (18, 20, 6),
    "Heading 2": (15, 16, 4),
    "Heading 3": (12.5, 12, 3),
    **{f"Heading {level}": (11, 10, 2) for level in (4, 5, 6)},
}
"""Size, space before and space after, in points."""


def prepare(word: "WordDocument", language: str) -> None:
    """Set the styles, the fonts for `language`, the page size and the page number of an empty document."""
    east = _EAST.get(language, "Microsoft YaHei")
    fonts = {"ascii": _FONT, "hAnsi": _FONT, "eastAsia": east, "cs": "Arial"}
    _set_defaults(word.styles, fonts, language)
    for name, points in _HEADINGS.items():
        _set_heading(word.styles[name], fonts, points)
    _add_styles(word.styles)
    _set_page(word)


def _set_defaults(styles: "Styles", fonts: dict[str, str], language: str) -> None:
    from docx.oxml.ns import qn
    from docx.shared import Pt

    properties = styles.element.find(f"{qn('w:docDefaults')}/{qn('w:rPrDefault')}/{qn('w:rPr')}")
    _replace(properties, element("rFonts", **fonts))
    east = _EAST_LOCALES.get(language, "zh-CN")
    _replace(properties, element("lang", val="zh-CN" if language == "zh" else language, eastAsia=east))
    normal: Any = styles["Normal"]
    normal.font.size = Pt(10.5)
    normal.paragraph_format.space_after = Pt(7)
    normal.paragraph_format.line_spacing = 1.2
    for name in ("List Bullet", "List Number", "List Continue"):
        item: Any = styles[name]
        item.paragraph_format.space_after = Pt(3)
    quote: Any = styles["Quote"]
    quote.paragraph_format.left_indent = Pt(14)


def _set_heading(style: Any, fonts: dict[str, str], points: tuple[float, float, float]) -> None:
    from docx.shared import Pt, RGBColor

    _replace(style.element.get_or_add_rPr(), element("rFonts", **fonts))
    style.font.size, style.font.color.rgb = Pt(points[0]), RGBColor.from_string(_INK)
    style.font.bold, style.font.italic = True, False
    style.paragraph_format.space_before, style.paragraph_format.space_after = Pt(points[1]), Pt(points[2])
    for border in style.element.pPr.findall(element("pBdr").tag):
        style.element.pPr.remove(border)


def _add_styles(styles: "Styles") -> None:
    from docx.enum.style import WD_STYLE_TYPE as KIND
    from docx.shared import Pt, RGBColor

    def add(name: str, kind: KIND, base: str, size: float | None = None, color: str = _INK) -> Any:
        style: Any = styles.add_style(name, kind)
        style.base_style, style.font.color.rgb = styles[base], RGBColor.from_string(color)
        style.font.size = Pt(size) if size else None
        return style

    add("Hyperlink", KIND.CHARACTER, "Default Paragraph Font", color=_LINK).font.underline = True
    add("Inline Code", KIND.CHARACTER, "Default Paragraph Font", 9.5).font.name = _CODE_FONT
    code = add("Code", KIND.PARAGRAPH, "Normal", 9)
    code.font.name = _CODE_FONT
    code.paragraph_format.line_spacing = 1.0
    code.element.get_or_add_pPr().insert(0, element("shd", val="clear", color="auto", fill="F6F8FA"))
    add("footnote text", KIND.PARAGRAPH, "Normal", 9)
    add("footnote reference", KIND.CHARACTER, "Default Paragraph Font").font.superscript = True
    add("About", KIND.PARAGRAPH, "Normal", 9.5, _DIM)
    for points in SIZES:
        add(_table_style(points), KIND.PARAGRAPH, "Normal", points)
    for level in (1, 2, 3):
        entry = add(f"toc {level}", KIND.PARAGRAPH, "Normal")
        entry.paragraph_format.space_after = Pt(2)
        entry.paragraph_format.left_indent = Pt(12 * max(level - 2, 0))


def _set_page(word: "WordDocument") -> None:
    from docx.shared import Mm

    page = word.sections[0]
    page.page_width, page.page_height = Mm(210), Mm(297)
    page.left_margin = page.right_margin = page.top_margin = page.bottom_margin = Mm(22)
    opening, closing = field("PAGE")
    middle = (element("jc", val="center"),)
    number = paragraph(*opening, run(text_element("t", "1")), *closing, style="Footer", properties=middle)
    footer: Any = page.footer
    footer.is_linked_to_previous = False
    footer._element[:] = [number]


def _replace(properties: Any, new: Any) -> None:
    old = properties.find(new.tag)
    if old is not None:
        properties.replace(old, new)
    else:
        properties.insert(0, new)


_BULLETS = "•◦▪"
_DEEPEST = 9
_INDENT = 360
_AFTER_CONTENTS = 240
"""The space between the contents and the text, in twentieths of a point."""
"""The indentation of each level, in twentieths of a point."""


class Lists:
    """Creates the numberings of one document; each ordered list has its own."""

    def __init__(self, numbering: Any) -> None:
        self._numbering = numbering
        # Above the numbers of the template's own definitions, which are not used.
        self._abstract = 1_000
        numbering[:0] = [
            _definition(self._abstract + is_ordered, is_ordered=is_ordered) for is_ordered in (False, True)
        ]
        self.bullets = self._last = 1_000
        """The numbering that all unordered lists share."""
        self._add(self._abstract)

    def numbered(self, level: int, start: int) -> int:
        """Return the id of a new numbering that begins at `start`; `level` counts from 0."""
        self._last += 1
        first = element("startOverride", val=start)
        self._add(self._abstract + 1, element("lvlOverride", first, ilvl=min(level, _DEEPEST - 1)))
        return self._last

    def _add(self, abstract: int, *overrides: Any) -> None:
        kind = element("abstractNumId", val=abstract)
        self._numbering.append(element("num", kind, *overrides, numId=self._last))


def item_properties(list_: int, level: int) -> tuple[Any, ...]:
    """Return the properties of an item's first paragraph; `level` counts from 0."""
    return (element("numPr", element("ilvl", val=min(level, _DEEPEST - 1)), element("numId", val=list_)),)


def continuation_properties(level: int) -> tuple[Any, ...]:
    """Return the properties of the second and later paragraphs of an item."""
    return (element("ind", left=_INDENT * (min(level, _DEEPEST - 1) + 1)),)


def marked_entry_properties(level: int) -> tuple[Any, ...]:
    """Return the properties of an item whose text begins with its own number or sign."""
    return (element("ind", left=_INDENT * (min(level, _DEEPEST - 1) + 1), hanging=_INDENT),)


def _definition(number: int, *, is_ordered: bool) -> Any:
    levels = [
        element(
            "lvl",
            element("start", val=1),
            element("numFmt", val="decimal" if is_ordered else "bullet"),
            element("lvlText", val=f"%{level + 1}." if is_ordered else _BULLETS[level % len(_BULLETS)]),
            element("lvlJc", val="left"),
            element("pPr", element("ind", left=_INDENT * (level + 1), hanging=_INDENT)),
            ilvl=level,
        )
        for level in range(_DEEPEST)
    ]
    kind = element("multiLevelType", val="hybridMultilevel")
    return element("abstractNum", kind, *levels, abstractNumId=number)


_TWIPS = 19.5
"""Twentieths of a point in a point of `table_layout`, whose page has smaller margins."""
_LINE: dict[str, str | int] = {"val": "single", "sz": 4, "space": 0, "color": "D1D9E0"}


def tables(table: nodes.TableNode, runs: Runs) -> Iterator[Any]:
    """Yield the elements of a table."""
    rows = read_rows(table)
    for part in lay_out_table(rows, UPRIGHT_PAPER):
        yield _table(rows, part, runs)
        # Without a paragraph in between, Word would join two tables; a cell must also end with a paragraph.
        yield paragraph(properties=(element("spacing", before=0, after=60),))


def _table(rows: Sequence[Sequence[Cell]], part: TablePart, runs: Runs) -> Any:
    widths = [round(width * _TWIPS) for width in part.widths]
    borders = element("tblBorders", *(element(side, **_LINE) for side in ("top", "bottom", "insideH")))
    margins = element("tblCellMar", *(element(side, w=80, type="dxa") for side in ("left", "right")))
    size = element("tblW", w=sum(widths), type="dxa")
    properties = element("tblPr", size, borders, element("tblLayout", type="fixed"), margins)
    grid = element("tblGrid", *(element("gridCol", w=width) for width in widths))
    return element("tbl", properties, grid, *(_row(row, part, widths, runs) for row in rows))


def _row(row: Sequence[Cell], part: TablePart, widths: Sequence[int], runs: Runs) -> Any:
    is_head = bool(row) and row[0].is_head
    properties = element("trPr", element("cantSplit"), *([element("tblHeader")] if is_head else []))
    cells = [row[column] if column < len(row) else None for column in part.columns]
    style = _table_style(part.size)
    return element(
        "tr",
        properties,
        *(_cell(cell, width, style, runs) for cell, width in zip(cells, widths, strict=True)),
    )


def _cell(cell: Cell | None, width: int, style: str, runs: Runs) -> Any:
    properties = element("tcPr", element("tcW", w=width, type="dxa"))
    if cell is None:
        return element("tc", properties, paragraph())
    side = element("jc", val=cell.alignment or "left")
    spacing = element("spacing", before=40, after=40, line=240, lineRule="auto")
    shown = runs.of(cell.children, frozenset({BOLD}) if cell.is_head else NO_FORMATS)
    return element("tc", properties, paragraph(*shown, style=style, properties=(spacing, side)))


def _table_style(size: float) -> str:
    return f"Table{size * 10:.0f}"


@dataclass(slots=True)
class _Open:
    """An open list: the id of its numbering, and its item that has no paragraph yet."""

    number: int
    is_ordered: bool
    item: nodes.ListItemNode | None = None


class Body:
    """Creates the paragraphs and tables of one document."""

    def __init__(self, word: "WordDocument", report: ReportFile) -> None:
        self._word = word
        self._report = report
        self._document = report.document
        notes = number_footnotes(report.document.body)
        self._targets = LinkTargets(report.document.sources, notes)
        own = find_word_notes(report.document)
        self._word_notes = {number for label, number in notes.items() if label in own}
        self._referred = set[int]()
        self._runs = Runs(word.part, report.figures, self._targets, self._refer)
        self._colorer = CodeColorer()
        self._lists = Lists(word.part.numbering_part.element)
        self._open: list[_Open] = []
        self._quotes = 0
        self._style = ""
        """The style of paragraphs outside of lists and quotations."""
        self._bookmarks = 0

    def elements(self) -> Iterator[Any]:
        """Yield the elements of the document in order."""
        document = self._document
        yield paragraph(text_run(document.title), style="Title")
        for note in self._notes():
            yield paragraph(*note, style="About")
        if document.contents:
            yield paragraph(text_run(document.texts.contents), style="TOCHeading")
            yield from _contents(document.contents)
        yield from self._blocks(document.body)

    def _notes(self) -> Iterator[list[Any]]:
        texts = self._document.texts
        if self._report.date:
            yield [text_run(self._report.date)]
        if self._report.is_partial:
            yield [text_run(texts.partial)]
        if self._document.marks:
            yield [*self._runs.of((nodes.MarkNode(0, 0, MARK),)), text_run(f" {texts.unverified}")]

    def _blocks(self, blocks: Sequence[ReportBlock]) -> Iterator[Any]:
        for one in blocks:
            match one:
                case nodes.HeadingNode(level=level):
                    id_ = one.id if isinstance(one, AnchoredHeadingNode) else ""
                    yield self._paragraph(self._runs.of(one.children), f"Heading{level}", id_)
                case nodes.ParagraphNode():
                    yield self._paragraph(
                        self._runs.of(one.children), "Quote" if self._quotes else self._style
                    )
                case nodes.ListNode():
                    yield from self._list(one)
                case nodes.TableNode():
                    yield from tables(one, self._runs)
                case nodes.BlockQuoteNode():
                    yield from self._quote(one)
                case FootnoteListNode():
                    yield from self._footnotes(one)
                case _:
                    yield from self._leaf(one)

    def _leaf(self, one: ReportBlock) -> Iterator[Any]:
        match one:
            case nodes.FigureNode():
                yield self._paragraph(self._runs.of((one,)), "")
                if caption := shown_text(one.children):
                    yield paragraph(text_run(caption), style="Caption")
            case nodes.MathNode():
                yield self._paragraph([self._runs.formula(one, alone=True)], "")
            case nodes.CodeBlockNode(text=text, language=language):
                yield self._code(text, language)
            case nodes.MermaidNode(text=text):
                yield self._code(text, "")
            case nodes.ThematicBreakNode():
                yield _rule()
            case _:
                return

    def _list(self, list_: nodes.ListNode) -> Iterator[Any]:
        is_ordered = list_.first is not None
        number = self._lists.bullets
        if list_.first is not None:
            number = self._lists.numbered(len(self._open), list_.first)
        self._open.append(_Open(number, is_ordered))
        for item in list_.items:
            self._open[-1].item = item
            yield from self._blocks(item.children)
        self._open.pop()

    def _quote(self, quote: nodes.BlockQuoteNode) -> Iterator[Any]:
        self._quotes += 1
        if quote.callout:
            yield self._paragraph([text_run(quote.callout.capitalize(), frozenset({BOLD}))], "Quote")
        yield from self._blocks(quote.children)
        self._quotes -= 1

    def _footnotes(self, notes: FootnoteListNode) -> Iterator[Any]:
        own = [one for one in enumerate(notes.footnotes, start=1) if one[0] in self._word_notes]
        if own:
            self._add_notes(own)
        others = [one for one in enumerate(notes.footnotes, start=1) if one[0] not in self._word_notes]
        if others:
            yield _rule()
        for number, note in others:
            for index, one in enumerate(self._blocks(note.children)):
                if index == 0:
                    start = [text_run(f"{number} ", frozenset({DIM}))]
                    one[1:1] = self._bookmarked(f"footnote-{number}", start)
                yield one

    def _refer(self, number: int) -> list[Any]:
        """Return Word's reference to a footnote; it has one only, so that further ones are links to it."""
        if number not in self._word_notes or number in self._referred:
            return []
        self._referred.add(number)
        return self._bookmarked(f"footnote-{number}", [note_reference(number)])

    def _add_notes(self, notes: Sequence[tuple[int, nodes.FootnoteDefinitionNode]]) -> None:
        """Write the footnotes that Word shows on the pages of their references."""
        part = add_notes_part(self._word)
        text = self._runs
        self._runs, self._style = Runs(part, self._report.figures, self._targets), NOTE_STYLE
        for number, note in notes:
            add_note(part, number, list(self._blocks(note.children)))
        self._runs, self._style = text, ""

    def _paragraph(self, runs: list[Any], style: str, id_: str = "") -> Any:
        begun, list_style, properties = self._place_in_list()
        if isinstance(begun, SourceItemNode):
            runs, id_ = self._source(begun, runs), f"source-{begun.number}"
        elif begun is not None and begun.is_done is not None:
            runs = [text_run(f"{DONE if begun.is_done else OPEN} "), *runs]
        if id_:
            runs = self._bookmarked(id_, runs)
        return paragraph(*runs, style=style or list_style, properties=properties)

    def _source(self, item: SourceItemNode, runs: list[Any]) -> list[Any]:
        made = [text_run(f"[{item.number}] "), *runs]
        if item.got_on:
            made += [
                text_run(self._document.texts.comma),
                text_run(item.got_on, frozenset({DIM})),
            ]
        return made

    def _bookmarked(self, id_: str, runs: list[Any]) -> list[Any]:
        self._bookmarks += 1
        return add_bookmark(self._bookmarks, id_, runs)

    def _place_in_list(self) -> tuple[nodes.ListItemNode | None, str, tuple[Any, ...]]:
        """Return the item that begins with the next paragraph (or None), its style and its properties."""
        if not self._open:
            return None, "", ()
        inner, level = self._open[-1], len(self._open) - 1
        begun, inner.item = inner.item, None
        if begun is None:
            return None, "ListContinue", continuation_properties(level)
        if isinstance(begun, SourceItemNode) or begun.is_done is not None:
            return begun, "ListContinue", marked_entry_properties(level)
        return begun, "ListNumber" if inner.is_ordered else "ListBullet", item_properties(inner.number, level)

    def _code(self, content: str, language: str) -> Any:
        _, _, properties = self._place_in_list()
        text = content.rstrip("\n").replace("\t", "    ")
        runs = [_code_run(one) for one in self._colorer.color(text, language)]
        return paragraph(*runs, style="Code", properties=properties)


def _code_run(part: CodePart) -> Any:
    content: list[Any] = []
    for number, line in enumerate(part.text.split("\n")):
        content += [element("br")] if number else []
        content += [text_element("t", line)] if line else []
    color = CODE_COLORS.get(part.kind)
    return run(*content, properties=(element("color", val=color),) if color else ())


def _contents(headings: Sequence[ContentsEntry]) -> Iterator[Any]:
    """Yield the entries as the cached result of a table of contents, which Word updates with page numbers."""
    opening, closing = field(r"TOC \o 1-3 \h \z \u")
    for index, heading in enumerate(headings):
        link = internal_link(heading.id)
        link.append(text_run(heading.text))
        before = opening if index == 0 else []
        is_last = index == len(headings) - 1
        after = closing if is_last else []
        gap = (element("spacing", after=_AFTER_CONTENTS),) if is_last else ()
        yield paragraph(*before, link, *after, style=f"toc{heading.level}", properties=gap)


def _rule() -> Any:
    line = element("bottom", val="single", sz=6, space=1, color="D1D9E0")
    return paragraph(properties=(element("pBdr", line),))


def render_docx(report: ReportFile) -> bytes:
    """Return the report as an Office Open XML file. Blocks for up to some seconds."""
    from docx import Document as new_document

    word = new_document()
    prepare(word, report.document.language)
    describe_file(word.core_properties, report)
    for one in filter(None, (word.part.package, word.part)):
        _drop_unused(one.rels)
    body = word.element.body
    page = body[-1]
    body.remove(page)
    body.extend(Body(word, report).elements())
    body.append(page)
    file = io.BytesIO()
    word.save(file)
    return file.getvalue()


def _drop_unused(relations: dict[str, Any]) -> None:
    """Remove the template's thumbnail and its Word 2010 styles, which no reader needs."""
    for name, relation in list(relations.items()):
        if relation.reltype.endswith(("/thumbnail", "/stylesWithEffects")):
            del relations[name]
