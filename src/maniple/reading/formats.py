"""The readers of document formats."""

import csv
import io
import json
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from xml.parsers.expat import ExpatError

from maniple.reading import MAX_CHARACTERS, MarkdownDocument, UnreadableDocument, truncation_note
from maniple.reading.encoding import decode_text
from maniple.reading.html import read_fragment, read_frames, read_html
from maniple.reading.pictures import read_picture
from maniple.text import fix_surrogates

if TYPE_CHECKING:
    from pypdf import PdfReader

MAX_TEXT_CHARACTERS = 2_000_000
"""The limit of plain text and Markdown, which need no conversion; equal to that of the folder's index."""

_MAX_ROWS = 5_000
_MAX_COLUMNS = 50
_LONG_LINE = 500
# The limit of growth by indentation; deeply nested JSON would consist mostly of blanks.
_MAX_BLANKS = 4


def read_text(text: str, url: str) -> MarkdownDocument:
    """Return plain text unchanged."""
    return _truncate(_file_name(url), text.strip("\n"), headed=False, longest=MAX_TEXT_CHARACTERS)


def read_markdown(text: str, url: str) -> MarkdownDocument:
    """Return Markdown unchanged."""
    return _truncate(_file_name(url), text.strip("\n"), headed=True, longest=MAX_TEXT_CHARACTERS)


def read_json(text: str, url: str) -> MarkdownDocument:
    """Return JSON with unescaped characters, and with one value per line if its lines are long.

    Invalid JSON is returned unchanged.
    """
    if "\\u" not in text and all(len(line) <= _LONG_LINE for line in text.splitlines()):
        return _truncate(_file_name(url), text.strip(), headed=False)
    try:
        laid_out = fix_surrogates(json.dumps(json.loads(text), indent=1, ensure_ascii=False))
    except (ValueError, RecursionError):
        laid_out = ""
    fits = 0 < len(laid_out) <= _MAX_BLANKS * len(text) + 100
    return _truncate(_file_name(url), laid_out if fits else text.strip(), headed=False)


def read_csv(text: str, url: str) -> MarkdownDocument:
    """Return comma-, semicolon-, tab- or pipe-separated values as a Markdown table."""
    first_line = text[:4_000].partition("\n")[0]
    delimiter = max(",;\t|", key=first_line.count)
    try:
        rows = list(islice(csv.reader(io.StringIO(text), delimiter=delimiter), _MAX_ROWS + 1))
    except csv.Error:
        return read_text(text, url)
    columns = min(max(map(len, rows), default=0), _MAX_COLUMNS)
    lines = [_table_row([*row, *[""] * columns][:columns]) for row in rows[:_MAX_ROWS] if row]
    lines[1:1] = ["|" + " --- |" * columns]
    reading = _truncate(_file_name(url), "\n".join(lines), headed=False)
    if len(rows) <= _MAX_ROWS or reading.note:
        return reading
    return MarkdownDocument(
        reading.title, reading.markdown, False, f"Only the first {_MAX_ROWS:,} rows were read."
    )


def _table_row(cells: list[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _truncate(title: str, text: str, headed: bool, longest: int = MAX_CHARACTERS) -> MarkdownDocument:
    if len(text) <= longest:
        return MarkdownDocument(title, text, headed)
    return MarkdownDocument(title, text[:longest], headed, truncation_note(longest))


def _file_name(url: str) -> str:
    return urlsplit(url).path.rstrip("/").rpartition("/")[2]


_MAX_BYTES = 50_000_000


def read_docx(body: bytes, url: str) -> MarkdownDocument:
    """Return a Word document as Markdown with headings, lists, tables and links, without pictures.

    Raises:
        UnreadableDocument: it is damaged, or too large when unpacked.
    """
    import mammoth

    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            # `zipfile` reads at most the declared size of each member.
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


_MAX_ENTRIES = 200


def read_feed(body: bytes, url: str) -> MarkdownDocument:
    """Return each entry of a feed with its link, time and content, in the order of the feed."""
    import feedparser

    # A file object, because feedparser may interpret bytes as an address or a path and open it.
    feed = feedparser.parse(io.BytesIO(body), response_headers={"content-location": url})
    title = str(feed.feed.get("title", ""))
    source = "".join(map(_entry_html, feed.entries[:_MAX_ENTRIES]))
    reading = read_fragment(source, title, url)
    if len(feed.entries) > _MAX_ENTRIES and not reading.note:
        note = f"Only the first {_MAX_ENTRIES} of {len(feed.entries)} entries were read."
        return MarkdownDocument(reading.title, reading.markdown, note=note)
    return reading


def _entry_html(entry: Any) -> str:
    when = entry.get("published") or entry.get("updated") or ""
    content = max(
        [entry.get("summary", ""), *(part.get("value", "") for part in entry.get("content", []))], key=len
    )
    heading = escape(entry.get("title") or entry.get("link") or "Entry")
    link = escape(entry.get("link", ""))
    return f'<h2><a href="{link}">{heading}</a></h2><p>{escape(when)}</p><div>{content}</div>'


ISOLATED_FORMATS: Mapping[str, Callable[[bytes, str], MarkdownDocument]] = {
    "pdf": read_pdf,
    "docx": read_docx,
    "feed": read_feed,
    "frames": read_frames,
    "picture": read_picture,
}
"""Formats that are always read in a separate process, because their parsers are risky."""
_TEXT_FORMATS: Mapping[str, Callable[[str, str], MarkdownDocument]] = {
    "html": read_html,
    "csv": read_csv,
    "json": read_json,
    "markdown": read_markdown,
    "text": read_text,
}


def read_document(kind: str, body: bytes, url: str, charset: str | None) -> MarkdownDocument:
    """Return the document `body` from `url` as Markdown; `kind` is a key of `ISOLATED_FORMATS` or of the text
    formats.

    The text formats are `html`, `csv`, `json`, `markdown` and `text`. `charset` is the encoding that the
    server declares. May take seconds.

    Raises:
        UnreadableDocument: the document cannot be read.
    """
    if kind in ISOLATED_FORMATS:
        return ISOLATED_FORMATS[kind](body, url)
    return _TEXT_FORMATS[kind](decode_text(body, charset), url)
