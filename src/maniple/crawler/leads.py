"""Where a page sends its readers by its own markup: to another page, or into its frames."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin

from maniple.crawler.article import Document
from maniple.crawler.media_types import HTML
from maniple.reading.encoding import decode

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_MAX_FRAMES = 6
_MAX_LINKS = 20_000
_LOOKED_AT_BYTES = 64_000
_LEADS = re.compile(rb"http-equiv|<frameset", re.IGNORECASE)
_REFRESH = re.compile(r"\s*(\d{0,9})[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?[\"']?([^\"']*)", re.IGNORECASE)
_LONGEST_REFRESH = 4_000
# A page that renews itself later is read as it is.
_MAX_DELAY_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Leads:
    """Absolute addresses, of any scheme: whoever follows them checks them as any other."""

    refresh: str | None = None
    frames: Sequence[str] = ()


def leads_of(document: Document) -> Leads:
    """The leads at the beginning of `document`, where HTML wants them; blocks for milliseconds."""
    head = document.body[:_LOOKED_AT_BYTES]
    if document.media_type not in HTML or not _LEADS.search(head):
        return Leads()
    page = _parsed(decode(head, document.charset))
    base = _base(page, document.url)
    return Leads(_refresh(page, document.url, base), tuple(_frames(page, base)))


def with_frames(document: Document, frames: Sequence[Document]) -> Document:
    """A page of one section for each of `frames`, under the title of `document`; blocks."""
    title = _parsed(decode(document.body[:_LOOKED_AT_BYTES], document.charset)).xpath("string(//title)")
    sections = "".join(_section(frame) for frame in frames)
    body = f"<html><head><title>{escape(title)}</title></head><body>{sections}</body></html>"
    return Document(document.url, "text/html", "utf-8", body.encode("utf-8", "replace"))


def _parsed(text: str) -> "HtmlElement":
    from lxml import html

    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    return html.document_fromstring(f"<html>{text}".encode("utf-8", "replace"), parser=parser)


def _base(page: "HtmlElement", url: str) -> str:
    return _joined(url, page.xpath("string(//base/@href)")) or url


def _refresh(page: "HtmlElement", url: str, base: str) -> str | None:
    kind = "translate(normalize-space(@http-equiv), 'REFSH', 'refsh')"
    for meta in page.xpath(f"//meta[{kind}='refresh'][not(ancestor::noscript)]")[:1]:
        match = _REFRESH.match(meta.get("content", "")[:_LONGEST_REFRESH])
        if match is None or not match[2].strip() or int(match[1] or 0) > _MAX_DELAY_SECONDS:
            return None
        target = _joined(base, match[2])
        return None if target is None or urldefrag(target)[0] == urldefrag(url)[0] else target
    return None


def _frames(page: "HtmlElement", base: str) -> list[str]:
    sources = page.xpath("//frameset//frame/@src")[:_MAX_FRAMES]
    return [target for source in sources if (target := _joined(base, source))]


def _joined(base: str, target: str) -> str | None:
    try:
        return urljoin(base, target.strip())
    except ValueError:
        return None


def _section(frame: Document) -> str:
    from lxml import html

    page = _parsed(decode(frame.body, frame.charset))
    base = _base(page, frame.url)
    # Not lxml's own way: it looks into styles, too, in quadratic time.
    for element in islice(page.iter("a", "img"), _MAX_LINKS):
        name = "href" if element.tag == "a" else "src"
        if name in element.attrib:
            element.set(name, _joined(base, element.attrib[name]) or "")
    body = page.find(".//body")
    if body is None:  # the parser takes what begins with <main> for a part of the head
        body = page
        for title in page.xpath("//title"):
            title.drop_tree()
    body.tag = "section"
    return str(html.tostring(body, encoding="unicode", with_tail=False))
