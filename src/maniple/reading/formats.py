"""The formats of documents: one table from format to reader, and the identification of a format by content.

To add a format, add it to `FORMATS`, and what its bytes begin with to `_MAGIC` (or what its archive holds to
`containers.PARTS`). The web, the folder of documents and uploaded files are all read by this table.
"""

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.encoding import decode_text
from maniple.reading.pictures import PICTURE_TYPES, identify_picture

HEAD_BYTES = 2_000
"""The number of bytes from which a format is identified."""
_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
_PDF_WITHIN_BYTES = 1_024
_FEED = re.compile(rb"<(?:rss|feed|rdf:RDF)[\s>]")
_MARKUP = re.compile(
    rb"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,500}?-->\s*){0,5}<(?:!doctype html|html|head|body)\b",
    re.I | re.S,
)
_NOTEBOOK = re.compile(rb'\s*\{.{0,1500}"(?:cell_type|nbformat)"\s*:', re.S)
_MAIL_FIELD = re.compile(rb"([A-Za-z][A-Za-z0-9-]{1,60}):[ \t]*\S?")
_MAIL_MARKS = frozenset({b"received", b"return-path", b"mime-version", b"message-id", b"delivered-to"})
_MIN_MAIL_FIELDS = 3
_TEXT_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
# Bytes that do not occur in text (https://mimesniff.spec.whatwg.org/#binary-data-byte).
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A format of documents and its reader."""

    name: str
    """With its article: "a PDF"."""
    reader: str
    """`module:function`: `(bytes, url)` to a `MarkdownDocument`; with `is_text`, `(str, url)`. It may take
    seconds, and raises `UnreadableDocument`."""
    suffixes: tuple[str, ...] = ()
    media_types: tuple[str, ...] = ()
    """The first one is that of a file that is identified by its content."""
    is_text: bool = False
    """Whether the reader takes decoded text; only then may it run in the service's own process."""
    is_converted: bool = True
    """Whether `read_file` shows it as converted text; else its lines, as they are in the file."""


FORMATS: Mapping[str, DocumentFormat] = {
    "html": DocumentFormat(
        "a web page",
        "maniple.reading.html:read_html",
        (".html", ".htm", ".xhtml"),
        ("text/html", "application/xhtml+xml"),
        is_text=True,
    ),
    "frames": DocumentFormat("a web page", "maniple.reading.html:read_frames"),
    "pdf": DocumentFormat(
        "a PDF", "maniple.reading.pdf:read_pdf", (".pdf",), ("application/pdf", "application/x-pdf")
    ),
    "docx": DocumentFormat(
        "a Word document",
        "maniple.reading.word:read_docx",
        (".docx", ".docm"),
        (f"{_OFFICE}.wordprocessingml.document",),
    ),
    "workbook": DocumentFormat(
        "a workbook",
        "maniple.reading.spreadsheets:read_workbook",
        (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
        (
            f"{_OFFICE}.spreadsheetml.sheet",
            "application/vnd.ms-excel",
            "application/vnd.ms-excel.sheet.macroenabled.12",
            "application/vnd.ms-excel.sheet.binary.macroenabled.12",
            f"{_OPEN_DOCUMENT}.spreadsheet",
        ),
    ),
    "pptx": DocumentFormat(
        "a PowerPoint presentation",
        "maniple.reading.slides:read_pptx",
        (".pptx", ".pptm", ".ppsx"),
        (
            f"{_OFFICE}.presentationml.presentation",
            f"{_OFFICE}.presentationml.slideshow",
            "application/vnd.ms-powerpoint.presentation.macroenabled.12",
        ),
    ),
    "feed": DocumentFormat(
        "a feed",
        "maniple.reading.feeds:read_feed",
        (".rss", ".atom"),
        ("application/rss+xml", "application/atom+xml", "application/rdf+xml"),
    ),
    "epub": DocumentFormat(
        "an EPUB book", "maniple.reading.books:read_epub", (".epub",), ("application/epub+zip",)
    ),
    "opendocument": DocumentFormat(
        "an OpenDocument file",
        "maniple.reading.books:read_open_document",
        (".odt", ".odp"),
        (f"{_OPEN_DOCUMENT}.text", f"{_OPEN_DOCUMENT}.presentation"),
    ),
    "rtf": DocumentFormat(
        "an RTF document",
        "maniple.reading.notebooks:read_rtf",
        (".rtf",),
        ("application/rtf", "text/rtf"),
    ),
    "mail": DocumentFormat("an e-mail", "maniple.reading.mail:read_eml", (".eml",), ("message/rfc822",)),
    "msg": DocumentFormat(
        "a message of Outlook",
        "maniple.reading.mail:read_msg",
        (".msg",),
        ("application/vnd.ms-outlook",),
    ),
    "notebook": DocumentFormat(
        "a notebook",
        "maniple.reading.notebooks:read_notebook",
        (".ipynb",),
        ("application/x-ipynb+json",),
        is_text=True,
    ),
    "picture": DocumentFormat(
        "a picture", "maniple.reading.pictures:read_picture", (), PICTURE_TYPES, is_converted=False
    ),
    "zip": DocumentFormat(
        "a ZIP archive", "maniple.reading.containers:read_zip", (".zip",), ("application/zip",)
    ),
    "ole": DocumentFormat(
        "an Office document of the old format",
        "maniple.reading.containers:read_ole",
        (),
        ("application/x-ole-storage",),
    ),
    "csv": DocumentFormat(
        "a table of separated values",
        "maniple.reading.text_formats:read_csv",
        (".csv", ".tsv"),
        ("text/csv", "application/csv", "text/tab-separated-values"),
        is_text=True,
        is_converted=False,
    ),
    "json": DocumentFormat(
        "JSON",
        "maniple.reading.text_formats:read_json",
        (".json", ".jsonl"),
        ("application/json", "application/jsonl", "application/x-ndjson"),
        is_text=True,
        is_converted=False,
    ),
    "markdown": DocumentFormat(
        "Markdown",
        "maniple.reading.text_formats:read_markdown",
        (".md", ".markdown"),
        ("text/markdown", "text/x-markdown"),
        is_text=True,
        is_converted=False,
    ),
    "text": DocumentFormat(
        "text",
        "maniple.reading.text_formats:read_text",
        (".txt", ".rst"),
        ("text/plain", "text/x-rst"),
        is_text=True,
        is_converted=False,
    ),
}
"""The formats by key. `zip` and `ole` are containers: their readers look inside, and read what they hold."""
_BY_MEDIA_TYPE: Mapping[str, str] = {
    media_type: key for key, one in FORMATS.items() for media_type in one.media_types
}
_BY_SUFFIX: Mapping[str, str] = {suffix: key for key, one in FORMATS.items() for suffix in one.suffixes}
_MAGIC: Mapping[bytes, str] = {
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "ole",
    b"{\\rtf": "rtf",
}


def media_types_by_suffix() -> dict[str, str]:
    """Return the media type of each suffix that a document can have, without those of pictures."""
    return {suffix: _suffix_type(key, suffix) for suffix, key in _BY_SUFFIX.items()}


def formats_by_suffix() -> dict[str, str]:
    """Return the key of the format of each suffix that a document can have, without those of pictures."""
    return dict(_BY_SUFFIX)


def _suffix_type(key: str, suffix: str) -> str:
    exact = {".xhtml": "application/xhtml+xml", ".rst": "text/x-rst", ".tsv": "text/tab-separated-values"}
    return exact.get(suffix) or FORMATS[key].media_types[0]


def identify_binary(head: bytes) -> str:
    """Return the key of a format by the first `HEAD_BYTES` of a file; "" for text, pictures and others."""
    if head[:_PDF_WITHIN_BYTES].lstrip().startswith(b"%PDF-"):
        return "pdf"
    return next((key for magic, key in _MAGIC.items() if head.startswith(magic)), "")


def identify_marked_text(head: bytes) -> str:
    """Return the key of a format that its text itself shows: a web page, a feed, a notebook, an e-mail.

    "" for other text. `head` is UTF-8.
    """
    if _MARKUP.match(head):
        return "html"
    if head.lstrip()[:1] == b"<" and _FEED.search(head):
        return "feed"
    if _NOTEBOOK.match(head):
        return "notebook"
    return "mail" if _is_mail(head) else ""


def _is_mail(head: bytes) -> bool:
    """Return whether a text begins with the fields of an e-mail that was sent."""
    lines = head.replace(b"\r\n", b"\n").partition(b"\n\n")[0].split(b"\n")
    fields = [_MAIL_FIELD.match(line) for line in lines if line[:1] not in (b" ", b"\t")]
    names = {found[1].lower() for found in fields if found}
    # The last line may be cut in the middle.
    return all(fields[:-1]) and len(names) >= _MIN_MAIL_FIELDS and not names.isdisjoint(_MAIL_MARKS)


def identify_member(head: bytes, name: str) -> str:
    """Return the key of the format of a file in another one; "" for an unknown one."""
    if key := identify_binary(head) or ("picture" if identify_picture(head) else ""):
        return key
    if not is_probably_text(head):
        return ""
    named = _BY_SUFFIX.get(suffix_of_address(name), "text")
    return identify_marked_text(head) or (named if FORMATS[named].is_text else "text")


def is_probably_text(head: bytes) -> bool:
    """Return whether the first bytes of a file may be text, in whatever encoding."""
    return head.startswith(_TEXT_MARKS) or not _CONTROLS.search(head)


def identify_format(head: bytes, media_type: str, name: str) -> str:
    """Return the key of a document's format: by its content, else by its type, else by its name.

    `head` are its first bytes, `media_type` what it is declared as. Text that is declared as plain is never
    treated as markup, because it may be the source code of a page.
    """
    if key := identify_binary(head):
        return key
    if media_type.endswith("xml") and media_type != "application/xhtml+xml" and _FEED.search(head):
        return "feed"
    key = _BY_MEDIA_TYPE.get(media_type, "json" if media_type.endswith("json") else "text")
    if key in ("text", "json") and media_type.startswith(("text/plain", "application/json")):
        named = _BY_SUFFIX.get(suffix_of_address(name), key)
        return named if FORMATS[named].is_text and named != "html" else key
    # The format of a binary document is shown by its content: what only says that it is one is text.
    return key if FORMATS[key].is_text or media_type in PICTURE_TYPES else _declared(key)


def _declared(key: str) -> str:
    return key if key in ("pdf", "docx", "feed", "mail") else "text"


def suffix_of_address(name: str) -> str:
    """Return the last suffix of a file or an address in lower case, with its full stop; "" for none."""
    return PurePosixPath(urlsplit(name).path if "://" in name else name).suffix.lower()


def is_binary_document(media_type: str, name: str) -> bool:
    """Return whether a file that is declared as `media_type` and called `name` is one of a binary format.

    The suffix counts only where the declared type says nothing.
    """
    key = _BY_MEDIA_TYPE.get(media_type, "")
    if not key and media_type in ("", "application/octet-stream", "binary/octet-stream"):
        key = _BY_SUFFIX.get(suffix_of_address(name), "")
    return key not in ("", "picture", "feed") and not FORMATS[key].is_text


def is_isolated(key: str) -> bool:
    """Return whether a format is always read in a separate process, because its parsers are risky."""
    return not FORMATS[key].is_text


def read_document(key: str, body: bytes, url: str, charset: str | None) -> MarkdownDocument:
    """Return the document `body` from `url` as Markdown; `key` is one of `FORMATS`. May take seconds.

    `charset` is the encoding that the server declares, of formats that are text.

    Raises:
        UnreadableDocument: the document cannot be read.
    """
    chosen = FORMATS[key]
    module, _, function = chosen.reader.partition(":")
    read: Any = getattr(importlib.import_module(module), function)
    try:
        document: MarkdownDocument = read(decode_text(body, charset) if chosen.is_text else body, url)
    except RecursionError as error:
        raise UnreadableDocument("is nested too deeply to be read") from error
    return document if document.format else replace(document, format=key)
