"""The store in one SQLite file."""

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver

from maniple.errors import StoreError
from maniple.evidence import Evidence
from maniple.store.faults import corrupt_log, refuse_full, told
from maniple.store.files import ArtifactFiles
from maniple.store.sqlite.artifacts import SqliteArtifacts
from maniple.store.sqlite.checkpoints import SqliteCheckpoints, SqliteSaver
from maniple.store.sqlite.connection import Database, connect
from maniple.store.sqlite.events import SqliteEvents
from maniple.store.sqlite.evidence import SqliteEvidence
from maniple.store.sqlite.keys import SqliteKeys
from maniple.store.sqlite.ledger import SqliteLedger
from maniple.store.sqlite.migrations import APPLICATION_ID, migrate, scripts
from maniple.store.sqlite.processes import Processes
from maniple.store.sqlite.runs import SqliteRuns
from maniple.store.sqlite.threads import SqliteThreads
from maniple.store.sqlite.wal import damage
from maniple.store.waiting import in_thread, to_the_end


class SqliteStore:
    """See `protocols.Store`."""

    def __init__(
        self, database: Database, processes: Processes, files: ArtifactFiles, saver: SqliteSaver
    ) -> None:
        self._database = database
        self._processes = processes
        self._files = files
        self.threads = SqliteThreads(database, files)
        self.runs = SqliteRuns(database, processes)
        self.events = SqliteEvents(database)
        self.ledger = SqliteLedger(database)
        self.artifacts = SqliteArtifacts(database, files)
        self.keys = SqliteKeys(database)
        self.checkpoints = SqliteCheckpoints(database)
        self.checkpointer: BaseCheckpointSaver = saver

    @property
    def process(self) -> str:
        return self._processes.own

    def evidence(self, run_id: str) -> Evidence:
        return SqliteEvidence(self._database, run_id)

    async def try_out(self) -> None:
        def look() -> None:
            with told(self._database.path):
                refuse_full(self._database.path)

        await self._database.read(lambda c: c.execute("SELECT 1 FROM threads LIMIT 1").fetchall())
        await in_thread(look)
        if self._database.has_failed:
            # Who is not ready gets no work, and nothing else would show that writing works again.
            await self._database.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    async def check(self) -> list[str]:
        try:
            problems = await self._database.read(_problems)
            rows = await self._database.read(
                lambda c: c.execute("SELECT artifact_id, size FROM artifacts").fetchall()
            )
        except StoreError as error:
            return [str(error)]
        missing = await self._files.missing(rows)
        return problems + [f"The content of artifact {name} is gone or was changed." for name in missing]

    async def vacuum(self) -> None:
        await self._database.vacuum()
        rows = await self._database.read(lambda c: c.execute("SELECT artifact_id FROM artifacts").fetchall())
        await self._files.sweep({name for (name,) in rows})


@asynccontextmanager
async def open_sqlite(path: Path, files: ArtifactFiles, *, server: bool) -> AsyncIterator[SqliteStore]:
    """Open the store, making or migrating the file; on leaving, what was written is folded into it.

    Raises a `StoreError` with the remedy for a file that cannot be used; such a file stays as it is.
    """
    processes = Processes(path)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(in_thread, processes.leave)
        database = await in_thread(lambda: _open(path, processes, server=server))
        stack.push_async_callback(_closed, database)
        with told(path):
            # The saver's connection is opened when the schema is there: its `setup` then only reads.
            connection = await stack.enter_async_context(aiosqlite.connect(path))
            saver = SqliteSaver(connection, database)
            await saver.setup()
            await connection.execute("PRAGMA query_only = ON")
        yield SqliteStore(database, processes, files, saver)


def _open(path: Path, processes: Processes, *, server: bool) -> Database:
    with told(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with processes.opening():
            if server:
                processes.become_server()
            if not processes.others() and (found := damage(path)):
                raise corrupt_log(path, found)
            # Conversations are nobody else's business; the log and its index get the file's mode.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            processes.forget_the_dead()
            database = _connected(path)
            processes.register()
    return database


def _connected(path: Path) -> Database:
    writer = connect(path)
    try:
        migrate(writer, path, scripts())
        # A file that cannot be written shows here, not in the first run. BEGIN alone would not tell.
        writer.execute("BEGIN IMMEDIATE")
        writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        writer.execute("ROLLBACK")
        return Database(path, writer, connect(path, query_only=True))
    except BaseException:  # whatever happened, the file is let go
        writer.close()
        raise


def _problems(connection: sqlite3.Connection) -> list[str]:
    found = [text for (text,) in connection.execute("PRAGMA integrity_check").fetchall() if text != "ok"]
    strays = connection.execute("PRAGMA foreign_key_check").fetchall()
    return found + [f"A row of {table} belongs to no row of {parent}." for table, _, parent, _ in strays]


async def _closed(database: Database) -> None:
    await to_the_end(database.close())
