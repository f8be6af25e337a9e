"""Keyword search over everything that a thread has: the tool `search_items`, and hits for the lead.

The index of a thread is a temporary file of this process. It is built at the first search and follows the
files at each one, so nothing has to be kept in step, and a restart loses nothing.
"""

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_core.tools import BaseTool, StructuredTool

from maniple.errors import FileError
from maniple.reading import MAX_DOCUMENT_BYTES
from maniple.reading.formats import HEAD_BYTES
from maniple.redaction import Redactor
from maniple.scope.run_scope import thread_key
from maniple.text import shorten
from maniple.tools.documents import WorkspaceDocuments
from maniple.tools.items import MAX_SCANNED_FILES, is_picture
from maniple.tools.registry import tool_factory
from maniple.tools.text_file import decode_text, escape_unprintable
from maniple.workspace import Workspace, Workspaces, is_cache
from maniple.workspace.mirrors import (
    MIRROR_FOLDERS,
    MIRROR_PATH,
    REPORTS,
    is_mirror,
    is_team_record,
    is_tool_result,
)

if TYPE_CHECKING:
    from maniple.search.text_index import TextHits, TextIndex

_log = logging.getLogger(__name__)
SEARCH_ITEMS = "search_items"
MAX_HITS = 20
DEFAULT_HITS = 8
MAX_INDEXED_BYTES = 5_000_000
"""Of one file; the text after them is not searched."""
_INDEXING_SECONDS = 5.0
"""Of text files in one search, and once more of documents."""
_MAX_INDEXES = 16
_TITLE_CHARACTERS = 80
_FAR_CHARACTER = 1_000
"""A place that is further right in its line is named by its character, too."""
_MIN_SHARE_FOR_LEAD = 0.4
"""Of the words of a message: most of them do not name what it is about."""


@dataclass(frozen=True, slots=True)
class ItemHit:
    """A place in an item that has words of a query; `also` are items with the same passage."""

    path: str
    kind: str
    title: str
    line: int
    character: int
    snippet: str
    """In one line, with the words between `**`."""
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemHits:
    """The hits of a query, best first. `has_all`: each has all words. `waiting`: files not yet indexed."""

    hits: tuple[ItemHit, ...] = ()
    has_all: bool = True
    waiting: int = 0


@dataclass(slots=True)
class _ThreadIndex:
    """The index of one thread; whoever holds `turn` may use it."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    texts: "TextIndex | None" = None
    titles: dict[str, str] = field(default_factory=dict[str, str])

    def open(self) -> "TextIndex":
        """Return the index; raises `FileError` without FTS5."""
        if self.texts is None:
            from maniple.search.text_index import NoFullTextSearch, TextIndex

            try:
                self.texts = TextIndex()
            except NoFullTextSearch:
                raise FileError(
                    "Nothing can be searched: this Python's SQLite has no FTS5. Open items by their paths."
                ) from None
        return self.texts

    def close(self) -> None:
        """Delete the index after the search in progress; another search would build it again."""
        with self.turn:
            if self.texts is not None:
                self.texts.close()
            self.texts = None


@dataclass(frozen=True, slots=True)
class _File:
    """A file to be indexed, as it was found."""

    path: str
    size: int
    stamp: str


@dataclass(frozen=True, slots=True)
class ItemSearch:
    """Searches the items of threads. What `redactor` masks is in no index, and so in no hit."""

    workspaces: Workspaces
    redactor: Redactor = field(default_factory=Redactor)
    documents: WorkspaceDocuments | None = None
    _indexes: OrderedDict[str, _ThreadIndex] = field(default_factory=OrderedDict[str, _ThreadIndex])
    _turn: threading.Lock = field(default_factory=threading.Lock)

    async def has_items(self) -> bool:
        """Return whether the current thread has anything to be searched."""
        return await asyncio.to_thread(self._has_items, thread_key())

    async def search(self, query: str, limit: int = DEFAULT_HITS) -> ItemHits:
        """Return the best hits on the current thread; documents are read for it, too."""
        key = thread_key()
        deadline = time.monotonic() + 2 * _INDEXING_SECONDS
        if self.documents is not None:
            for file in await asyncio.to_thread(self._find_documents, key):
                if time.monotonic() > deadline:
                    break
                await self._index_document(self.documents, key, file)
        return await asyncio.to_thread(self._find, key, query, limit)

    async def find_items(self, thread: str, text: str, limit: int = DEFAULT_HITS) -> ItemHits:
        """Return the hits for the words of a message to a thread; none that has only few of them.

        A search that fails finds nothing: whoever asks works without it.
        """
        try:
            return await asyncio.to_thread(self._find, thread, text, limit, _MIN_SHARE_FOR_LEAD)
        except Exception as error:  # noqa: BLE001 - a message is decided without it
            _log.warning("The items of the thread could not be searched: %s", error, exc_info=True)
            return ItemHits()

    def _has_items(self, key: str) -> bool:
        workspace = self.workspaces.locate(key)
        return any(workspace.files(1, folder) for folder in MIRROR_FOLDERS) or any(
            not is_cache(path) for path, *_ in workspace.list_newest(MAX_SCANNED_FILES)
        )

    def _index_of(self, key: str) -> _ThreadIndex:
        with self._turn:
            index = self._indexes.setdefault(key, _ThreadIndex())
            self._indexes.move_to_end(key)
            oldest = self._indexes.popitem(last=False)[1] if len(self._indexes) > _MAX_INDEXES else None
        if oldest is not None:
            oldest.close()
        return index

    def _find_documents(self, key: str) -> list[_File]:
        """Index what has changed; return the documents, which have to be converted first."""
        index = self._index_of(key)
        with index.turn:
            return self._update(index, self.workspaces.locate(key), _list_files(self.workspaces.locate(key)))

    def _update(self, index: _ThreadIndex, workspace: Workspace, files: Sequence[_File]) -> list[_File]:
        """Index the texts that have changed, for some seconds; return the documents among the changed."""
        documents: list[_File] = []
        deadline = time.monotonic() + _INDEXING_SECONDS
        texts = index.open()
        known = texts.stamps()
        texts.remove(known.keys() - {one.path for one in files})
        for file in files:
            if known.get(file.path) == file.stamp:
                continue
            if time.monotonic() > deadline:
                break
            if self._is_document(workspace, file):
                documents.append(file)
            else:
                self._put(index, file, _read_text(workspace, file.path))
        return documents

    def _is_document(self, workspace: Workspace, file: _File) -> bool:
        if self.documents is None or file.size > MAX_DOCUMENT_BYTES or is_team_record(file.path):
            return False
        try:
            return self.documents.needs_conversion(file.path, workspace.read(file.path, HEAD_BYTES).content)
        except FileError:
            return False

    async def _index_document(self, documents: WorkspaceDocuments, key: str, file: _File) -> None:
        try:
            document = await documents.read(self.workspaces.locate(key), file.path)
        except FileError:
            document = None  # locked, damaged, or of an unknown format: its name is found

        def put() -> None:
            index = self._index_of(key)
            with index.turn:
                self._put(index, file, "" if document is None else document.text)

        await asyncio.to_thread(put)

    def _put(self, index: _ThreadIndex, file: _File, text: str) -> None:
        # Before it is cut into snippets: half a secret would not be found any more.
        text = self.redactor.text(text)
        title = _title_of(file.path, text)
        index.open().put(file.path, file.stamp, text, title)
        index.titles[file.path] = title

    def _find(self, key: str, query: str, limit: int, min_share: float = 0.0) -> ItemHits:
        workspace, index = self.workspaces.locate(key), self._index_of(key)
        uploads = {one.path for one in self.workspaces.uploads(key).list_uploads()}
        with index.turn:
            files = _list_files(workspace)
            self._update(index, workspace, files)
            texts = index.open()
            found: TextHits = texts.find(query, max(1, min(limit, MAX_HITS)), min_share)
            known, titles = texts.stamps(), dict(index.titles)
        hits = tuple(
            ItemHit(
                escape_unprintable(self.redactor.text(one.name)),
                _kind_of(one.name, uploads),
                titles.get(one.name, ""),
                one.line,
                one.character,
                escape_unprintable(one.snippet),
                tuple(escape_unprintable(self.redactor.text(name)) for name in one.also),
            )
            for one in found.hits
        )
        waiting = sum(known.get(one.path) != one.stamp for one in files)
        return ItemHits(hits, found.has_all, waiting)

    @tool_factory(SEARCH_ITEMS)
    def tool(self, opener: str) -> BaseTool:
        """Return the tool `search_items` of an agent that opens files by the tool `opener`."""

        async def search_items(query: str, limit: int = DEFAULT_HITS) -> str:
            if not any(map(str.isalnum, query)):
                raise FileError("The query has no word. Name some words of what you look for.")
            return format_found(await self.search(query, limit), opener)

        return StructuredTool.from_function(
            coroutine=search_items,
            name=SEARCH_ITEMS,
            description="Find words in everything this conversation has: sources, tables, results, reports, "
            f"uploads, files. Returns paths and lines for {opener}.",
            metadata={"idempotent": True},
        )


def format_found(found: ItemHits, opener: str) -> str:
    """Return the hits for a member that opens files by the tool `opener`."""
    waiting = f"[{found.waiting} files are not searched yet: search again]" if found.waiting else ""
    if not found.hits:
        return "\n".join(filter(None, ("[nothing has these words]", waiting)))
    some = "" if found.has_all else "[no passage has all words; these have some]"
    how = f"[read on with {opener}(path, start_line)]"
    return "\n".join(filter(None, (some, *format_hits(found.hits), how, waiting)))


def format_hits(hits: Sequence[ItemHit]) -> list[str]:
    """Return each hit in one line."""
    return [_format_hit(one) for one in hits]


def _format_hit(hit: ItemHit) -> str:
    about = ", ".join(filter(None, (hit.kind, hit.title)))
    place = f"line {hit.line}"
    if hit.character > _FAR_CHARACTER:
        place += f", character {hit.character}"
    also = f" (also in {', '.join(hit.also)})" if hit.also else ""
    text = f": {hit.snippet}" if hit.snippet else ""
    return f"- {hit.path} ({about}), {place}{text}{also}"


def _list_files(workspace: Workspace) -> list[_File]:
    """Return the newest files, the team's own records first: no other files can crowd those out."""
    folders = (*MIRROR_FOLDERS, "")
    listed = [one for folder in folders for one in workspace.list_newest(MAX_SCANNED_FILES, folder)]
    files = {
        path: _File(path, size, f"{changed}-{size}") for path, size, changed in listed if not is_cache(path)
    }
    return sorted(files.values(), key=lambda one: (not is_mirror(one.path), is_tool_result(one.path)))


def _read_text(workspace: Workspace, path: str) -> str:
    """Return the text of a file; "" for a binary one, and for one that cannot be read: its name is found."""
    try:
        head = workspace.read(path, MAX_INDEXED_BYTES)
    except FileError:
        return ""
    decoded = decode_text(head.content, is_cut=head.size > len(head.content))
    return "" if decoded is None else decoded.text


def _kind_of(path: str, uploads: set[str]) -> str:
    if is_tool_result(path):
        return "tool result"
    if (mirror := MIRROR_PATH.fullmatch(path)) is None:
        if path in uploads:
            return "upload"
        return "figure" if is_picture(path) else "file"
    if mirror["table"]:
        return "table"
    if mirror["number"]:
        return "source"
    return "report" if path.startswith(REPORTS) else "result"


def _title_of(path: str, text: str) -> str:
    """Return the first line of what has a heading."""
    if not path.endswith((".md", ".markdown")):
        return ""
    line = next((line for line in text[: 10 * _TITLE_CHARACTERS].splitlines() if line.strip("# \t\r")), "")
    return escape_unprintable(shorten(line.strip("# \t\r"), _TITLE_CHARACTERS))
