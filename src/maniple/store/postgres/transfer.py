"""Copies a SQLite database into an empty one in PostgreSQL: all of it, in one transaction, or nothing.

What is copied follows from the two schemas: a new table or column needs nothing here. Only the index of the
full-text search is left out: the server indexes ended runs again.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from maniple.errors import StoreError, StoreInUse
from maniple.langgraph_internals import make_opaque_serializer
from maniple.store.error_translation import translate_errors
from maniple.store.executors import run_in_thread
from maniple.store.postgres.database import fetch_all
from maniple.store.postgres.migrations import connected, load_migrations, migrate
from maniple.store.sqlite.database import ProcessRegistry, connect
from maniple.types import RUN_MARK

CHUNK_ROWS = 100
"""How many rows are in memory at a time: a checkpoint, or the events of a moment, may have megabytes."""
_LANGGRAPH_TABLES = frozenset({"checkpoints", "writes"})
"""The tables in which LangGraph's two savers differ."""
_NOT_COPIED = frozenset({"run_texts", *_LANGGRAPH_TABLES})

Row = tuple[Any, ...]
Report = Callable[[str, int, int], None]
"""Takes note of a table, of how many of its rows have been read, and of how many it has."""


@dataclass(frozen=True, slots=True)
class TableCopy:
    """How the rows of a query in SQLite become those of a table in PostgreSQL."""

    table: str
    columns: str
    source: str
    """The table that is read."""
    select: str
    convert: Callable[[Row], Iterable[Row]] = lambda row: (row,)
    has_every_row: bool = True
    """Whether there is one row for each that is read."""


async def transfer(file: Path, own: str, url: str, report: Report) -> Mapping[str, int]:
    """Copy the database in `file`, which the process `own` has open, into the one of `url`.

    Returns how many rows each table has. Nobody can write to either database meanwhile. Raises `StoreInUse`
    while another process has the file open, and a `StoreError` also for a database that is not empty; then
    nothing was copied.
    """
    if await run_in_thread(lambda: ProcessRegistry(file).list_others() - {own}):
        raise StoreInUse(f"Another process has {file} open, such as a chat. End it, and try again.")
    await migrate(url, load_migrations())
    with translate_errors(file), closing(await run_in_thread(partial(connect, file))) as source:
        await run_in_thread(lambda: source.execute("BEGIN IMMEDIATE").fetchall())
        copies = await run_in_thread(lambda: plan_copies(source))
        async with connected(url) as target, target.transaction():
            return await _copy_all(source, target, copies, report)


async def _copy_all(
    source: sqlite3.Connection, target: AsyncConnection, copies: Sequence[TableCopy], report: Report
) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    # No fence, no bell and no webhook: the triggers are for what happens, and this has happened. Nor can
    # others write before the end of the transaction.
    for copy in copies:
        await target.execute(f"ALTER TABLE {copy.table} DISABLE TRIGGER USER".encode())
    for copy in copies:
        if (await fetch_all(target, f"SELECT EXISTS (SELECT FROM {copy.table})"))[0][0]:
            raise StoreError(
                f"The database has data already, in the table {copy.table}. A move copies all or nothing: "
                "if an earlier one went there, it has ended, and maniple db check with store.backend: "
                "postgres reads what it has copied. Otherwise name an empty database. Nothing was moved."
            )
    for copy in copies:
        counts[copy.table] = await _copy(source, target, copy, report)
    for copy in copies:
        await target.execute(f"ALTER TABLE {copy.table} ENABLE TRIGGER USER".encode())
    return counts


async def _copy(source: sqlite3.Connection, target: AsyncConnection, copy: TableCopy, report: Report) -> int:
    """Copy the rows of one table; return their number."""
    count, cursor = await run_in_thread(
        lambda: (
            source.execute(f'SELECT count(*) FROM "{copy.source}"').fetchone()[0],
            source.execute(copy.select),
        )
    )

    def read() -> tuple[int, list[Row]]:
        rows = cursor.fetchmany(CHUNK_ROWS)
        return len(rows), [converted for row in rows for converted in copy.convert(row)]

    done = 0
    into = f"COPY {copy.table} ({copy.columns}) FROM STDIN".encode()
    async with target.cursor() as writer, writer.copy(into) as out:
        while (found := await run_in_thread(read))[0]:
            for row in found[1]:
                await out.write_row(row)
            done += found[0]
            report(copy.table, done, count)
    ((arrived,),) = await fetch_all(target, f"SELECT count(*) FROM {copy.table}")
    if copy.has_every_row and arrived != count:
        raise StoreError(f"{arrived} of {count} rows of {copy.table} have arrived. Nothing was moved.")
    return arrived


def plan_copies(source: sqlite3.Connection) -> list[TableCopy]:
    """Return what is copied, in an order in which no row refers to one that comes later.

    `position` is given anew, in the same order.
    """
    return [*(_plan_copy(source, table) for table in list_tables(source)), *_plan_checkpoints()]


def list_tables(file: sqlite3.Connection) -> list[str]:
    """Return the tables of a SQLite database that PostgreSQL has alike, those that others refer to first."""
    query = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
    tables = {name for (name,) in file.execute(query) if not name.startswith("sqlite_")} - _NOT_COPIED
    parents: dict[str, set[str]] = {}
    for table in tables:
        keys = file.execute(f"SELECT \"table\" FROM pragma_foreign_key_list('{table}')")
        parents[table] = {parent for (parent,) in keys}
    return [*TopologicalSorter(parents).static_order()]


def _plan_copy(source: sqlite3.Connection, table: str) -> TableCopy:
    names = [name for (name,) in source.execute(f"SELECT name FROM pragma_table_info('{table}')")]
    columns = ", ".join(name for name in names if name != "position")
    order = "ORDER BY position" if "position" in names else ""
    return TableCopy(table, columns, table, f"SELECT {columns} FROM {table} {order}")


def _plan_checkpoints() -> list[TableCopy]:
    """Return the copies of LangGraph's tables: PostgreSQL has a table for the values of channels."""
    key = "thread_id, checkpoint_ns, checkpoint_id"
    write = f"{key}, task_id, task_path, idx, channel, type"
    stored = "type, checkpoint, metadata FROM checkpoints"
    return [
        TableCopy(
            "checkpoints",
            f"{key}, parent_checkpoint_id, checkpoint, metadata, run_id",
            "checkpoints",
            f"SELECT {key}, parent_checkpoint_id, {stored} ORDER BY rowid",
            _CheckpointConversion().to_checkpoint,
        ),
        TableCopy(
            "checkpoint_blobs",
            "thread_id, checkpoint_ns, channel, version, type, blob, run_id",
            "checkpoints",
            f"SELECT thread_id, checkpoint_ns, {stored} ORDER BY thread_id, checkpoint_ns, rowid",
            _CheckpointConversion().to_blobs,
            has_every_row=False,
        ),
        TableCopy(
            "checkpoint_writes",
            f"{write}, blob",
            "writes",
            f"SELECT {write}, coalesce(value, x'') FROM writes ORDER BY rowid",
        ),
    ]


class _CheckpointConversion:
    """Takes checkpoints of SQLite apart, which have the values of all channels. No object in them is made."""

    def __init__(self) -> None:
        self._serializer = make_opaque_serializer()
        self._graph: Row = ()
        self._seen: set[tuple[str, str]] = set()

    def to_checkpoint(self, row: Row) -> Iterable[Row]:
        """Return the row without the values of its channels."""
        *key, kind, data, metadata = row
        checkpoint = self._serializer.loads_typed((kind, data))
        described = _read_metadata(metadata)
        stored = Jsonb({**checkpoint, "channel_values": {}})
        yield (*key, stored, Jsonb(described), described.get(RUN_MARK))

    def to_blobs(self, row: Row) -> Iterable[Row]:
        """Return rows of the values that no earlier checkpoint of the same graph has had.

        Checkpoints of one graph must follow one another.
        """
        thread_id, namespace, kind, data, metadata = row
        if self._graph != (thread_id, namespace):
            self._graph = (thread_id, namespace)
            self._seen.clear()
        checkpoint = self._serializer.loads_typed((kind, data))
        run_id = _read_metadata(metadata).get(RUN_MARK)
        for channel, value in checkpoint["channel_values"].items():
            version = checkpoint["channel_versions"][channel]
            if (channel, version) not in self._seen:
                self._seen.add((channel, version))
                stored = self._serializer.dumps_typed(value)
                yield (thread_id, namespace, channel, version, *stored, run_id)


def _read_metadata(metadata: bytes | str | None) -> dict[str, Any]:
    return json.loads(metadata) if metadata else {}
