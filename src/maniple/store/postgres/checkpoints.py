"""The tables of LangGraph's checkpoints in PostgreSQL."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import DictRow, dict_row

from maniple.errors import RunTakenOver
from maniple.langgraph_internals import (
    checkpoint_config,
    index_of_write,
    read_config,
    replaces_writes,
)
from maniple.store.postgres.checkpoint_groups import (
    BlobRow,
    CheckpointGroups,
    CheckpointRow,
    CheckpointRows,
    WriteRow,
)
from maniple.store.postgres.database import PostgresDatabase, fetch_all, lock_thread
from maniple.store.protocols import BRANCHED_RUNS
from maniple.store.redaction import make_serializer
from maniple.store.rows import UNFINISHED
from maniple.types import RUN_MARK

_NEWEST = "ORDER BY position DESC LIMIT 1"
# A thread is pruned before the end of its run is stored. Of its other runs some may wait, or wait no more.
_HAS_LOST_ITS_RUN = (
    "SELECT 1 FROM runs WHERE thread_id = %(thread)s HAVING count(*) > 0 "
    f"AND count(*) FILTER (WHERE process = %(own)s AND {UNFINISHED}) = 0"
)
_IS_DRIVEN_ELSEWHERE = (
    "SELECT 1 FROM runs WHERE thread_id = %(thread)s AND process <> %(own)s AND status = 'running'"
)
_BASES = (
    "SELECT base_checkpoint FROM (SELECT base_checkpoint FROM runs WHERE thread_id = %(thread)s "
    f"ORDER BY position DESC LIMIT {BRANCHED_RUNS}) newest WHERE base_checkpoint IS NOT NULL"
)
"""The checkpoints from which branches begin."""
_UNUSED_BLOBS = (
    "DELETE FROM checkpoint_blobs WHERE thread_id = %(thread)s AND (checkpoint_ns, channel, version) NOT IN "
    "(SELECT checkpoint_ns, used.key, used.value FROM checkpoints, "
    "jsonb_each_text(checkpoint -> 'channel_versions') used WHERE thread_id = %(thread)s)"
)
# One statement: all of it sees the checkpoints as they were before.
_PRUNE = f"""
WITH newest AS MATERIALIZED (SELECT checkpoint_id FROM checkpoints
        WHERE thread_id = %(thread)s AND checkpoint_ns = '' {_NEWEST}),
    kept AS MATERIALIZED (SELECT checkpoint_ns, checkpoint_id, checkpoint FROM checkpoints
        WHERE thread_id = %(thread)s AND checkpoint_ns = ''
        AND (checkpoint_id IN (SELECT checkpoint_id FROM newest) OR checkpoint_id IN ({_BASES}))),
    writes AS (DELETE FROM checkpoint_writes WHERE thread_id = %(thread)s
        AND (checkpoint_ns, checkpoint_id) NOT IN (SELECT checkpoint_ns, checkpoint_id FROM kept)),
    older AS (DELETE FROM checkpoints WHERE thread_id = %(thread)s
        AND (checkpoint_ns, checkpoint_id) NOT IN (SELECT checkpoint_ns, checkpoint_id FROM kept))
DELETE FROM checkpoint_blobs WHERE thread_id = %(thread)s
    AND (checkpoint_ns, channel, version) NOT IN (SELECT checkpoint_ns, used.key, used.value
        FROM kept, jsonb_each_text(checkpoint -> 'channel_versions') used)
"""


class PostgresSaver(AsyncPostgresSaver):
    """LangGraph's saver on the store's connections.

    The newest checkpoint is the one that was inserted last: ids begin with the time of the machine that
    writes. Every value goes through the serializer, which masks secrets; the original stores texts and
    numbers beside it. Rows name the run in whose metadata they were written, so that the fence knows who may
    write them.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(cast("Any", None), serde=make_serializer())
        self._database = database
        self._groups = CheckpointGroups(database)

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncGenerator[AsyncCursor[DictRow]]:
        """Yield a cursor for what is inherited; the original lets one caller at a time in."""
        async with (
            self._database.connection() as connection,
            connection.cursor(binary=True, row_factory=dict_row) as cursor,
        ):
            yield cursor

    async def setup(self) -> None:
        """Do nothing: the tables belong to the store's schema (`maniple db migrate`)."""

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        thread_id, namespace, wanted = read_config(config)
        which, values = ("AND checkpoint_id = %s", (wanted,)) if wanted else (_NEWEST, ())
        where = f"WHERE thread_id = %s AND checkpoint_ns = %s {which}"
        rows = await self._select(where, (thread_id, namespace, *values))
        return await self._load_checkpoint_tuple(rows[0]) if rows else None

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        where, values = self._search_where(config, filter, None)
        if before is not None:
            older = (
                "position < (SELECT position FROM checkpoints found "
                "WHERE found.thread_id = checkpoints.thread_id "
                "AND found.checkpoint_ns = checkpoints.checkpoint_ns AND found.checkpoint_id = %s)"
            )
            where = f"{where} AND {older}" if where.strip() else f"WHERE {older}"
            values = [*values, read_config(before)[2]]
        rows = await self._select(f"{where} ORDER BY position DESC LIMIT %s", (*values, limit))
        for row in rows:
            yield await self._load_checkpoint_tuple(row)

    async def _select(self, where: str, values: Sequence[Any]) -> list[DictRow]:
        sql = f"{self.SELECT_SQL}{where}".encode()

        async def select(connection: AsyncConnection) -> list[DictRow]:
            async with connection.cursor(binary=True, row_factory=dict_row) as cursor:
                await cursor.execute(sql, values)
                return await cursor.fetchall()

        return await self._database.read(select)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread_id, namespace, parent_id = read_config(config)
        run, values = _run_of(config), checkpoint["channel_values"]
        blobs = [
            BlobRow(
                thread_id, namespace, channel, str(version), *self.serde.dumps_typed(values[channel]), run
            )
            for channel, version in new_versions.items()
            if channel in values
        ]
        stored = json.dumps({**checkpoint, "channel_values": {}})
        described = json.dumps(get_serializable_checkpoint_metadata(config, metadata))
        row = CheckpointRow(thread_id, namespace, checkpoint["id"], parent_id, stored, described, run)
        await self._groups.store(CheckpointRows(blobs, checkpoints=[row]))
        return checkpoint_config(thread_id, namespace, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        place = (*read_config(config), task_id, task_path, _run_of(config))
        rows = [
            WriteRow(*place, index_of_write(channel, index), channel, *self.serde.dumps_typed(value))
            for index, (channel, value) in enumerate(writes)
        ]
        if replaces_writes(channel for channel, _ in writes):
            # One statement replaces no row twice.
            await self._groups.replace_writes({row.idx: row for row in rows}.values())
        else:
            await self._groups.store(CheckpointRows(writes=rows))

    async def adelete_thread(self, thread_id: str) -> None:
        await self._database.repeat(lambda connection: delete_checkpoints(connection, thread_id))


class PostgresCheckpointHistory:
    """See `protocols.CheckpointHistory`. No graph has a `DeltaChannel`, which needs older checkpoints."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def prune(self, thread_id: str) -> None:
        async def prune(connection: AsyncConnection) -> None:
            await self._refuse(connection, thread_id, _HAS_LOST_ITS_RUN)
            await prune_checkpoints(connection, thread_id)

        await self._database.repeat(prune)

    async def rollback(self, thread_id: str, checkpoint_id: str | None) -> None:
        newer = (
            "(checkpoint_ns, checkpoint_id) IN (SELECT checkpoint_ns, checkpoint_id FROM checkpoints "
            "WHERE thread_id = %(thread)s AND position > (SELECT position FROM checkpoints "
            "WHERE thread_id = %(thread)s AND checkpoint_ns = '' AND checkpoint_id = %(checkpoint)s))"
        )

        async def rollback(connection: AsyncConnection) -> None:
            await self._refuse(connection, thread_id, _IS_DRIVEN_ELSEWHERE)
            if checkpoint_id is None:
                await delete_checkpoints(connection, thread_id)
            else:
                await delete_checkpoints(connection, thread_id, newer, {"checkpoint": checkpoint_id})

        await self._database.repeat(rollback)

    async def _refuse(self, connection: AsyncConnection, thread_id: str, refused: str) -> None:
        """Raise `RunTakenOver` if the query `refused` has a row; the fence does not see what is deleted."""
        await lock_thread(connection, thread_id)
        if await fetch_all(connection, refused, {"thread": thread_id, "own": self._database.process}):
            raise RunTakenOver(f"Another process drives a run of thread {thread_id}. Nothing was deleted.")


async def prune_checkpoints(connection: AsyncConnection, thread_id: str) -> None:
    """Delete the checkpoints of a thread that nothing goes on from. The caller locks the thread."""
    await fetch_all(connection, _PRUNE, {"thread": thread_id})


async def delete_checkpoints(
    connection: AsyncConnection, thread_id: str, which: str = "TRUE", values: Mapping[str, str] | None = None
) -> None:
    """Delete the checkpoints of a thread that match the condition `which`, their writes and unused values."""
    named = {**(values or {}), "thread": thread_id}
    for table in ("checkpoint_writes", "checkpoints"):
        await connection.execute(
            f"DELETE FROM {table} WHERE thread_id = %(thread)s AND ({which})".encode(), named
        )
    await connection.execute(_UNUSED_BLOBS.encode(), named)


def _run_of(config: RunnableConfig) -> str | None:
    """Return the run for which a graph with this configuration works; None if it works for none."""
    return config.get("metadata", {}).get(RUN_MARK)
