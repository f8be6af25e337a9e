"""The tables of threads, runs and API keys in PostgreSQL."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, replace
from hmac import compare_digest
from typing import Any, Unpack
from uuid import uuid4

from psycopg import AsyncConnection

from maniple.errors import RunTakenOver
from maniple.evidence.noted_findings import MAX_FINDINGS
from maniple.store.artifact_contents import ArtifactContents
from maniple.store.executors import run_to_completion
from maniple.store.postgres.checkpoints import delete_checkpoints
from maniple.store.postgres.database import (
    PostgresDatabase,
    count_refusal,
    execute_many,
    fetch_all,
    lock_thread,
    lock_thread_of,
)
from maniple.store.postgres.processes import IS_ALIVE, RECENT
from maniple.store.protocols import RunChange
from maniple.store.records import (
    ApiKey,
    InputRecord,
    KeyLimits,
    RunRecord,
    RunUsage,
    Thread,
    key_digest,
    make_key_secret,
)
from maniple.store.rows import (
    INPUT_COLUMNS,
    KEY_COLUMNS,
    MICROSECOND,
    NOT_WAITING,
    RETENTION_SECONDS,
    RUN_COLUMNS,
    SPENT_COLUMNS,
    THREAD_COLUMNS,
    UNFINISHED,
    USAGE_COLUMNS,
    Row,
    changed_columns,
    like_pattern,
    make_first,
    make_key,
    make_run,
    run_values,
    thread_values,
)
from maniple.text import fix_surrogates
from maniple.types import RunState

NOW = "extract(epoch FROM clock_timestamp())::float8"
"""The time in Unix seconds, by the clock of the database."""
# ASCII letters in either case, as in SQLite.
_HAS_TITLE = r"lower(title COLLATE 'C') LIKE lower(%s COLLATE 'C') ESCAPE '\'".replace("'C'", '"C"')
_NEWER_THAN_ALL = 2**63 - 1

# Each side names the owner, so that each side uses its own index.
_WITHIN = " OR ".join(
    f"(owner = %(owner)s AND {at} > %(since)s AND {at} <= %(until)s)" for at in ("created_at", "ended_at")
)
# An interrupted run has no end yet; its thread was touched when it paused.
_TOUCHED = "(SELECT updated_at FROM threads WHERE threads.thread_id = runs.thread_id)"
_PAUSED_WITHIN = (
    f"(owner = %(owner)s AND status = 'interrupted' AND {_TOUCHED} > %(since)s AND {_TOUCHED} <= %(until)s)"
)


class PostgresThreads:
    """See `protocols.ThreadTable`."""

    def __init__(self, database: PostgresDatabase, contents: ArtifactContents) -> None:
        self._database = database
        self._contents = contents

    async def create(self, thread: Thread, *, temporary_of: str = "") -> Thread:
        given = replace(thread, title=fix_surrogates(thread.title))

        async def insert(connection: AsyncConnection) -> Thread:
            columns, values = f"{THREAD_COLUMNS}, temporary_of", (*thread_values(given), temporary_of)
            at = await insert_at_unused_time(connection, "threads", columns, values)
            return replace(given, created_at=at)

        return await self._database.write(insert)

    async def get(self, thread_id: str, owner: str | None) -> Thread | None:
        sql = f"SELECT {THREAD_COLUMNS} FROM threads WHERE thread_id = %s AND owner = coalesce(%s, owner)"
        return make_first(Thread, await self._database.fetch(sql, (thread_id, owner)))

    async def list(
        self,
        owner: str | None,
        limit: int = 50,
        before: float | None = None,
        titled: str = "",
        *,
        with_branches: bool = False,
    ) -> Sequence[Thread]:
        where = {
            "root_id = %s": None if with_branches else "",
            "owner = %s": owner,
            _HAS_TITLE: like_pattern(titled) if titled else None,
        }
        rows = await select_page(self._database, (THREAD_COLUMNS, "threads"), where, limit, before)
        return [Thread(*row) for row in rows]

    async def list_branches(self, thread_ids: Collection[str]) -> Mapping[str, Sequence[Thread]]:
        which = "root_id = ANY(%s) AND root_id <> ''"
        sql = f"SELECT {THREAD_COLUMNS} FROM threads WHERE {which} ORDER BY position"
        found: dict[str, list[Thread]] = {thread_id: [] for thread_id in thread_ids}
        for row in await self._database.fetch(sql, ([*thread_ids],)):
            branch = Thread(*row)
            found[branch.root_id].append(branch)
        return found

    async def touch(
        self,
        thread_id: str,
        title: str | None = None,
        *,
        history: str | None = None,
        cut_history: str | None = None,
        metadata: str | None = None,
    ) -> None:
        new = {
            "title": fix_surrogates(title),
            "metadata": metadata,
            "history": history,
            "cut_history": cut_history,
        }
        changes = "".join(f", {name} = coalesce(%s, {name})" for name in new)
        sql = f"UPDATE threads SET updated_at = {NOW}{changes} WHERE thread_id = %s"
        await self._database.execute(sql, (*new.values(), thread_id))

    async def list_abandoned(self) -> Sequence[Thread]:
        alive = f"SELECT FROM processes WHERE processes.process = temporary_of AND {RECENT}"
        sql = f"SELECT {THREAD_COLUMNS} FROM threads WHERE temporary_of <> '' AND NOT EXISTS ({alive})"
        return [Thread(*row) for row in await self._database.fetch(sql)]

    async def take_history(self, owner: str, history: str) -> Thread | None:
        # A range, for the index. FOR UPDATE: of two clients at the same time the second gets another thread.
        newest = (
            "SELECT thread_id FROM threads "
            "WHERE (owner = %(owner)s AND history = %(sent)s AND history <> '') "
            "OR (owner = %(owner)s AND history > %(sent)s || ':' AND history < %(sent)s || ';' "
            "AND history <> '') "
            "OR (owner = %(owner)s AND cut_history = %(sent)s AND cut_history <> '') "
            "ORDER BY updated_at DESC, position DESC LIMIT 1 FOR UPDATE"
        )
        changes = "history = '', cut_history = ''"
        sql = f"UPDATE threads SET {changes} WHERE thread_id = ({newest}) RETURNING {THREAD_COLUMNS}"
        values = {"owner": owner, "sent": history}

        async def take(connection: AsyncConnection) -> list[Row]:
            return await fetch_all(connection, sql, values)

        return make_first(Thread, await self._database.write(take))

    async def delete(self, thread_id: str) -> bool:
        async def delete(connection: AsyncConnection) -> tuple[bool, list[str]]:
            await lock_thread(connection, thread_id)
            sql = "SELECT artifact_id FROM artifacts WHERE thread_id = %s"
            names = [name for (name,) in await fetch_all(connection, sql, (thread_id,))]
            await delete_checkpoints(connection, thread_id)
            await _store_spent_usage(connection, thread_id)
            sql = "DELETE FROM threads WHERE thread_id = %s RETURNING 1"
            return bool(await fetch_all(connection, sql, (thread_id,))), names

        async def delete_all() -> bool:
            existed, names = await self._database.write(delete)
            await self._contents.remove(names)
            return existed

        return await run_to_completion(delete_all())


class PostgresRuns:
    """See `protocols.RunTable`.

    `change` raises `RunTakenOver` for a run that another process drives.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def add(self, run: RunRecord) -> RunRecord:
        return await self._database.write(lambda connection: insert_run(connection, run))

    async def get(self, run_id: str, owner: str | None = None) -> RunRecord | None:
        sql = f"SELECT {RUN_COLUMNS} FROM runs WHERE run_id = %s AND owner = coalesce(%s, owner)"
        return make_first(make_run, await self._database.fetch(sql, (run_id, owner)))

    async def list(
        self, owner: str | None, limit: int = 50, before: float | None = None
    ) -> Sequence[RunRecord]:
        rows = await select_page(self._database, (RUN_COLUMNS, "runs"), {"owner = %s": owner}, limit, before)
        return [make_run(*row) for row in rows]

    async def list_by_thread(
        self, thread_id: str, limit: int = 50, before: float | None = None
    ) -> Sequence[RunRecord]:
        path = await self._database.read(lambda connection: select_path(connection, thread_id))
        where, values = path_condition(path)
        rows = await select_page(self._database, (RUN_COLUMNS, "runs"), {where: values}, limit, before)
        return [make_run(*row) for row in rows]

    async def list_first(self, thread_ids: Sequence[str]) -> Mapping[str, str]:
        first = "SELECT min(position) FROM runs WHERE thread_id = ANY(%s) GROUP BY thread_id"
        sql = f"SELECT thread_id, run_id FROM runs WHERE position IN ({first})"
        return dict(await self._database.fetch(sql, ([*thread_ids],)))

    async def list_statuses(self, thread_ids: Sequence[str]) -> Mapping[str, Sequence[RunState]]:
        newest = "SELECT max(position) FROM runs WHERE thread_id = asked.thread_id"
        sql = (
            "SELECT asked.thread_id, status FROM unnest(%s::text[]) asked (thread_id) "
            "JOIN runs ON runs.thread_id = asked.thread_id "
            f"WHERE {UNFINISHED} OR status = 'interrupted' OR position = ({newest}) ORDER BY position DESC"
        )
        found: dict[str, list[RunState]] = {thread_id: [] for thread_id in thread_ids}
        for thread_id, status in await self._database.fetch(sql, ([*thread_ids],)):
            found[thread_id].append(status)
        return found

    async def list_interrupted(self, thread_id: str) -> Sequence[RunRecord]:
        where = "thread_id = %s AND status = 'interrupted'"
        sql = f"SELECT {RUN_COLUMNS} FROM runs WHERE {where} ORDER BY position DESC"
        return [make_run(*row) for row in await self._database.fetch(sql, (thread_id,))]

    async def list_in_other_processes(self, thread_id: str) -> Sequence[RunRecord]:
        runs = await self._list_unfinished(thread_id=thread_id)
        return [run for run, is_alive in runs if is_alive and run.process != self._database.process]

    async def list_orphaned(
        self, kind: str | None, driven: Collection[str] = (), thread_id: str | None = None
    ) -> Sequence[RunRecord]:
        own = self._database.process
        return [
            run
            for run, is_alive in await self._list_unfinished(kind, thread_id)
            if (run.run_id not in driven if run.process == own else not is_alive)
        ]

    async def _list_unfinished(
        self, kind: str | None = None, thread_id: str | None = None
    ) -> Sequence[tuple[RunRecord, bool]]:
        """Return queued and running runs, oldest first, and whether the process of each is alive."""
        given = {
            name: value for name, value in (("kind", kind), ("thread_id", thread_id)) if value is not None
        }
        where = " AND ".join([UNFINISHED, *(f"{name} = %s" for name in given)])
        sql = f"SELECT {RUN_COLUMNS}, {IS_ALIVE} FROM runs WHERE {where} ORDER BY position"
        rows = await self._database.fetch(sql, (*given.values(),))
        return [(make_run(*row), is_alive) for *row, is_alive in rows]

    async def change(self, run_id: str, **changes: Unpack[RunChange]) -> RunRecord | None:
        own = self._database.process
        return await self._database.repeat_statements(
            lambda connection: change_run(connection, own, run_id, changes)
        )

    async def adopt(self, run_id: str) -> RunRecord | None:
        sql = (
            "UPDATE runs SET process = %s WHERE run_id = %s AND status = 'interrupted' "
            f"RETURNING {RUN_COLUMNS}"
        )
        rows = await self._database.execute(sql, (self._database.process, run_id))
        return make_first(make_run, rows)

    async def answer(self, run_id: str, sent: InputRecord) -> RunRecord | None:
        return await self._queue_again(run_id, sent, "interrupted", "")

    async def retry(self, run_id: str, sent: InputRecord, status: RunState) -> RunRecord | None:
        reset = ", ended_at = NULL, error_code = NULL, error = NULL, stalls = 0, retries = retries + 1"
        return await self._queue_again(run_id, sent, status, reset)

    async def _queue_again(
        self, run_id: str, sent: InputRecord, status: RunState, reset: str
    ) -> RunRecord | None:
        own = self._database.process

        async def queue(connection: AsyncConnection) -> RunRecord | None:
            queued = await queue_run_again(connection, own, (run_id, status), reset)
            if queued is not None:
                await add_inputs(connection, run_id, [sent])
            return queued

        return await self._database.write(queue)

    async def start(self, run_id: str, **changes: Unpack[RunChange]) -> RunRecord | None:
        assignments, values = _assignments({**changes, "status": "running"})
        other = (
            "SELECT FROM runs WHERE runs.thread_id = own.thread_id AND runs.process <> own.process "
            f"AND runs.status = 'running' AND {IS_ALIVE}"
        )
        update = (
            f"UPDATE runs own SET {assignments} WHERE run_id = %s AND process = %s AND {UNFINISHED} "
            f"AND NOT EXISTS ({other}) RETURNING {RUN_COLUMNS}"
        )

        async def start(connection: AsyncConnection) -> RunRecord | None:
            # Of two processes that start at the same time the second sees the first.
            if not await lock_thread_of(connection, run_id):
                return None
            rows = await fetch_all(connection, update, (*values, run_id, self._database.process))
            started = make_first(make_run, rows)
            if started is not None:
                await inherit_sources(connection, started)
            return started

        return await self._database.repeat(start)

    async def claim(self, run: RunRecord) -> RunRecord | None:
        # A process that beats again since the run was read keeps it.
        sql = (
            "UPDATE runs SET process = %(own)s, recoveries = recoveries + 1 "
            f"WHERE run_id = %(run)s AND process = %(from)s AND {UNFINISHED} "
            f"AND (process = %(own)s OR NOT {IS_ALIVE}) RETURNING {RUN_COLUMNS}"
        )
        values = {"own": self._database.process, "run": run.run_id, "from": run.process}

        async def claim(connection: AsyncConnection) -> list[Row]:
            return await fetch_all(connection, sql, values)

        return make_first(make_run, await self._database.write(claim))

    async def sum_usage(self, owner: str, since: float, until: float) -> RunUsage:
        usage = ", ".join(USAGE_COLUMNS)
        both = " UNION ALL ".join(
            f"SELECT {usage} FROM {table} WHERE {where}"
            for table, where in (("runs", f"{_WITHIN} OR {_PAUSED_WITHIN}"), ("spent", _WITHIN))
        )
        sums = ", ".join(f"coalesce(sum({name}), 0)" for name in USAGE_COLUMNS)
        values = {"owner": owner, "since": since, "until": until}
        (row,) = await self._database.fetch(f"SELECT {sums} FROM ({both}) used", values)
        calls, tools, input_tokens, output_tokens, seconds, cost = row
        return RunUsage(
            int(calls), int(tools), int(input_tokens), int(output_tokens), float(seconds), float(cost)
        )

    async def add_usage(self, owner: str, usage: RunUsage, at: float) -> None:
        values = (owner, at, at, *astuple(usage))

        async def add(connection: AsyncConnection) -> None:
            marks = ", ".join("%s" for _ in values)
            await fetch_all(connection, f"INSERT INTO spent ({SPENT_COLUMNS}) VALUES ({marks})", values)
            await _drop_spent_usage(connection)

        await self._database.write(add)


# What follows works in the transaction of its caller, beside whatever else has to happen together with it.


async def insert_run(connection: AsyncConnection, run: RunRecord) -> RunRecord:
    """Store a new run of a stored thread and return it as stored."""
    at = await insert_at_unused_time(connection, "runs", RUN_COLUMNS, run_values(run))
    return replace(run, created_at=at)


async def change_run(
    connection: AsyncConnection, process: str, run_id: str, changes: RunChange
) -> RunRecord | None:
    """Change a run that `process` drives; None if it does not exist. Raises `RunTakenOver`."""
    assignments, values = _assignments(changes)
    # The new process as well: after a lost answer, the change is found done.
    owners = [process, changes.get("process", process)]
    sql = f"UPDATE runs SET {assignments} WHERE run_id = %s AND process = ANY(%s) RETURNING {RUN_COLUMNS}"
    rows = await fetch_all(connection, sql, (*values, run_id, owners))
    if not rows and await fetch_all(connection, "SELECT 1 FROM runs WHERE run_id = %s", (run_id,)):
        await count_refusal(connection)
        raise RunTakenOver(f"Another process drives run {run_id} now. Nothing was stored.")
    return make_first(make_run, rows)


async def queue_run_again(
    connection: AsyncConnection, process: str, run: tuple[str, RunState], reset: str = ""
) -> RunRecord | None:
    """Queue a run (id, status) for `process`, with the assignments `reset`; None if it has another status."""
    sql = (
        f"UPDATE runs SET status = 'queued', process = %s, {NOT_WAITING}{reset} "
        f"WHERE run_id = %s AND status = %s RETURNING {RUN_COLUMNS}"
    )
    return make_first(make_run, await fetch_all(connection, sql, (process, *run)))


async def add_inputs(connection: AsyncConnection, run_id: str, inputs: Iterable[InputRecord]) -> None:
    """Append inputs to a run that exists."""
    columns = ", ".join(INPUT_COLUMNS)
    sql = (
        f"INSERT INTO run_inputs (run_id, {columns}) SELECT run_id, %s, %s, %s, %s, %s, %s FROM runs "
        "WHERE run_id = %s ON CONFLICT (run_id, input_id) DO NOTHING"
    )
    rows = ([fix_surrogates(getattr(one, name)) for name in INPUT_COLUMNS] for one in inputs)
    await execute_many(connection, sql, [(*row, run_id) for row in rows])


async def inherit_sources(connection: AsyncConnection, run: RunRecord) -> None:
    """Give a run without sources those of its thread's newest earlier run with any, and its findings."""
    where, values = path_condition(await select_path(connection, run.thread_id))
    sql = (
        f"SELECT run_id FROM runs WHERE {where} AND position < (SELECT position FROM runs WHERE run_id = %s) "
        "AND EXISTS (SELECT 1 FROM sources WHERE run_id = runs.run_id) "
        "AND NOT EXISTS (SELECT 1 FROM sources WHERE run_id = %s) ORDER BY position DESC LIMIT 1"
    )
    found = await fetch_all(connection, sql, (*values, run.run_id, run.run_id))
    if not found:
        return
    names = {"run": run.run_id, "earlier": found[0][0], "limit": MAX_FINDINGS}
    copies = {
        "sources": "number, comparable, url, title, kind, retrieved_at, sha256, published, author, publisher",
        "source_aliases": "number, comparable, url, redirects",
        "readings": "number, text_run_id, sha256",
        "findings": "number, statement, quote, sha256, span_start, span_end, noted_at",
    }
    for table, columns in copies.items():
        order = "number" if table == "sources" else "position"
        mark = ", true" if table in ("sources", "findings") else ""
        copy = f"SELECT %(run)s, {columns}{mark} FROM {table} WHERE run_id = %(earlier)s ORDER BY {order}"
        into = f"run_id, {columns}{', inherited' if mark else ''}"
        await fetch_all(connection, f"INSERT INTO {table} ({into}) {copy}", names)
    newest = "SELECT position FROM findings WHERE run_id = %(run)s ORDER BY position DESC LIMIT %(limit)s"
    older = f"DELETE FROM findings WHERE run_id = %(run)s AND position NOT IN ({newest})"
    await fetch_all(connection, older, names)


class PostgresKeys:
    """See `protocols.ApiKeyTable`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def add(self, name: str, limits: KeyLimits | None = None) -> tuple[ApiKey, str]:
        secret = make_key_secret()
        given = limits or KeyLimits()
        values = (str(uuid4()), fix_surrogates(name), key_digest(secret), json.dumps(asdict(given)))
        sql = (
            f"INSERT INTO api_keys (key_id, name, digest, limits, created_at) VALUES (%s, %s, %s, %s, {NOW}) "
            f"RETURNING {KEY_COLUMNS}"
        )

        async def insert(connection: AsyncConnection) -> list[Row]:
            return await fetch_all(connection, sql, values)

        return make_key(*(await self._database.write(insert))[0]), secret

    async def find(self, secret: str) -> ApiKey | None:
        digest = key_digest(secret)
        sql = f"SELECT {KEY_COLUMNS} FROM api_keys WHERE digest = %s AND revoked_at IS NULL"
        key = make_first(make_key, await self._database.fetch(sql, (digest,)))
        return key if key is not None and compare_digest(key.digest, digest) else None

    async def get(self, key_id: str) -> ApiKey | None:
        sql = f"SELECT {KEY_COLUMNS} FROM api_keys WHERE key_id = %s"
        return make_first(make_key, await self._database.fetch(sql, (key_id,)))

    async def list(self) -> Sequence[ApiKey]:
        rows = await self._database.fetch(f"SELECT {KEY_COLUMNS} FROM api_keys ORDER BY position")
        return [make_key(*row) for row in rows]

    async def revoke(self, key_id: str) -> bool:
        sql = f"UPDATE api_keys SET revoked_at = {NOW} WHERE key_id = %s AND revoked_at IS NULL RETURNING 1"

        async def revoke(connection: AsyncConnection) -> bool:
            return bool(await fetch_all(connection, sql, (key_id,)))

        return await self._database.write(revoke)

    async def delete_revoked(self) -> int:
        valid = "SELECT 1 FROM api_keys WHERE revoked_at IS NULL"
        sql = f"DELETE FROM api_keys WHERE NOT EXISTS ({valid}) RETURNING 1"

        async def delete(connection: AsyncConnection) -> int:
            await connection.execute(
                "LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE"
            )  # no key is added meanwhile
            return len(await fetch_all(connection, sql))

        return await self._database.write(delete)


async def select_path(connection: AsyncConnection, thread_id: str) -> list[tuple[str, int | None]]:
    """Return a thread, and for a branch those above it, each with the position at which its runs end."""
    sql = (
        "WITH RECURSIVE path (depth, thread_id, run_end) AS (SELECT 0, %s::text, NULL::bigint UNION ALL "
        "SELECT depth + 1, above.parent_id, branched.position + (run_id = above.copied_run)::int FROM path "
        "JOIN threads above ON above.thread_id = path.thread_id AND above.parent_id <> '' "
        "JOIN runs branched ON branched.run_id IN (above.branched_run, above.copied_run)) "
        "SELECT thread_id, run_end FROM path ORDER BY depth"
    )
    return [(name, end) for name, end in await fetch_all(connection, sql, (thread_id,))]


def path_condition(path: Sequence[tuple[str, int | None]]) -> tuple[str, Row]:
    """Return the condition on the runs of a path (`select_path`), and its values."""
    conditions = [
        "thread_id = %s" if end is None else "(thread_id = %s AND position < %s)" for _, end in path
    ]
    values = [value for segment in path for value in segment if value is not None]
    return f"({' OR '.join(conditions)})", tuple(values)


async def select_page(
    database: PostgresDatabase,
    source: tuple[str, str],
    where: Mapping[str, str | Row | None],
    limit: int,
    before: float | None,
) -> list[Row]:
    """Return a page of the rows of `source` (columns, table) that match `where`, newest first.

    `where` maps conditions to the value of their `%s`, or to a tuple with those of several; a condition whose
    value is None is left out.
    `before` is the time of the last row of the previous page; if that was deleted, of the next newer row.
    """
    columns, table = source
    given = {condition: value for condition, value in where.items() if value is not None}
    conditions = list(given)
    values: list[Any] = []
    for value in given.values():
        values += value if isinstance(value, tuple) else (value,)
    if before is not None:
        conditions.append(
            f"position < coalesce((SELECT position FROM {table} WHERE created_at >= %s "
            f"ORDER BY created_at LIMIT 1), {_NEWER_THAN_ALL})"
        )
        values.append(before)
    matching = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    sql = f"SELECT {columns} FROM {table} {matching} ORDER BY position DESC LIMIT %s"
    return await database.fetch(sql, (*values, max(limit, 0)))


async def insert_at_unused_time(
    connection: AsyncConnection, table: str, columns: str, values: Sequence[Any]
) -> float:
    """Insert a row and return its `created_at`: the given time, or the next later one that no row has."""
    names = columns.split(", ")
    place = names.index("created_at")
    row, at = list(values), float(values[place])
    marks = ", ".join(["%s"] * len(names))
    insert = (
        f"INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT (created_at) DO NOTHING RETURNING 1"
    )
    latest = f"SELECT max(created_at) FROM {table} WHERE created_at >= %s AND created_at < %s"
    while True:
        row[place] = at
        if await fetch_all(connection, insert, row):
            return at
        ((newest,),) = await fetch_all(connection, latest, (at, at + 1))
        at = (at if newest is None else newest) + MICROSECOND


def _assignments(changes: RunChange) -> tuple[str, Sequence[Any]]:
    """Return the SET clause of a change and its values."""
    columns = changed_columns(changes)
    return ", ".join(f"{column} = %s" for column in columns), (*columns.values(),)


async def _store_spent_usage(connection: AsyncConnection, thread_id: str) -> None:
    """Store the usage of a thread's runs before the thread is deleted."""
    ended = f"CASE status WHEN 'interrupted' THEN {_TOUCHED} ELSE ended_at END"
    usage = ", ".join(USAGE_COLUMNS)
    selected = f"SELECT owner, created_at, {ended}, {usage} FROM runs WHERE thread_id = %s"
    await fetch_all(connection, f"INSERT INTO spent ({SPENT_COLUMNS}) {selected}", (thread_id,))
    await _drop_spent_usage(connection)


async def _drop_spent_usage(connection: AsyncConnection) -> None:
    """Drop the usage outside of stored runs that no window reaches."""
    reach = f"{NOW} - {RETENTION_SECONDS} AND {NOW} + {RETENTION_SECONDS}"
    await fetch_all(connection, f"DELETE FROM spent WHERE coalesce(ended_at, created_at) NOT BETWEEN {reach}")
