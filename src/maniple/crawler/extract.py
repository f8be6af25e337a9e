"""From the bytes of a page to an article."""

import codecs
import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from maniple.crawler.article import Article, Document
from maniple.crawler.markdown import cut, to_markdown
from maniple.crawler.readable import clean_attributes, keep_first, readable_part, text_length
from maniple.errors import FetchError

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# What pages call by the name on the left is in truth the superset on the right (https://encoding.spec.whatwg.org).
_SUPERSETS = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
}
# Python calls these text encodings; no page is written in them, and some take quadratic time.
_NOT_OF_PAGES = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined"}

# Runs of blanks and endless tags say nothing, and the libraries below take quadratic time over them.
_BLANKS = re.compile(r"\s{100,}")
_ENDLESS_TAG = re.compile(r"<[^<>]{20000,}>")


def extract_article(document: Document, max_characters: int) -> Article:
    """The readable part of `document` as Markdown, cut to `max_characters`; may take seconds.

    JSON and other plain text stay as they are.

    Raises:
        FetchError: there is nothing to read.
    """
    text = decode(document.body, document.charset)
    if _is_html(document):
        return _html_article(text, document.url, max_characters)
    if not text.strip() or "\0" in text:
        raise FetchError(f"{document.url} has no text that can be read; use another source.")
    name = urlsplit(document.url).path.rstrip("/").rpartition("/")[2]
    return Article(document.url, name or document.url, cut(text.strip(), max_characters))


def decode(body: bytes, charset: str | None) -> str:
    """`body` as text: by its byte order mark, the header's `charset`, its own `<meta>`, or UTF-8."""
    from bs4.dammit import EncodingDetector

    body, mark = EncodingDetector.strip_byte_order_mark(body)
    declared = EncodingDetector.find_declared_encoding(body, is_html=True)
    encodings = [codec for name in (mark, charset, declared, "utf-8") if (codec := _codec(name))]
    for encoding in encodings:
        try:
            return body.decode(encoding)
        except UnicodeDecodeError:
            continue
    return body.decode(encodings[0], "replace")


def _html_article(text: str, url: str, max_characters: int) -> Article:
    from lxml import html

    nothing = FetchError(f"{url} has no readable text; it may need a browser, or use another source.")
    # huge_tree: without it the parser stops at 256 levels and the rest of the page is lost.
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    text = _ENDLESS_TAG.sub("", _BLANKS.sub("\n", text))
    # The tag in front: of an empty page the parser makes no document at all.
    page = html.document_fromstring(f"<html>{text}".encode("utf-8", "replace"), parser=parser)
    title = _title(page) or url
    base = urljoin(url, page.xpath("string(//base/@href)"))
    part = readable_part(page)
    total = text_length(part)
    # Twice as much as will be kept: what is counted here holds white space that Markdown folds.
    keep_first(part, 2 * max_characters)
    clean_attributes(part, base)
    markdown = to_markdown(part)
    if not markdown:
        raise nothing
    return Article(url, title, cut(markdown, max_characters, total))


def _title(page: "HtmlElement") -> str:
    for path in ("string(//title)", "string(//meta[@property='og:title']/@content)", "string(//h1)"):
        if title := " ".join(page.xpath(path).split()):
            return title
    return ""


def _is_html(document: Document) -> bool:
    if document.media_type:
        return document.media_type in ("text/html", "application/xhtml+xml")
    return document.body.lstrip()[:1] == b"<"


def _codec(name: str | None) -> str | None:
    try:
        codec = codecs.lookup(name or "").name
    except LookupError:
        return None
    return None if codec in _NOT_OF_PAGES else _SUPERSETS.get(codec, codec)
