"""PDF, by pypdf: pure Python, so that a malformed file is an exception and not a hole."""

import io
import time
from typing import TYPE_CHECKING

from maniple.reading.result import MAX_CHARACTERS, Reading, Unreadable, left_out

if TYPE_CHECKING:
    from pypdf import PdfReader

_MAX_PAGES = 300
# Somewhat less than the process has, so that what was read till then is not lost with it.
_MAX_SECONDS = 15


def read_pdf(body: bytes, url: str) -> Reading:
    """Each page of text under a heading with its number.

    Raises:
        Unreadable: it is encrypted, damaged, or made of pictures.
    """
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(body))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("is a PDF that opens with a password only")
        count = len(reader.pages)
        title = str((reader.metadata and reader.metadata.title) or "").strip()
    except (PyPdfError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unreadable("is a damaged PDF") from error
    pages = _texts(reader)
    if not any(pages):
        raise Unreadable("is a PDF without text, probably of scanned pages")
    markdown = "\n\n".join(f"## Page {number}\n\n{text}" for number, text in enumerate(pages, 1) if text)
    note = "" if len(pages) == count else f"Only the first {len(pages)} of {count} pages were read."
    return Reading(
        title,
        markdown[:MAX_CHARACTERS],
        note=note if len(markdown) <= MAX_CHARACTERS else left_out(MAX_CHARACTERS),
    )


def _texts(reader: "PdfReader") -> list[str]:
    """The texts of as many pages as there is time and room for."""
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
        pages.append(_escaped(text))
        characters += len(text)
    return pages


def _escaped(text: str) -> str:
    lines = (line.rstrip() for line in text.replace("\0", "").splitlines())
    return "\n".join(f"\\{line}" if line.startswith("#") else line for line in lines).strip()
