"""From the bytes of a document to an article."""

import asyncio
import re

from maniple.crawler.article import Article, Document, Section
from maniple.crawler.media_types import HTML, PDF
from maniple.egress import PermanentFetchError
from maniple.errors import FetchError
from maniple.media_types import DOCX
from maniple.reading.formats import ISOLATED, read_as
from maniple.reading.frames import Framed, packed
from maniple.reading.isolated import Nursery
from maniple.reading.pictures import PICTURES
from maniple.reading.result import Reading, Unreadable
from maniple.reading.sections import number_of, parts

_BY_LIBRARIES = {
    PDF: "pdf",
    "application/x-pdf": "pdf",
    DOCX: "docx",
    "application/rss+xml": "feed",
    "application/atom+xml": "feed",
    "application/rdf+xml": "feed",
    **dict.fromkeys(PICTURES, "picture"),
}
_TABLES = ("text/csv", "application/csv", "text/tab-separated-values")
_MARKDOWN = ("text/markdown", "text/x-markdown")
_FEED = re.compile(rb"<(?:rss|feed|rdf:RDF)[\s>]")
_HEAD_BYTES = 2_000
# A model that asks for a section is shown 12,000 characters: a longer part would never be read to its end.
_PART_CHARACTERS = 10_000
# What is larger is read in a process of its own: it may take a hundred times its size, and holds the
# interpreter for as long as a library takes over a piece of it.
_LARGE_BYTES = 300_000
# An element costs as much as so many bytes of prose: 300 kB of nothing but tags take three seconds.
_MANY_TAGS = 10_000


async def read_article(
    document: Document, max_characters: int, nursery: Nursery, section: str = ""
) -> Article:
    """About `max_characters` at most of the readable part of `document` as Markdown; may take seconds.

    `section` is a number or a heading of an earlier article's outline; without it, reading starts at the
    beginning. What takes long is read in a process of `nursery`.

    Raises:
        FetchError: there is nothing to read, or no such section.
    """
    try:
        reading = await _read(document, nursery)
    except Unreadable as error:
        raise FetchError(f"{document.url} {error}; use another source.") from error
    if not reading.markdown.strip() or "\0" in reading.markdown:
        raise FetchError(_nothing(document))
    return await asyncio.to_thread(_article, reading, document.url, max_characters, section)


async def _read(document: Document, nursery: Nursery) -> Reading:
    if document.frames:
        pages = [Framed(page.url, page.charset, page.body) for page in (document, *document.frames)]
        return await nursery.read("frames", packed(pages), document.url, None)
    what = (_kind(document), document.body, document.url, document.charset)
    if what[0] in ISOLATED or _takes_long(document.body):
        return await nursery.read(*what)
    return await asyncio.to_thread(read_as, *what)


def _takes_long(body: bytes) -> bool:
    return len(body) > _LARGE_BYTES or body.count(b"<") > _MANY_TAGS


def _kind(document: Document) -> str:
    media_type, name = document.media_type, document.url.partition("?")[0].lower()
    if media_type in HTML:
        return "html"
    if media_type.endswith("xml") and _FEED.search(document.body[:_HEAD_BYTES]):
        return "feed"
    if media_type in _TABLES or (media_type == "text/plain" and name.endswith((".csv", ".tsv"))):
        return "csv"
    if media_type.endswith("json"):
        return "json"
    if media_type in _MARKDOWN or (media_type == "text/plain" and name.endswith((".md", ".markdown"))):
        return "markdown"
    return _BY_LIBRARIES.get(media_type, "text")


def _article(reading: Reading, url: str, max_characters: int, section: str) -> Article:
    title = reading.title or url
    if len(reading.markdown) <= max_characters and not section:
        return Article(url, title, reading.markdown, note=reading.note)
    longest = min(max_characters, _PART_CHARACTERS)
    found = parts(reading.markdown, title, longest, reading.headed)
    first = number_of(section, found) if section else 1
    if first is None:
        headings = "; ".join(part.heading for part in found[:20])
        raise PermanentFetchError(f"{url} has no section {section!r}; it has 1 to {len(found)}: {headings}.")
    last, room = first, (longest if section else max_characters) - len(found[first - 1].markdown)
    while last < len(found) and (room := room - len(found[last].markdown) - 2) >= 0:
        last += 1
    markdown = "\n\n".join(part.markdown for part in found[first - 1 : last])
    sections = tuple(Section(part.heading, part.level, len(part.markdown)) for part in found)
    return Article(url, title, markdown, sections, first, last, reading.note, reading.markdown, bool(section))


def _nothing(document: Document) -> str:
    if document.media_type in HTML:
        return f"{document.url} has no readable text; it may need a browser, or use another source."
    return f"{document.url} has no text that can be read; use another source."
