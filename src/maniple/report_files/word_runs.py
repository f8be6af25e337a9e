"""Text runs of the paragraphs of a Word document, and the WordprocessingML elements that they consist of.

The order of properties follows the schema (ISO/IEC 29500-1, 17).
"""

import io
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]
from markdown_it.token import Token

from maniple.reading.formula_syntax import FORMULA
from maniple.report_files.markdown import FIGURE
from maniple.run_page.pictures import Figure

_MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONSHIP = f"{{{_OFFICE}}}id"
_PREFIXES = {"w": _MAIN, "r": _OFFICE}
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def element(name: str, /, *inner: Any, **attributes: str | int) -> Any:
    """Return the element `w:name` with `inner` elements; the attribute `r_id` is `r:id`, others are `w:`."""
    # python-docx's own elements take ten times as long to create, and a table has many.
    made = etree.Element(_name(name), nsmap=_PREFIXES)
    for key, value in attributes.items():
        made.set(_RELATIONSHIP if key == "r_id" else _name(key), str(value))
    for one in inner:
        made.append(one)
    return made


def text_element(name: str, text: str) -> Any:
    """Return `w:t` or another element of text, with its white space preserved."""
    made = element(name)
    made.text = text
    made.set(_SPACE, "preserve")
    return made


def run(*content: Any, properties: tuple[Any, ...] = ()) -> Any:
    """Return a run."""
    return element("r", *([element("rPr", *properties)] if properties else []), *content)


def paragraph(*content: Any, style: str = "", properties: tuple[Any, ...] = ()) -> Any:
    """Return a paragraph."""
    named = [element("pStyle", val=style)] if style else []
    return element("p", element("pPr", *named, *properties), *content)


def field(code: str) -> tuple[list[Any], list[Any]]:
    """Return the runs before and after the cached result of a field (17.16), which Word updates."""
    begin, separate, end = (run(element("fldChar", fldCharType=kind)) for kind in _FIELD)
    return [begin, run(text_element("instrText", code)), separate], [end]


_FIELD = ("begin", "separate", "end")


@cache
def _name(local: str) -> str:
    return f"{{{_MAIN}}}{local}"


_MAX_LINKS = 1_000
_MAX_LINK_LENGTH = 2_000
_EMU = 9_525
"""English Metric Units of a pixel, at 96 pixels an inch."""
_PICTURE_WIDTH, _PICTURE_HEIGHT = 620, 454
"""The largest size of a figure, in pixels. It fits within the margins, and leaves room for text about it."""
_WORD_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif"})
_HOST = re.compile(r"(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?")


class Runs:
    """Creates the runs of one document, and its relationships to the targets of links."""

    def __init__(self, part: Any, figures: Mapping[str, Figure]) -> None:
        self._part = part
        self._figures = figures
        self._addresses: dict[str, str] = {}

    def of(self, children: Sequence[Token] | None) -> list[Any]:
        """Return the children of an inline token as runs and links."""
        line: list[Any] = []
        link: Any = None
        formats: list[str] = []
        for one in children or ():
            name = one.type.partition("_")[0]
            if name == "link":
                link = self._link(str(one.attrGet("href") or "")) if one.nesting > 0 else None
                line += [] if link is None else [link]
            elif one.nesting > 0:
                formats.append(name)
            elif one.nesting < 0:
                formats.remove(name)
            else:
                made = self._picture(one) if one.type == FIGURE else None
                if made is None:
                    made = _run(one, formats, is_link=link is not None)
                (line if link is None else link).append(made)
        return line

    def _picture(self, token: Token) -> Any:
        """Return a run that shows a figure; None for a figure that Word cannot show."""
        figure = self._figures[str(token.attrGet("src"))]
        scale = min(1, _PICTURE_WIDTH / figure.info.width, _PICTURE_HEIGHT / figure.info.height)
        width, height = (max(round(one * scale) * _EMU, 1) for one in (figure.info.width, figure.info.height))
        try:
            inline = self._part.new_pic_inline(io.BytesIO(_word_picture(figure)), width, height)
        except Exception:  # noqa: BLE001 - of a damaged picture, the libraries raise various errors
            return None
        inline.docPr.set("descr", token.content)
        return run(element("drawing", inline))

    def _link(self, href: str) -> Any:
        if href.startswith("#"):
            return element("hyperlink", anchor=bookmark_name(href[1:]), history=1)
        if href not in self._addresses and (len(self._addresses) >= _MAX_LINKS or not _is_address(href)):
            return None
        if href not in self._addresses:
            from docx.opc.constants import RELATIONSHIP_TYPE

            self._addresses[href] = self._part.relate_to(href, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
        return element("hyperlink", r_id=self._addresses[href], history=1)


def _word_picture(figure: Figure) -> bytes:
    """Return a picture in a format that Word shows."""
    if figure.info.media_type in _WORD_PICTURES:
        return figure.content
    from PIL import Image

    converted = io.BytesIO()
    with Image.open(io.BytesIO(figure.content)) as picture:
        picture.save(converted, "PNG")
    return converted.getvalue()


def bookmark_name(id_: str) -> str:
    """Return the name of the bookmark for the element `id_`."""
    return id_.replace("-", "_")


def add_bookmark(number: int, id_: str, runs: Sequence[Any]) -> list[Any]:
    """Return `runs` inside of the bookmark for `id_`; `number` is unique in the document."""
    start = element("bookmarkStart", id=number, name=bookmark_name(id_))
    return [start, *runs, element("bookmarkEnd", id=number)]


def _run(token: Token, formats: Sequence[str], *, is_link: bool) -> Any:
    properties: list[Any] = []
    if token.type == "code_inline":
        properties.append(element("rStyle", val="InlineCode"))
    elif is_link:
        properties.append(element("rStyle", val="Hyperlink"))
    if token.type == FORMULA:
        properties += [element("rFonts", ascii="Cambria Math", hAnsi="Cambria Math"), element("i")]
    properties += [element(tag) for name, tag in _TOGGLES if name in formats]
    if "small" in formats:
        properties.append(element("color", val="59636E"))
    if "mark" in formats:
        properties.append(element("highlight", val="yellow"))
    return run(_content(token), properties=tuple(properties))


_TOGGLES = (("strong", "b"), ("em", "i"), ("s", "strike"))


def _content(token: Token) -> Any:
    if token.type == "hardbreak":
        return element("br")
    return text_element("t", " " if token.type == "softbreak" else token.content.replace("\n", " "))


def _is_address(href: str) -> bool:
    """Whether Word accepts an address. It rejects a whole file for one address that it does not accept."""
    try:
        parts = urlsplit(href)
        is_place = parts.scheme == "mailto" or _HOST.fullmatch(parts.netloc) is not None
        return len(href) <= _MAX_LINK_LENGTH and is_place
    except ValueError:
        return False
