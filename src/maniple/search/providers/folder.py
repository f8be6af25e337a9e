"""A local folder of documents. Passages are indexed with SQLite's FTS5 and ranked by BM25.

Hits have addresses such as `folder:reports/2026.md`, which `FolderSearch.read` opens; no address can name a
file outside of the folder.
"""

import asyncio
import os
import re
import sqlite3
import stat
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import quote, unquote

from maniple.config.web_settings import SearchSettings
from maniple.errors import SearchError, ToolFailure
from maniple.reading import MAX_DOCUMENT_BYTES
from maniple.reading.formats import media_types_by_suffix
from maniple.search.provider import (
    ClosableProvider,
    ProviderFailure,
    ProviderSpec,
    SearchContext,
    SearchHit,
    make_hit,
    normalize_query,
)

SCHEME = "folder:"
MEDIA_TYPES: Mapping[str, str] = media_types_by_suffix()
"""The formats that are searched, by suffix. The system's table is not used: slim images have none."""
SUFFIXES = frozenset(MEDIA_TYPES)
_QUERY_CHARACTERS = 1_000
_INDEXING_SECONDS = 5.0

ReadDocument = Callable[[str, bytes], Awaitable[tuple[str, str, str]]]
"""Converts a file's name and content to title, text and a note on what is missing, or "". Raises
`ToolFailure`."""

T = TypeVar("T")
MAX_FILES = 5_000
MAX_FILE_BYTES = MAX_DOCUMENT_BYTES
PASSAGE_CHARACTERS = 1_000
MAX_PASSAGES = 2_000
"""Per document; the text after them is not indexed."""
_MAX_QUERY_WORDS = 16
# Text that is written without spaces (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) is indexed by
# pairs of neighbouring characters.
UNSPACED_CHARACTERS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
    "\U00020000-\U0003134f"
)
"""As ranges of a regular expression."""
_UNSPACED = re.compile(f"[{UNSPACED_CHARACTERS}]+")
_WORD = re.compile(r"[^\W_]+")
_SHORT_WORD_CHARACTERS = 3

_SCHEMA = """
CREATE TABLE document (
    id INTEGER PRIMARY KEY, name TEXT UNIQUE, title TEXT, modified_ns INTEGER, size INTEGER,
    characters INTEGER, note TEXT
);
CREATE VIRTUAL TABLE passage USING fts5(
    words, text UNINDEXED, document UNINDEXED, tokenize = 'porter unicode61'
);
CREATE TABLE owner (passage INTEGER PRIMARY KEY, document INTEGER);
CREATE INDEX owner_document ON owner (document);
"""


@dataclass(frozen=True, slots=True)
class IndexStamp:
    """The modification time and size of a file, by which changes are noticed."""

    modified_ns: int
    size: int


def list_files(folder: Path, suffixes: frozenset[str]) -> Iterator[tuple[str, IndexStamp]]:
    """Yield the relative POSIX paths of at most `MAX_FILES` regular files. Blocks on disk.

    Hidden files and folders, symbolic links, other suffixes and files over `MAX_FILE_BYTES` are left out.
    """
    left = MAX_FILES
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if name.startswith(".") or path.suffix.lower() not in suffixes:
                continue
            try:
                status = path.lstat()
            except OSError:
                continue  # it was deleted meanwhile
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
                continue
            if left == 0:
                return
            left -= 1
            yield path.relative_to(folder).as_posix(), IndexStamp(status.st_mtime_ns, status.st_size)


def read_file_below(folder: Path, name: str) -> bytes:
    """Return the content of the regular file `name`; raises `OSError`. Blocks on disk.

    No component of the path may be a symbolic link: each folder is opened relative to its parent.
    """
    *folders, last = name.split("/")
    if not all((*folders, last)) or any(part in (".", "..") for part in (*folders, last)):
        raise FileNotFoundError(name)
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in folders:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
            os.close(parent)
            parent = below
        # Without O_NONBLOCK, opening a named pipe would block.
        file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
    finally:
        os.close(parent)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise FileNotFoundError(name)
        return opened.read(MAX_FILE_BYTES)


@dataclass(frozen=True, slots=True)
class DocumentPassage:
    """The best passage of a document.

    `characters` is the document's length, `note` what of it is not indexed.
    """

    name: str
    title: str
    text: str
    characters: int
    note: str


class PassageIndex:
    """A full-text index of documents by name, in a temporary file.

    Every method blocks; one thread at a time.
    """

    def __init__(self) -> None:
        # "": a temporary file. Nothing is committed: there is no state to restore, and a commit after each
        # document makes the indexing 1.6 times as slow.
        self._database = sqlite3.connect("", check_same_thread=False)
        self._database.executescript(_SCHEMA)

    def close(self) -> None:
        """Delete the index."""
        self._database.close()

    def stamps(self) -> dict[str, IndexStamp]:
        """Return the stamps of the indexed documents by name."""
        rows = self._database.execute("SELECT name, modified_ns, size FROM document")
        return {name: IndexStamp(modified_ns, size) for name, modified_ns, size in rows}

    def put(self, name: str, stamp: IndexStamp, title: str, text: str, note: str = "") -> None:
        """Index a document, replacing the one of that name. An empty text is never found."""
        self._remove(name)
        row = (name, title, stamp.modified_ns, stamp.size, len(text.strip()), note)
        names = "name, title, modified_ns, size, characters, note"
        put = f"INSERT INTO document ({names}) VALUES (?, ?, ?, ?, ?, ?)"
        document = self._database.execute(put, row).lastrowid
        for passage in split_passages(text):
            terms = pair_unspaced(f"{title}\n{passage}", with_ends=True)
            insert = "INSERT INTO passage (words, text, document) VALUES (?, ?, ?)"
            row_id = self._database.execute(insert, (terms, passage, document)).lastrowid
            self._database.execute("INSERT INTO owner VALUES (?, ?)", (row_id, document))

    def remove(self, names: Iterable[str]) -> None:
        """Remove documents from the index."""
        for name in names:
            self._remove(name)

    def find(self, query: str, limit: int) -> list[DocumentPassage]:
        """Return at most `limit` documents, each with its best passage, best first.

        A document must contain two fifths of the query's words: many words of a question do not name its
        topic.
        """
        words = _query_words(query)
        candidates = self._documents_with_most_of(words)
        if not candidates:
            return []
        found: dict[int, DocumentPassage] = {}
        ranked = self._database.execute(
            "SELECT id, name, title, text, characters, note FROM passage JOIN document ON id = document"
            " WHERE passage MATCH ? ORDER BY rank",
            (" OR ".join(map(_quoted, words)),),
        )
        for document, *passage in ranked:
            if document in candidates:
                found.setdefault(document, DocumentPassage(*passage))
            if len(found) == limit:
                break
        return list(found.values())

    def _documents_with_most_of(self, words: Sequence[str]) -> set[int]:
        counts: dict[int, int] = {}
        for word in words:
            rows = self._database.execute(
                "SELECT DISTINCT document FROM passage WHERE passage MATCH ?", (_quoted(word),)
            )
            for (document,) in rows:
                counts[document] = counts.get(document, 0) + 1
        return {document for document, count in counts.items() if 5 * count >= 2 * len(words)}

    def _remove(self, name: str) -> None:
        row = self._database.execute("SELECT id FROM document WHERE name = ?", (name,)).fetchone()
        if row is not None:
            where = "rowid IN (SELECT passage FROM owner WHERE document = ?)"
            self._database.execute(f"DELETE FROM passage WHERE {where}", row)
            self._database.execute("DELETE FROM owner WHERE document = ?", row)
            self._database.execute("DELETE FROM document WHERE id = ?", row)


def split_passages(text: str) -> Iterator[str]:
    """Yield pieces of at most `PASSAGE_CHARACTERS`, cut at paragraphs, else lines, else words."""
    start, pieces = 0, 0
    while start < len(text) and pieces < MAX_PASSAGES:
        end = start + PASSAGE_CHARACTERS
        if end < len(text):
            middle = start + PASSAGE_CHARACTERS // 2
            cuts = (text.rfind(mark, middle, end) for mark in ("\n\n", "\n", " "))
            end = next((cut for cut in cuts if cut > 0), end)
        if piece := text[start:end].strip():
            pieces += 1
            yield piece
        start = end


def pair_unspaced(text: str, *, with_ends: bool = False) -> str:
    """Return `text` with every run of characters without spaces replaced by pairs of neighbours.

    Every character but the last of a run starts a pair. With `with_ends` the last one follows alone, so that
    a single character is found by a prefix query.
    """
    return _UNSPACED.sub(lambda run: f" {' '.join(_pairs(run[0], with_ends))} ", text)


def _pairs(letters: str, with_end: bool) -> list[str]:
    pairs = [letters[i : i + 2] for i in range(len(letters) - 1)]
    return [*pairs, letters[-1]] if with_end or not pairs else pairs


def _query_words(query: str) -> list[str]:
    """Return the words to look for.

    Short words, which mean little, count only when there are hardly any others.
    """
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(pair_unspaced(query))))
    significant = [word for word in words if len(word) > _SHORT_WORD_CHARACTERS or not word.isascii()]
    return (significant if len(significant) > 1 else words)[:_MAX_QUERY_WORDS]


def _quoted(word: str) -> str:
    return f'"{word}"*' if len(word) == 1 and _UNSPACED.match(word) else f'"{word}"'


class FolderSearch:
    """Searches the documents below `folder` by passage.

    Each search first indexes what has changed, for at most five seconds: the first searches of a large folder
    find only what is indexed so far.
    """

    def __init__(self, folder: Path, read_document: ReadDocument) -> None:
        self._folder = folder
        self._read_document = read_document
        self._index: PassageIndex | None = None
        self._turn = asyncio.Lock()
        # SQLite needs one thread at a time, and must not occupy the default executor.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="folder")

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        text = normalize_query(query, _QUERY_CHARACTERS)
        # Before the lock: a search that waits for another's indexing does not index as long again.
        until = time.monotonic() + _INDEXING_SECONDS
        async with self._turn:
            index = self._index = self._index or await self._blocking(PassageIndex)
            await self._refresh(index, until)
            found = await self._blocking(lambda: index.find(text, limit))
        return [
            make_hit(passage.title, SCHEME + quote(passage.name), _format_passage(passage))
            for passage in found
        ]

    async def read(self, url: str) -> tuple[str, bytes]:
        """Return the name and the content of the document at `url`, which begins with `folder:`.

        Raises:
            ToolFailure: there is no such document, or it cannot be read.
        """
        name = unquote(url.removeprefix(SCHEME))
        return name, await asyncio.to_thread(self._content, name)

    async def aclose(self) -> None:
        """Drop the index after the searches in progress."""
        index, self._index = self._index, None
        if index is not None:
            self._thread.submit(index.close)
        self._thread.shutdown(wait=False)

    async def _refresh(self, index: PassageIndex, until: float) -> None:
        for name, stamp in await self._blocking(lambda: self._changes(index)):
            if time.monotonic() > until:
                return
            title, text, note = await self._read_text(name)
            await self._blocking(partial(index.put, name, stamp, title, text, note))

    def _changes(self, index: PassageIndex) -> list[tuple[str, IndexStamp]]:
        """Remove deleted documents from the index; return the new and the changed ones."""
        if not self._folder.is_dir():
            raise ProviderFailure(f"The folder {self._folder} does not exist; correct search.folder.")
        known = index.stamps()
        present = dict(list_files(self._folder, SUFFIXES))
        index.remove(known.keys() - present.keys())
        return [(name, stamp) for name, stamp in present.items() if known.get(name) != stamp]

    async def _read_text(self, name: str) -> tuple[str, str, str]:
        """Return title, text and note.

        No text for an unreadable file, which is tried again when it changes.
        """
        try:
            return await self._read_document(name, await asyncio.to_thread(self._content, name))
        except ToolFailure:
            return PurePosixPath(name).name, "", ""

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _content(self, name: str) -> bytes:
        path = PurePosixPath(name)
        if path.suffix.lower() not in SUFFIXES or any(part.startswith(".") for part in path.parts):
            raise SearchError(f"{SCHEME}{name} is not a document of the folder; search for its name.")
        try:
            return read_file_below(self._folder, name)
        except (OSError, ValueError) as error:
            raise SearchError(f"{SCHEME}{name} cannot be read; search for its name.") from error


def _format_passage(passage: DocumentPassage) -> str:
    """Return the passage and, where it is not the whole document, its size and how to read on."""
    if len(passage.text) >= passage.characters and not passage.note:
        return passage.text
    parts = [f"A passage of {passage.characters:,} characters.", passage.note]
    return f"{passage.text}\n\n[{' '.join(filter(None, parts))} Read on: crawl_tool(url, section).]"


def _create(settings: SearchSettings, context: SearchContext) -> ClosableProvider:
    if context.folder is None:
        raise ValueError("the caller that opens search must supply the folder's search in its context")
    return context.folder


PROVIDER = ProviderSpec(name="folder", create=_create, requires={"folder": "search.folder"}, rank=10)
