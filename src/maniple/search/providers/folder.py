"""A local folder of documents, searched by the index of `maniple.search.folder_index`.

Hits have addresses such as `folder:reports/2026.md`, which `FolderSearch.read` opens; no address can name a
file outside of the folder.
"""

import asyncio
import hashlib
import logging
import re
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import quote, unquote

from maniple.config.web_settings import SearchSettings
from maniple.errors import SearchError, ToolFailure
from maniple.locks import file_lock
from maniple.reading.formats import formats_by_suffix, media_types_by_suffix
from maniple.search.chain import SearchGaps
from maniple.search.folder_embedding import Embedder, FolderEmbedding
from maniple.search.folder_files import FolderListing, IndexFiles, list_folder, name_some, read_file_below
from maniple.search.folder_index import (
    DocumentPassage,
    FolderIndex,
    IndexStamp,
    KnownDocument,
    NewDocument,
    is_damaged,
)
from maniple.search.passage_vectors import NearPassage, VectorCounts, WrongDimensions
from maniple.search.provider import (
    ClosableProvider,
    ProviderFailure,
    ProviderSpec,
    SearchContext,
    SearchHit,
    make_hit,
    normalize_query,
)
from maniple.text import shorten

SCHEME = "folder:"
MEDIA_TYPES: Mapping[str, str] = media_types_by_suffix()
"""The formats that are searched, by suffix. The system's table is not used: slim images have none."""
SUFFIXES = frozenset(MEDIA_TYPES)
INDEXING_SECONDS = 5.0
"""How long a search waits for the index; then it goes on in the background."""
WEAK_COVERAGE = 0.55
"""A hit is weak where its passage, title and path have less than this part of the question. Each word counts
by its inverse document frequency in the folder, one that no document has the most.

`python -m bench.folder_search` measures it on 5,000 documents of packages: of the questions whose document
was found first, 1 to 2.3 % were weak; of those about documents of the same kind that are not there 35 %, and
all of those about something else (history, sports, prices)."""
RETRY_SECONDS = 86_400.0
"""After this time a file that could not be read is tried again: the machine may have been too busy."""
_QUERY_CHARACTERS = 1_000
_BATCH = 16
"""Documents of one transaction."""
_CONCURRENT = 4
_EMBEDDING_LOCK = "embedding-lock"
"""Apart from the index's: words are indexed while another process embeds."""
_PROBLEM_CHARACTERS = 200
_ADVICE = re.compile(r"[;.] +(?:use|ask for) another [a-z]+\.?$", re.I)
_FORMATS = formats_by_suffix()
_log = logging.getLogger(__name__)

ReadDocument = Callable[[str, bytes], Awaitable[tuple[str, str, str]]]
"""Converts a file's name and content to title, text and a note on what is missing, or "". Raises
`ToolFailure`."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FolderState:
    """What of a folder can be found."""

    indexed: int = 0
    """The documents that can be found."""
    pending: tuple[str, ...] = ()
    """New and changed documents that are not indexed yet."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Documents that cannot be read, each with the reason."""
    left_out: str = ""
    notices: tuple[str, ...] = ()
    """What is wrong with the index itself, and with its embeddings."""
    vectors: VectorCounts = field(default_factory=VectorCounts)
    """How many of the passages are embedded; all 0 without embeddings."""

    @property
    def files(self) -> int:
        """The number of documents in the folder."""
        return self.indexed + len(self.pending) + len(self.unreadable)

    def describe_gaps(self) -> str:
        """Return which documents a search does not find; "" if there are none."""
        parts = list(self.notices)
        if self.pending:
            parts.append(
                f"The index is being built: {len(self.pending):,} of {self.files:,} documents are not "
                f"indexed yet ({name_some(list(self.pending))}). Search again later for them."
            )
        if self.unreadable:
            named = [f"{name} ({reason})" for name, reason in islice(self.unreadable.items(), 4)]
            shown = name_some(named + [""] * (len(self.unreadable) - len(named)))
            parts.append(f"Not searched, because they cannot be read: {shown}.")
        parts.append(self.describe_vectors())
        return " ".join(filter(None, parts))

    def describe_vectors(self) -> str:
        """Return which passages are found by their words only; "" if there are none."""
        parts = list[str]()
        if self.vectors.missing:
            parts.append(
                f"{self.vectors.missing:,} of {self.vectors.passages:,} passages are not embedded yet: they "
                "are found by their words only."
            )
        if self.vectors.refused:
            parts.append(
                f"The embedding model refuses {self.vectors.refused:,} passages: they are found by their "
                "words only."
            )
        return " ".join(parts)


class FolderSearch:
    """Searches the documents below `folder` by passage.

    Each search first looks for changes. What is new or changed is indexed in the background; a search waits
    for that at most five seconds, and `state` says what was not indexed yet. The index stays in `databases`,
    where several processes may use it; without that folder it is temporary. `reader` is the version of
    `read_document`: with another one, all documents are read again.

    With an `embedder` the passages are embedded in the background, once their words are indexed, and
    documents are also found by their meaning. The search closes it.
    """

    def __init__(
        self,
        folder: Path,
        read_document: ReadDocument,
        databases: Path | None = None,
        *,
        reader: str = "",
        embedder: Embedder | None = None,
    ) -> None:
        self._folder = folder
        self._read_document = read_document
        self._databases = databases
        self._reader = reader
        self._files: IndexFiles | None = None
        self._opening = threading.Lock()
        # SQLite needs one thread at a time for each connection, and must not occupy the default executor.
        self._asking = _IndexThread(self._open_files, folder, "folder-search")
        self._building = _IndexThread(self._open_files, folder, "folder-index")
        self._embedding = FolderEmbedding(embedder) if embedder is not None else None
        self._refreshing: asyncio.Task[None] | None = None
        self._filling: asyncio.Task[None] | None = None
        self._listing: FolderListing | None = None
        self._is_checked = False
        self._damaged: Path | None = None
        """A database that a search has found to be damaged."""
        self._notices: dict[str, str] = {}
        self._slots = asyncio.Semaphore(_CONCURRENT)

    def start(self) -> None:
        """Look for changes and index them in the background, before the first search."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh())
            self._refreshing.add_done_callback(_retrieve_error)
            self._refreshing.add_done_callback(lambda task: task.cancelled() or self._start_filling())

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        text = normalize_query(query, _QUERY_CHARACTERS)
        await self._refresh_for_a_while()
        vector = await self._embedding.embed_query(text) if self._embedding is not None else None
        try:
            found = await self._find(text, limit, vector)
        except sqlite3.Error as error:
            raise ProviderFailure(f"The index of {self._folder} cannot be used: {error}.") from error
        return [_hit(passage) for passage in found]

    async def find_gaps(self) -> SearchGaps:
        """See `maniple.search.chain.GapReporter`; "" where the folder or its index cannot be read at all."""
        try:
            state = await self.state()
        except (OSError, sqlite3.Error):
            return SearchGaps()  # the search itself fails, and gives the reason
        is_filling = bool(state.vectors.missing) and not (self._embedding and self._embedding.is_away)
        return SearchGaps(state.describe_gaps(), bool(state.pending) or is_filling)

    async def state(self) -> FolderState:
        """Return what could be found at the last look for changes; it looks itself where there was none."""
        listing = self._listing or await asyncio.to_thread(list_folder, self._folder, SUFFIXES)
        known = await self._asking.run(FolderIndex.documents)
        present = {name: known[name] for name in listing.files if name in known}
        pending = tuple(sorted(self._changes(listing, known)))
        readable = present.keys() - set(pending)
        notices, vectors = list(self._notices.values()), VectorCounts()
        if self._embedding is not None:
            notices.extend(filter(None, (self._embedding.failure,)))
            vectors = await self._asking.run(self._embedding.counts)
        return FolderState(
            indexed=sum(not present[name].problem for name in readable),
            pending=pending,
            unreadable={name: present[name].problem for name in sorted(readable) if present[name].problem},
            left_out=listing.describe_left_out(),
            notices=tuple(notices),
            vectors=vectors,
        )

    async def read(self, url: str) -> tuple[str, bytes]:
        """Return the name and the content of the document at `url`, which begins with `folder:`.

        Raises:
            ToolFailure: there is no such document, or it cannot be read.
        """
        name = unquote(url.removeprefix(SCHEME))
        return name, await asyncio.to_thread(self._content, name)

    async def aclose(self) -> None:
        """Stop indexing and close the index; what is indexed stays."""
        for task in (self._refreshing, self._filling):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if self._embedding is not None:
            await self._embedding.aclose()
        await self._asking.close()
        await self._building.close()
        if self._files is not None:
            await asyncio.to_thread(self._files.close)

    def _open_files(self) -> IndexFiles:
        with self._opening:
            if self._files is None:
                self._files = IndexFiles(self._databases)
                if self._files.notice:
                    self._notices["storage"] = self._files.notice
            return self._files

    async def _find(self, query: str, limit: int, vector: Sequence[float] | None) -> list[DocumentPassage]:
        def find(index: FolderIndex) -> list[DocumentPassage]:
            return index.find(query, limit, self._rank(index, vector))

        try:
            return await self._asking.run(find)
        except sqlite3.DatabaseError as error:
            if not is_damaged(error):
                raise
            self._report_damage(error)
            self._damaged = self._asking.path
        await self._refresh_for_a_while()
        return await self._asking.run(find)

    def _rank(self, index: FolderIndex, vector: Sequence[float] | None) -> list[NearPassage]:
        """Return what is near a vector. Blocks."""
        if self._embedding is None or vector is None:
            return []
        try:
            return self._embedding.rank(index, vector)
        except WrongDimensions as error:
            self._embedding.fail(error)
            return []

    async def _refresh_for_a_while(self) -> None:
        self.start()
        assert self._refreshing is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(INDEXING_SECONDS):
                await asyncio.shield(self._refreshing)
                self._start_filling()
                if self._filling is not None:
                    await asyncio.shield(self._filling)

    def _start_filling(self) -> None:
        """Embed in the background what is not embedded yet."""
        own = self._embedding
        is_running = self._filling is not None and not self._filling.done()
        if own is None or self._files is None or is_running or own.is_away:
            return
        lock = self._files.lock.with_name(_EMBEDDING_LOCK)
        self._filling = asyncio.create_task(own.fill(self._building.run, lock))
        self._filling.add_done_callback(_retrieve_error)

    async def _refresh(self) -> None:
        """Index what has changed. A process that finds another one at it waits for it."""
        listing = self._listing = await self._list_files()
        files = await asyncio.to_thread(self._open_files)
        try:
            if self._damaged is None and self._is_checked and not await self._survey(listing):
                return
            async with file_lock(files.lock, lambda: None):
                await self._build(files, listing)
            self._notices.pop("failure", None)
        except (sqlite3.Error, OSError) as error:
            self._notices["failure"] = f"The index of {self._folder} cannot be changed: {error}."
            _log.warning("%s", self._notices["failure"])

    async def _build(self, files: IndexFiles, listing: FolderListing) -> None:
        if self._damaged is not None:
            await self._replace(files, self._damaged)
        try:
            await self._index_changes(listing)
        except sqlite3.DatabaseError as error:
            if not is_damaged(error) or self._building.path is None:
                raise
            self._report_damage(error)
            await self._replace(files, self._building.path)
            await self._index_changes(listing)

    async def _replace(self, files: IndexFiles, damaged: Path) -> None:
        await asyncio.gather(self._building.disconnect(), self._asking.disconnect())
        await asyncio.to_thread(files.replace, damaged)
        self._damaged = None

    def _report_damage(self, error: sqlite3.Error) -> None:
        message = f"The index of {self._folder} was damaged ({error}); it is made again."
        _log.warning("%s", message)
        self._notices["damage"] = message

    async def _list_files(self) -> FolderListing:
        if not await asyncio.to_thread(self._folder.is_dir):
            raise ProviderFailure(f"The folder {self._folder} does not exist; correct search.folder.")
        return await asyncio.to_thread(list_folder, self._folder, SUFFIXES)

    async def _survey(self, listing: FolderListing) -> bool:
        """Return whether there is anything to do."""
        known = await self._building.run(FolderIndex.documents)
        return bool(self._changes(listing, known) or known.keys() - listing.files.keys())

    def _changes(
        self, listing: FolderListing, known: Mapping[str, KnownDocument]
    ) -> dict[str, KnownDocument | None]:
        """Return the documents to be read, each with what is known of it."""
        retried = time.time() - RETRY_SECONDS
        found: dict[str, KnownDocument | None] = {}
        for name, stamp in listing.files.items():
            one = known.get(name)
            is_same = one is not None and one.stamp == stamp and one.reader == self._reader
            if one is None or not is_same or (one.problem and one.read_at < retried):
                found[name] = one
        return found

    async def _index_changes(self, listing: FolderListing) -> None:
        if not self._is_checked:
            await self._building.run(FolderIndex.check)
            self._is_checked = True
        known = await self._building.run(FolderIndex.documents)
        gone = known.keys() - listing.files.keys()
        if gone:
            await self._building.run(lambda index: index.remove(gone))
        changes = [(name, listing.files[name], one) for name, one in self._changes(listing, known).items()]
        for start in range(0, len(changes), _BATCH):
            read = await asyncio.gather(
                *(self._read_file(*change) for change in changes[start : start + _BATCH])
            )
            await self._building.run(partial(_store, read))

    async def _read_file(
        self, name: str, stamp: IndexStamp, known: KnownDocument | None
    ) -> NewDocument | tuple[str, IndexStamp]:
        """Return the document; only its name and stamp where the content is known."""
        async with self._slots:
            try:
                body, digest = await asyncio.to_thread(_read_with_digest, self._folder, name)
            except OSError as error:
                return self._new(name, stamp, b"", problem=f"it cannot be opened: {error.strerror or error}")
            is_known = known is not None and known.sha256 == digest and known.reader == self._reader
            if known is not None and is_known and not known.problem:
                return name, stamp
            try:
                title, text, note = await self._read_document(name, body)
            except ToolFailure as error:
                problem = shorten(_ADVICE.sub("", str(error).removeprefix(f"{name} ")), _PROBLEM_CHARACTERS)
                return self._new(name, stamp, digest, problem=problem)
        if not text.strip():
            return self._new(name, stamp, digest, problem="it has no text")
        return self._new(name, stamp, digest, title=title, text=text, note=note)

    def _new(self, name: str, stamp: IndexStamp, digest: bytes, **values: str) -> NewDocument:
        key = _FORMATS[PurePosixPath(name).suffix.lower()]
        return NewDocument(
            name=name, stamp=stamp, sha256=digest, reader=self._reader, format_key=key, **values
        )

    def _content(self, name: str) -> bytes:
        path = PurePosixPath(name)
        if path.suffix.lower() not in SUFFIXES or any(part.startswith(".") for part in path.parts):
            raise SearchError(f"{SCHEME}{name} is not a document of the folder; search for its name.")
        try:
            return read_file_below(self._folder, name)
        except (OSError, ValueError) as error:
            raise SearchError(f"{SCHEME}{name} cannot be read; search for its name.") from error


class _IndexThread:
    """A connection to the newest database of an index, in a thread of its own."""

    def __init__(self, files: Callable[[], IndexFiles], folder: Path, name: str) -> None:
        self._files = files
        self._folder = folder
        self._index: FolderIndex | None = None
        self.path: Path | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, work: Callable[[FolderIndex], T]) -> T:
        """Call `work` with the index; raises `sqlite3.Error`."""
        return await self._submit(lambda: work(self._connect()))

    async def disconnect(self) -> None:
        """Close the connection; the next call opens another one."""
        await self._submit(self._disconnect)

    async def close(self) -> None:
        """Close the connection and end the thread."""
        await self._submit(self._disconnect)
        self._thread.shutdown(wait=False)

    async def _submit(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _connect(self) -> FolderIndex:
        newest = self._files().newest()
        if self._index is None or self.path != newest:
            self._disconnect()
            self.path = newest
            self._index = FolderIndex(newest, self._folder)
        return self._index

    def _disconnect(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            with suppress(sqlite3.Error):  # a damaged database
                index.close()


def _retrieve_error(task: asyncio.Task[None]) -> None:
    """Mark the exception as seen: the search that waits for the task raises it."""
    if not task.cancelled():
        task.exception()


def _store(read: Sequence[NewDocument | tuple[str, IndexStamp]], index: FolderIndex) -> None:
    index.put([one for one in read if isinstance(one, NewDocument)])
    index.put_stamps(dict(one for one in read if isinstance(one, tuple)))


def _read_with_digest(folder: Path, name: str) -> tuple[bytes, bytes]:
    body = read_file_below(folder, name)
    return body, hashlib.sha256(body).digest()


def _hit(passage: DocumentPassage) -> SearchHit:
    url, score = SCHEME + quote(passage.name), round(passage.coverage, 3)
    hit = make_hit(passage.title, url, _format_passage(passage), score)
    return replace(hit, is_weak=passage.coverage < WEAK_COVERAGE)


def _format_passage(passage: DocumentPassage) -> str:
    """Return the passage and, where it is not the whole document, its place and how to read on."""
    if len(passage.text) >= passage.characters and not passage.note:
        return passage.text
    parts = [f"Found at {passage.place}, in {passage.characters:,} characters.", passage.note]
    return f"{passage.text}\n\n[{' '.join(filter(None, parts))} Read on: crawl_tool(url, section).]"


def _create(settings: SearchSettings, context: SearchContext) -> ClosableProvider:
    if context.folder is None:
        raise ValueError("the caller that opens search must supply the folder's search in its context")
    return context.folder


PROVIDER = ProviderSpec(
    name="folder",
    create=_create,
    requires={"folder": "search.folder"},
    rank=10,
)
