"""The reader of PDFs: each page is a section with its number, so that a citation can name it."""

import io
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maniple.reading import MAX_CHARACTERS, MarkdownDocument, UnreadableDocument, truncation_note
from maniple.reading.pdf_page import PageLine, body_size, format_page, join_words, read_lines
from maniple.text import counted, shorten

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

_MAX_PAGES = 300
# Less than the time limit of the process, so that the pages read so far are not lost.
_MAX_SECONDS = 12
_NAMED_PAGES = 20
_MAX_FIELDS = 1_000
_FIELD_CHARACTERS = 1_000
_PASSWORD_ERROR = 4


def read_pdf(body: bytes, url: str) -> MarkdownDocument:
    """Return the text of a PDF, each page under a heading with its number, and the values of its form.

    Raises:
        UnreadableDocument: it is encrypted or damaged, or all its pages are blank.
    """
    document = _open(body)
    count = len(document)
    title = str(document.get_metadata_dict().get("Title", "")).strip()
    pages, textless = _read_pages(document)
    fields = _read_fields(body) if document.get_formtype() else ""
    if not any(pages) and not textless and not fields:
        raise UnreadableDocument("is a PDF without text and pictures")
    size = body_size(pages)
    texts = [format_page(lines, size) for lines in pages]
    sections = [f"## Page {number}\n\n{text}" for number, text in enumerate(texts, 1) if text]
    markdown = join_words("\n\n".join(filter(None, (*sections, fields))))
    notes = [
        "" if len(pages) == count else f"Only the first {len(pages)} of {count} pages were read.",
        "" if len(markdown) <= MAX_CHARACTERS else truncation_note(MAX_CHARACTERS),
        describe_textless(textless, len(pages)),
        _describe_attachments(document),
    ]
    note = " ".join(filter(None, notes))
    return MarkdownDocument(title, markdown[:MAX_CHARACTERS], note=note, textless_pages=textless)


def _open(body: bytes) -> "PdfDocument":
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(body)
        document.init_forms()
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", 0) == _PASSWORD_ERROR:
            raise UnreadableDocument("is a PDF that requires a password; ask for one without") from error
        raise UnreadableDocument("is a damaged PDF") from error
    if len(document) == 0:
        raise UnreadableDocument("is a damaged PDF: it has no pages")
    return document


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


def _describe_attachments(document: "PdfDocument") -> str:
    count = document.count_attachments()
    return f"{counted(count, 'file')} attached to the PDF: not read." if count else ""


def _read_pages(document: "PdfDocument") -> tuple[list[list[PageLine]], tuple[int, ...]]:
    """Return the lines of the first pages, within the limits of time, pages and characters.

    Also return the numbers of the pages that show something, but have no text.
    """
    deadline = time.monotonic() + _MAX_SECONDS
    pages, textless, characters = list[list[PageLine]](), list[int](), 0
    for at in range(min(len(document), _MAX_PAGES)):
        if characters > MAX_CHARACTERS or time.monotonic() > deadline:
            break
        lines, shows_something = _read_page(document, at)
        pages.append(lines)
        characters += sum(len(line.text) + 1 for line in lines)
        has_text = any(any(map(str.isalnum, line.text)) for line in lines)
        if shows_something and not has_text:
            textless.append(at + 1)
    return pages, tuple(textless)


def _read_page(document: "PdfDocument", at: int) -> tuple[list[PageLine], bool]:
    """Return the lines of a page, and whether it shows anything; a damaged page may show something."""
    import pypdfium2

    try:
        page = document[at]
        lines = read_lines(page.get_textpage())
        shows_something = bool(lines) or any(True for _ in page.get_objects(max_depth=1))
        page.close()
    except pypdfium2.PdfiumError:
        return [], True
    return lines, shows_something


def _read_fields(body: bytes) -> str:
    """Return the filled fields of a form as a section; "" for none, and for a form that cannot be read."""
    from pypdf import PdfReader

    try:
        reader = PdfReader(io.BytesIO(body))
        if reader.is_encrypted:
            reader.decrypt("")
        fields = reader.get_fields() or {}
        lines = [_format_field(str(name), field) for name, field in list(fields.items())[:_MAX_FIELDS]]
    except Exception:  # noqa: BLE001 - a damaged form may raise anything; the pages can be read
        return ""
    filled = list(filter(None, lines))
    return "\n".join(["## Form fields", "", *filled]) if filled else ""


def _format_field(name: str, field: Any) -> str:
    value = field.get("/V")
    if value is None or field.get("/FT") == "/Sig":
        return ""
    values = value if isinstance(value, list) else [value]
    text = shorten(", ".join(str(one).removeprefix("/") for one in values), _FIELD_CHARACTERS)
    label = shorten(str(field.get("/TU") or name), _FIELD_CHARACTERS)
    return f"- {label}: {text}" if text else ""
