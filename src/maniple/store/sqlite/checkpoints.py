"""The tables of LangGraph's checkpoints."""

import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.checkpoint.sqlite.utils import load_pending_writes, pending_writes_sql

from maniple.langgraph_internals import (
    checkpoint_config,
    index_of_write,
    read_config,
    replaces_writes,
)
from maniple.store.error_translation import translate_errors
from maniple.store.protocols import BRANCHED_RUNS
from maniple.store.redaction import make_serializer
from maniple.store.sqlite.database import SqliteDatabase

_PUT = (
    "INSERT OR REPLACE INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, "
    "type, checkpoint, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_PUT_WRITES = (
    "INSERT OR {} INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, "
    "type, value) VALUES {}"
)
_WRITE = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
_GET = "SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints "
_OF_NAMESPACE = "WHERE thread_id = ? AND checkpoint_ns = ? "
_NEWEST = "ORDER BY rowid DESC LIMIT 1"
_BASES = (
    "SELECT base_checkpoint FROM (SELECT base_checkpoint FROM runs WHERE thread_id = ?1 "
    f"ORDER BY position DESC LIMIT {BRANCHED_RUNS}) WHERE base_checkpoint IS NOT NULL"
)
"""The checkpoints from which branches begin."""
_WRITES = pending_writes_sql(has_task_path=True)


class SqliteSaver(AsyncSqliteSaver):
    """LangGraph's saver; its writes go through the store's writer.

    The original writes leave a transaction open, and with it the file locked, when they fail or are
    cancelled between statement and commit. The newest checkpoint is the one that was inserted last: ids begin
    with the time, so after the clock was set back the greatest id would be an older checkpoint.
    """

    def __init__(self, connection: aiosqlite.Connection, database: SqliteDatabase) -> None:
        super().__init__(connection, serde=make_serializer())
        self._database = database

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint with one call of the reader thread; the original needs one for every row."""
        await self._database.flush_deferred()
        thread_id, namespace, wanted = read_config(config)
        found = await self._database.read(lambda c: _find(c, thread_id, namespace, wanted))
        if found is None:
            return None
        (checkpoint_id, parent_id, *stored, metadata), writes = found
        return CheckpointTuple(
            checkpoint_config(thread_id, namespace, checkpoint_id),
            self.serde.loads_typed(tuple(stored)),
            json.loads(metadata) if metadata is not None else {},
            checkpoint_config(thread_id, namespace, parent_id) if parent_id else None,
            load_pending_writes(writes, self.serde),
        )

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        await self._database.flush_deferred()
        # The original holds its lock between two items: a caller that uses the saver there would deadlock.
        with translate_errors(self._database.path):
            found = [one async for one in super().alist(config, filter=filter, before=before, limit=limit)]
        for one in found:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread_id, namespace, parent_id = read_config(config)
        described = json.dumps(get_checkpoint_metadata(config, metadata), ensure_ascii=False)
        row = (
            *(thread_id, namespace, checkpoint["id"], parent_id),
            *self.serde.dumps_typed(checkpoint),
            described.encode("utf-8", "ignore"),
        )
        await self._database.execute(_PUT, row)
        return checkpoint_config(thread_id, namespace, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        key = read_config(config)
        rows = [
            (
                *key,
                task_id,
                task_path,
                index_of_write(channel, index),
                channel,
                *self.serde.dumps_typed(value),
            )
            for index, (channel, value) in enumerate(writes)
        ]
        again = "REPLACE" if replaces_writes(channel for channel, _ in writes) else "IGNORE"
        sql = _PUT_WRITES.format(again, ", ".join([_WRITE] * len(rows)))
        values = [value for row in rows for value in row]
        if again == "REPLACE":
            await self._database.execute(sql, values)
        else:
            # The next checkpoint replaces these rows: a crash before it repeats the step either way.
            self._database.defer(sql, values)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._database.write(lambda c: delete_checkpoints(c, thread_id))


class SqliteCheckpointHistory:
    """See `protocols.CheckpointHistory`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def prune(self, thread_id: str) -> None:
        def prune(connection: sqlite3.Connection) -> None:
            newest = connection.execute(
                f"SELECT checkpoint_id FROM checkpoints {_OF_NAMESPACE}{_NEWEST}", (thread_id, "")
            ).fetchone()
            if newest is not None:
                which = f"checkpoint_ns != '' OR (checkpoint_id != ?2 AND checkpoint_id NOT IN ({_BASES}))"
                delete_checkpoints(connection, thread_id, which, *newest)

        await self._database.write(prune)

    async def rollback(self, thread_id: str, checkpoint_id: str | None) -> None:
        newer = (
            "(checkpoint_ns, checkpoint_id) IN (SELECT checkpoint_ns, checkpoint_id FROM checkpoints "
            "WHERE thread_id = ?1 AND rowid > (SELECT rowid FROM checkpoints "
            "WHERE thread_id = ?1 AND checkpoint_ns = '' AND checkpoint_id = ?2))"
        )

        def rollback(connection: sqlite3.Connection) -> None:
            if checkpoint_id is None:
                delete_checkpoints(connection, thread_id)
            else:
                delete_checkpoints(connection, thread_id, newer, checkpoint_id)

        await self._database.write(rollback)


def delete_checkpoints(
    connection: sqlite3.Connection, thread_id: str, which: str = "TRUE", *values: str
) -> None:
    """Delete the checkpoints of a thread that match the condition `which`, and their writes."""
    for table in ("writes", "checkpoints"):
        connection.execute(f"DELETE FROM {table} WHERE thread_id = ?1 AND ({which})", (thread_id, *values))


def _find(
    connection: sqlite3.Connection, thread_id: str, namespace: str, checkpoint_id: str | None
) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]] | None:
    """Return the row of a checkpoint (without an id, of the newest one) and the rows of its writes."""
    which, values = ("AND checkpoint_id = ?", (checkpoint_id,)) if checkpoint_id else (_NEWEST, ())
    row = connection.execute(f"{_GET}{_OF_NAMESPACE}{which}", (thread_id, namespace, *values)).fetchone()
    if row is None:
        return None
    return row, connection.execute(_WRITES, (thread_id, namespace, row[0])).fetchall()
