"""The kinds of documents that can be read, and who reads each."""

import csv
import io
import json
import time
import zipfile
from collections.abc import Callable, Mapping
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from xml.parsers.expat import ExpatError

from maniple.reading import MAX_CHARACTERS, MarkdownDocument, UnreadableDocument, truncation_note
from maniple.reading.encoding import decode_text
from maniple.reading.html import read_fragment, read_frames, read_html
from maniple.reading.pictures import read_picture
from maniple.text import whole

if TYPE_CHECKING:
    from pypdf import PdfReader

MAX_TEXT_CHARACTERS = 2_000_000
"""Of plain text and Markdown, which need no converting; as much as the folder's index takes."""

_MAX_ROWS = 5_000
_MAX_COLUMNS = 50
_LONG_LINE = 500
# Laying JSON out may make it this much longer; of an endless depth it would be most of all blanks.
_MOST_BLANKS = 4


def read_text(text: str, url: str) -> MarkdownDocument:
    """Plain text, as it is."""
    return _bounded(_name(url), text.strip("\n"), headed=False, longest=MAX_TEXT_CHARACTERS)


def read_markdown(text: str, url: str) -> MarkdownDocument:
    """Markdown, as it is."""
    return _bounded(_name(url), text.strip("\n"), headed=True, longest=MAX_TEXT_CHARACTERS)


def read_json(text: str, url: str) -> MarkdownDocument:
    """JSON, with a line for each value where its own lines are long, and its characters as themselves.

    What is none stays as it is.
    """
    if "\\u" not in text and all(len(line) <= _LONG_LINE for line in text.splitlines()):
        return _bounded(_name(url), text.strip(), headed=False)
    try:
        laid_out = whole(json.dumps(json.loads(text), indent=1, ensure_ascii=False))
    except (ValueError, RecursionError):
        laid_out = ""
    fits = 0 < len(laid_out) <= _MOST_BLANKS * len(text) + 100
    return _bounded(_name(url), laid_out if fits else text.strip(), headed=False)


def read_csv(text: str, url: str) -> MarkdownDocument:
    """A table of comma-, semicolon- or tab-separated values as one of Markdown."""
    first_line = text[:4_000].partition("\n")[0]
    delimiter = max(",;\t|", key=first_line.count)
    try:
        rows = list(islice(csv.reader(io.StringIO(text), delimiter=delimiter), _MAX_ROWS + 1))
    except csv.Error:
        return read_text(text, url)
    columns = min(max(map(len, rows), default=0), _MAX_COLUMNS)
    lines = [_line([*row, *[""] * columns][:columns]) for row in rows[:_MAX_ROWS] if row]
    lines[1:1] = ["|" + " --- |" * columns]
    reading = _bounded(_name(url), "\n".join(lines), headed=False)
    if len(rows) <= _MAX_ROWS or reading.note:
        return reading
    return MarkdownDocument(
        reading.title, reading.markdown, False, f"Only the first {_MAX_ROWS:,} rows were read."
    )


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _bounded(title: str, text: str, headed: bool, longest: int = MAX_CHARACTERS) -> MarkdownDocument:
    if len(text) <= longest:
        return MarkdownDocument(title, text, headed)
    return MarkdownDocument(title, text[:longest], headed, truncation_note(longest))


def _name(url: str) -> str:
    return urlsplit(url).path.rstrip("/").rpartition("/")[2]


_MAX_BYTES = 50_000_000


def read_docx(body: bytes, url: str) -> MarkdownDocument:
    """Headings, lists, tables and links; pictures are left out.

    Raises:
        Unreadable: it is damaged, or much larger unpacked than packed.
    """
    import mammoth

    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            # No more is read of a member than it says that it has.
            if sum(member.file_size for member in archive.infolist()) > _MAX_BYTES:
                raise UnreadableDocument(
                    f"is a Word document of more than {_MAX_BYTES:,} bytes when it is unpacked"
                )
        pictures = mammoth.images.img_element(lambda _: {})
        html = mammoth.convert_to_html(
            io.BytesIO(body), convert_image=pictures, external_file_access=False
        ).value
    except (
        zipfile.BadZipFile,
        ExpatError,
        KeyError,
        ValueError,
        AttributeError,
        RecursionError,
        OSError,
    ) as error:
        raise UnreadableDocument("is a damaged Word document") from error
    return read_fragment(html, "", url)


_MAX_PAGES = 300
# Somewhat less than the process has, so that what was read till then is not lost with it.
_MAX_SECONDS = 15


def read_pdf(body: bytes, url: str) -> MarkdownDocument:
    """Each page of text under a heading with its number.

    Raises:
        Unreadable: it is encrypted, damaged, or made of pictures.
    """
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(body))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableDocument("is a PDF that opens with a password only")
        count = len(reader.pages)
        title = str((reader.metadata and reader.metadata.title) or "").strip()
    except (PyPdfError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UnreadableDocument("is a damaged PDF") from error
    pages = _texts(reader)
    if not any(pages):
        raise UnreadableDocument("is a PDF without text, probably of scanned pages")
    markdown = "\n\n".join(f"## Page {number}\n\n{text}" for number, text in enumerate(pages, 1) if text)
    note = "" if len(pages) == count else f"Only the first {len(pages)} of {count} pages were read."
    return MarkdownDocument(
        title,
        markdown[:MAX_CHARACTERS],
        note=note if len(markdown) <= MAX_CHARACTERS else truncation_note(MAX_CHARACTERS),
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


_MAX_ENTRIES = 200


def read_feed(body: bytes, url: str) -> MarkdownDocument:
    """Each entry with its link, its time and what it says, the newest as the feed has them."""
    import feedparser

    # A file, not the bytes: feedparser takes those for an address or a path, and opens it.
    feed = feedparser.parse(io.BytesIO(body), response_headers={"content-location": url})
    title = str(feed.feed.get("title", ""))
    source = "".join(map(_entry, feed.entries[:_MAX_ENTRIES]))
    reading = read_fragment(source, title, url)
    if len(feed.entries) > _MAX_ENTRIES and not reading.note:
        note = f"Only the first {_MAX_ENTRIES} of {len(feed.entries)} entries were read."
        return MarkdownDocument(reading.title, reading.markdown, note=note)
    return reading


def _entry(entry: Any) -> str:
    when = entry.get("published") or entry.get("updated") or ""
    said = max(
        [entry.get("summary", ""), *(part.get("value", "") for part in entry.get("content", []))], key=len
    )
    heading = escape(entry.get("title") or entry.get("link") or "Entry")
    link = escape(entry.get("link", ""))
    return f'<h2><a href="{link}">{heading}</a></h2><p>{escape(when)}</p><div>{said}</div>'


ISOLATED_FORMATS: Mapping[str, Callable[[bytes, str], MarkdownDocument]] = {
    "pdf": read_pdf,
    "docx": read_docx,
    "feed": read_feed,
    "frames": read_frames,
    "picture": read_picture,
}
"""What is read in a process of its own, however small it is."""
_OF_TEXT: Mapping[str, Callable[[str, str], MarkdownDocument]] = {
    "html": read_html,
    "csv": read_csv,
    "json": read_json,
    "markdown": read_markdown,
    "text": read_text,
}


def read_document(kind: str, body: bytes, url: str, charset: str | None) -> MarkdownDocument:
    """The document `body`, found at `url`, as a `kind` of `ISOLATED` or of text.

    The kinds of text are `html`, `csv`, `json`, `markdown` and `text`. `charset` is what its server calls
    its encoding. May take seconds.

    Raises:
        Unreadable: nothing can be made of it.
    """
    if kind in ISOLATED_FORMATS:
        return ISOLATED_FORMATS[kind](body, url)
    return _OF_TEXT[kind](decode_text(body, charset), url)
