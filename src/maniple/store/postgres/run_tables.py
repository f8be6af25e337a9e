"""The tables in PostgreSQL of what runs are sent and produce: inputs, events, tool calls and artifacts."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from psycopg import AsyncConnection

from maniple.errors import RunTakenOver, StoreError, StoreUnreachable
from maniple.store.artifact_contents import ArtifactContent, ArtifactContents, open_content, safe_name
from maniple.store.executors import run_to_completion
from maniple.store.postgres.database import (
    PROCESS_VARIABLE,
    PostgresDatabase,
    count_refusal,
    execute_many,
    fetch_all,
)
from maniple.store.postgres.tables import NOW, add_inputs, path_condition, select_path
from maniple.store.records import Artifact, EventRecord, InputRecord, RunRecord, ToolCallRecord
from maniple.store.rows import (
    ARTIFACT_COLUMNS,
    CALL_COLUMNS,
    INPUT_COLUMNS,
    Row,
    join_batch,
    make_first,
    split_batch,
)
from maniple.text import fix_surrogates

_INSERT_EVENTS = (
    "INSERT INTO events (run_id, first, last, body) "
    "SELECT run_id, %(first)s, %(last)s, %(body)s FROM runs WHERE run_id = %(run)s "
    "AND %(first)s = 1 + coalesce((SELECT max(last) FROM events WHERE run_id = %(run)s), 0) RETURNING 1"
)
# All or none, in one statement: with one that does not continue its run, each is looked at.
# A join with `runs` would be planned as one with all of them, and look for the newest event of each.
_INSERT_ALL_EVENTS = (
    "WITH given AS MATERIALIZED (SELECT given.* "
    "FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::text[]) given (run_id, first, last, body) "
    "WHERE (SELECT true FROM runs WHERE runs.run_id = given.run_id) "
    "AND first = 1 + coalesce((SELECT max(last) FROM events WHERE events.run_id = given.run_id), 0)) "
    "INSERT INTO events (run_id, first, last, body) SELECT run_id, first, last, body FROM given "
    "WHERE (SELECT count(*) FROM given) = %s RETURNING 1"
)
_PAGE_ROWS = 1_000


class PostgresInputs:
    """See `protocols.InputTable`. Any process may write the inputs of a run."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def write(
        self, run_id: str, added: Sequence[InputRecord], replies: Mapping[str, str] | None = None
    ) -> None:
        sql = "UPDATE run_inputs SET reply = %s WHERE run_id = %s AND input_id = %s AND reply IS NULL"
        rows = [(fix_surrogates(reply), run_id, input_id) for input_id, reply in (replies or {}).items()]

        async def write(connection: AsyncConnection) -> None:
            await add_inputs(connection, run_id, added)
            await execute_many(connection, sql, rows)

        await self._database.repeat(write)

    async def list_by_run(self, run_id: str) -> list[InputRecord]:
        columns = ", ".join(INPUT_COLUMNS)
        sql = f"SELECT {columns} FROM run_inputs WHERE run_id = %s ORDER BY position"
        return [InputRecord(*row) for row in await self._database.fetch(sql, (run_id,))]


class PostgresEvents:
    """See `protocols.EventTable`. Events that are appended together are one row."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def append(self, batches: Sequence[tuple[str, Sequence[EventRecord]]]) -> None:
        rows = [_batch_row(run_id, records) for run_id, records in batches if records]
        if not rows:
            return
        columns = [[row[name] for row in rows] for name in ("run", "first", "last", "body")]
        if await self._database.execute(_INSERT_ALL_EVENTS, (*columns, len(rows))):
            return  # the usual case

        async def insert(connection: AsyncConnection) -> None:
            for row in rows:
                if not await fetch_all(connection, _INSERT_EVENTS, row):
                    await _refuse_gap(connection, row)

        await self._database.repeat(insert)

    async def read(
        self, run_id: str, after: int = 0, limit: int = 1000, types: Collection[str] | None = None
    ) -> list[EventRecord]:
        wanted = None if types is None else frozenset(types)
        # Rows without the name of such a type are not sent by the database.
        named = "" if wanted is None else " OR ".join(["strpos(body, %s) > 0"] * len(wanted)) or "FALSE"
        where = f"run_id = %s AND last > %s{f' AND ({named})' if named else ''}"
        sql = f"SELECT first, last, body FROM events WHERE {where} ORDER BY last LIMIT %s"
        names = [f"{one} " for one in wanted or ()]

        async def select(connection: AsyncConnection) -> list[EventRecord]:
            # Other rows may hold the name in an event's data, so that a page of rows may hold no such event.
            found: list[EventRecord] = []
            rows: list[Row] = []
            size, reached = min(limit, _PAGE_ROWS), after
            while len(found) < limit and (not rows or len(rows) == size):
                rows = await fetch_all(connection, sql, (run_id, reached, *names, size))
                if not rows:
                    break
                reached = rows[-1][1]
                for first, _, body in rows:
                    found += (
                        record
                        for record in split_batch(run_id, first, body)
                        if record.number > after and (wanted is None or record.type in wanted)
                    )
            return found[:limit]

        return await self._database.read(select) if limit > 0 else []

    async def last(self, run_id: str) -> EventRecord | None:
        sql = "SELECT first, body FROM events WHERE run_id = %s ORDER BY last DESC LIMIT 1"
        rows = await self._database.fetch(sql, (run_id,))
        return split_batch(run_id, *rows[0])[-1] if rows else None


def _batch_row(run_id: str, records: Sequence[EventRecord]) -> dict[str, str | int]:
    body = join_batch(run_id, records)
    return {"run": run_id, "first": records[0].number, "last": records[-1].number, "body": body}


async def _refuse_gap(connection: AsyncConnection, row: Mapping[str, str | int]) -> None:
    """Raise `StoreError` for events that do not continue the run, unless they themselves are stored already.

    They are when the answer to the first try was lost. Events of a deleted run are dropped.
    """
    sql = (
        "SELECT process = current_setting(%(variable)s, true), "
        "coalesce((SELECT max(last) FROM events WHERE run_id = runs.run_id), 0), "
        "EXISTS (SELECT FROM events WHERE run_id = runs.run_id AND first = %(first)s AND last = %(last)s "
        "AND body = %(body)s) FROM runs WHERE run_id = %(run)s"
    )
    for is_own, newest, is_stored in await fetch_all(connection, sql, {**row, "variable": PROCESS_VARIABLE}):
        if not is_own:
            # Not a row that the fence has seen: the same events may come from the process that goes on.
            await count_refusal(connection)
            raise RunTakenOver(f"Another process drives run {row['run']} now. Nothing was stored.")
        if not is_stored:
            raise StoreError(
                f"Event {row['first']} of run {row['run']} does not follow its newest event, {newest}. "
                "Nothing was stored."
            )


class PostgresLedger:
    """See `protocols.ToolCallLedger`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def begin(self, run_id: str, tool_call_id: str, tool_name: str, arguments: str) -> ToolCallRecord:
        sql = (
            f"INSERT INTO tool_calls ({CALL_COLUMNS}) VALUES (%s, %s, %s, %s, NULL, {NOW}, NULL, 1, NULL) "
            "ON CONFLICT (run_id, tool_call_id) DO UPDATE SET attempts = tool_calls.attempts + 1 "
            f"RETURNING {CALL_COLUMNS}"
        )
        values = (run_id, tool_call_id, tool_name, fix_surrogates(arguments))
        stored = f"SELECT {CALL_COLUMNS} FROM tool_calls WHERE run_id = %s AND tool_call_id = %s"
        rows = await self._database.write_row(sql, values, (stored, (run_id, tool_call_id)))
        return ToolCallRecord(*rows[0])

    async def start(self, run_id: str, tool_call_id: str) -> None:
        sql = (
            f"UPDATE tool_calls SET started_at = {NOW} "
            "WHERE run_id = %s AND tool_call_id = %s AND started_at IS NULL"
        )
        await self._database.execute(sql, (run_id, tool_call_id))

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        sql = (
            f"UPDATE tool_calls SET result = %s, ended_at = {NOW} "
            "WHERE run_id = %s AND tool_call_id = %s AND result IS NULL"
        )
        await self._database.execute(sql, (fix_surrogates(result), run_id, tool_call_id))

    async def list_by_run(self, run_id: str) -> list[ToolCallRecord]:
        sql = f"SELECT {CALL_COLUMNS} FROM tool_calls WHERE run_id = %s ORDER BY position"
        return [ToolCallRecord(*row) for row in await self._database.fetch(sql, (run_id,))]


class PostgresArtifacts:
    """See `protocols.ArtifactStore`."""

    def __init__(self, database: PostgresDatabase, contents: ArtifactContents) -> None:
        self._database = database
        self.contents = contents

    async def add(
        self, run: RunRecord, name: str, media_type: str, data: bytes | Path | BinaryIO
    ) -> Artifact:
        return await run_to_completion(self._add(run, name, media_type, data))

    async def get(self, artifact_id: str, owner: str | None) -> Artifact | None:
        sql = (
            f"SELECT {ARTIFACT_COLUMNS} FROM artifacts WHERE artifact_id = %s AND owner = coalesce(%s, owner)"
        )
        return make_first(Artifact, await self._database.fetch(sql, (artifact_id, owner)))

    async def open(self, artifact: Artifact) -> ArtifactContent:
        return await open_content(self.contents, artifact.artifact_id, artifact.size)

    async def list_by_run(self, run_id: str) -> list[Artifact]:
        sql = f"SELECT {ARTIFACT_COLUMNS} FROM artifacts WHERE run_id = %s ORDER BY position"
        return [Artifact(*row) for row in await self._database.fetch(sql, (run_id,))]

    async def list_by_thread(self, thread_id: str) -> list[Artifact]:
        path = await self._database.read(lambda connection: select_path(connection, thread_id))
        where, values = path_condition(path)
        runs = f"SELECT run_id FROM runs WHERE {where}"
        sql = f"SELECT {ARTIFACT_COLUMNS} FROM artifacts WHERE run_id IN ({runs}) ORDER BY position"
        return [Artifact(*row) for row in await self._database.fetch(sql, values)]

    async def _add(
        self, run: RunRecord, name: str, media_type: str, data: bytes | Path | BinaryIO
    ) -> Artifact:
        # The content before the row: a crash in between leaves an unused one, never a row without content.
        artifact_id = str(uuid4())
        written = await self.contents.write(artifact_id, data)
        owned = (run.run_id, run.thread_id, run.owner)
        named = (safe_name(name), fix_surrogates(media_type), written.size, written.sha256)
        sql = (
            f"INSERT INTO artifacts ({ARTIFACT_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, {NOW}) "
            f"RETURNING {ARTIFACT_COLUMNS}"
        )

        async def insert(connection: AsyncConnection) -> list[Row]:
            return await fetch_all(connection, sql, (artifact_id, *owned, *named))

        try:
            rows = await self._database.write(insert)
        except StoreUnreachable:
            raise  # the row may have been stored; a sweep deletes the file if it was not
        except StoreError:
            await self.contents.remove([artifact_id])
            raise
        return Artifact(*rows[0])
