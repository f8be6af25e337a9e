"""The files that the runs of a thread made, as a ZIP file that is written while it is sent."""

import asyncio
import io
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from maniple.report_files.bundle import LEFT_OUT, Names
from maniple.run_files.listing import RunFile, read_run_files
from maniple.run_files.pictures import FigureFinder
from maniple.store import RunRecord, Store
from maniple.workspace import Workspaces

MAX_FILES = 1_000
MAX_BYTES = 500_000_000
"""The limit of all files of a thread together, before compression."""
_PIECE_BYTES = 1024 * 1024
_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)
"""The earliest date that a ZIP file can hold."""


async def write_thread_archive(store: Store, workspaces: Workspaces, thread_id: str) -> AsyncGenerator[bytes]:
    """Yield a ZIP file of what the thread's runs made or changed; nothing if there is no such file.

    Of each path it has the newest version. Names are valid on every system, and no two differ by case only.
    What is too large or too many is named in `not-included.txt`. One file at a time is in memory.

    Raises:
        StoreError: the runs or their files cannot be listed.
    """
    writer = _Writer()
    selected = _Selection(MAX_FILES, MAX_BYTES)
    async for run in _list_runs(store, thread_id):
        async for file in read_run_files(FigureFinder(store, workspaces, run)):
            if (content := selected.take(file)) is None:
                continue
            async for piece in writer.add(file.path, content, run.ended_at or run.created_at):
                yield piece
    if left_out := selected.list_left_out():
        text = "".join(f"{path}\n" for path in left_out).encode(errors="replace")
        async for piece in writer.add(LEFT_OUT, text, None):
            yield piece
    if writer.is_used:
        yield writer.close()


def make_entry(name: str, changed: float | None) -> zipfile.ZipInfo:
    """Return the entry of a file in a ZIP file; `changed` is Unix time in seconds."""
    date = max(datetime.fromtimestamp(changed or 0, UTC), _EARLIEST)
    entry = zipfile.ZipInfo(name, date.timetuple()[:6])
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    return entry


async def _list_runs(store: Store, thread_id: str) -> AsyncIterator[RunRecord]:
    before: float | None = None
    while runs := await store.runs.list_by_thread(thread_id, before=before):
        for run in runs:
            yield run
        before = runs[-1].created_at


@dataclass(slots=True)
class _Selection:
    """Chooses the newest version of each path, as long as there is room. Newer files come first."""

    files_left: int
    bytes_left: int
    _taken: set[str] = field(default_factory=set[str])
    _left_out: set[str] = field(default_factory=set[str])

    def take(self, file: RunFile) -> bytes | None:
        """Return the content of a file that belongs into the archive."""
        path, content = file.path, file.content
        # An older version must not pass as the newest one, which is left out.
        if path in self._taken or path in self._left_out:
            return None
        if content is None or not self.files_left or len(content) > self.bytes_left:
            self._left_out.add(path)
            return None
        self.files_left, self.bytes_left = self.files_left - 1, self.bytes_left - len(content)
        self._taken.add(path)
        return content

    def list_left_out(self) -> list[str]:
        return sorted(self._left_out)


class _Writer:
    """Writes a ZIP file whose bytes are taken away while it grows."""

    def __init__(self) -> None:
        self._names = Names(lambda _: None)
        self._out = _Output()
        self._archive = zipfile.ZipFile(self._out, "w", zipfile.ZIP_DEFLATED)
        self.is_used = False

    async def add(self, path: str, content: bytes, changed: float | None) -> AsyncIterator[bytes]:
        """Add a file under a name like `path`, and yield what the ZIP file grew by."""
        self.is_used = True
        pieces = self._compress(make_entry(self._names.add(path), changed), content)
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece

    def close(self) -> bytes:
        """Return the directory, with which a ZIP file ends."""
        self._archive.close()
        return self._out.take()

    def _compress(self, entry: zipfile.ZipInfo, content: bytes) -> Iterator[bytes]:
        entry.file_size = len(content)
        with self._archive.open(entry, "w") as file:
            for start in range(0, len(content), _PIECE_BYTES):
                file.write(content[start : start + _PIECE_BYTES])
                if piece := self._out.take():
                    yield piece
        yield self._out.take()


class _Output(io.RawIOBase):
    """A file that can only be written, and forgets what was taken."""

    def __init__(self) -> None:
        super().__init__()
        self._pending = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: "bytes | bytearray | memoryview", /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._pending += data
        return len(data)

    def take(self) -> bytes:
        taken = bytes(self._pending)
        self._pending.clear()
        return taken
