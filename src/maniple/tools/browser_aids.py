"""What the browser is given by the rest of the house: searches, and the files of the thread's workspace."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from maniple.browser import Aids, Found
from maniple.errors import FileError
from maniple.sandbox import Workspace, Workspaces
from maniple.sandbox.workspaces import clean_file_name
from maniple.search import SearchProvider
from maniple.tools.run_context import thread_key

DOWNLOADS = "downloads"
_FOUND = 10
_PIECE_BYTES = 1024 * 1024
_MOST_OF_A_NAME = 1_000


def browser_aids(
    search: SearchProvider | None, workspaces: Workspaces | None, lent: Path, *, most_bytes: int
) -> Aids:
    """Return what is there of them. A file that is uploaded is copied to the folder `lent` first.

    The thread's code may change its files at any time, to a link, too; what Chromium is given is ours.
    """
    return Aids(
        search=None if search is None else _Search(search),
        keep_file=None if workspaces is None else _Downloads(workspaces),
        open_file=None if workspaces is None else _Lending(workspaces, lent, most_bytes),
    )


class _Search:
    def __init__(self, provider: SearchProvider) -> None:
        self._provider = provider

    async def __call__(self, query: str) -> Sequence[Found]:
        hits = await self._provider.search(query, limit=_FOUND)
        return [Found(hit.title, hit.url, hit.content) for hit in hits if hit.url.startswith("http")]


class _Downloads:
    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def __call__(self, name: str, temporary: Path) -> str:
        """Copy a download to a name in `downloads/` that is free, and return its path."""
        place = await asyncio.to_thread(self._workspaces.open, thread_key())
        return await asyncio.to_thread(_kept, place, clean_file_name(name), temporary)


class _Lending:
    def __init__(self, workspaces: Workspaces, lent: Path, most_bytes: int) -> None:
        self._workspaces = workspaces
        self._lent = lent
        self._most_bytes = most_bytes

    async def __call__(self, path: str) -> Path:
        """Return a copy of a file of the workspace; raises `FileError`."""
        place = await asyncio.to_thread(self._workspaces.open, thread_key())
        return await asyncio.to_thread(self._copied, place, path)

    def _copied(self, place: Workspace, path: str) -> Path:
        with place.open(path) as source:
            size = os.fstat(source.fileno()).st_size
            if size > self._most_bytes:
                raise FileError(f"{path!r} has {size} bytes; at most {self._most_bytes} can be uploaded.")
            copy = Path(tempfile.mkdtemp(dir=self._lent)) / Path(path).name
            with copy.open("wb") as target:
                shutil.copyfileobj(source, target, _PIECE_BYTES)
        return copy


def _kept(place: Workspace, name: str, temporary: Path) -> str:
    path = next((one for one in _names(name) if place.is_missing(one)), None)
    if path is None:
        raise FileError(f"There are {_MOST_OF_A_NAME} downloads called {name!r}; delete some of them.")
    with temporary.open("rb") as file:
        pieces = iter(lambda: file.read(_PIECE_BYTES), b"")
        place.write_pieces(path, pieces, temporary.stat().st_size)
    return path


def _names(name: str) -> Iterator[str]:
    stem, dot, suffix = name.rpartition(".")
    yield f"{DOWNLOADS}/{name}"
    for number in count(2):
        if number > _MOST_OF_A_NAME:
            return
        yield f"{DOWNLOADS}/{stem or name}-{number}{dot if stem else ''}{suffix if stem else ''}"
