"""The document that a page shows in an `<iframe>` instead of having a text of its own."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from maniple.crawler.document import HTML, FetchedDocument
from maniple.reading.encoding import decode_text
from maniple.reading.html import find_base_url, parse_html, resolve_url

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_DOCUMENT_FRAMES = 3
MAX_FRAME_DEPTH = 2
"""A frame may show its document in another frame."""
_MAX_FRAMES = 50
_MAX_BYTES = 300_000
"""Of a page that is searched for frames."""
_MAX_TAGS = 10_000
_MAX_OWN_CHARACTERS = 400
"""With more text of its own, a page is read itself."""
_MIN_FRAME_CHARACTERS = 200
_MIN_PIXELS = 200
"""Smaller frames are buttons, advertisements and counters."""
_SECOND_LEVEL = 3
"""The letters of labels such as "co" and "com" in "co.uk" and "com.au"."""
_MARK = re.compile(rb"<iframe\b", re.IGNORECASE)
_NO_PROSE = (
    "//script|//style|//noscript|//template|//iframe|//nav|//aside|//footer|//select|//button|//a|//title"
)
_CONCEALED = re.compile(r"display:none|visibility:hidden|(?<!-)(?:width|height):[01](?:px)?(?:;|$)")
_OTHER_USES = re.compile(
    r"captcha|consent|cookie|analytic|advert|\bads?\b|login|tracking|share", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class DocumentFrames:
    """The frames of a page that may show its text."""

    own_characters: int
    """The prose of the page itself."""
    addresses: tuple[str, ...] = ()
    inline: tuple[str, ...] = ()
    """Documents that are delivered with the page (`srcdoc`)."""

    def select(self, documents: Sequence[FetchedDocument]) -> list[FetchedDocument]:
        """Return those of `documents` whose text is what the page shows; blocks for milliseconds."""
        least = max(_MIN_FRAME_CHARACTERS, 2 * self.own_characters)
        return [one for one in documents if one.media_type not in HTML or _count_own(one) >= least]


def find_document_frames(document: FetchedDocument) -> DocumentFrames | None:
    """Return the frames that may show the text of a page; None if it has text itself. Blocks.

    They are on the page's own site, large enough to be read, and not hidden.
    """
    body = document.body
    if document.media_type not in HTML or len(body) > _MAX_BYTES or not _MARK.search(body):
        return None
    if body.count(b"<") > _MAX_TAGS:
        return None
    page = parse_html(decode_text(body, document.charset))
    frames = list(islice((one for one in page.iter("iframe") if _is_readable(one)), _MAX_FRAMES))
    base = find_base_url(page, document.url)
    inline = [one.get("srcdoc", "") for one in frames if one.get("srcdoc", "").strip()]
    others = [one for one in frames if not one.get("srcdoc", "").strip()]
    targets = [resolve_url(base, one.get("src") or one.get("data-src") or "") for one in others]
    own = [one for one in targets if one and _is_same_site(one, document.url)]
    characters = _count_prose(page)
    if not (inline or own) or characters > _MAX_OWN_CHARACTERS:
        return None
    addresses = tuple(dict.fromkeys(own))[:MAX_DOCUMENT_FRAMES]
    return DocumentFrames(characters, addresses, tuple(inline[:MAX_DOCUMENT_FRAMES]))


def _count_own(document: FetchedDocument) -> int:
    """Return the characters of prose of an HTML document; of one with a frame inside, enough for any page."""
    if find_document_frames(document) is not None:
        return 2 * _MAX_OWN_CHARACTERS
    if len(document.body) > _MAX_BYTES:
        return len(document.body)
    return _count_prose(parse_html(decode_text(document.body, document.charset)))


def _count_prose(page: "HtmlElement") -> int:
    """Return the characters of text outside of links, menus and scripts; `page` loses these."""
    for element in page.xpath(_NO_PROSE):
        for child in list(element):
            element.remove(child)
        element.text = None
    return sum(len(text.strip()) for text in page.itertext())


def _is_readable(frame: "HtmlElement") -> bool:
    if "hidden" in frame.attrib or frame.get("aria-hidden") == "true":
        return False
    style = "".join(frame.get("style", "").lower().split())
    about = " ".join(frame.get(name, "") for name in ("id", "name", "class", "title"))
    sizes = [frame.get(name, "").removesuffix("px").strip() for name in ("width", "height")]
    is_small = any(size.isdecimal() and int(size[:9]) < _MIN_PIXELS for size in sizes)
    return not (is_small or _CONCEALED.search(style) or _OTHER_USES.search(about))


def _is_same_site(target: str, url: str) -> bool:
    parts = urlsplit(target)
    if parts.scheme not in ("http", "https") or target.partition("#")[0] == url.partition("#")[0]:
        return False
    return _site(parts.hostname or "") == _site(urlsplit(url).hostname or "")


def _site(host: str) -> str:
    """Return the part of a host name that an owner registers, by the length of its labels."""
    labels = host.lower().rstrip(".").split(".")
    if labels[-1].isdecimal():
        return host
    depth = 3 if len(labels) > 2 and len(labels[-2]) <= _SECOND_LEVEL else 2
    return ".".join(labels[-depth:])
