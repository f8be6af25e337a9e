"""Documents of the workspace as text: PDF, Word, pages and feeds, read as those of the web are."""

import asyncio
import io
import re
import zipfile
from collections import OrderedDict
from dataclasses import dataclass, field

from maniple.errors import FileError
from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.fork_server import ForkServer
from maniple.sandbox import Workspace
from maniple.tools.text_file import decode_text

MAX_DOCUMENT_BYTES = 50_000_000
_HEAD_BYTES = 2_000
_CACHED_DOCUMENTS = 8
_ZIP, _OFFICE_97 = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LOCKED_OFFICE = "EncryptedPackage".encode("utf-16-le")
_MARKUP = re.compile(
    r"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,500}?-->\s*){0,5}<(?:!doctype html|html|head|body)\b",
    re.I | re.S,
)
_FEED = re.compile(r"<(?:rss|feed|rdf:RDF)[\s>]")
_PARTS = {
    "word/document.xml": "docx",
    "xl/workbook.xml": "an Excel workbook; open it with Python (pandas.read_excel, openpyxl)",
    "ppt/presentation.xml": "a PowerPoint presentation; its slides are XML in ppt/slides of the ZIP archive",
    "META-INF/container.xml": "an EPUB book; its chapters are pages in the ZIP archive",
    "content.xml": "an OpenDocument file; its text is content.xml in the ZIP archive",
}
"""What a ZIP archive is by one of its parts: a format that is read here, or what to do instead."""
_PICTURE = "a picture, which has no text to read"
_PICTURE_BOX = re.compile(rb"RIFF.{4}WEBP|.{4}ftyp(?:hei[cfx]|avi[fs]|mif1)", re.DOTALL)
"""Pictures in the containers of sound and video."""
_MAGIC = {
    **dict.fromkeys((b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*"), _PICTURE),
    b"\x1f\x8b": "a gzip archive; unpack it with Python",
    b"BZh": "a bzip2 archive; unpack it with Python",
    b"\xfd7zXZ": "an xz archive; unpack it with Python",
    b"7z\xbc\xaf": "a 7-Zip archive",
    b"Rar!": "a RAR archive",
    b"SQLite format 3\0": "an SQLite database; open it with Python (sqlite3)",
    b"PAR1": "a Parquet table; open it with Python (pandas.read_parquet)",
    b"\x7fELF": "a program",
    b"MZ": "a Windows program",
    b"ID3": "sound",
    b"OggS": "sound or video",
    b"RIFF": "sound or video",
    b"\x00\x00\x00": "probably video",
}
_MARKUP_FORMATS = ("html", "feed")
_FORMAT_NAMES = {"pdf": "a PDF", "docx": "a Word document", "html": "a web page", "feed": "a feed"}


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The text of a document, as Markdown, and what to say of it."""

    text: str
    heading: str
    note: str = ""


@dataclass(slots=True)
class WorkspaceDocuments:
    """Reads documents in processes of `fork_server`; the texts of the last ones are kept in memory."""

    fork_server: ForkServer
    _read: "OrderedDict[tuple[str, str, int, int], DocumentText]" = field(default_factory=OrderedDict)

    async def read(self, workspace: Workspace, path: str, *, is_source: bool = False) -> DocumentText | None:
        """Return the text of a document; None for a file that is text itself, or unknown.

        Markup is a document unless the caller works on it as text (`is_source`). Raises `FileError` for a
        document that is locked, damaged or of an unknown format, and names it.
        """
        head = await asyncio.to_thread(workspace.read, path, _HEAD_BYTES)
        kind = _kind_of(head.content, is_source=is_source)
        if kind is None:
            return None
        if head.size > MAX_DOCUMENT_BYTES:
            raise FileError(f"{path!r} has {head.size:,} bytes; at most {MAX_DOCUMENT_BYTES:,} are read.")
        body = (await asyncio.to_thread(workspace.read, path, MAX_DOCUMENT_BYTES)).content
        key = (str(workspace.path), path, len(body), hash(body))
        if key not in self._read:
            self._read[key] = await self._convert(kind, body, path)
            if len(self._read) > _CACHED_DOCUMENTS:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return self._read[key]

    async def _convert(self, kind: str, body: bytes, path: str) -> DocumentText:
        if kind == "zip":
            kind = await asyncio.to_thread(_kind_of_archive, body, path)
        if kind not in _FORMAT_NAMES:
            locked = _LOCKED_OFFICE in body
            raise FileError(f"{path!r} is {_OFFICE_LOCKED if locked else kind}.")
        try:
            document: MarkdownDocument = await self.fork_server.read(kind, body, path, None)
        except UnreadableDocument as error:
            raise FileError(f"{path!r} {error}.") from error
        title = f": {document.title}" if document.title else ""
        markup = "; source=true shows its markup" if kind in _MARKUP_FORMATS else ""
        heading = f"[{path} is {_FORMAT_NAMES[kind]}{title}; this is its text{markup}]"
        return DocumentText(document.markdown, heading, document.note)


_OFFICE_LOCKED = "an Office document that is locked with a password; ask the user for one without"
_OFFICE_OLD = (
    "an Office document of the old format (.doc, .xls, .ppt); ask the user for .docx, .xlsx or a PDF"
)
_DAMAGED = "a damaged ZIP archive"
_ARCHIVE = "a ZIP archive; unpack it with Python"


def _kind_of(head: bytes, *, is_source: bool) -> str | None:
    """Return the format of a document, or what it is instead; None for text and unknown data."""
    if head[:1_024].lstrip().startswith(b"%PDF-"):
        return "pdf"
    if head.startswith(_ZIP):
        return "zip"
    if head.startswith(_OFFICE_97):
        return _OFFICE_OLD
    decoded = decode_text(head, is_cut=True)
    if decoded is None:
        if _PICTURE_BOX.match(head):
            return _PICTURE
        return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
    if is_source:
        return None
    if _MARKUP.match(decoded.text):
        return "html"
    return "feed" if decoded.text.lstrip()[:1] == "<" and _FEED.search(decoded.text) else None


def _kind_of_archive(body: bytes, path: str) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            names = set(archive.namelist())
            if any(member.flag_bits & 1 for member in archive.infolist()):
                return "a ZIP archive that is locked with a password"
    except (zipfile.BadZipFile, ValueError, OSError):
        return _DAMAGED
    return next((kind for part, kind in _PARTS.items() if part in names), _ARCHIVE)
