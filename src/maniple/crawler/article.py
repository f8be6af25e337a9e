"""Fetched documents as readable articles, with sections for long ones."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from maniple.crawler.document import HTML, FetchedDocument
from maniple.egress import PermanentFetchError
from maniple.errors import FetchError
from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.fork_server import ForkServer
from maniple.reading.formats import HEAD_BYTES, identify_format, is_isolated, read_document
from maniple.reading.html import FramedPage, pack_frames
from maniple.reading.markdown import find_part, split_parts
from maniple.reading.page_kind import describe_obstacle, is_obstacle
from maniple.reading.pictures import PICTURE_TYPES
from maniple.reading.publication import Publication
from maniple.reading.wall_phrases import ObstacleKind


@dataclass(frozen=True, slots=True)
class ArticleSection:
    """A section of a document that is too long to be shown in one piece."""

    heading: str
    level: int
    """1 to 6 as in Markdown; 0 for the text before the first heading."""
    characters: int


@dataclass(frozen=True, slots=True)
class Article:
    """The readable part of a page, ready for a model."""

    url: str
    """The address of the page after redirects."""
    title: str
    markdown: str
    """As many complete sections as fit into the requested length; links and images are absolute."""
    sections: tuple[ArticleSection, ...] = ()
    """The sections of the whole document, numbered from 1; empty if `markdown` is the whole document."""
    first: int = 1
    last: int = 1
    """The numbers of the first and the last section in `markdown`."""
    note: str = ""
    """A sentence about parts of the document that could not be read; empty if nothing is missing."""
    whole: str = ""
    """The whole document if `markdown` is a part of it, else empty."""
    was_named: bool = False
    """Whether a section was requested, so that the reader has seen the outline."""
    kind: str = ""
    """What the page is (`maniple.reading.page_kind.PageKind`); empty for other documents."""
    publication: Publication = field(default_factory=Publication)
    picture: bytes = b""
    """The picture that the address leads to; empty for a page or a document."""

    @property
    def is_source(self) -> bool:
        """Whether it has content that can be cited: it is no wall, no soft 404 and no error page."""
        return not is_obstacle(self.kind)

    @property
    def text(self) -> str:
        """The article with its title, address and, if it is long, an outline; for a model."""
        parts = (
            f"# {self.title}",
            f"Source: {self.url}",
            self.publication.line,
            self.note,
            self._outline(),
            self.markdown,
        )
        return "\n\n".join(part for part in parts if part)

    def _outline(self) -> str:
        if not self.sections:
            return ""
        here = f"Section {self.first}" if self.first == self.last else f"Sections {self.first} to {self.last}"
        if self.was_named:
            return f"{here} of {len(self.sections)}."
        lines = [
            f"{number}. {self.sections[number - 1].heading} ({characters:,} characters)"
            for number, characters in _choose_outline(self.sections)
        ]
        return f"{here} of {len(self.sections)}; to read others, name a number or a heading as section:\n" + (
            "\n".join(lines)
        )


# A longer outline would be no overview.
_MAX_LINES = 40


def _choose_outline(sections: tuple[ArticleSection, ...]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the sections to show, with the characters up to the next shown one.

    If there are too many sections, only the upper levels are shown.
    """
    shown: list[int] = []
    for deepest in range(6, -1, -1):
        shown = [number for number, section in enumerate(sections, 1) if section.level <= deepest]
        if len(shown) <= _MAX_LINES:
            break
    if len(shown) < _MAX_LINES // 8:
        # Too few upper levels are useless, so every n-th section is shown.
        shown = list(range(1, len(sections) + 1, -(-len(sections) // _MAX_LINES)))
    for number, following in zip(shown, [*shown[1:], len(sections) + 1], strict=True):
        yield number, sum(section.characters for section in sections[number - 1 : following - 1])


# A model sees 12,000 characters of a requested section, so longer parts could not be read to their end.
_PART_CHARACTERS = 10_000
# Larger documents are read in a separate process: they may need a hundred times their size in memory, and
# the libraries hold the interpreter lock for long.
_LARGE_BYTES = 300_000
# Elements are expensive: 300 kB that consist only of tags take three seconds.
_MANY_TAGS = 10_000


async def read_article(
    document: FetchedDocument, max_characters: int, fork_server: ForkServer, section: str = ""
) -> Article:
    """Return the readable part of `document` as Markdown, at most about `max_characters`; may take seconds.

    `section` is a number or a heading of the outline; without it, the article starts at the beginning. Large
    documents are read in a process of `fork_server`.

    Raises:
        FetchError: the document has no readable text, or the section does not exist.
    """
    try:
        parsed = await _read(document, fork_server)
    except UnreadableDocument as error:
        raise FetchError(f"{document.url} {error}; use another source.") from error
    if not parsed.markdown.strip() or "\0" in parsed.markdown:
        raise FetchError(_describe_unreadable(document, parsed.note if parsed.textless_pages else ""))
    article = await asyncio.to_thread(_article, parsed, document.url, max_characters, section)
    note = " ".join(filter(None, (describe_obstacle(parsed.kind), document.note, article.note)))
    publication = Publication(parsed.published, parsed.author, parsed.publisher)
    article = replace(article, kind=parsed.kind, note=note, publication=publication)
    is_picture = document.media_type in PICTURE_TYPES
    return replace(article, picture=document.body) if is_picture else article


def mark_obstacle(article: Article, kind: ObstacleKind) -> Article:
    """Return `article` as a page of `kind`, which has no content that can be cited."""
    note = " ".join(filter(None, (describe_obstacle(kind), article.note)))
    return replace(article, kind=kind, note=note, publication=Publication())


async def _read(document: FetchedDocument, fork_server: ForkServer) -> MarkdownDocument:
    if document.frames:
        pages = [FramedPage(page.url, page.charset, page.body) for page in (document, *document.frames)]
        return await fork_server.read("frames", pack_frames(pages), document.url, None)
    if loader := fork_server.loaders.find(document.url, document.media_type):
        return await fork_server.load(loader, document.body, document.url)
    key = identify_format(document.body[:HEAD_BYTES], document.media_type, document.url)
    what = (key, document.body, document.url, document.charset)
    if is_isolated(key) or _takes_long(document.body):
        return await fork_server.read(*what)
    return await asyncio.to_thread(read_document, *what)


def _takes_long(body: bytes) -> bool:
    return len(body) > _LARGE_BYTES or body.count(b"<") > _MANY_TAGS


def _article(parsed: MarkdownDocument, url: str, max_characters: int, section: str) -> Article:
    title = parsed.title or url
    if len(parsed.markdown) <= max_characters and not section:
        return Article(url, title, parsed.markdown, note=parsed.note)
    longest = min(max_characters, _PART_CHARACTERS)
    found = split_parts(parsed.markdown, title, longest, parsed.headed)
    first = find_part(section, found) if section else 1
    if first is None:
        headings = "; ".join(part.heading for part in found[:20])
        raise PermanentFetchError(f"{url} has no section {section!r}; it has 1 to {len(found)}: {headings}.")
    last, room = first, (longest if section else max_characters) - len(found[first - 1].markdown)
    while last < len(found) and (room := room - len(found[last].markdown) - 2) >= 0:
        last += 1
    markdown = "\n\n".join(part.markdown for part in found[first - 1 : last])
    sections = tuple(ArticleSection(part.heading, part.level, len(part.markdown)) for part in found)
    return Article(url, title, markdown, sections, first, last, parsed.note, parsed.markdown, bool(section))


def _describe_unreadable(document: FetchedDocument, note: str) -> str:
    if note:
        return f"{document.url} is a PDF without text. {note} Use another source."
    if document.media_type in HTML:
        return f"{document.url} has no readable text; it may need a browser, or use another source."
    return f"{document.url} has no text that can be read; use another source."
