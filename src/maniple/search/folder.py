"""A local folder of documents, searched like the web and read by the names that its results have."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import quote, unquote

from maniple.errors import SearchError, ToolFailure
from maniple.search.endpoint import asked_for
from maniple.search.files import Stamp, files_below, read_below
from maniple.search.hits import hit
from maniple.search.passages import Passage, PassageIndex
from maniple.search.provider import ProviderFailure, SearchHit

SCHEME = "folder:"
MEDIA_TYPES: Mapping[str, str] = {
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".rst": "text/x-rst",
    ".csv": "text/csv",
    ".json": "application/json",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}
"""The documents that count, by suffix. Not the system's table: slim images have none, and know no Word."""
SUFFIXES = frozenset(MEDIA_TYPES)
_QUERY_CHARACTERS = 1_000
_INDEXING_SECONDS = 5.0

ReadDocument = Callable[[str, bytes], Awaitable[tuple[str, str, str]]]
"""Turns a file's name and content into its title, its text, and a sentence on what of that is missing, if
anything is; raises `ToolFailure`."""

T = TypeVar("T")


class FolderSearch:
    """The documents below `folder`, by passage; `aclose` forgets them.

    Before each search it looks for what has changed. A large folder is read in pieces of five seconds:
    until it has been read through, what was read so far is found. Results have addresses such as
    `folder:reports/2026.md`, which `read` takes; nothing outside of the folder can be named so.
    """

    def __init__(self, folder: Path, read_document: ReadDocument) -> None:
        self._folder = folder
        self._read_document = read_document
        self._index: PassageIndex | None = None
        self._turn = asyncio.Lock()
        # SQLite is for one thread at a time, and must not keep others' threads busy.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="folder")

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        words = asked_for(query, _QUERY_CHARACTERS)
        # From here on: who waits for another's reading does not read as long again.
        until = time.monotonic() + _INDEXING_SECONDS
        async with self._turn:
            index = self._index = self._index or await self._blocking(PassageIndex)
            await self._refresh(index, until)
            found = await self._blocking(lambda: index.find(words, limit))
        return [hit(one.title, SCHEME + quote(one.name), _shown(one)) for one in found]

    async def read(self, url: str) -> tuple[str, bytes]:
        """Return name and content of the document at `url`, which begins with `folder:`.

        Raises:
            ToolFailure: there is no such document, or it cannot be read.
        """
        name = unquote(url.removeprefix(SCHEME))
        return name, await asyncio.to_thread(self._content, name)

    async def aclose(self) -> None:
        """Forget the index, as soon as nobody uses it any more."""
        index, self._index = self._index, None
        if index is not None:
            self._thread.submit(index.close)
        self._thread.shutdown(wait=False)

    async def _refresh(self, index: PassageIndex, until: float) -> None:
        for name, stamp in await self._blocking(lambda: self._changes(index)):
            if time.monotonic() > until:
                return
            title, text, note = await self._text_of(name)
            await self._blocking(partial(index.put, name, stamp, title, text, note))

    def _changes(self, index: PassageIndex) -> list[tuple[str, Stamp]]:
        """Forget what has gone; return what is new or another than before."""
        if not self._folder.is_dir():
            raise ProviderFailure(f"There is no folder {self._folder}; correct search.folder.")
        known = index.stamps()
        there = dict(files_below(self._folder, SUFFIXES))
        index.remove(known.keys() - there.keys())
        return [(name, stamp) for name, stamp in there.items() if known.get(name) != stamp]

    async def _text_of(self, name: str) -> tuple[str, str, str]:
        """Return what is read; no text of what cannot be read, which is tried again when it changes."""
        try:
            return await self._read_document(name, await asyncio.to_thread(self._content, name))
        except ToolFailure:
            return PurePosixPath(name).name, "", ""

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _content(self, name: str) -> bytes:
        path = PurePosixPath(name)
        if path.suffix.lower() not in SUFFIXES or any(part.startswith(".") for part in path.parts):
            raise SearchError(f"{SCHEME}{name} is no document of the folder; search for its name.")
        try:
            return read_below(self._folder, name)
        except (OSError, ValueError) as error:
            raise SearchError(f"{SCHEME}{name} cannot be read; search for its name.") from error


def _shown(passage: Passage) -> str:
    """Return the passage and, where it is not the whole document, how much there is and how to read on."""
    if len(passage.text) >= passage.characters and not passage.note:
        return passage.text
    words = [f"A passage of {passage.characters:,} characters.", passage.note]
    return f"{passage.text}\n\n[{' '.join(filter(None, words))} Read on: crawl_tool(url, section).]"
