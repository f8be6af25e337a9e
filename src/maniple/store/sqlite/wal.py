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
        committed = _newest_commit(file, page_size, salts, frames)
        readable = _readable(path) if committed else 0
        # A process killed while it writes may leave the head of its last page without the page: nobody was
        # told that this was stored. Every frame before it must be as it was written.
        if readable < committed and _sound(file, page_size) >= committed - 1:
            readable = committed
    if readable < committed:
        return f"{log.name} holds {committed} pages and is unreadable after {readable}"
    return None


def _header(raw: bytes) -> tuple[int, tuple[int, int]]:
    magic, version, page_size, _, first_salt, second_salt, *checksum = _HEADER.unpack(raw)
    if magic & ~1 != _MAGIC or version != _VERSION:
        return 0, (0, 0)
    sums = [0, 0]
    _checksum(sums, ">" if magic & 1 else "<", raw[:24])
    return (page_size if sums == checksum else 0), (first_salt, second_salt)


def _newest_commit(file: BinaryIO, page_size: int, salts: tuple[int, int], frames: int) -> int:
    """The number of the last frame that ends a transaction of the log's present generation."""
    newest = 0
    for number in range(1, frames + 1):
        _, pages_after_commit, *found, _, _ = _FRAME.unpack(file.read(_FRAME.size))
        if tuple(found) == salts and pages_after_commit:
            newest = number
        file.seek(page_size, 1)
    return newest


def _sound(file: BinaryIO, page_size: int) -> int:
    """The number of frames up to the first whose checksum is wrong."""
    file.seek(0)
    head = _HEADER.unpack(file.read(_HEADER.size))
    order, sums = ">" if head[0] & 1 else "<", [*head[6:]]
    number, size = 0, _FRAME.size + page_size
    while len(frame := file.read(size)) == size:
        _checksum(sums, order, frame[:8] + frame[_FRAME.size :])
        if sums != [*_FRAME.unpack(frame[: _FRAME.size])[4:]]:
            break
        number += 1
    return number


def _checksum(sums: list[int], order: str, data: bytes) -> None:
    """Add to a running checksum, see https://www.sqlite.org/fileformat2.html#checksum_algorithm."""
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    first, second = sums
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    sums[:] = first, second


def _readable(path: Path) -> int:
    """The number of frames that SQLite takes for good. Read-only: the log and the file stay as they are."""
    with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        with path.with_name(f"{path.name}-shm").open("rb") as index:
            index.seek(16)
            return struct.unpack("=I", index.read(4))[0]
