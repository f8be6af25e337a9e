"""The reader of PDFs."""

import io
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from maniple.reading import MAX_CHARACTERS, MarkdownDocument, UnreadableDocument, truncation_note

if TYPE_CHECKING:
    from pypdf import PdfReader

_MAX_PAGES = 300
# Less than the time limit of the process, so that the pages read so far are not lost.
_MAX_SECONDS = 15


def read_pdf(body: bytes, url: str) -> MarkdownDocument:
    """Return the text of a PDF, each page under a heading with its number.

    Raises:
        UnreadableDocument: it is encrypted or damaged, or all its pages are blank.
    """
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(body))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableDocument("is a PDF that requires a password")
        count = len(reader.pages)
        title = str((reader.metadata and reader.metadata.title) or "").strip()
    except (PyPdfError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UnreadableDocument("is a damaged PDF") from error
    pages = _page_texts(reader)
    textless = _find_textless(reader, pages)
    if not any(pages) and not textless:
        raise UnreadableDocument("is a PDF without text and pictures")
    markdown = "\n\n".join(f"## Page {number}\n\n{text}" for number, text in enumerate(pages, 1) if text)
    note = "" if len(pages) == count else f"Only the first {len(pages)} of {count} pages were read."
    note = note if len(markdown) <= MAX_CHARACTERS else truncation_note(MAX_CHARACTERS)
    note = " ".join(filter(None, (note, describe_textless(textless, len(pages)))))
    return MarkdownDocument(title, markdown[:MAX_CHARACTERS], note=note, textless_pages=textless)


_NAMED_PAGES = 20


def describe_textless(pages: Sequence[int], count: int) -> str:
    """Return the sentence about pages without text, of `count` pages that were read; "" for none."""
    if not pages:
        return ""
    if len(pages) == count:
        return f"None of the {count} pages has text; they are probably scanned."
    more = f" and {len(pages) - _NAMED_PAGES} more" if len(pages) > _NAMED_PAGES else ""
    named = ", ".join(map(str, pages[:_NAMED_PAGES]))
    return (
        f"{len(pages)} of {count} pages have no text, are probably scanned, and are left out: {named}{more}."
    )


def _find_textless(reader: "PdfReader", texts: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the pages that show something, but have no text."""
    missing = [number for number, text in enumerate(texts, 1) if not any(map(str.isalnum, text))]
    return tuple(number for number in missing if _shows_something(reader, number))


def _shows_something(reader: "PdfReader", number: int) -> bool:
    try:
        contents = reader.pages[number - 1].get_contents()
        return contents is not None and bool(contents.get_data().strip())
    except Exception:  # noqa: BLE001 - a damaged page may raise anything; it may be shown all the same
        return True


def _page_texts(reader: "PdfReader") -> list[str]:
    """Return the texts of the first pages, within the limits of time, pages and characters."""
    deadline = time.monotonic() + _MAX_SECONDS
    pages: list[str] = []
    characters = 0
    for page in reader.pages:
        if len(pages) == _MAX_PAGES or characters > MAX_CHARACTERS or time.monotonic() > deadline:
            break
        try:
            text = page.extract_text()
        except Exception:  # noqa: BLE001 - a damaged page may raise anything; the others can be read
            text = ""
        pages.append(_escape_headings(text))
        characters += len(text)
    return pages


def _escape_headings(text: str) -> str:
    lines = (line.rstrip() for line in text.replace("\0", "").splitlines())
    return "\n".join(f"\\{line}" if line.startswith("#") else line for line in lines).strip()
