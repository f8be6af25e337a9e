"""Files of the workspace that are no text: documents as text, as those of the web, and pictures to be shown.

A tool's result names the pictures under `SHOWN_PICTURES` in its artifact; a middleware adds them to the
requests (`maniple.agents.middleware.item_pictures`), or says to a model that does not see what it misses.
"""

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from maniple.errors import FileError
from maniple.media_types import media_type_of
from maniple.reading import (
    MAX_DOCUMENT_BYTES,
    MAX_TEXT_CHARACTERS,
    MarkdownDocument,
    UnreadableDocument,
)
from maniple.reading.fork_server import ForkServer
from maniple.reading.formats import (
    FORMATS,
    HEAD_BYTES,
    identify_binary,
    identify_marked_text,
    is_probably_text,
)
from maniple.reading.loaders import DocumentLoader
from maniple.reading.rendering import RenderedPicture
from maniple.scope.run_scope import thread_key
from maniple.text import shorten
from maniple.tools.evidence import current_evidence, upload_line
from maniple.tools.text_file import LineRange, decode_text, escape_unprintable, read_page, read_text_page
from maniple.workspace import Workspace, Workspaces

_CACHED_DOCUMENTS = 8
SHOWN_PICTURES = "shown_pictures"
"""The key of the names of pictures in the artifact of a tool's result: paths, and `PATH#page=N`."""
MAX_SHOWN_PAGES = 4
_PICTURE = "picture"
_PLACE_CHARACTERS = 120
_MIN_TEXT_BYTES = 40
_MAX_WORD_BYTES = 200
"""The bytes for each blank that a text has at most; Japanese has hardly any but the ends of lines."""
_CACHED_PICTURE_BYTES = 20_000_000
_PAGE = re.compile(r"#page=(\d{1,6})\Z")
_PICTURE_BOX = re.compile(rb"RIFF.{4}WEBP|.{4}ftyp(?:hei[cfx]|avi[fs]|mif1)", re.DOTALL)
"""Pictures in the containers of sound and video."""
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*")
_MAGIC = {
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
_MARKUP_FORMATS = ("html", "feed", "mail", "notebook")
_Key = tuple[str, str, int, int]
_PageKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is by its first bytes; both are empty for text and unknown data."""

    key: str = ""
    """The key of its format in `FORMATS`, if it is read by that."""
    unread: str = ""
    """What it is instead, and what to do."""


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The text of a document, as Markdown, and what to say of it."""

    text: str
    heading: str
    note: str = ""
    textless_pages: Sequence[int] = ()
    """The pages of a PDF that can only be shown."""
    title: str = ""


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """What a model reads of a file, and the names of the pictures that it is shown."""

    text: str
    pictures: Sequence[str] = ()

    def as_result(self) -> tuple[str, dict[str, Any] | None]:
        """Return the text and the artifact of a tool's result."""
        return self.text, {SHOWN_PICTURES: list(self.pictures)} if self.pictures else None


OpenAddress = Callable[[str], Awaitable[OpenedFile]]
"""Opens a picture at a web address."""


def is_address(path: str) -> bool:
    """Return whether what was given as a path is a web address."""
    return path.strip().lower().startswith(("http://", "https://"))


ReadRendered = Callable[[str], Awaitable[RenderedPicture]]
"""Returns a picture of the current thread by its name, for a model that sees; raises `FileError`."""


@dataclass(slots=True)
class WorkspaceDocuments:
    """Reads documents in processes of `fork_server`; the texts of the last ones are kept in memory."""

    fork_server: ForkServer
    _read: OrderedDict[_Key, DocumentText] = field(default_factory=OrderedDict[_Key, DocumentText])
    _rendered: OrderedDict[_PageKey, RenderedPicture] = field(
        default_factory=OrderedDict["_PageKey", "RenderedPicture"]
    )

    async def open(
        self, workspace: Workspace, path: str, wanted: LineRange, *, is_source: bool = False, page: int = 0
    ) -> OpenedFile:
        """Return the wanted lines of a file or of a document's text; a picture, or a page of a PDF, is shown.

        Raises `FileError` for what cannot be read, with the reason.
        """
        head = await asyncio.to_thread(workspace.read, path, HEAD_BYTES)
        is_own = is_source or not self._loader(path)
        kind = identify_file(head.content, is_source=is_source) if is_own else FileKind()
        if page and kind.key != "pdf":
            raise FileError(f"{path!r} is no PDF, so it has no page {page} to be shown: leave page out.")
        if page or kind.key == _PICTURE:
            return await self._show(workspace, path, page)
        document = await self.read(workspace, path, is_source=is_source)
        if document is None:
            return OpenedFile(await asyncio.to_thread(read_page, workspace, path, wanted))
        if not document.text.strip() and document.textless_pages:
            text = ""
        else:
            text = await asyncio.to_thread(read_text_page, document.text, path, wanted)
        place = await asyncio.to_thread(find_place, document.text, wanted.start_line)
        shown = document.textless_pages[:MAX_SHOWN_PAGES] if wanted.start_line <= 1 else ()
        notes = [document.note, *([_describe_shown(shown)] if shown else [])]
        note = " ".join(filter(None, notes))
        parts = (document.heading, place, text, f"[{note}]" if note else "")
        return OpenedFile("\n".join(filter(None, parts)), [f"{path}#page={one}" for one in shown])

    async def cite(self, workspace: Workspace, path: str, opened: OpenedFile) -> OpenedFile:
        """Return an opened file of the user under the line that names it as a source of the run.

        All of its text is recorded, whichever lines of it are shown.
        """
        if current_evidence() is None:
            return opened
        title, text = await self._source_text(workspace, path)
        line = await upload_line(path, title, text)
        return replace(opened, text=f"{line}\n{opened.text}")

    async def _source_text(self, workspace: Workspace, path: str) -> tuple[str, str]:
        """Return the title and the text of a file; both are "" for a picture."""
        try:
            document = await self.read(workspace, path)
        except FileError:
            return "", ""  # it is shown, and has no text
        if document is not None:
            return document.title, document.text
        content = (await asyncio.to_thread(workspace.read, path, MAX_TEXT_CHARACTERS)).content
        decoded = decode_text(content, is_cut=True)
        return "", "" if decoded is None else decoded.text

    async def open_picture(self, workspace: Workspace, path: str) -> OpenedFile | None:
        """Return a picture to be shown; None for any other file. Raises `FileError` if it is damaged."""
        try:
            head = await asyncio.to_thread(workspace.read, path, HEAD_BYTES)
        except FileError:
            return None  # a folder, or nothing: the caller knows what to say
        is_shown = identify_file(head.content, is_source=True).key == _PICTURE
        return await self._show(workspace, path, 0) if is_shown else None

    async def _show(self, workspace: Workspace, path: str, page: int) -> OpenedFile:
        name = f"{path}#page={page}" if page else path
        picture = await self.render(workspace, name)
        shown = escape_unprintable(path)
        if page:
            return OpenedFile(f"[page {page} of {picture.pages} of {shown}, as a picture]", [name])
        frames = f", the first of {picture.pages} frames" if picture.pages > 1 else ""
        size = f"{picture.width:,} x {picture.height:,} pixels"
        return OpenedFile(f"[{shown} is a {picture.kind} picture of {size}{frames}]", [name])

    async def render(self, workspace: Workspace, name: str) -> RenderedPicture:
        """Return a picture, or a page of a PDF (`PATH#page=N`), scaled for a model that sees.

        Raises `FileError` if it cannot be decoded.
        """
        path, page = await asyncio.to_thread(_split_name, workspace, name)
        head = await asyncio.to_thread(workspace.read, path, MAX_DOCUMENT_BYTES)
        if head.size > MAX_DOCUMENT_BYTES:
            raise FileError(f"{path!r} has {head.size:,} bytes; at most {MAX_DOCUMENT_BYTES:,} are shown.")
        digest = await asyncio.to_thread(lambda: hashlib.sha256(head.content).hexdigest())
        key = (digest, page)
        if key not in self._rendered:
            try:
                rendered = await self.fork_server.render(head.content, page)
            except UnreadableDocument as error:
                raise FileError(f"{path!r} {error}.") from error
            self._rendered[key] = replace(rendered, sha256=digest)
            while sum(len(one.content) for one in self._rendered.values()) > _CACHED_PICTURE_BYTES:
                self._rendered.popitem(last=False)
        self._rendered.move_to_end(key)
        return self._rendered[key]

    async def read(self, workspace: Workspace, path: str, *, is_source: bool = False) -> DocumentText | None:
        """Return the text of a document; None for a file that is text itself, or unknown.

        Markup is a document unless the caller works on it as text (`is_source`). Raises `FileError` for a
        document that is locked, damaged or of an unknown format, and names it.
        """
        head = await asyncio.to_thread(workspace.read, path, HEAD_BYTES)
        loader = None if is_source else self._loader(path)
        kind = identify_file(head.content, is_source=is_source)
        if not kind.key and not kind.unread and loader is None:
            return None
        if head.size > MAX_DOCUMENT_BYTES:
            raise FileError(f"{path!r} has {head.size:,} bytes; at most {MAX_DOCUMENT_BYTES:,} are read.")
        body = (await asyncio.to_thread(workspace.read, path, MAX_DOCUMENT_BYTES)).content
        key = (str(workspace.path), path, len(body), hash(body))
        if key not in self._read:
            if loader is not None:
                self._read[key] = await self._load(loader, body, path)
            else:
                self._read[key] = await self._convert(kind, body, path)
            if len(self._read) > _CACHED_DOCUMENTS:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return self._read[key]

    def needs_conversion(self, path: str, head: bytes) -> bool:
        """Return whether a file that begins like this may be a document."""
        key = identify_file(head, is_source=False).key
        return key not in ("", _PICTURE) or self._loader(path) is not None

    def _loader(self, path: str) -> DocumentLoader | None:
        return self.fork_server.loaders.find(path, media_type_of(path))

    async def _load(self, loader: DocumentLoader, body: bytes, path: str) -> DocumentText:
        try:
            document = await self.fork_server.load(loader, body, path)
        except UnreadableDocument as error:
            raise FileError(f"{path!r} {error}.") from error
        title = f" {document.title!r}" if document.title else ""
        heading = f"[this is the text of {path}{title}, as {loader.use} reads it]"
        return DocumentText(document.markdown, heading, document.note, title=document.title)

    async def _convert(self, kind: FileKind, body: bytes, path: str) -> DocumentText:
        if not kind.key or kind.key == _PICTURE:
            raise FileError(f"{path!r} is {kind.unread or FORMATS[_PICTURE].name}.")
        try:
            document: MarkdownDocument = await self.fork_server.read(kind.key, body, path, None)
        except UnreadableDocument as error:
            raise FileError(f"{path!r} {error}.") from error
        title = f": {document.title}" if document.title else ""
        markup = "; source=true shows its markup" if kind.key in _MARKUP_FORMATS else ""
        heading = f"[{path} is {FORMATS[document.format].name}{title}; this is its text{markup}]"
        return DocumentText(
            document.markdown, heading, document.note, document.textless_pages, document.title
        )


def find_place(text: str, line: int) -> str:
    """Return in which page, sheet or section line `line` of a document is; "" for the first line."""
    if line <= 1:
        return ""
    heading = ""
    for number, one in enumerate(text.split("\n"), 1):
        if number >= line:
            break
        heading = one.removeprefix("## ") if one.startswith("## ") else heading
    return f"[line {line} is in: {shorten(heading, _PLACE_CHARACTERS)}]" if heading else ""


def _has_words(head: bytes) -> bool:
    """Return whether bytes without controls are long enough for a text, and parted by blanks."""
    blanks = sum(map(head.count, (b" ", b"\n", b"\t")))
    return len(head) >= _MIN_TEXT_BYTES and blanks * _MAX_WORD_BYTES >= len(head)


def rendered_picture_reader(workspaces: Workspaces, documents: WorkspaceDocuments) -> ReadRendered:
    """Return a function that reads the pictures of the current thread."""

    async def read(name: str) -> RenderedPicture:
        workspace = await asyncio.to_thread(workspaces.locate, thread_key())
        return await documents.render(workspace, name)

    return read


def _split_name(workspace: Workspace, name: str) -> tuple[str, int]:
    """Return the path and the page (0: none) of a picture's name. A file may be called so, too. Blocks."""
    found = _PAGE.search(name)
    if found is None or workspace.size(name) is not None:
        return name, 0
    return name[: found.start()], int(found[1])


def _describe_shown(pages: Sequence[int]) -> str:
    named = ", ".join(map(str, pages))
    return f"As pictures: page{'s' * (len(pages) > 1)} {named}; page=N opens another one."


def identify_file(head: bytes, *, is_source: bool) -> FileKind:
    """Return what a file is by its first `HEAD_BYTES`; with `is_source`, markup is text."""
    if key := identify_binary(head):
        return FileKind(key)
    decoded = decode_text(head, is_cut=True)
    if decoded is None:
        if _PICTURE_BOX.match(head) or head.startswith(_PICTURES):
            return FileKind(_PICTURE)
        unread = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")
        # Text in an encoding that only a detector finds.
        is_text = is_probably_text(head) and _has_words(head)
        return FileKind("text") if is_text and not unread else FileKind("", unread)
    return FileKind() if is_source else FileKind(identify_marked_text(decoded.text.encode(errors="replace")))
