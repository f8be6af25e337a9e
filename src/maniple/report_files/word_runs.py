"""The words of a paragraph of a Word document."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from markdown_it.token import Token

from maniple.report_files.formulas import TOKEN
from maniple.report_files.word_xml import element, preserved, run

_MOST_LINKS = 1_000
_LONGEST_LINK = 2_000
_HOST = re.compile(r"(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?")


class Runs:
    """Makes runs for one document, which knows the addresses that its links lead to."""

    def __init__(self, part: Any) -> None:
        self._part = part
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
                (line if link is None else link).append(_run(one, formats, is_link=link is not None))
        return line

    def _link(self, href: str) -> Any:
        if href.startswith("#"):
            return element("hyperlink", anchor=place(href[1:]), history=1)
        if href not in self._addresses and (len(self._addresses) >= _MOST_LINKS or not _is_address(href)):
            return None
        if href not in self._addresses:
            from docx.opc.constants import RELATIONSHIP_TYPE

            self._addresses[href] = self._part.relate_to(href, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
        return element("hyperlink", r_id=self._addresses[href], history=1)


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
