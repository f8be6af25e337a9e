"""Documents in containers: ZIP archives, and the compound files of Office 97.

Their first bytes do not tell what they are: what they hold does.
"""

import io
import zipfile
from collections.abc import Mapping, Sequence

from maniple.reading import MAX_DOCUMENT_BYTES, MarkdownDocument, UnreadableDocument
from maniple.reading.bundles import read_bundle
from maniple.reading.formats import FORMATS, read_document

PARTS: Mapping[str, str] = {
    "word/document.xml": "docx",
    "xl/workbook.xml": "workbook",
    "xl/workbook.bin": "workbook",
    "ppt/presentation.xml": "pptx",
    "META-INF/container.xml": "epub",
    "content.xml": "opendocument",
}
"""The key of a format by a part that each of its archives has."""
_BY_MEDIA_TYPE: Mapping[bytes, str] = {
    b"application/vnd.oasis.opendocument.spreadsheet": "workbook",
}
"""The key by the content of the part `mimetype`."""
MAX_MEMBERS = 20_000
_MIME_BYTES = 200
_STREAMS: Mapping[str, str] = {
    "Workbook": "workbook",
    "Book": "workbook",
    "__properties_version1.0": "msg",
}
"""The key of a format by a stream of its compound files."""
_LOCKED = "EncryptedPackage"
_LOCKED_MARK = _LOCKED.encode("utf-16-le")
_UNREAD_STREAMS: Mapping[str, str] = {
    _LOCKED: "is an Office document that is locked with a password; ask for one without",
    "WordDocument": "is a Word document of the old format (.doc), which is not read; ask for .docx or a PDF",
    "PowerPoint Document": "is a presentation of the old format (.ppt), which is not read; ask for .pptx or "
    "a PDF",
}


def open_archive(body: bytes, name: str) -> zipfile.ZipFile:
    """Return an archive that is safe to be read whole; `name` is what the messages call it.

    Raises:
        UnreadableDocument: it is damaged or locked with a password, has too many parts, or parts that are
            too large when they are unpacked.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(body))
        members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError) as error:
        raise UnreadableDocument(f"is {name} that is damaged") from error
    if len(members) > MAX_MEMBERS:
        raise UnreadableDocument(f"is {name} of more than {MAX_MEMBERS:,} parts")
    if any(member.flag_bits & 1 for member in members):
        raise UnreadableDocument(f"is {name} that is locked with a password; ask for one without")
    # `zipfile` reads at most the declared size of each member.
    if sum(member.file_size for member in members) > MAX_DOCUMENT_BYTES:
        raise UnreadableDocument(f"is {name} of more than {MAX_DOCUMENT_BYTES:,} bytes when it is unpacked")
    return archive


def read_part(archive: zipfile.ZipFile, part: str) -> bytes:
    """Return a part of an archive of `open_archive`; b"" if there is none.

    Raises:
        UnreadableDocument: the part is damaged.
    """
    try:
        return archive.read(part)
    except KeyError:
        return b""
    except Exception as error:  # a damaged part raises whatever its compression does
        raise UnreadableDocument("is damaged") from error


def read_zip(body: bytes, url: str) -> MarkdownDocument:
    """Return the document that a ZIP archive is, or that of all its files.

    Raises:
        UnreadableDocument: it cannot be read.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            key = identify_archive(archive)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError) as error:
        raise UnreadableDocument("is a damaged ZIP archive") from error
    if key:
        return read_document(key, body, url, None)
    with open_archive(body, "a ZIP archive") as archive:
        return read_bundle(archive)


def identify_archive(archive: zipfile.ZipFile) -> str:
    """Return the key of the format that an archive is; "" for one of files."""
    names = set(archive.namelist())
    about = archive.getinfo("mimetype") if "mimetype" in names else None
    is_readable = about is not None and about.file_size <= _MIME_BYTES and not about.flag_bits & 1
    kind = archive.read("mimetype").strip() if is_readable else b""
    return _BY_MEDIA_TYPE.get(kind) or next((key for part, key in PARTS.items() if part in names), "")


def read_ole(body: bytes, url: str) -> MarkdownDocument:
    """Return the document that a compound file is.

    Raises:
        UnreadableDocument: it cannot be read.
    """
    return read_document(identify_ole(_stream_names(body)), body, url, None)


def identify_ole(streams: Sequence[str]) -> str:
    """Return the key of the format of a compound file with these streams.

    Raises:
        UnreadableDocument: it is of a format that is not read.
    """
    for known, why in _UNREAD_STREAMS.items():
        if known in streams:
            raise UnreadableDocument(why)
    if key := next((key for name, key in _STREAMS.items() if name in streams), ""):
        return key
    raise UnreadableDocument(f"is {FORMATS['ole'].name} (.doc, .ppt or another), which is not read")


def _stream_names(body: bytes) -> list[str]:
    import olefile

    try:
        with olefile.OleFileIO(io.BytesIO(body)) as file:
            return [entry[0] for entry in file.listdir(streams=True, storages=True)]
    except Exception as error:  # a damaged one raises various errors
        if _LOCKED_MARK in body:
            raise UnreadableDocument(_UNREAD_STREAMS[_LOCKED]) from error
        raise UnreadableDocument("is a damaged Office document of the old format") from error
