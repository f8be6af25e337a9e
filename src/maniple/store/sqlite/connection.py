"""Two connections to one file, each in a thread of its own: one writes, the other reads meanwhile."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from maniple.errors import StoreBusy, StoreError
from maniple.store.faults import told
from maniple.store.sqlite.lane import Doing, Lane

BUSY_SECONDS = 5.0
"""How long a write waits for one of another process."""
WAL_BYTES = 16 * 1024 * 1024
"""What the write-ahead log shrinks to after a burst."""

DEFERRED_SECONDS = 0.01
_LOG = logging.getLogger(__name__)
_NOTHING: Any = (lambda _: None, lambda: None)

T = TypeVar("T")


def connect(path: Path, *, query_only: bool = False) -> sqlite3.Connection:
    """Open a connection that leaves transactions to its user."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        settle(connection, path)
        if query_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:  # whatever happened, the file is let go
        connection.close()
        raise
    return connection


def settle(connection: sqlite3.Connection, path: Path) -> None:
    """Set what holds for a connection.

    With WAL and synchronous=NORMAL whatever was committed survives the death of the process; a power cut
    may take the last moments, never the integrity (https://www.sqlite.org/pragma.html#pragma_synchronous).
    """
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(
            f"{path} lies on a file system without shared memory, as network file systems are. "
            "Name a file on a local disk in store.path."
        )
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")


class Database:
    """Runs functions on the connections. A function's work is one transaction, done whole or not at all."""

    def __init__(self, path: Path, writer: sqlite3.Connection, reader: sqlite3.Connection) -> None:
        self.path = path
        self._writer, self._reader = writer, reader
        self._writing, self._reading = Lane("store writer"), Lane("store reader")
        self._deferred: list[tuple[str, Sequence[Any]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self.has_failed = False
        """Whether the last write could not be done."""

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` returns, committed; if it raises, nothing of it was done."""
        return await self._do(work, lambda: transact(self._writer, self.path, work))

    async def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, which is a transaction by itself, and return its rows."""

        def run(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            return connection.execute(sql, values).fetchall()

        def alone() -> list[tuple[Any, ...]]:
            with told(self.path):
                return run(self._writer)

        return await self._do(run, alone)

    def defer(self, sql: str, values: Sequence[Any]) -> None:
        """Run a statement in the transaction of what is written next, or in `DEFERRED_SECONDS`.

        It may be lost without a word when the disk is full: only for what a later write makes needless.
        """
        self._deferred.append((sql, values))
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(DEFERRED_SECONDS, self._do, *_NOTHING)

    async def settle(self) -> None:
        """Wait until what was deferred is written."""
        if self._deferred:
            await self._do(*_NOTHING)

    def _do(self, work: Callable[[sqlite3.Connection], T], alone: Callable[[], T]) -> Doing[T]:
        """Do `work` in the transaction of what was deferred, or without that as `alone` does it."""
        deferred, self._deferred = self._deferred, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

        def together(connection: sqlite3.Connection) -> T:
            for sql, values in deferred:
                connection.execute(sql, values).fetchall()
            return work(connection)

        def run() -> T:
            with suppress(Exception):  # whose fault it was shows when each is done by itself
                return transact(self._writer, self.path, together)
            for sql, values in deferred:
                try:
                    with told(self.path):
                        self._writer.execute(sql, values).fetchall()
                except StoreBusy:
                    break  # each of the others would wait as long
                except Exception as error:  # noqa: BLE001 - it is one statement's matter, not its neighbours'
                    _LOG.warning("A part of a step was not stored: %s", error)
            return alone()

        return self._writing.do(partial(self._noted, run if deferred else alone))

    def _noted(self, work: Callable[[], T]) -> T:
        try:
            result = work()
        except StoreError:
            self.has_failed = True
            raise
        self.has_failed = False
        return result

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` reads."""

        def reading() -> T:
            with told(self.path):
                return _without_cursor(work(self._reader))

        return await self._reading.do(reading)

    async def vacuum(self) -> None:
        """Give unused pages back to the file system."""

        def rewrite() -> None:
            with told(self.path):
                self._writer.execute("VACUUM")
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        await self._writing.do(rewrite)

    async def close(self) -> None:
        """Close both; the writer last, so that the log is folded into the file."""
        try:
            await self._reading.do(self._reader.close)
        finally:
            try:
                await self.settle()
                await self._writing.do(self._writer.close)
            finally:
                self._reading.close()
                self._writing.close()


def transact(connection: sqlite3.Connection, path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """Do `work` in a transaction of its own."""
    with told(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = _without_cursor(work(connection))
            connection.execute("COMMIT")
        except BaseException:  # whatever happened, the next transaction finds none open
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise
        return result


def _without_cursor(result: T) -> T:
    """Refuse a cursor: let go in another thread, it would reset a statement that is in use in this one."""
    if isinstance(result, sqlite3.Cursor):
        raise TypeError("a cursor must not leave the thread of its connection")
    return result
