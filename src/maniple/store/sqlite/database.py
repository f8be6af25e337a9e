"""One SQLite file: two connections, the processes that have it open, and the check of its write-ahead log."""

import asyncio
import fcntl
import logging
import os
import sqlite3
import struct
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote
from uuid import uuid4

from maniple.errors import StoreBusy, StoreError, StoreInUse
from maniple.store.error_translation import translate_errors
from maniple.store.executors import SingleThreadExecutor, UncancellableFuture
from maniple.store.waiting import CallQueue

BUSY_SECONDS = 5.0
"""How long a write waits for a write of another process."""
WAL_BYTES = 16 * 1024 * 1024
"""The size to which the write-ahead log shrinks after a burst."""
DEFERRED_SECONDS = 0.01
OPENING_SECONDS = 30.0
_OPENING_LOCK = "opening"
_LOG = logging.getLogger(__name__)

T = TypeVar("T")


def connect(path: Path, *, query_only: bool = False) -> sqlite3.Connection:
    """Open a connection without implicit transactions."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        configure(connection, path)
        if query_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:  # the file must not stay open
        connection.close()
        raise
    return connection


def configure(connection: sqlite3.Connection, path: Path) -> None:
    """Set the pragmas of a connection; raises `StoreError` on a file system without shared memory.

    With WAL and synchronous=NORMAL, committed data survives the death of the process. A power cut may lose
    the last moments but not the integrity (https://www.sqlite.org/pragma.html#pragma_synchronous).
    """
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(
            f"{path} is on a file system without shared memory, such as a network file system. "
            "Set store.path to a file on a local disk."
        )
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")


class SqliteDatabase:
    """Runs functions on two connections, each in its own thread: one writes while the other reads.

    Each function runs in one transaction, which is committed completely or not at all.
    """

    def __init__(self, path: Path, writer: sqlite3.Connection, reader: sqlite3.Connection) -> None:
        self.path = path
        self._writer, self._reader = writer, reader
        self._write_executor = SingleThreadExecutor("store writer")
        self._read_executor = SingleThreadExecutor("store reader")
        self._deferred: list[tuple[str, Sequence[Any]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self.calls = CallQueue()
        self.has_failed = False
        """Whether the last write failed."""

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of `work` after its commit; if it raises, it is rolled back."""
        return await self.calls.call(
            lambda: self._submit(work, lambda: run_transaction(self._writer, self.path, work))
        )

    async def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, which is a transaction by itself, and return its rows."""

        def run(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            return connection.execute(sql, values).fetchall()

        def run_alone() -> list[tuple[Any, ...]]:
            with translate_errors(self.path):
                return run(self._writer)

        return await self.calls.call(lambda: self._submit(run, run_alone))

    def defer(self, sql: str, values: Sequence[Any]) -> None:
        """Run a statement in the transaction of the next write, or after `DEFERRED_SECONDS`.

        It may be lost silently when the disk is full: use it only for rows that a later write replaces.
        """
        self._deferred.append((sql, values))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DEFERRED_SECONDS, self._submit_deferred)

    async def flush_deferred(self) -> None:
        """Wait until the deferred statements are written."""
        if self._deferred:
            await self._submit_deferred()

    def _submit_deferred(self) -> UncancellableFuture[None]:
        return self._submit(lambda _: None, lambda: None)

    def _submit(
        self, work: Callable[[sqlite3.Connection], T], run_alone: Callable[[], T]
    ) -> UncancellableFuture[T]:
        """Run `work` in one transaction with the deferred statements; without any, run `run_alone`."""
        deferred, self._deferred = self._deferred, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

        def run_together(connection: sqlite3.Connection) -> T:
            for sql, values in deferred:
                connection.execute(sql, values).fetchall()
            return work(connection)

        def run() -> T:
            with suppress(Exception):  # each is run alone below, which shows which one fails
                return run_transaction(self._writer, self.path, run_together)
            for sql, values in deferred:
                try:
                    with translate_errors(self.path):
                        self._writer.execute(sql, values).fetchall()
                except StoreBusy:
                    break  # each of the others would wait as long
                except Exception as error:  # noqa: BLE001 - one statement's failure must not affect the others
                    _LOG.warning("A part of a step was not stored: %s", error)
            return run_alone()

        return self._write_executor.submit(partial(self._track_failure, run if deferred else run_alone))

    def _track_failure(self, work: Callable[[], T]) -> T:
        try:
            result = work()
        except StoreError:
            self.has_failed = True
            raise
        self.has_failed = False
        return result

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of `work`, which only reads."""

        def run() -> T:
            with translate_errors(self.path):
                return _refuse_cursor(work(self._reader))

        return await self._read_executor.submit(run)

    async def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return await self.read(lambda connection: connection.execute(sql, values).fetchall())

    async def vacuum(self) -> None:
        """Return unused pages to the file system."""

        def rewrite() -> None:
            with translate_errors(self.path):
                self._writer.execute("VACUUM")
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        await self._write_executor.submit(rewrite)

    async def close(self) -> None:
        """Close both connections; the writer last, so that the log is merged into the file."""
        try:
            await self._read_executor.submit(self._reader.close)
        finally:
            try:
                await self.flush_deferred()
                await self._write_executor.submit(self._writer.close)
            finally:
                self._read_executor.close()
                self._write_executor.close()


def run_transaction(connection: sqlite3.Connection, path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """Run `work` in its own transaction."""
    with translate_errors(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = _refuse_cursor(work(connection))
            connection.execute("COMMIT")
        except BaseException:  # the next transaction must not find one open
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise
        return result


def _refuse_cursor(result: T) -> T:
    """Refuse a cursor: freed in another thread, it would reset a statement that this thread is using."""
    if isinstance(result, sqlite3.Cursor):
        raise TypeError("a cursor must not leave the thread of its connection")
    return result


class ProcessRegistry:
    """The processes that have a file open: one locked file each in the directory FILE.d.

    The kernel releases the lock when a process ends for any reason.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._directory = path.with_name(f"{path.name}.d")
        self.own = str(uuid4())
        self._held: list[int] = []

    @contextmanager
    def opening(self) -> Generator[None]:
        """Hold the lock under which one process at a time opens the file. Blocks; raises `StoreBusy`."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _open_lock_file(self._directory / _OPENING_LOCK)
        try:
            deadline = time.monotonic() + OPENING_SECONDS
            while not _try_lock(lock, fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    raise StoreBusy(
                        f"Another process has been opening {self._path} for {OPENING_SECONDS:.0f} s. "
                        "End it and try again."
                    )
                time.sleep(0.02)
            yield
        finally:
            os.close(lock)

    def lock_as_server(self) -> None:
        """Take the server's lock; raises `StoreInUse` with the id of the process that holds it."""
        lock = _open_lock_file(self._path.with_name(f"{self._path.name}.server.lock"))
        if not _try_lock(lock, fcntl.LOCK_EX):
            pid = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(lock)
            raise StoreInUse(
                f"Another server (pid {pid}) has {self._path} open. Stop it, or set store.path to another "
                "file."
            )
        self._held.append(lock)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)

    def register(self) -> None:
        """Mark this process as alive."""
        lock = _open_lock_file(self._directory / f"{self.own}.lock")
        self._held.append(lock)
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits at most for a process that tests the lock
        os.pwrite(lock, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Release every lock."""
        with suppress(OSError):
            (self._directory / f"{self.own}.lock").unlink(missing_ok=True)
        while self._held:
            os.close(self._held.pop())

    def list_others(self) -> set[str]:
        """Return the other living processes."""
        found = {file.stem for file in self._directory.glob("*.lock")} - {self.own}
        return found - self.find_dead(found)

    def find_dead(self, processes: Iterable[str]) -> set[str]:
        """Return those of `processes` that are dead."""
        return {one for one in processes if one != self.own and not self._is_alive(one)}

    def delete_dead(self) -> None:
        """Delete the lock files of dead processes. Only call this within `opening`."""
        for one in self.find_dead(file.stem for file in self._directory.glob("*.lock")):
            (self._directory / f"{one}.lock").unlink(missing_ok=True)

    def _is_alive(self, process: str) -> bool:
        try:
            lock = os.open(self._directory / f"{process}.lock", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            # A shared lock: two processes that test at the same time must not take each other for the owner.
            return not _try_lock(lock, fcntl.LOCK_SH)
        finally:
            os.close(lock)


def _open_lock_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try_lock(lock: int, mode: int) -> bool:
    try:
        fcntl.flock(lock, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# SQLite reads the write-ahead log up to the first frame with a wrong checksum and ignores the rest, so that
# acknowledged commits would vanish silently. Its format: https://www.sqlite.org/fileformat2.html#walformat;
# the format of its index: https://www.sqlite.org/walformat.html.

_WAL_HEADER = struct.Struct(">8I")
_WAL_FRAME = struct.Struct(">6I")
_WAL_VERSION = 3_007_000
_WAL_MAGIC = 0x377F0682


def find_log_damage(path: Path) -> str | None:
    """Return the damage of the log of a database that no process has open; None if there is none."""
    log = path.with_name(f"{path.name}-wal")
    if not path.exists() or not log.exists() or log.stat().st_size < _WAL_HEADER.size:
        return None
    with log.open("rb") as file:
        page_size, salts = _read_log_header(file.read(_WAL_HEADER.size))
        if not page_size:
            return f"the header of {log.name} is invalid"
        frames = (log.stat().st_size - _WAL_HEADER.size) // (_WAL_FRAME.size + page_size)
        committed = _find_newest_commit(file, page_size, salts, frames)
        readable = _count_readable_frames(path) if committed else 0
        # A process that is killed while it writes may leave the header of its last frame without the page.
        # That commit was never acknowledged. Every frame before it must be valid.
        if readable < committed and _count_valid_frames(file, page_size) >= committed - 1:
            readable = committed
    if readable < committed:
        return f"{log.name} holds {committed} pages and is unreadable after {readable}"
    return None


def _read_log_header(raw: bytes) -> tuple[int, tuple[int, int]]:
    """Return the page size, 0 for an invalid header, and the salts of the log's current generation."""
    magic, version, page_size, _, first_salt, second_salt, *checksum = _WAL_HEADER.unpack(raw)
    if magic & ~1 != _WAL_MAGIC or version != _WAL_VERSION:
        return 0, (0, 0)
    sums = [0, 0]
    _add_checksum(sums, ">" if magic & 1 else "<", raw[:24])
    return (page_size if sums == checksum else 0), (first_salt, second_salt)


def _find_newest_commit(file: BinaryIO, page_size: int, salts: tuple[int, int], frames: int) -> int:
    """Return the number of the last frame that ends a transaction of the current generation."""
    newest = 0
    for number in range(1, frames + 1):
        _, pages_after_commit, *found, _, _ = _WAL_FRAME.unpack(file.read(_WAL_FRAME.size))
        if tuple(found) == salts and pages_after_commit:
            newest = number
        file.seek(page_size, 1)
    return newest


def _count_valid_frames(file: BinaryIO, page_size: int) -> int:
    """Return the number of frames before the first wrong checksum."""
    file.seek(0)
    header = _WAL_HEADER.unpack(file.read(_WAL_HEADER.size))
    order, sums = ">" if header[0] & 1 else "<", [*header[6:]]
    number, size = 0, _WAL_FRAME.size + page_size
    while len(frame := file.read(size)) == size:
        _add_checksum(sums, order, frame[:8] + frame[_WAL_FRAME.size :])
        if sums != [*_WAL_FRAME.unpack(frame[: _WAL_FRAME.size])[4:]]:
            break
        number += 1
    return number


def _add_checksum(sums: list[int], order: str, data: bytes) -> None:
    """Update a running checksum (https://www.sqlite.org/fileformat2.html#checksum_algorithm)."""
    integers = struct.unpack(f"{order}{len(data) // 4}I", data)
    first, second = sums
    for even, odd in zip(integers[::2], integers[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    sums[:] = first, second


def _count_readable_frames(path: Path) -> int:
    """Return the number of frames that SQLite accepts. Read-only: the log and the file do not change."""
    with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        with path.with_name(f"{path.name}-shm").open("rb") as index:
            index.seek(16)
            return struct.unpack("=I", index.read(4))[0]
