"""The words of a paragraph of a Word document."""

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from markdown_it.token import Token

from maniple.report_files.formulas import TOKEN
from maniple.report_files.markdown import FIGURE
from maniple.report_files.word_xml import element, preserved, run
from maniple.run_page.pictures import Figure

_MOST_LINKS = 1_000
_LONGEST_LINK = 2_000
_EMU = 9_525
"""English Metric Units of a pixel, at 96 pixels an inch."""
_PICTURE_WIDTH, _PICTURE_HEIGHT = 620, 800
"""The largest size of a figure, in pixels: what fits within the page's margins."""
_WORD_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif"})
_HOST = re.compile(r"(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?")


class Runs:
    """Makes runs for one document, which knows the addresses that its links lead to."""

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
        """Return a run that shows a figure; None for one that Word would not show."""
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
            return element("hyperlink", anchor=place(href[1:]), history=1)
        if href not in self._addresses and (len(self._addresses) >= _MOST_LINKS or not _is_address(href)):
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


def place(id_: str) -> str:
    """Return the name of the bookmark for the element `id_`."""
    return id_.replace("-", "_")


def bookmarked(number: int, id_: str, runs: Sequence[Any]) -> list[Any]:
    """Return `runs` as the place that links to `id_` lead to; `number` is unique in the document."""
    start = element("bookmarkStart", id=number, name=place(id_))
    return [start, *runs, element("bookmarkEnd", id=number)]


def _run(token: Token, formats: Sequence[str], *, is_link: bool) -> Any:
    properties: list[Any] = []
    if token.type == "code_inline":
        properties.append(element("rStyle", val="InlineCode"))
    elif is_link:
        properties.append(element("rStyle", val="Hyperlink"))
    if token.type == TOKEN:
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
    return preserved("t", " " if token.type == "softbreak" else token.content.replace("\n", " "))


def _is_address(href: str) -> bool:
    """Whether Word takes an address: one that it does not, makes it refuse the whole file."""
    try:
        parts = urlsplit(href)
        is_place = parts.scheme == "mailto" or _HOST.fullmatch(parts.netloc) is not None
        return len(href) <= _LONGEST_LINK and is_place
    except ValueError:
        return False
