"""A page and those in its frames, read as one; hostile ones take long, so in a process of its own."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from maniple.reading.encoding import decode
from maniple.reading.html import base_of, parse, read_html, resolved, title_of
from maniple.reading.result import Reading

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# More are on no page that anybody reads, and making each absolute takes its time.
_MAX_LINKS = 20_000


@dataclass(frozen=True, slots=True)
class Framed:
    """HTML as it came, and where from; `charset` is what its server calls its encoding."""

    url: str
    charset: str | None
    body: bytes


def packed(pages: Sequence[Framed]) -> bytes:
    """A page and those in its frames as one body, for `read_frames`."""
    contents = [[page.url, page.charset, len(page.body)] for page in pages]
    return b"".join([json.dumps(contents).encode(), b"\n", *(page.body for page in pages)])


def read_frames(body: bytes, url: str) -> Reading:
    """A section for each of the frames of the page at `url`, under its title; `body` is `packed`."""
    page, *frames = _unpacked(body)
    title = escape(title_of(_parsed(page)))
    sections = "".join(map(_section, frames))
    return read_html(f"<html><head><title>{title}</title></head><body>{sections}</body></html>", url)


def _unpacked(body: bytes) -> list[Framed]:
    first_line, _, rest = body.partition(b"\n")
    contents = json.loads(first_line)
    ends = [0]
    for _, _, length in contents:
        ends.append(ends[-1] + length)
    pieces = [rest[begin:end] for begin, end in pairwise(ends)]
    return [Framed(url, charset, piece) for (url, charset, _), piece in zip(contents, pieces, strict=True)]


def _parsed(page: Framed) -> "HtmlElement":
    return parse(decode(page.body, page.charset))


def _section(frame: Framed) -> str:
    from lxml import html

    page = _parsed(frame)
    base = base_of(page, frame.url)
    # Not lxml's own way: it looks into styles, too, in quadratic time.
    for element in islice(page.iter("a", "img"), _MAX_LINKS):
        name = "href" if element.tag == "a" else "src"
        if name in element.attrib:
            element.set(name, resolved(base, element.attrib[name]) or "")
    body = page.find(".//body")
    if body is None:  # the parser takes what begins with <main> for a part of the head
        body = page
        for title in page.xpath("//title"):
            title.drop_tree()
    body.tag = "section"
    return str(html.tostring(body, encoding="unicode", with_tail=False))
