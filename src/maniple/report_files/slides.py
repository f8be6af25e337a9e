"""A report as a PowerPoint presentation: a cover, contents, and slides for its sections and sources."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from maniple.report_files.document import ReportFile
from maniple.report_files.office_files import CODE_COLORS, describe_file, is_office_address, office_picture
from maniple.report_files.slide_deck import (
    BODY_HEIGHT,
    BODY_WIDTH,
    CELL_MARGIN,
    SIZES,
    SPACE_BEFORE,
    Deck,
    DeckSlide,
    SlideFigure,
    SlideLine,
    SlideTable,
    lay_out_deck,
)
from maniple.report_files.slide_text import (
    BOLD,
    CODE,
    DIM,
    ITALIC,
    LOWERED,
    MARKED,
    RAISED,
    STRUCK,
    Pieces,
    TextPiece,
    text_of,
)

_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SLIDE_LINK = f"{_RELATIONSHIPS}/slide"
_POINT = 12_700
"""English Metric Units of a point."""
_PIXEL = 9_525
_WIDTH, _HEIGHT = 960, 540
"""The size of a slide, in points."""
_LEFT = (_WIDTH - BODY_WIDTH) / 2
_TITLE_TOP, _TITLE_HEIGHT, _BODY_TOP = 24, 76, 112
_CAPTION_HEIGHT = 44
_COVER, _TEXT, _TITLE_ONLY = 0, 1, 5
"""The layouts of the library's template that are used."""
_INK, _DIM, _LINK = "1F2328", "59636E", "0550AE"
_INKS: dict[str, str] = {DIM: _DIM, **CODE_COLORS}
_TITLE_SIZES = ((50, 28), (110, 24))
"""The size of a title in points, by the number of characters up to which it is used."""
_SMALLEST_TITLE = 18
_NUMBER_WIDTH = 90
_EAST = {"ja": "Yu Gothic", "ko": "Malgun Gothic"}
_CHANGES = {BOLD: ("b", "1"), ITALIC: ("i", "1"), STRUCK: ("strike", "sngStrike")}
_BASELINES = {RAISED: "30000", LOWERED: "-25000"}


def render_pptx(report: ReportFile) -> bytes:
    """Return the report as an Office Open XML presentation. Blocks for up to some seconds."""
    from pptx import Presentation

    presentation = Presentation()
    _set_layouts(presentation, report.document.language)
    describe_file(presentation.core_properties, report)
    deck = lay_out_deck(report)
    slides = presentation.slides  # each look at it renames all parts
    made = [slides.add_slide(_layout_of(presentation, one, at)) for at, one in enumerate(deck.slides)]
    writer = _SlideWriter(report, deck, made)
    for number, (slide, content) in enumerate(zip(made, deck.slides, strict=True), start=1):
        writer.write(slide, content)
        if number > 1:
            _add_number(slide, number)
    file = io.BytesIO()
    presentation.save(file)
    return file.getvalue()


def _layout_of(presentation: Any, slide: DeckSlide, at: int) -> Any:
    cover, text, title_only = presentation.slide_layouts
    if at == 0:
        return cover
    return text if isinstance(slide.content, tuple) and slide.content else title_only


def _set_layouts(presentation: Any, language: str) -> None:
    """Give the library's template, which is 4 to 3 and centred, a wide page and plain styles."""
    presentation.slide_width, presentation.slide_height = _WIDTH * _POINT, _HEIGHT * _POINT
    layouts = presentation.slide_layouts
    used = [layouts[one] for one in (_COVER, _TEXT, _TITLE_ONLY)]
    for one in [one for one in layouts if one not in used]:
        layouts.remove(one)
    for place in (presentation.slide_master, *used):
        for shape in [*place.placeholders]:
            _place_in_layout(shape, is_cover=place is used[0])
    _set_styles(presentation.slide_master, _EAST.get(language, "Microsoft YaHei"))
    for body in used[0]._element.iter(_name("lvl1pPr")):
        body.set("algn", "l")


def _place_in_layout(shape: Any, *, is_cover: bool) -> None:
    number = shape.placeholder_format.idx
    if _is_number(shape):
        _place(shape, _LEFT + BODY_WIDTH - _NUMBER_WIDTH, _HEIGHT - 36, _NUMBER_WIDTH, 24)
    elif number > 1:  # date and footer, which the slides do not have
        shape._element.getparent().remove(shape._element)
    elif is_cover:
        _place(shape, _LEFT, 290 if number else 130, BODY_WIDTH, 150)
    elif number == 0:
        _place(shape, _LEFT, _TITLE_TOP, BODY_WIDTH, _TITLE_HEIGHT)
    else:
        _place(shape, _LEFT, _BODY_TOP, BODY_WIDTH, BODY_HEIGHT)


def _is_number(shape: Any) -> bool:
    """Whether it is the placeholder of the number of the slide."""
    from pptx.enum.shapes import PP_PLACEHOLDER

    return shape.placeholder_format.type == PP_PLACEHOLDER.SLIDE_NUMBER


def _set_styles(master: Any, east: str) -> None:
    styles = master._element.find(".//{*}txStyles")
    for style in styles[0], styles[1]:
        for level in style:
            level.set("algn", "l")
            points = 28 if style is styles[0] else SIZES["text"]
            properties = level.find(_name("defRPr"))
            if properties is not None:
                properties.set("sz", str(int(points * 100)))
                properties.find(_name("ea")).set("typeface", east)
    styles[0][0].find(_name("defRPr")).set("b", "1")
    for shape in master.placeholders:
        if "TITLE" in str(shape.placeholder_format.type):
            shape._element.find(f".//{_name('bodyPr')}").set("anchor", "b")


def _place(shape: Any, left: float, top: float, width: float, height: float) -> None:
    shape.left, shape.top = int(left * _POINT), int(top * _POINT)
    shape.width, shape.height = int(width * _POINT), int(height * _POINT)


class _SlideWriter:
    """Fills the slides of one presentation."""

    def __init__(self, report: ReportFile, deck: Deck, slides: Sequence[Any]) -> None:
        self._report = report
        self._deck = deck
        self._slides = slides
        language = report.document.language
        self._language = "zh-CN" if language == "zh" else language

    def write(self, slide: Any, content: DeckSlide) -> None:
        """Fill a slide, which has the placeholders of its layout."""
        is_cover = slide is self._slides[0]
        self._write_title(slide, content.title, is_cover=is_cover)
        match content.content:
            case SlideTable():
                self._write_table(slide, content.content)
            case SlideFigure():
                self._write_figure(slide, content.content)
            case lines if is_cover:
                body = slide.placeholders[1].text_frame._txBody
                _fill(body, [self._paragraph(slide, one, color=_DIM) for one in lines])
            case lines if lines:
                body = slide.placeholders[1].text_frame._txBody
                _fill(body, [self._paragraph(slide, one) for one in lines])
                if any(one.whole for one in lines):
                    whole = "\n".join(one.whole or text_of(one.pieces) for one in lines)
                    slide.notes_slide.notes_text_frame.text = whole
            case _:
                pass

    def _write_title(self, slide: Any, title: Pieces, *, is_cover: bool) -> None:
        length = len(text_of(title))
        size = next((points for limit, points in _TITLE_SIZES if length <= limit), _SMALLEST_TITLE)
        runs = self._runs(slide, title, size * (1.3 if is_cover else 1))
        _fill(slide.shapes.title.text_frame._txBody, [_make("p", *runs)])

    def _paragraph(self, slide: Any, line: SlideLine, color: str = "") -> Any:
        properties = _make(
            "pPr",
            _make("spcBef", _make("spcPts", val=SPACE_BEFORE * 100 if line.kind != "code" else 0)),
            _make("buNone"),
            marL=line.left * _POINT,
            indent=-line.hanging * _POINT,
            lvl=line.level,
        )
        formats = frozenset({BOLD} if line.kind == "heading" else ())
        pieces = [TextPiece(one.text, one.formats | formats, one.target) for one in line.pieces]
        if line.bullet:
            pieces.insert(0, TextPiece(f"{line.bullet}\t"))
        size = 14 if color else line.size
        return _make("p", properties, *self._runs(slide, pieces, size, color))

    def _runs(self, slide: Any, pieces: Sequence[TextPiece], size: float, color: str = "") -> Iterator[Any]:
        for one in pieces:
            for number, text in enumerate(one.text.split("\n")):
                if number:
                    yield _make("br")
                if text:
                    shown = _make("t")
                    shown.text = text
                    yield _make("r", self._run_properties(slide, one, size, color), shown)

    def _run_properties(self, slide: Any, piece: TextPiece, size: float, color: str) -> Any:
        formats = piece.formats
        made = _make("rPr", lang=self._language, sz=int(size * 100), dirty=0)
        for one in formats:
            if one in _CHANGES:
                made.set(*_CHANGES[one])
            elif one in _BASELINES:
                made.set("baseline", _BASELINES[one])
        link = self._link(slide, piece.target)
        ink = next((shade for kind, shade in _INKS.items() if kind in formats), _INK)
        paint = color or (_LINK if link is not None else ink)
        made.append(_make("solidFill", _make("srgbClr", val=paint)))
        if MARKED in formats:
            made.append(_make("highlight", _make("srgbClr", val="FFF1B8")))
        if CODE in formats:
            made.append(_make("latin", typeface="Consolas"))
        if link is not None:
            made.append(link)
        return made

    def _link(self, slide: Any, target: str) -> Any:
        """Return a link to a slide or an address; None if it leads nowhere."""
        if target.startswith("#"):
            index = self._deck.anchors.get(target[1:])
            if index is None or index >= len(self._slides):
                return None
            link = _make("hlinkClick", action="ppaction://hlinksldjump")
            related = slide.part.relate_to(self._slides[index].part, _SLIDE_LINK)
        elif target and is_office_address(target):
            link = _make("hlinkClick")
            related = slide.part.relate_to(target, f"{_RELATIONSHIPS}/hyperlink", is_external=True)
        else:
            return None
        link.set(f"{{{_RELATIONSHIPS}}}id", related)
        return link

    def _write_table(self, slide: Any, table: SlideTable) -> None:
        widths = [round(width * _POINT) for width in table.part.widths]
        area = (int(_LEFT * _POINT), _BODY_TOP * _POINT, sum(widths), 20 * _POINT)
        frame = slide.shapes.add_table(1, 1, *area)
        # The library's own cells take ten times as long to create, and a table has many.
        made = frame._element.graphic.graphicData.tbl
        for one in [*made][1:]:
            made.remove(one)
        made.append(_make("tblGrid", *(_make("gridCol", w=width) for width in widths)))
        for number, row in enumerate(table.rows):
            color = "FFFFFF" if number < table.heads else ""
            cells = [
                self._cell(slide, cell, side, table.part.size, color)
                for cell, side in zip(row, table.alignments, strict=True)
            ]
            made.append(_make("tr", *cells, h=20 * _POINT))

    def _cell(self, slide: Any, cell: Pieces | None, side: str, size: float, color: str) -> Any:
        runs = self._runs(slide, cell or (), size, color)
        algn = {"center": "ctr", "right": "r"}.get(side, "l")
        text = _make("p", _make("pPr", algn=algn), *runs)
        space = CELL_MARGIN * _POINT
        margins = {"marL": space, "marR": space, "marT": space, "marB": space}
        return _make(
            "tc", _make("txBody", _make("bodyPr"), _make("lstStyle"), text), _make("tcPr", **margins)
        )

    def _write_figure(self, slide: Any, shown: SlideFigure) -> None:
        figure = self._report.figures[shown.path]
        room = BODY_HEIGHT - (_CAPTION_HEIGHT if shown.caption else 0)
        width, height = (one * _PIXEL / _POINT for one in (figure.info.width, figure.info.height))
        scale = min(BODY_WIDTH / width, room / height, 2)
        width, height = max(width * scale, 1), max(height * scale, 1)
        try:
            content = io.BytesIO(office_picture(figure))
            picture = slide.shapes.add_picture(content, 0, 0, 1, 1)
        except Exception:  # noqa: BLE001 - of a damaged picture, the libraries raise various errors
            height = 0.0
        else:
            picture._element.nvPicPr.cNvPr.set("descr", shown.description)
            _place(picture, (_WIDTH - width) / 2, _BODY_TOP, width, height)
        if shown.caption:
            box = slide.shapes.add_textbox(0, 0, 1, 1)
            _place(box, _LEFT, _BODY_TOP + height + 4, BODY_WIDTH, _CAPTION_HEIGHT)
            box.text_frame.word_wrap = True
            runs = self._runs(slide, (TextPiece(shown.caption, frozenset({DIM})),), SIZES["source"])
            _fill(box.text_frame._txBody, [_make("p", _make("pPr", algn="ctr"), *runs)])


def _add_number(slide: Any, number: int) -> None:
    """Add the number of the slide, which the library does not take over from the layout."""
    for shape in slide.slide_layout.placeholders:
        if _is_number(shape):
            made = deepcopy(shape._element)
            ids = [one.shape_id for one in slide.shapes]
            made.nvSpPr.cNvPr.set("id", str(max(ids, default=1) + 1))
            for text in made.iter(_name("t")):
                text.text = str(number)
            slide.shapes._spTree.append(made)


def _fill(body: Any, paragraphs: Sequence[Any]) -> None:
    """Replace the paragraphs of a text body, which must have at least one."""
    for one in body.findall(_name("p")):
        body.remove(one)
    body.extend(paragraphs or [_make("p")])


def _make(name: str, /, *inner: Any, **attributes: str | int) -> Any:
    made = etree.Element(_name(name), nsmap={"a": _DRAWING, "r": _RELATIONSHIPS})
    for key, value in attributes.items():
        made.set(key, str(value))
    made.extend(inner)
    return made


def _name(local: str) -> str:
    return f"{{{_DRAWING}}}{local}"
