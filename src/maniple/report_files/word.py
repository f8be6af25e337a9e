"""A report as a Word document: its styles, lists, tables and text."""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from markdown_it.token import Token

from maniple.evidence.check import MARK
from maniple.report_files.document import Document, Heading
from maniple.report_files.markdown import FIGURE, text_token, wrap_tokens
from maniple.report_files.table_layout import SIZES, Cell, TablePart, lay_out_table, read_rows
from maniple.report_files.word_runs import (
    Runs,
    add_bookmark,
    bookmark_name,
    element,
    field,
    paragraph,
    run,
    text_element,
)
from maniple.run_page.pictures import Figure

if TYPE_CHECKING:
    from docx.document import Document as WordDocument
    from docx.opc.coreprops import CoreProperties
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


def source_entry_properties(level: int) -> tuple[Any, ...]:
    """Return the properties of an entry of the list of sources, whose text contains its number."""
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


def tables(tokens: Sequence[Token], runs: Runs) -> Iterator[Any]:
    """Yield the elements of a table; `tokens` are those between its opening and its closing token."""
    rows = read_rows(tokens)
    for part in lay_out_table(rows, may_turn=False):
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
    side = element("jc", val=str(cell.opening.attrGet("class") or "left"))
    spacing = element("spacing", before=40, after=40, line=240, lineRule="auto")
    children = cell.words.children or []
    if cell.is_head:
        children = [Token("strong_open", "strong", 1), *children, Token("strong_close", "strong", -1)]
    return element("tc", properties, paragraph(*runs.of(children), style=style, properties=(spacing, side)))


def _table_style(size: float) -> str:
    return f"Table{size * 10:.0f}"


@dataclass(slots=True)
class _Open:
    """An open list: the id of its numbering, and its item that has no paragraph yet."""

    number: int
    is_ordered: bool
    item: Token | None = None


class Body:
    """Creates the paragraphs and tables of one document."""

    def __init__(self, part: Any, figures: Mapping[str, Figure]) -> None:
        self._runs = Runs(part, figures)
        self._lists = Lists(part.numbering_part.element)
        self._open: list[_Open] = []
        self._quotes = 0
        self._places = 0

    def of(self, document: Document) -> Iterator[Any]:
        """Yield the elements of the document in order."""
        yield paragraph(run(text_element("t", document.title)), style="Title")
        for note in _notes(document):
            yield paragraph(*self._runs.of(note), style="About")
        if document.contents:
            yield paragraph(run(text_element("t", document.texts.contents)), style="TOCHeading")
            yield from _contents(document.contents)
        yield from self._blocks(document.body)

    def _blocks(self, tokens: Sequence[Token]) -> Iterator[Any]:
        begun = 0
        for index, token in enumerate(tokens):
            match token.type:
                case "heading_open":
                    yield self._paragraph(token, tokens[index + 1], f"Heading{token.tag[1:]}")
                case "paragraph_open":
                    yield self._paragraph(token, tokens[index + 1], "Quote" if self._quotes else "")
                    yield from _caption(tokens[index + 1])
                case "fence" | "code_block":
                    yield self._code(token.content)
                case "hr":
                    yield _rule()
                case "table_open":
                    begun = index
                case "table_close":
                    yield from tables(tokens[begun:index], self._runs)
                case _:
                    self._enter(token)

    def _enter(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open":
                self._open.append(_Open(self._lists.bullets, is_ordered=False))
            case "ordered_list_open":
                number = self._lists.numbered(len(self._open), int(token.attrGet("start") or 1))
                self._open.append(_Open(number, is_ordered=True))
            case "bullet_list_close" | "ordered_list_close":
                self._open.pop()
            case "list_item_open":
                self._open[-1].item = token
            case "blockquote_open" | "blockquote_close":
                self._quotes += token.nesting

    def _paragraph(self, opening: Token, words: Token, style: str) -> Any:
        runs = self._runs.of(words.children)
        begun, list_style, properties = self._place_in_list()
        for one in (opening, begun):
            if one is not None and (id_ := one.attrGet("id")):
                self._places += 1
                runs = add_bookmark(self._places, str(id_), runs)
        return paragraph(*runs, style=style or list_style, properties=properties)

    def _place_in_list(self) -> tuple[Token | None, str, tuple[Any, ...]]:
        """Return the item that begins with the next paragraph (or None), its style and its properties."""
        if not self._open:
            return None, "", ()
        inner, level = self._open[-1], len(self._open) - 1
        begun, inner.item = inner.item, None
        if begun is None:
            return None, "ListContinue", continuation_properties(level)
        if begun.attrGet("id"):
            return begun, "ListContinue", source_entry_properties(level)
        return begun, "ListNumber" if inner.is_ordered else "ListBullet", item_properties(inner.number, level)

    def _code(self, content: str) -> Any:
        _, _, properties = self._place_in_list()
        parts: list[Any] = []
        for line in content.rstrip("\n").replace("\t", "    ").split("\n"):
            parts += [element("br"), text_element("t", line)] if parts else [text_element("t", line)]
        return paragraph(run(*parts), style="Code", properties=properties)


def _notes(document: Document) -> Iterator[list[Token]]:
    if document.date:
        yield [text_token(document.date)]
    if document.is_partial:
        yield [text_token(document.texts.partial)]
    if document.marks:
        yield [*wrap_tokens("mark", "mark", [text_token(MARK)]), text_token(f" {document.texts.unverified}")]


def _contents(headings: Sequence[Heading]) -> Iterator[Any]:
    """Yield the entries as the cached result of a table of contents, which Word updates with page numbers."""
    opening, closing = field(r"TOC \o 1-3 \h \z \u")
    for index, heading in enumerate(headings):
        link = element(
            "hyperlink", run(text_element("t", heading.text)), anchor=bookmark_name(heading.id), history=1
        )
        before = opening if index == 0 else []
        after = closing if index == len(headings) - 1 else []
        yield paragraph(*before, link, *after, style=f"toc{heading.level}")


def _caption(words: Token) -> Iterator[Any]:
    """Yield the caption of a figure that is a paragraph of its own."""
    for one in words.children or ():
        if one.type == FIGURE and one.info == "block" and one.content:
            yield paragraph(run(text_element("t", one.content)), style="Caption")


def _rule() -> Any:
    line = element("bottom", val="single", sz=6, space=1, color="D1D9E0")
    return paragraph(properties=(element("pBdr", line),))


_MAX_TITLE = 255
"""Word's limit for a property, in characters."""
_EARLIEST = 315_532_800
"""1980 in Unix seconds, the earliest date that a ZIP file can hold."""


def render_docx(document: Document) -> bytes:
    """Return the document as an Office Open XML file. Blocks for up to some seconds."""
    from docx import Document as new_document

    word = new_document()
    prepare(word, document.language)
    _describe(word.core_properties, document)
    for one in filter(None, (word.part.package, word.part)):
        _drop_unused(one.rels)
    body = word.element.body
    page = body[-1]
    body.remove(page)
    body.extend(Body(word.part, document.figures).of(document))
    body.append(page)
    file = io.BytesIO()
    word.save(file)
    return file.getvalue()


def _drop_unused(relations: dict[str, Any]) -> None:
    """Remove the template's thumbnail and its Word 2010 styles, which no reader needs."""
    for name, relation in list(relations.items()):
        if relation.reltype.endswith(("/thumbnail", "/stylesWithEffects")):
            del relations[name]


def _describe(core: "CoreProperties", document: Document) -> None:
    ended_at = datetime.fromtimestamp(max(document.ended_at or 0, _EARLIEST), UTC).replace(tzinfo=None)
    core.title, core.language = document.title[:_MAX_TITLE], document.language
    core.author = core.last_modified_by = "maniple"
    core.comments, core.revision = "", 1
    core.created = core.modified = ended_at
