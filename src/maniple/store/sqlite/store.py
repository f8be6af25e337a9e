"""Opens a SQLite file, migrates its schema, and joins its tables to a store."""

import os
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver

from maniple.errors import StoreError, StoreInUse
from maniple.evidence import Evidence
from maniple.store.artifact_contents import ArtifactContents
from maniple.store.batches import SqlBatches
from maniple.store.error_translation import corrupt_log, require_free_space, translate_errors
from maniple.store.executors import run_in_thread, run_to_completion
from maniple.store.schedules import SqlSchedules
from maniple.store.sqlite.checkpoints import SqliteCheckpointHistory, SqliteSaver
from maniple.store.sqlite.database import ProcessRegistry, SqliteDatabase, connect, find_log_damage
from maniple.store.sqlite.run_tables import (
    SqliteArtifacts,
    SqliteEvents,
    SqliteEvidence,
    SqliteInputs,
    SqliteLedger,
)
from maniple.store.sqlite.search import SqliteRunTexts
from maniple.store.sqlite.tables import SqliteKeys, SqliteRuns, SqliteThreads
from maniple.store.webhooks import SqlWebhooks

APPLICATION_ID = 0x4D4E504C
"""Marks the file as maniple's (https://www.sqlite.org/pragma.html#pragma_application_id)."""
_LANGGRAPH_TABLES = {"checkpoints", "writes"}


class SqliteStore:
    """See `protocols.Store`."""

    def __init__(
        self,
        database: SqliteDatabase,
        processes: ProcessRegistry,
        contents: ArtifactContents,
        saver: SqliteSaver,
    ) -> None:
        self._database = database
        self._processes = processes
        self._contents = contents
        self.threads = SqliteThreads(database, contents, processes)
        self.runs = SqliteRuns(database, processes)
        self.texts = SqliteRunTexts(database)
        self.inputs = SqliteInputs(database)
        self.events = SqliteEvents(database)
        self.ledger = SqliteLedger(database)
        self.artifacts = SqliteArtifacts(database, contents)
        self.keys = SqliteKeys(database)
        self.schedules = SqlSchedules(database)
        self.webhooks = SqlWebhooks(database)
        self.batches = SqlBatches(database)
        self.checkpoints = SqliteCheckpointHistory(database)
        self.checkpointer: BaseCheckpointSaver[Any] = saver

    @property
    def process(self) -> str:
        return self._processes.own

    def evidence(self, run_id: str) -> Evidence:
        return SqliteEvidence(self._database, run_id)

    async def probe(self) -> str:
        def require_space() -> None:
            with translate_errors(self._database.path):
                require_free_space(self._database.path)

        await self._database.fetch("SELECT 1 FROM threads LIMIT 1")
        await run_in_thread(require_space)
        if self._database.has_failed:
            # A store that is not ready gets no work, so no other write would show that writing works again.
            await self._database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        return ""

    async def check(self) -> list[str]:
        try:
            problems = await self._database.read(_find_problems)
            rows = await self._database.fetch("SELECT artifact_id, size FROM artifacts")
        except StoreError as error:
            return [str(error)]
        missing = await self._contents.missing((name, size) for name, size in rows)
        return problems + [f"The content of artifact {name} is missing or was changed." for name in missing]

    async def vacuum(self) -> None:
        await self._database.vacuum()
        rows = await self._database.fetch("SELECT artifact_id FROM artifacts")
        await self._contents.sweep({name for (name,) in rows})


@asynccontextmanager
async def open_sqlite(path: Path, contents: ArtifactContents, *, server: bool) -> AsyncGenerator[SqliteStore]:
    """Open the store; create or migrate the file. On leaving, the log is merged into the file.

    Raises a `StoreError` for a file that cannot be used, and leaves that file unchanged.
    """
    path = await run_in_thread(path.resolve)  # a symbolic link to it is no other database
    processes = ProcessRegistry(path)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(run_in_thread, processes.release)
        database = await run_in_thread(lambda: _open(path, processes, server=server))
        stack.push_async_callback(_close, database)
        with translate_errors(path):
            # Opened after the schema exists: the saver's `setup` then only reads.
            connection = await stack.enter_async_context(aiosqlite.connect(path))
            saver = SqliteSaver(connection, database)
            await saver.setup()
            await connection.execute("PRAGMA query_only = ON")
        yield SqliteStore(database, processes, contents, saver)


def _open(path: Path, processes: ProcessRegistry, *, server: bool) -> SqliteDatabase:
    with translate_errors(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_second_name(path)
        with processes.opening():
            if server:
                processes.lock_as_server()
            if not processes.list_others() and (damage := find_log_damage(path)):
                raise corrupt_log(path, damage)
            # Conversations are private; the log and its index get the mode of the file.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            processes.delete_dead()
            database = _connect_both(path)
            processes.register()
    return database


def _refuse_second_name(path: Path) -> None:
    """Raise `StoreInUse` for a file with hard links: SQLite would keep a log of its own for each name."""
    if path.exists() and path.stat().st_nlink > 1:
        raise StoreInUse(
            f"{path} has a second name (a hard link), and writing by both names would damage it. Remove the "
            "other name, or make a copy with `maniple db backup`."
        )


def _connect_both(path: Path) -> SqliteDatabase:
    writer = connect(path)
    try:
        migrate(writer, path, load_migrations())
        # Detects a read-only file now and not in the first run. BEGIN alone would not.
        writer.execute("BEGIN IMMEDIATE")
        writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        writer.execute("ROLLBACK")
        return SqliteDatabase(path, writer, connect(path, query_only=True))
    except BaseException:  # the file must not stay open
        writer.close()
        raise


def _find_problems(connection: sqlite3.Connection) -> list[str]:
    found = [text for (text,) in connection.execute("PRAGMA integrity_check").fetchall() if text != "ok"]
    orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
    return found + [
        f"A row of {table} refers to a missing row of {parent}." for table, _, parent, _ in orphans
    ]


async def _close(database: SqliteDatabase) -> None:
    await run_to_completion(database.close())


def load_migrations() -> list[str]:
    """Return the SQL of every schema version: script N turns version N - 1 into version N."""
    folder = resources.files("maniple.store.sqlite") / "schema"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


def migrate(connection: sqlite3.Connection, path: Path, versions: Sequence[str]) -> None:
    """Bring a file to the newest version, one transaction per version, after a copy of an older file.

    The copy is FILE.schema-VERSION.backup. Raises `StoreError` for a file of a newer maniple or of another
    program.
    """
    _refuse_foreign(connection, path)
    version = _read_version(connection)
    if version > len(versions):
        raise StoreError(
            f"A newer maniple wrote {path} (schema {version}; this version knows {len(versions)}). "
            "Update maniple, or set store.path to another file."
        )
    if 0 < version < len(versions):
        _copy_before_migration(connection, path.with_name(f"{path.name}.schema-{version}"))
    for number in range(version + 1, len(versions) + 1):
        _apply_version(connection, number, versions[number - 1])


def _apply_version(connection: sqlite3.Connection, number: int, script: str) -> None:
    # `executescript` would commit a transaction that is already open, so the script opens its own.
    try:
        connection.executescript(
            f"BEGIN IMMEDIATE; {script}; PRAGMA application_id = {APPLICATION_ID}; "
            f"PRAGMA user_version = {number}; COMMIT;"
        )
    except sqlite3.Error:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _read_version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID:
        return
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if tables - _LANGGRAPH_TABLES:
        raise StoreError(f"{path} is the database of another program. Set store.path to another file.")


def _copy_before_migration(connection: sqlite3.Connection, stem: Path) -> None:
    copy, number = stem.with_name(f"{stem.name}.backup"), 1
    while copy.exists():
        number += 1
        copy = stem.with_name(f"{stem.name}.{number}.backup")
    copy.touch(0o600, exist_ok=False)
    try:
        connection.execute("VACUUM INTO ?", [str(copy)])
    except sqlite3.Error:
        copy.unlink()
        raise
