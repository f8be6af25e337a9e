"""Web pages."""

import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from maniple.reading.attributes import clean_attributes, keep_first
from maniple.reading.linked_data import article_body
from maniple.reading.markdown import to_markdown
from maniple.reading.readable import readable_part
from maniple.reading.result import MAX_CHARACTERS, Reading, left_out
from maniple.reading.shapes import straighten

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# Runs of blanks and endless tags say nothing, and the libraries below take quadratic time over them.
_BLANKS = re.compile(r"\s{100,}")
_LEAST_BODY = 200
_LINK = re.compile(r"\[[^\[\]]{0,300}\]\([^()]{0,2000}\)")
_ENDLESS_TAG = re.compile(r"<[^<>]{20000,}>")


def read_html(text: str, url: str) -> Reading:
    """The readable part of the page `text`, which is at `url`; may take seconds."""
    text = _ENDLESS_TAG.sub("", _BLANKS.sub("\n", text))
    # Its tree is let go before the next is made: that of 5 MB of tags takes 250 MB.
    title, base, body = _told(parse(text), url)
    is_front = urlsplit(url).path in ("", "/")
    reading = _reading(readable_part(lambda: parse(text), title, is_front), title, base)
    # A page that is written by its scripts: what stands around the article is all that there is of it.
    if len(body) < _LEAST_BODY or len(body) < 2 * len(_LINK.sub("", reading.markdown)):
        return reading
    note = "" if len(body) <= MAX_CHARACTERS else left_out(MAX_CHARACTERS)
    return Reading(title, body[:MAX_CHARACTERS], headed=False, note=note)


def read_fragment(source: str, title: str, base: str) -> Reading:
    """HTML that is all readable, as that of a feed or made from another format."""
    return _reading(parse(source), title, base)


def _reading(part: "HtmlElement", title: str, base: str) -> Reading:
    whole = keep_first(part, MAX_CHARACTERS)
    straighten(part)
    clean_attributes(part, base)
    return Reading(title, to_markdown(part), note="" if whole else left_out(MAX_CHARACTERS))


def _told(page: "HtmlElement", url: str) -> tuple[str, str, str]:
    """Return what a page tells of itself: its title, its base and the article for machines."""
    return title_of(page), base_of(page, url), article_body(page)


def parse(text: str) -> "HtmlElement":
    """The document that `text` is, without its comments; of nothing, an empty one."""
    from lxml import html

    # huge_tree: without it the parser stops at 256 levels and the rest of the page is lost.
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    # The tag in front: of an empty page the parser makes no document at all.
    return html.document_fromstring(f"<html>{text}".encode("utf-8", "replace"), parser=parser)


def base_of(page: "HtmlElement", url: str) -> str:
    """What the addresses in `page`, which is at `url`, are relative to."""
    return resolved(url, page.xpath("string(//base/@href)")) or url


def resolved(base: str, target: str) -> str | None:
    """The address `target` in a page made absolute; None when it is none."""
    try:
        return urljoin(base, target.strip())
    except ValueError:
        return None


def title_of(page: "HtmlElement") -> str:
    """What `page` calls itself, at most 300 characters; "" for nothing."""
    for path in ("string(//title)", "string(//meta[@property='og:title']/@content)", "string(//h1)"):
        if title := " ".join(page.xpath(path).split()):
            return title[:300]
    return ""
