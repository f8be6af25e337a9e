"""From the bytes of a document to an article."""

import asyncio
import re

from maniple.crawler.article import Article, Document, Section
from maniple.crawler.failures import FinalError
from maniple.errors import FetchError
from maniple.reading.encoding import decode
from maniple.reading.html import read_html
from maniple.reading.isolated import read_isolated
from maniple.reading.plain import read_csv, read_json, read_text
from maniple.reading.result import Reading, Unreadable
from maniple.reading.sections import number_of, parts

_BY_LIBRARIES = {
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/rss+xml": "feed",
    "application/atom+xml": "feed",
    "application/rdf+xml": "feed",
}
_HTML = ("text/html", "application/xhtml+xml")
_TABLES = ("text/csv", "application/csv", "text/tab-separated-values")
_FEED = re.compile(rb"<(?:rss|feed|rdf:RDF)[\s>]")
_HEAD_BYTES = 2_000


async def read_article(document: Document, max_characters: int, section: str = "") -> Article:
    """About `max_characters` at most of the readable part of `document` as Markdown; may take seconds.

    `section` is a number or a heading of an earlier article's outline; without it, reading starts at the
    beginning.

    Raises:
        FetchError: there is nothing to read, or no such section.
    """
    try:
        if kind := _kind_for_libraries(document):
            reading = await read_isolated(kind, document.body, document.url)
        else:
            reading = await asyncio.to_thread(_read, document)
    except Unreadable as error:
        raise FetchError(f"{document.url} {error}; use another source.") from error
    if not reading.markdown.strip() or "\0" in reading.markdown:
        raise FetchError(_nothing(document))
    return await asyncio.to_thread(_article, reading, document.url, max_characters, section)


def _kind_for_libraries(document: Document) -> str | None:
    is_xml = document.media_type.endswith("xml") and document.media_type not in _HTML
    if is_xml and _FEED.search(document.body[:_HEAD_BYTES]):
        return "feed"
    return _BY_LIBRARIES.get(document.media_type)


def _read(document: Document) -> Reading:
    media_type, url = document.media_type, document.url
    text = decode(document.body, document.charset)
    if media_type in _HTML or (not media_type and text.lstrip()[:1] == "<"):
        return read_html(text, url)
    name = url.partition("?")[0].lower()
    if media_type in _TABLES or (media_type == "text/plain" and name.endswith((".csv", ".tsv"))):
        return read_csv(text, url)
    if media_type.endswith("json"):
        return read_json(text, url)
    return read_text(text, url)


def _article(reading: Reading, url: str, max_characters: int, section: str) -> Article:
    title = reading.title or url
    if len(reading.markdown) <= max_characters and not section:
        return Article(url, title, reading.markdown, note=reading.note)
    found = parts(reading.markdown, title, max_characters, reading.headed)
    first = number_of(section, found) if section else 1
    if first is None:
        headings = "; ".join(part.heading for part in found[:20])
        raise FinalError(f"{url} has no section {section!r}; it has 1 to {len(found)}: {headings}.")
    last, room = first, max_characters - len(found[first - 1].markdown)
    while last < len(found) and (room := room - len(found[last].markdown) - 2) >= 0:
        last += 1
    markdown = "\n\n".join(part.markdown for part in found[first - 1 : last])
    sections = tuple(Section(part.heading, part.level, len(part.markdown)) for part in found)
    return Article(url, title, markdown, sections, first, last, reading.note)


def _nothing(document: Document) -> str:
    if document.media_type in _HTML:
        return f"{document.url} has no readable text; it may need a browser, or use another source."
    return f"{document.url} has no text that can be read; use another source."
