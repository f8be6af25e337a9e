"""Copies a PostgreSQL database into a new SQLite file, which has its name only when it is whole.

What is copied follows from the two schemas, as in `transfer`. The queue's own rows and the index of the
full-text search are left out: a server makes them again.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import aiosqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from psycopg import AsyncConnection

from maniple.errors import StoreError, StoreInUse
from maniple.langgraph_internals import make_opaque_serializer
from maniple.store.error_translation import translate_errors
from maniple.store.executors import run_in_thread
from maniple.store.postgres.database import SCHEMA, fetch_all
from maniple.store.postgres.migrations import connected, load_migrations, require_version
from maniple.store.postgres.processes import count_living
from maniple.store.postgres.transfer import CHUNK_ROWS, Report, Row, TableCopy, list_tables
from maniple.store.sqlite import store as sqlite_store
from maniple.store.sqlite.database import connect
from maniple.text import counted

_DRAFT_SUFFIX = ".moving"
_EMPTY = "empty"
"""The type of a channel that has no value."""
_VALUES = (
    "(SELECT array_agg(ARRAY[convert_to(used.channel, 'UTF8'), convert_to(used.type, 'UTF8'), used.blob]) "
    "FROM jsonb_each_text(checkpoint -> 'channel_versions') versions JOIN checkpoint_blobs used ON "
    "used.thread_id = checkpoints.thread_id AND used.checkpoint_ns = checkpoints.checkpoint_ns "
    "AND used.channel = versions.key AND used.version = versions.value)"
)


async def transfer_back(
    url: str, file: Path, report: Report, copy_beside: Callable[[], None]
) -> Mapping[str, int]:
    """Copy the database of `url` into the new file `file`; return how many rows each table has.

    `copy_beside` copies, in a thread, what is not in tables: the file appears after it, as the last thing.
    Nobody can write to the database meanwhile. Raises `StoreInUse` while a process has it open, and a
    `StoreError` also for a file that exists; then there is no new file. The draft of a copy that was killed
    is replaced by the next one, or is named by it if it was whole.
    """
    draft = file.with_name(f"{file.name}{_DRAFT_SUFFIX}")
    with translate_errors(file):
        if (moved := await run_in_thread(lambda: _end_naming(draft, file))) is not None:
            return moved
    if await run_in_thread(lambda: os.path.lexists(file)):
        raise StoreError(f"{file} exists. Name a file that does not exist. Nothing was moved.")
    await require_version(url, len(load_migrations()))
    with translate_errors(draft):
        await run_in_thread(lambda: _create_draft(draft))
        async with aiosqlite.connect(draft) as saved:
            await AsyncSqliteSaver(saved).setup()
        with closing(await run_in_thread(lambda: _open_draft(draft))) as target:
            copies, triggers = await run_in_thread(lambda: (_plan(target), _drop_triggers(target)))
            async with connected(url) as source, source.transaction():
                await _lock(source, copies)
                counts = {copy.table: await _copy(source, target, copy, report) for copy in copies}
                await run_in_thread(lambda: _finish(target, triggers))
        await run_in_thread(copy_beside)
        # A link fails where a file has appeared meanwhile, which a renaming would replace.
        await run_in_thread(lambda: os.link(draft, file))
        await run_in_thread(lambda: _delete(draft))
    return counts


def _end_naming(draft: Path, file: Path) -> Mapping[str, int] | None:
    """Delete the draft of a copy that was killed when the file had its name too; return the file's rows.

    Returns None if no copy has ended so.
    """
    if not (os.path.lexists(draft) and os.path.lexists(file) and draft.samefile(file)):
        return None
    _delete(draft)
    with closing(connect(file, query_only=True)) as moved:
        count = "SELECT count(*) FROM"
        return {one.table: moved.execute(f"{count} {one.table}").fetchone()[0] for one in _plan(moved)}


def _create_draft(draft: Path) -> None:
    draft.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _delete(draft)
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _open_draft(draft: Path) -> sqlite3.Connection:
    connection = connect(draft)
    sqlite_store.migrate(connection, draft, sqlite_store.load_migrations())
    # The tables are filled in an order of their own; `_finish` checks the keys of all rows.
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("BEGIN IMMEDIATE")
    return connection


def _delete(draft: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{draft}{suffix}").unlink(missing_ok=True)


def _plan(target: sqlite3.Connection) -> list[TableCopy]:
    values = _CheckpointJoin()
    key = "thread_id, checkpoint_ns, checkpoint_id"
    write = f"{key}, task_id, task_path, idx, channel, type"
    return [
        *(_plan_copy(target, table) for table in list_tables(target)),
        TableCopy(
            "checkpoints",
            f"{key}, parent_checkpoint_id, metadata, type, checkpoint",
            "checkpoints",
            f"SELECT {key}, parent_checkpoint_id, metadata, checkpoint, {_VALUES} "
            "FROM checkpoints ORDER BY position",
            values.to_checkpoint,
        ),
        TableCopy(
            "writes", f"{write}, value", "checkpoint_writes", f"SELECT {write}, blob FROM checkpoint_writes"
        ),
    ]


def _plan_copy(target: sqlite3.Connection, table: str) -> TableCopy:
    names = [name for (name,) in target.execute(f"SELECT name FROM pragma_table_info('{table}')")]
    columns = ", ".join(name for name in names if name != "position")
    order = "ORDER BY position" if "position" in names else ""
    return TableCopy(table, columns, table, f"SELECT {columns} FROM {table} {order}")


async def _lock(source: AsyncConnection, copies: Sequence[TableCopy]) -> None:
    """Let nobody write any more; raises `StoreInUse` while a process may do so."""
    tables = ", ".join(sorted({f"{SCHEMA}.{copy.source}" for copy in copies}))
    await source.execute("SET LOCAL lock_timeout = '10s'")
    await source.execute(f"LOCK TABLE {tables} IN SHARE MODE".encode())
    if living := await count_living(source):
        raise StoreInUse(
            f"The database is open in {counted(living, 'program')}. Stop all nodes, workers and chats."
        )


async def _copy(source: AsyncConnection, target: sqlite3.Connection, copy: TableCopy, report: Report) -> int:
    """Copy the rows of one table; return their number."""
    ((count,),) = await fetch_all(source, f"SELECT count(*) FROM {copy.source}")
    marks = ", ".join("?" * len(copy.columns.split(", ")))
    insert = f"INSERT INTO {copy.table} ({copy.columns}) VALUES ({marks})"
    done = 0
    async with source.cursor(name="move") as cursor:
        await cursor.execute(copy.select.encode())
        while rows := await cursor.fetchmany(CHUNK_ROWS):

            def write(rows: Sequence[Row] = rows) -> None:
                target.executemany(insert, [new for row in rows for new in copy.convert(row)])

            await run_in_thread(write)
            done += len(rows)
            report(copy.table, done, count)
    if done != count:
        raise StoreError(f"{done} of {count} rows of {copy.table} have arrived. Nothing was moved.")
    return done


def _drop_triggers(target: sqlite3.Connection) -> list[str]:
    """Drop the triggers, which are for what happens, and this has happened; return what makes them again."""
    rows = target.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for name, _ in rows:
        target.execute(f"DROP TRIGGER {name}")
    return [sql for _, sql in rows]


def _finish(target: sqlite3.Connection, triggers: Sequence[str]) -> None:
    if orphans := target.execute("PRAGMA foreign_key_check").fetchall():
        raise StoreError(
            f"{len(orphans)} rows refer to missing ones, one in {orphans[0][0]}. Nothing was moved."
        )
    for sql in triggers:
        target.execute(sql)
    target.execute("COMMIT")
    target.execute("PRAGMA wal_checkpoint(TRUNCATE)")


class _CheckpointJoin:
    """Puts the values of channels into their checkpoint, as SQLite has it. No object in them is made."""

    def __init__(self) -> None:
        self._serializer = make_opaque_serializer()

    def to_checkpoint(self, row: Row) -> Iterable[Row]:
        *key, metadata, checkpoint, found = row
        values = {
            bytes(channel).decode(): self._serializer.loads_typed((bytes(kind).decode(), bytes(blob)))
            for channel, kind, blob in found or ()
            if bytes(kind).decode() != _EMPTY
        }
        whole = {**checkpoint, "channel_values": values}
        yield (*key, json.dumps(metadata).encode(), *self._serializer.dumps_typed(whole))
