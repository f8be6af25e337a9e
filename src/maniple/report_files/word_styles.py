"""How a Word document looks: fonts, styles and the page."""

from typing import TYPE_CHECKING, Any

from maniple.report_files.word_xml import element, field, paragraph, preserved, run

if TYPE_CHECKING:
    from docx.document import Document
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


def prepare(word: "Document", language: str) -> None:
    """Give an empty document its styles, in the fonts for `language`, and a page with its number."""
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
    for level in (1, 2, 3):
        entry = add(f"toc {level}", KIND.PARAGRAPH, "Normal")
        entry.paragraph_format.space_after = Pt(2)
        entry.paragraph_format.left_indent = Pt(12 * max(level - 2, 0))


def _set_page(word: "Document") -> None:
    from docx.shared import Mm

    page = word.sections[0]
    page.page_width, page.page_height = Mm(210), Mm(297)
    page.left_margin = page.right_margin = page.top_margin = page.bottom_margin = Mm(22)
    opening, closing = field("PAGE")
    middle = (element("jc", val="center"),)
    number = paragraph(*opening, run(preserved("t", "1")), *closing, style="Footer", properties=middle)
    footer: Any = page.footer
    footer.is_linked_to_previous = False
    footer._element[:] = [number]


def _replace(properties: Any, new: Any) -> None:
    old = properties.find(new.tag)
    if old is not None:
        properties.replace(old, new)
    else:
        properties.insert(0, new)
