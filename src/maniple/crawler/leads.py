"""Where a page sends its readers by its own markup: to another page, or into its frames."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

from maniple.crawler.article import Document
from maniple.crawler.media_types import HTML
from maniple.reading.encoding import decode
from maniple.reading.html import base_of, parse, resolved

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_MAX_FRAMES = 6
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
    page = parse(decode(head, document.charset))
    base = base_of(page, document.url)
    return Leads(_refresh(page, document.url, base), tuple(_frames(page, base)))


def _refresh(page: "HtmlElement", url: str, base: str) -> str | None:
    kind = "translate(normalize-space(@http-equiv), 'REFSH', 'refsh')"
    for meta in page.xpath(f"//meta[{kind}='refresh'][not(ancestor::noscript)]")[:1]:
        match = _REFRESH.match(meta.get("content", "")[:_LONGEST_REFRESH])
        if match is None or not match[2].strip() or int(match[1] or 0) > _MAX_DELAY_SECONDS:
            return None
        target = resolved(base, match[2])
        return None if target is None or urldefrag(target)[0] == urldefrag(url)[0] else target
    return None


def _frames(page: "HtmlElement", base: str) -> list[str]:
    if page.find(".//frameset") is None:
        return []
    frames = islice((frame for frame in page.iter("frame") if "src" in frame.attrib), _MAX_FRAMES)
    return [target for frame in frames if (target := resolved(base, frame.attrib["src"]))]
