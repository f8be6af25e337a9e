"""Finds damage in the write-ahead log, which SQLite itself passes over in silence.

SQLite reads the log up to the first frame whose checksum is wrong and takes the rest for never written:
commits that were acknowledged would vanish without a word. The format: https://www.sqlite.org/fileformat2.html#walformat
and, for the index, https://www.sqlite.org/walformat.html.
"""

import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_VERSION = 3_007_000
_MAGIC = 0x377F0682


def damage(path: Path) -> str | None:
    """Return what is wrong with the log of a database that no process has open; None if nothing is."""
    log = path.with_name(f"{path.name}-wal")
    if not path.exists() or not log.exists() or log.stat().st_size < _HEADER.size:
        return None
    with log.open("rb") as file:
        page_size, salts = _header(file.read(_HEADER.size))
        if not page_size:
            return f"the head of {log.name} is not what was written"
        frames = (log.stat().st_size - _HEADER.size) // (_FRAME.size + page_size)
        before, committed = _newest_commits(file, page_size, salts, frames)
    readable = _readable(path) if committed else 0
    # A process that is killed while it writes leaves the head of its last page, and not the page. Nobody was
    # told that this was stored.
    if readable < before:
        return f"{log.name} holds {committed} pages and is unreadable after {readable}"
    return None


def _header(raw: bytes) -> tuple[int, tuple[int, int]]:
    magic, version, page_size, _, first_salt, second_salt, *checksum = _HEADER.unpack(raw)
    if magic & ~1 != _MAGIC or version != _VERSION:
        return 0, (0, 0)
    order = ">" if magic & 1 else "<"
    words = struct.unpack(f"{order}6I", raw[:24])
    sums = [0, 0]
    for even, odd in zip(words[::2], words[1::2], strict=True):
        sums[0] = (sums[0] + even + sums[1]) & 0xFFFFFFFF
        sums[1] = (sums[1] + odd + sums[0]) & 0xFFFFFFFF
    return (page_size if sums == checksum else 0), (first_salt, second_salt)


def _newest_commits(file: BinaryIO, page_size: int, salts: tuple[int, int], frames: int) -> tuple[int, int]:
    """The numbers of the last two frames that end a transaction of the log's present generation."""
    before = newest = 0
    for number in range(1, frames + 1):
        _, pages_after_commit, *found, _, _ = _FRAME.unpack(file.read(_FRAME.size))
        if tuple(found) == salts and pages_after_commit:
            before, newest = newest, number
        file.seek(page_size, 1)
    return before, newest


def _readable(path: Path) -> int:
    """The number of frames that SQLite takes for good. Read-only: the log and the file stay as they are."""
    with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        with path.with_name(f"{path.name}-shm").open("rb") as index:
            index.seek(16)
            return struct.unpack("=I", index.read(4))[0]
