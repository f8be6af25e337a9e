"""Items: everything that a thread has, named by its path in the workspace.

An item is an upload, a page that was read (source), a table in it, a figure, a screenshot of the browser, a
file that code wrote, a step's result, or a report. Files are where they are; sources, tables, results and
reports are stored elsewhere and mirrored into the workspace (`Workspace.write_read_only`), so that code and
file tools can open them but not change them.
"""

import asyncio
import csv
import hashlib
import io
import re
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from langchain_core.tools import BaseTool, StructuredTool

from maniple.errors import FileError
from maniple.evidence import Evidence, Source, find_newest_text
from maniple.media_types import media_type_of
from maniple.reading.pictures import PictureInfo, identify_picture
from maniple.redaction import Redactor
from maniple.scope.run_scope import run_key, thread_key
from maniple.text import file_size, shorten
from maniple.tools.documents import OpenAddress, WorkspaceDocuments, is_address
from maniple.tools.picture_origins import PictureOrigin, PictureOrigins
from maniple.tools.registry import tool_factory
from maniple.tools.text_file import LineRange, escape_unprintable, read_page
from maniple.workspace import Workspace, Workspaces, is_cache
from maniple.workspace.mirrors import (
    MIRROR_PATH,
    REPORTS,
    RESULTS,
    SOURCES,
    TOOL_RESULTS,
    is_mirror,
    is_tool_result,
)
from maniple.workspace.safe_open import split_path

ItemKind = Literal["upload", "source", "table", "figure", "screenshot", "file", "result", "report"]

MIN_RESULT_CHARACTERS = 1_000
"""Shorter results are shown whole in every prompt and need no file."""
MIN_TABLE_ROWS = 3
MAX_TABLES = 20
"""Of one source."""
_NAMED_TABLES = 5
MAX_MIRRORED_SOURCES = 200
MAX_SCANNED_FILES = 2_000
MAX_ITEMS = 40
_MAX_THREADS = 1_000
_TITLE_CHARACTERS = 80
_HEAD_BYTES = 400
_MAX_NAMED_BYTES = 1_000_000
_MAX_COMPARED_BYTES = 5_000_000
_WEB_PICTURES = "pictures"
_DRAWN_FIGURE = re.compile(r"figures/figure-\d+\.png")
"""The names of the figures that the interpreter stores."""


FileState = tuple[str, int, int]
"""The path of a file, its bytes, and the time of its last change in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a thread has; `path` names it, and opens it."""

    kind: ItemKind
    path: str
    title: str
    size: int
    """In bytes."""
    is_of_run: bool = False
    """Whether it is a screenshot of the present run."""


@dataclass(frozen=True, slots=True)
class ItemIndex:
    """The newest items of a thread, newest last, and how many older ones there are."""

    items: tuple[Item, ...] = ()
    older: int = 0
    stored: frozenset[str] = frozenset()
    """The paths of all mirrors that are there."""


@dataclass(frozen=True, slots=True)
class MirroredText:
    """A text that the graph's state holds, and the path of its mirror."""

    path: str
    text: str


def result_path(request: int, step: int, agent: str) -> str:
    """Return the path of a step's result; `request` counts the user's requests on the thread from 1."""
    folder = RESULTS if request <= 1 else f"{RESULTS}/request-{request}"
    return f"{folder}/{step}-{agent}.md"


def report_path(number: int) -> str:
    """Return the path of the thread's report number `number`, from 1."""
    return f"{REPORTS}/{number}.md"


@dataclass(frozen=True, slots=True)
class ThreadItems:
    """The items of threads. What `redactor` masks is not in their mirrors."""

    workspaces: Workspaces
    redactor: Redactor = field(default_factory=Redactor)
    _written: OrderedDict[str, dict[str, str]] = field(default_factory=OrderedDict[str, dict[str, str]])
    """By thread: what each mirror was written from. A restart writes them once more."""

    async def update(self, evidence: Evidence | None, texts: Iterable[MirroredText] = ()) -> ItemIndex:
        """Write the mirrors that are missing on the current thread, and return its items.

        A mirror that the workspace has no room for is left out. An index that cannot be read is empty: the
        step works without it.
        """
        key = thread_key()
        written = self._mirrors_of(key)
        sources = await evidence.sources() if evidence is not None else ()
        try:
            if evidence is not None:
                for source in _mirrored_pages(sources):
                    await self._mirror_source(evidence, source)
            for one in texts:
                digest = hashlib.sha256(one.text.encode(errors="replace")).hexdigest()
                if written.get(one.path) != digest:
                    await asyncio.to_thread(self._write, key, one.path, one.text)
                    written[one.path] = digest
        except FileError:
            pass  # no room: what could be mirrored is listed
        titles = {one.number: one.title for one in sources}
        try:
            return await asyncio.to_thread(self._list, key, titles, run_key())
        except FileError:
            return ItemIndex()

    async def list_files(self) -> frozenset[FileState]:
        """Return the files of the current thread that are no mirrors; none if they cannot be read."""
        try:
            return await asyncio.to_thread(self._list_files, thread_key())
        except FileError:
            return frozenset()

    def _list_files(self, key: str) -> frozenset[FileState]:
        found = self.workspaces.locate(key).list_newest(MAX_SCANNED_FILES)
        return frozenset(
            one for one in found if not (is_tool_result(one[0]) or is_cache(one[0]) or is_mirror(one[0]))
        )

    async def mirror_source(self, evidence: Evidence, number: int) -> bool:
        """Write the files of a page that was read on the current thread; return whether they are there."""
        source = next(
            (one for one in _mirrored_pages(await evidence.sources()) if one.number == number), None
        )
        if source is None:
            return False
        try:
            await self._mirror_source(evidence, source)
        except FileError:
            return False
        return True

    async def _mirror_source(self, evidence: Evidence, source: Source) -> None:
        """Write a page and its tables, unless they were written; raises `FileError` without room."""
        key, path = thread_key(), f"{SOURCES}/{source.number}.md"
        written = self._mirrors_of(key)
        if written.get(path) != source.sha256:
            page = await _text_of(evidence, source)
            await asyncio.to_thread(self._write_source, key, source, page)
            written[path] = source.sha256

    async def add_pictures(self, contents: Sequence[bytes]) -> list[str]:
        """Store pictures that the user sent in a message as uploads of the current thread.

        The same bytes are one upload, whatever its name. Returns a sentence about each one that is no picture
        or could not be stored.
        """
        return await asyncio.to_thread(self._add_pictures, thread_key(), contents) if contents else []

    def _add_pictures(self, key: str, contents: Sequence[bytes]) -> list[str]:
        pictures = {hashlib.sha256(content).hexdigest(): content for content in contents}
        uploads = self.workspaces.uploads(key)
        known = {one.sha256 for one in uploads.list_uploads()}
        new = [
            (name_picture(digest, info), io.BytesIO(content))
            for digest, content in pictures.items()
            if digest not in known and (info := identify_picture(content))
        ]
        lost = [
            f"A picture of {file_size(len(content))} of an unknown format. The user may send a PNG or JPEG."
            for digest, content in pictures.items()
            if digest not in known and not identify_picture(content)
        ]
        for one in new:
            try:
                self.workspaces.open(key)
                uploads.add([one])
            except FileError as error:
                lost.append(str(error))
        return lost

    async def add_picture(self, name: str, content: bytes, origin: PictureOrigin) -> str:
        """Store a picture that the user named by its address as an upload, and return its path.

        The same bytes are one upload. Raises `FileError` without room, and for what is no picture.
        """
        return await asyncio.to_thread(self._add_picture, thread_key(), name, content, origin)

    def _add_picture(self, key: str, name: str, content: bytes, origin: PictureOrigin) -> str:
        if (info := identify_picture(content)) is None:
            raise FileError("It is no picture (PNG, JPEG, GIF or WebP).")
        uploads, digest = self.workspaces.uploads(key), hashlib.sha256(content).hexdigest()
        known = next((one.path for one in uploads.list_uploads() if one.sha256 == digest), "")
        if known:
            return known
        workspace = self.workspaces.open(key)
        (stored,) = uploads.add([(_name_by_content(name, digest, info), io.BytesIO(content))])
        self._origins(key, workspace).add(stored.upload.path, content, self._masked(origin))
        return stored.upload.path

    def _masked(self, origin: PictureOrigin) -> PictureOrigin:
        text = self.redactor.text
        return replace(origin, address=text(origin.address), title=text(origin.title))

    async def store_picture(self, name: str, content: bytes, origin: PictureOrigin) -> str:
        """Store a picture of the web or of the browser, and return its path; "" if it is no picture.

        Raises `FileError` if the workspace has no room for it.
        """
        info = identify_picture(content)
        if info is None:
            return ""
        return await asyncio.to_thread(self._store_picture, thread_key(), (name, info), content, origin)

    def _store_picture(
        self, key: str, named: tuple[str, PictureInfo], content: bytes, origin: PictureOrigin
    ) -> str:
        name, info = named
        path = f"{_WEB_PICTURES}/{_name_by_content(name, hashlib.sha256(content).hexdigest(), info)}"
        workspace = self.workspaces.open(key)
        workspace.write(path, content)
        self._origins(key, workspace).add(path, content, self._masked(origin))
        return path

    def _origins(self, key: str, workspace: Workspace) -> PictureOrigins:
        return PictureOrigins.beside(self.workspaces.records(key), workspace)

    async def read_named(self, text: str) -> list[MirroredText]:
        """Return the mirrors on the current thread that a text names by their paths; none that is missing."""
        paths = dict.fromkeys(found[0] for found in MIRROR_PATH.finditer(text))
        workspace = self.workspaces.locate(thread_key())
        return await asyncio.to_thread(_read_mirrors, workspace, list(paths))

    def _mirrors_of(self, key: str) -> dict[str, str]:
        written = self._written.setdefault(key, {})
        self._written.move_to_end(key)
        if len(self._written) > _MAX_THREADS:
            self._written.popitem(last=False)
        return written

    def _write_source(self, key: str, source: Source, text: str) -> None:
        head = f"# {source.title}\n\nSource [{source.number}]: {source.url}"
        self._write(key, f"{SOURCES}/{source.number}.md", f"{head}\n\n{text}")
        for number, rows in enumerate(find_tables(text)[:MAX_TABLES], start=1):
            self._write(key, f"{SOURCES}/{source.number}-table-{number}.csv", format_csv(rows))

    def _write(self, key: str, path: str, text: str) -> None:
        content = self.redactor.text(text).encode(errors="replace")
        self.workspaces.open(key).write_read_only(path, content)

    def _list(self, key: str, titles: Mapping[int, str], run: str) -> ItemIndex:
        workspace = self.workspaces.locate(key)
        uploads = {one.path for one in self.workspaces.uploads(key).list_uploads()}
        files = [
            (path, size)
            for path, size, _ in workspace.list_newest(MAX_SCANNED_FILES)
            if not path.startswith(f"{TOOL_RESULTS}/") and not is_cache(path)
        ]
        copies = _find_copies(workspace, files, uploads)
        files = [(path, size) for path, size in files if path not in copies]
        origins = self._origins(key, workspace)
        items = [
            _describe_picture(path, size, origins.find(path), run)
            if _is_own_picture(path, uploads)
            else _describe(workspace, path, size, uploads, titles)
            for path, size in files[:MAX_ITEMS]
        ]
        stored = frozenset(path for path, _ in files if is_mirror(path))
        return ItemIndex(tuple(reversed(items)), len(files) - len(items), stored)


def _mirrored_pages(sources: Sequence[Source]) -> Sequence[Source]:
    return [one for one in sources if one.kind == "page"][-MAX_MIRRORED_SOURCES:]


def _read_mirrors(workspace: Workspace, paths: Sequence[str]) -> list[MirroredText]:
    mirrors: list[MirroredText] = []
    for path in paths:
        with suppress(FileError):
            content = workspace.read(path, _MAX_NAMED_BYTES).content
            mirrors.append(MirroredText(path, content.decode(errors="replace")))
    return mirrors


def is_picture(path: str) -> bool:
    """Return whether a path's ending is that of a picture."""
    return media_type_of(path).startswith("image/")


def name_picture(sha256: str, info: PictureInfo) -> str:
    """Return the name of a picture that came without one."""
    return f"picture-{sha256[:8]}.{info.media_type.removeprefix('image/')}"


def _name_by_content(name: str, sha256: str, info: PictureInfo) -> str:
    stem = _UNSAFE_CHARACTERS.sub("-", name.rpartition(".")[0] or name).strip("-")[:60] or "picture"
    return f"{stem}-{sha256[:8]}.{info.media_type.removeprefix('image/')}"


def is_drawn_figure(path: str) -> bool:
    """Return whether the interpreter has named a figure."""
    return _DRAWN_FIGURE.fullmatch(path) is not None


def _find_copies(
    workspace: Workspace, files: Sequence[tuple[str, int]], uploads: Collection[str]
) -> set[str]:
    """Return the figures whose content another one has: `savefig` and `show` write one each.

    Of equal ones, an upload stays, else that with the name which the code chose.
    """
    sizes = Counter(size for path, size in files if is_picture(path))
    equal: dict[bytes, list[str]] = {}
    for path, size in files:
        if is_picture(path) and sizes[size] > 1 and size <= _MAX_COMPARED_BYTES:
            with suppress(FileError):
                digest = hashlib.sha256(workspace.read(path, size).content).digest()
                equal.setdefault(digest, []).append(path)

    def rank(path: str) -> tuple[bool, bool]:
        return path not in uploads, is_drawn_figure(path)

    return {path for paths in equal.values() for path in sorted(paths, key=rank)[1:]}


def _is_own_picture(path: str, uploads: Collection[str]) -> bool:
    return is_picture(path) and path not in uploads


def _describe_picture(path: str, size: int, origin: PictureOrigin | None, run: str) -> Item:
    shown = escape_unprintable(path)
    if origin is None:
        return Item("figure", shown, "", size)
    title = escape_unprintable(origin.describe(run))
    if origin.kind != "screenshot":
        return Item("figure", shown, title, size)
    return Item("screenshot", shown, title, size, is_of_run=origin.run == run)


def _describe(
    workspace: Workspace, path: str, size: int, uploads: set[str], titles: Mapping[int, str]
) -> Item:
    shown = escape_unprintable(path)
    if (mirror := MIRROR_PATH.fullmatch(path)) is None:
        if path in uploads:
            return Item("upload", shown, "", size)
        return Item("file", shown, "", size)
    if mirror["table"]:
        return Item("table", path, _first_line(workspace, path), size)
    if mirror["number"]:
        return Item("source", path, shorten(titles.get(int(mirror["number"]), ""), _TITLE_CHARACTERS), size)
    kind: ItemKind = "report" if path.startswith(REPORTS) else "result"
    return Item(kind, path, _first_line(workspace, path), size)


def _first_line(workspace: Workspace, path: str) -> str:
    try:
        head = workspace.read(path, _HEAD_BYTES).content.decode(errors="replace")
    except FileError:
        return ""
    line = next((line.strip("# \t\r") for line in head.splitlines() if line.strip("# \t\r")), "")
    return escape_unprintable(shorten(line, _TITLE_CHARACTERS))


async def describe_source_files(evidence: Evidence, number: int) -> str:
    """Return the files that keep a page that was read, for the agent that read it; "" for no such page."""
    source = next((one for one in _mirrored_pages(await evidence.sources()) if one.number == number), None)
    if source is None:
        return ""
    tables = await asyncio.to_thread(find_tables, await _text_of(evidence, source))
    files = [
        f"{SOURCES}/{number}-table-{place}.csv ({len(rows) - 1:,} rows)"
        for place, rows in enumerate(tables[:MAX_TABLES], start=1)
    ]
    more = f" and {len(files) - _NAMED_TABLES} more" if len(files) > _NAMED_TABLES else ""
    kept = f", its tables as {', '.join(files[:_NAMED_TABLES])}{more}" if files else ""
    return (
        f"The whole page is kept as {SOURCES}/{number}.md{kept}. Members with file tools open these by path: "
        "copy no rows."
    )


async def _text_of(evidence: Evidence, source: Source) -> str:
    """Return the newest text of a page, else the newest that the record had room for."""
    text = await find_newest_text(evidence, source)
    return text if text is not None else next(reversed(await evidence.texts(source.number)), "")


_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*")
_RULE = re.compile(r"[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*")
_CELL_END = re.compile(r"(?<!\\)\|")


def find_tables(markdown: str) -> list[list[list[str]]]:
    """Return the pipe tables (GitHub Flavored Markdown) with at least `MIN_TABLE_ROWS` rows: rows of cells.

    The first row is the heading. Rows are as long as the heading.
    """
    tables: list[list[list[str]]] = []
    rows: list[list[str]] = []
    lines = markdown.splitlines()
    for before, line in zip(["", *lines], [*lines, ""], strict=True):
        if rows and _ROW.fullmatch(line):
            rows.append(_cells(line, len(rows[0])))
            continue
        if len(rows) > MIN_TABLE_ROWS:
            tables.append(rows)
        rows = [_cells(before)] if _RULE.fullmatch(line) and _ROW.fullmatch(before) else []
    return tables


def _cells(line: str, width: int | None = None) -> list[str]:
    cells = [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(line.strip()[1:-1])]
    return cells if width is None else [*cells[:width], *[""] * (width - len(cells))]


def format_csv(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as CSV (RFC 4180, but with line feeds)."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


READ_ITEM = "read_item"
WHOLE = "whole"
"""The key in the artifact of a result that its tool has cut, with `where` (the text of
`StoredResults.describe_location`) and `characters`, the length of the whole result."""
STORED_RESULT = "the whole is the file "
"""What a result that was cut says before the path of the file that holds all of it."""
_OPENS_ADDRESSES = " A picture that a page names opens by its address."
_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class StoredResults:
    """Stores full tool results as files of the current thread, with secrets masked by `redactor`.

    With `documents`, its reader also opens the user's files and pictures.
    """

    workspaces: Workspaces
    redactor: Redactor = field(default_factory=Redactor)
    documents: WorkspaceDocuments | None = None

    async def save(self, tool_name: str, text: str) -> str:
        """Store a text in a file named after its tool and return the path; equal texts share a file.

        Raises `FileError` if the workspace has no room for it.
        """
        content = await asyncio.to_thread(self._content, text)
        digest = hashlib.blake2s(content, digest_size=4).hexdigest()
        path = f"{TOOL_RESULTS}/{_UNSAFE_CHARACTERS.sub('-', tool_name)[:60]}-{digest}.txt"
        place = await asyncio.to_thread(self.workspaces.open, thread_key())
        await asyncio.to_thread(place.write_read_only, path, content)
        return path

    async def describe_location(self, tool_name: str, text: str) -> str:
        """Store a text; return a phrase that names its file, or the reason why it could not be stored."""
        try:
            return f"{STORED_RESULT}{await self.save(tool_name, text)}"
        except FileError as error:
            return f"they are not kept: {error}"

    def _content(self, text: str) -> bytes:
        return self.redactor.text(text).encode(errors="replace")

    async def has_any(self) -> bool:
        """Return whether anything is stored for the current thread that `read_item` could read."""
        return await asyncio.to_thread(self._has_any, thread_key())

    def _has_any(self, key: str) -> bool:
        workspace = self.workspaces.locate(key)
        folders = (TOOL_RESULTS, SOURCES, RESULTS, REPORTS)
        if any(workspace.files(1, folder) for folder in folders):
            return True
        if self.documents is None:
            return False
        if self.workspaces.uploads(key).list_uploads():
            return True
        return any(is_picture(path) for path, *_ in workspace.list_newest(MAX_SCANNED_FILES))

    def _may_read(self, name: str, key: str) -> bool:
        if is_mirror(name) or is_tool_result(name):
            return True
        if self.documents is None:
            return False
        return is_picture(name) or self._is_upload(name, key)

    def _is_upload(self, name: str, key: str) -> bool:
        return any(one.path == name for one in self.workspaces.uploads(key).list_uploads())

    @tool_factory(READ_ITEM)
    def reader(self, open_address: OpenAddress | None = None) -> BaseTool:
        """Return the tool `read_item` for agents without file tools.

        It reads what the team has stored, the user's files, and pictures; by `open_address` also those that
        pages name by their addresses.
        """

        async def read_item(
            path: str, start_line: int = 1, end_line: int = 0, start_character: int = 1, page: int = 0
        ) -> tuple[str, dict[str, Any] | None]:
            if open_address is not None and is_address(path):
                return (await open_address(path)).as_result()
            key, name = thread_key(), "/".join(split_path(path))
            if not await asyncio.to_thread(self._may_read, name, key):
                raise FileError(
                    f"{path!r} cannot be read here. Name a source, a result, a report, an upload or a "
                    "picture by its path."
                )
            place = self.workspaces.locate(key)
            wanted = LineRange(start_line, end_line, start_character)
            if self.documents is None or is_mirror(name) or is_tool_result(name):
                return await asyncio.to_thread(read_page, place, path, wanted), None
            opened = await self.documents.open(place, name, wanted, page=page)
            if await asyncio.to_thread(self._is_upload, name, key):
                opened = await self.documents.cite(place, name, opened)
            return opened.as_result()

        return StructuredTool.from_function(
            coroutine=read_item,
            name=READ_ITEM,
            description="Read a source, table, result, report or upload of this conversation by its path, or "
            "lines of it (end_line 0: to its end; start_character: where to begin in start_line). Shows "
            "pictures, and a PDF's page as one." + (_OPENS_ADDRESSES if open_address is not None else ""),
            response_format="content_and_artifact",
            metadata={"idempotent": True},
        )
