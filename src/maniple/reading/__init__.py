"""Conversion of documents to Markdown, with limits on size and time for untrusted input."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MarkdownDocument:
    """A whole document as Markdown, before a part of it is selected."""

    title: str
    """Empty if the document has no title."""
    markdown: str
    """Empty if the document has no readable content."""
    headed: bool = True
    """Whether a line that begins with `#` is a heading."""
    note: str = ""
    """A sentence about omitted content; empty if nothing was omitted."""
    kind: str = ""
    """What a page is (`maniple.reading.page_kind.PageKind`); empty for other documents."""
    published: str = ""
    """When a page was published, as in `maniple.reading.publication.Publication`, like the next two."""
    author: str = ""
    publisher: str = ""
    textless_pages: tuple[int, ...] = ()
    """The numbers of the pages of a PDF that show something, but have no text: mostly scanned ones."""
    format: str = ""
    """The key of its format in `maniple.reading.formats.FORMATS`; "" for what a loader read."""


# The limit of a document. A longer page is a collection, and its conversion takes seconds of CPU time.
MAX_CHARACTERS = 400_000
MAX_TEXT_CHARACTERS = 2_000_000
"""The limit of plain text and Markdown, which need no conversion; equal to that of the folder's index."""
MAX_DOCUMENT_BYTES = 50_000_000
"""The limit of a document, and of what the parts of one have together when they are unpacked."""


def truncation_note(characters: int) -> str:
    """Return the note for a document that was truncated after `characters`."""
    return f"Only about the first {characters:,} characters were read."


class UnreadableDocument(Exception):
    """A document cannot be read. The message continues the address of the document: "is a damaged PDF"."""
