"""The tables of threads, runs and API keys."""

import json
import sqlite3
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, replace
from hmac import compare_digest
from typing import Any, Unpack
from uuid import uuid4

from maniple.evidence.noted_findings import MAX_FINDINGS
from maniple.store.artifact_contents import ArtifactContents
from maniple.store.executors import run_to_completion
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
from maniple.store.sqlite.checkpoints import delete_checkpoints
from maniple.store.sqlite.database import ProcessRegistry, SqliteDatabase
from maniple.text import fix_surrogates
from maniple.types import RunState

_HAS_TITLE = r"title LIKE ? ESCAPE '\'"


# Each side names the owner, so that each side uses its own index.
_WITHIN = " OR ".join(f"(owner = ?1 AND {at} > ?2 AND {at} <= ?3)" for at in ("created_at", "ended_at"))
# An interrupted run has no end yet; its thread was touched when it paused.
_TOUCHED = "(SELECT updated_at FROM threads WHERE threads.thread_id = runs.thread_id)"
_PAUSED_WITHIN = f"(owner = ?1 AND status = 'interrupted' AND {_TOUCHED} > ?2 AND {_TOUCHED} <= ?3)"


class SqliteThreads:
    """See `protocols.ThreadTable`."""

    def __init__(
        self, database: SqliteDatabase, contents: ArtifactContents, processes: ProcessRegistry
    ) -> None:
        self._database = database
        self._contents = contents
        self._processes = processes

    async def create(self, thread: Thread, *, temporary_of: str = "") -> Thread:
        def insert(connection: sqlite3.Connection) -> Thread:
            created_at = find_unused_time(connection, "threads", thread.created_at)
            stored = replace(thread, title=fix_surrogates(thread.title), created_at=created_at)
            values = (*thread_values(stored), temporary_of)
            marks = ", ".join("?" * len(values))
            sql = f"INSERT INTO threads ({THREAD_COLUMNS}, temporary_of) VALUES ({marks})"
            connection.execute(sql, values)
            return stored

        return await self._database.write(insert)

    async def get(self, thread_id: str, owner: str | None) -> Thread | None:
        sql = f"SELECT {THREAD_COLUMNS} FROM threads WHERE thread_id = ? AND owner = coalesce(?, owner)"
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
            "root_id = ?": None if with_branches else "",
            "owner = ?": owner,
            _HAS_TITLE: like_pattern(titled) if titled else None,
        }
        rows = await self._database.read(
            lambda c: select_page(c, (THREAD_COLUMNS, "threads"), where, limit, before)
        )
        return [Thread(*row) for row in rows]

    async def list_branches(self, thread_ids: Collection[str]) -> Mapping[str, Sequence[Thread]]:
        columns = ", ".join(f"threads.{name}" for name in THREAD_COLUMNS.split(", "))
        sql = (
            f"SELECT {columns} FROM json_each(?) asked CROSS JOIN threads ON root_id = asked.value "
            "WHERE root_id <> '' ORDER BY position"
        )
        found: dict[str, list[Thread]] = {thread_id: [] for thread_id in thread_ids}
        for row in await self._database.fetch(sql, (json.dumps([*thread_ids]),)):
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
        changes = "".join(f", {name} = coalesce(?, {name})" for name in new)
        sql = f"UPDATE threads SET updated_at = ?{changes} WHERE thread_id = ?"
        await self._database.execute(sql, (time.time(), *new.values(), thread_id))

    async def list_abandoned(self) -> Sequence[Thread]:
        sql = f"SELECT temporary_of, {THREAD_COLUMNS} FROM threads WHERE temporary_of <> ''"

        def select(connection: sqlite3.Connection) -> list[Thread]:
            rows = connection.execute(sql).fetchall()
            dead = self._processes.find_dead({process for process, *_ in rows})
            return [Thread(*row) for process, *row in rows if process in dead]

        return await self._database.read(select)

    async def take_history(self, owner: str, history: str) -> Thread | None:
        # A range, for the index. Each side names the owner, so that each side uses its own index.
        newest = (
            "SELECT thread_id FROM threads WHERE (owner = ?1 AND history = ?2 AND history <> '') "
            "OR (owner = ?1 AND history > ?2 || ':' AND history < ?2 || ';' AND history <> '') "
            "OR (owner = ?1 AND cut_history = ?2 AND cut_history <> '') "
            "ORDER BY updated_at DESC, position DESC LIMIT 1"
        )
        changes = "history = '', cut_history = ''"
        sql = f"UPDATE threads SET {changes} WHERE thread_id = ({newest}) RETURNING {THREAD_COLUMNS}"
        return make_first(Thread, await self._database.execute(sql, (owner, history)))

    async def delete(self, thread_id: str) -> bool:
        def delete(connection: sqlite3.Connection) -> tuple[bool, list[str]]:
            files = connection.execute("SELECT artifact_id FROM artifacts WHERE thread_id = ?", (thread_id,))
            names = [name for (name,) in files]
            delete_checkpoints(connection, thread_id)
            _store_spent_usage(connection, thread_id)
            deleted = connection.execute("DELETE FROM threads WHERE thread_id = ?", (thread_id,))
            return deleted.rowcount > 0, names

        async def delete_all() -> bool:
            existed, names = await self._database.write(delete)
            await self._contents.remove(names)
            return existed

        return await run_to_completion(delete_all())


class SqliteRuns:
    """See `protocols.RunTable`."""

    def __init__(self, database: SqliteDatabase, processes: ProcessRegistry) -> None:
        self._database = database
        self._processes = processes

    async def add(self, run: RunRecord) -> RunRecord:
        def insert(connection: sqlite3.Connection) -> RunRecord:
            stored = replace(run, created_at=find_unused_time(connection, "runs", run.created_at))
            values = run_values(stored)
            marks = ", ".join("?" * len(values))
            connection.execute(f"INSERT INTO runs ({RUN_COLUMNS}) VALUES ({marks})", values)
            return stored

        return await self._database.write(insert)

    async def get(self, run_id: str, owner: str | None = None) -> RunRecord | None:
        sql = f"SELECT {RUN_COLUMNS} FROM runs WHERE run_id = ? AND owner = coalesce(?, owner)"
        return make_first(make_run, await self._database.fetch(sql, (run_id, owner)))

    async def list(
        self, owner: str | None, limit: int = 50, before: float | None = None
    ) -> Sequence[RunRecord]:
        rows = await self._database.read(
            lambda c: select_page(c, (RUN_COLUMNS, "runs"), {"owner = ?": owner}, limit, before)
        )
        return [make_run(*row) for row in rows]

    async def list_by_thread(
        self, thread_id: str, limit: int = 50, before: float | None = None
    ) -> Sequence[RunRecord]:
        def select(connection: sqlite3.Connection) -> list[Row]:
            where, values = path_condition(connection, thread_id)
            return select_page(connection, (RUN_COLUMNS, "runs"), {where: values}, limit, before)

        return [make_run(*row) for row in await self._database.read(select)]

    async def list_first(self, thread_ids: Sequence[str]) -> Mapping[str, str]:
        sql = (
            "SELECT thread_id, run_id FROM runs WHERE position IN (SELECT min(runs.position) "
            "FROM json_each(?) asked CROSS JOIN runs ON thread_id = asked.value GROUP BY thread_id)"
        )
        return dict(await self._database.fetch(sql, (json.dumps([*thread_ids]),)))

    async def list_statuses(self, thread_ids: Sequence[str]) -> Mapping[str, Sequence[RunState]]:
        newest = "SELECT max(position) FROM runs WHERE thread_id = asked.value"
        sql = (
            "SELECT asked.value, status FROM json_each(?) asked CROSS JOIN runs ON thread_id = asked.value "
            f"WHERE {UNFINISHED} OR status = 'interrupted' OR position = ({newest}) ORDER BY position DESC"
        )
        found: dict[str, list[RunState]] = {thread_id: [] for thread_id in thread_ids}
        for thread_id, status in await self._database.fetch(sql, (json.dumps([*thread_ids]),)):
            found[thread_id].append(status)
        return found

    async def list_interrupted(self, thread_id: str) -> Sequence[RunRecord]:
        where = "thread_id = ? AND status = 'interrupted'"
        sql = f"SELECT {RUN_COLUMNS} FROM runs WHERE {where} ORDER BY position DESC"
        return [make_run(*row) for row in await self._database.fetch(sql, (thread_id,))]

    async def list_in_other_processes(self, thread_id: str) -> Sequence[RunRecord]:
        runs = await self._list_unfinished(thread_id=thread_id)
        return [run for run, is_driven in runs if is_driven and run.process != self._processes.own]

    async def list_orphaned(
        self, kind: str | None, driven: Collection[str] = (), thread_id: str | None = None
    ) -> Sequence[RunRecord]:
        runs, own = await self._list_unfinished(kind, thread_id), self._processes.own
        return [
            run for run, is_alive in runs if not is_alive or (run.process == own and run.run_id not in driven)
        ]

    async def _list_unfinished(
        self, kind: str | None = None, thread_id: str | None = None
    ) -> Sequence[tuple[RunRecord, bool]]:
        """Return queued and running runs, oldest first, and whether the process of each is alive."""
        given = {
            name: value for name, value in (("kind", kind), ("thread_id", thread_id)) if value is not None
        }
        where = " AND ".join([UNFINISHED, *(f"{name} = ?" for name in given)])
        sql = f"SELECT {RUN_COLUMNS} FROM runs WHERE {where} ORDER BY position"

        def select(connection: sqlite3.Connection) -> list[tuple[RunRecord, bool]]:
            runs = [make_run(*row) for row in connection.execute(sql, (*given.values(),)).fetchall()]
            dead = self._processes.find_dead({run.process for run in runs})
            return [(run, run.process not in dead) for run in runs]

        return await self._database.read(select)

    async def change(self, run_id: str, **changes: Unpack[RunChange]) -> RunRecord | None:
        assignments, values = _assignments(changes)
        sql = f"UPDATE runs SET {assignments} WHERE run_id = ? RETURNING {RUN_COLUMNS}"
        return make_first(make_run, await self._database.execute(sql, (*values, run_id)))

    async def adopt(self, run_id: str) -> RunRecord | None:
        sql = (
            f"UPDATE runs SET process = ? WHERE run_id = ? AND status = 'interrupted' RETURNING {RUN_COLUMNS}"
        )
        return make_first(make_run, await self._database.execute(sql, (self._processes.own, run_id)))

    async def answer(self, run_id: str, sent: InputRecord) -> RunRecord | None:
        return await self._queue_again(run_id, sent, "interrupted", "")

    async def retry(self, run_id: str, sent: InputRecord, status: RunState) -> RunRecord | None:
        reset = ", ended_at = NULL, error_code = NULL, error = NULL, stalls = 0, retries = retries + 1"
        return await self._queue_again(run_id, sent, status, reset)

    async def _queue_again(
        self, run_id: str, sent: InputRecord, status: RunState, reset: str
    ) -> RunRecord | None:
        sql = (
            f"UPDATE runs SET status = 'queued', process = ?, {NOT_WAITING}{reset} "
            f"WHERE run_id = ? AND status = ? RETURNING {RUN_COLUMNS}"
        )

        def queue(connection: sqlite3.Connection) -> list[Row]:
            queued = connection.execute(sql, (self._processes.own, run_id, status)).fetchall()
            if queued:
                add_inputs(connection, run_id, [sent])
            return queued

        return make_first(make_run, await self._database.write(queue))

    async def start(self, run_id: str, **changes: Unpack[RunChange]) -> RunRecord | None:
        assignments, values = _assignments({**changes, "status": "running"})
        own = f"run_id = ? AND process = ? AND {UNFINISHED}"
        update = f"UPDATE runs SET {assignments} WHERE {own} RETURNING {RUN_COLUMNS}"
        # In one transaction, so that of two processes that start at the same time the second sees the first.
        select_others = (
            "SELECT other.process FROM runs other, runs this WHERE this.run_id = ? "
            "AND other.thread_id = this.thread_id AND other.process <> this.process "
            "AND other.status = 'running'"
        )

        def start(connection: sqlite3.Connection) -> list[Row]:
            others = {process for (process,) in connection.execute(select_others, (run_id,)).fetchall()}
            if others - self._processes.find_dead(others):
                return []
            started = connection.execute(update, (*values, run_id, self._processes.own)).fetchall()
            if started:
                inherit_sources(connection, run_id)
            return started

        return make_first(make_run, await self._database.write(start))

    async def claim(self, run: RunRecord) -> RunRecord | None:
        sql = (
            "UPDATE runs SET process = ?, recoveries = recoveries + 1 "
            f"WHERE run_id = ? AND process = ? AND {UNFINISHED} RETURNING {RUN_COLUMNS}"
        )
        values = (self._processes.own, run.run_id, run.process)
        return make_first(make_run, await self._database.execute(sql, values))

    async def sum_usage(self, owner: str, since: float, until: float) -> RunUsage:
        usage = ", ".join(USAGE_COLUMNS)
        both = " UNION ALL ".join(
            f"SELECT {usage} FROM {table} WHERE {where}"
            for table, where in (("runs", f"{_WITHIN} OR {_PAUSED_WITHIN}"), ("spent", _WITHIN))
        )
        sums = ", ".join(f"total({name})" for name in USAGE_COLUMNS)
        (row,) = await self._database.fetch(f"SELECT {sums} FROM ({both})", (owner, since, until))
        calls, tools, input_tokens, output_tokens, seconds, cost = row
        return RunUsage(int(calls), int(tools), int(input_tokens), int(output_tokens), seconds, cost)

    async def add_usage(self, owner: str, usage: RunUsage, at: float) -> None:
        values = (owner, at, at, *astuple(usage))

        def add(connection: sqlite3.Connection) -> None:
            marks = ", ".join("?" for _ in values)
            connection.execute(f"INSERT INTO spent ({SPENT_COLUMNS}) VALUES ({marks})", values)
            _drop_spent_usage(connection)

        await self._database.write(add)


def add_inputs(connection: sqlite3.Connection, run_id: str, inputs: Iterable[InputRecord]) -> None:
    """Append inputs to a run that exists."""
    columns = ", ".join(INPUT_COLUMNS)
    sql = (
        f"INSERT INTO run_inputs (run_id, {columns}) SELECT run_id, ?, ?, ?, ?, ?, ? FROM runs "
        "WHERE run_id = ? ON CONFLICT (run_id, input_id) DO NOTHING"
    )
    rows = ([fix_surrogates(getattr(one, name)) for name in INPUT_COLUMNS] for one in inputs)
    connection.executemany(sql, [(*row, run_id) for row in rows])


def inherit_sources(connection: sqlite3.Connection, run_id: str) -> None:
    """Give a run without sources those of its thread's newest earlier run with any, and its findings."""
    this = "SELECT thread_id, created_at FROM runs WHERE run_id = ?"
    thread_id, created_at = connection.execute(this, (run_id,)).fetchone()
    where, values = path_condition(connection, thread_id)
    sql = (
        f"SELECT run_id FROM runs WHERE {where} AND created_at < ? "
        "AND EXISTS (SELECT 1 FROM sources WHERE run_id = runs.run_id) "
        "AND NOT EXISTS (SELECT 1 FROM sources WHERE run_id = ?) ORDER BY created_at DESC LIMIT 1"
    )
    found = connection.execute(sql, (*values, created_at, run_id)).fetchone()
    if found is None:
        return
    copies = {
        "sources": "number, comparable, url, title, kind, retrieved_at, sha256, published, author, publisher",
        "source_aliases": "number, comparable, url, redirects",
        "readings": "number, text_run_id, sha256",
        "findings": "number, statement, quote, sha256, span_start, span_end, noted_at",
    }
    for table, columns in copies.items():
        order = "number" if table == "sources" else "position"
        copy = f"SELECT ?1, {columns} FROM {table} WHERE run_id = ?2 ORDER BY {order}"
        connection.execute(f"INSERT INTO {table} (run_id, {columns}) {copy}", (run_id, *found))
    for table in ("sources", "findings"):
        connection.execute(f"UPDATE {table} SET inherited = 1 WHERE run_id = ?", (run_id,))
    newest = "SELECT position FROM findings WHERE run_id = ?1 ORDER BY position DESC LIMIT ?2"
    older = f"DELETE FROM findings WHERE run_id = ?1 AND position NOT IN ({newest})"
    connection.execute(older, (run_id, MAX_FINDINGS))


class SqliteKeys:
    """See `protocols.ApiKeyTable`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def add(self, name: str, limits: KeyLimits | None = None) -> tuple[ApiKey, str]:
        secret = make_key_secret()
        key = ApiKey(
            str(uuid4()), fix_surrogates(name), key_digest(secret), time.time(), None, limits or KeyLimits()
        )
        values = (key.key_id, key.name, key.digest, key.created_at, None, json.dumps(asdict(key.limits)))
        sql = f"INSERT INTO api_keys ({KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
        await self._database.execute(sql, values)
        return key, secret

    async def find(self, secret: str) -> ApiKey | None:
        digest = key_digest(secret)
        sql = f"SELECT {KEY_COLUMNS} FROM api_keys WHERE digest = ? AND revoked_at IS NULL"
        key = make_first(make_key, await self._database.fetch(sql, (digest,)))
        return key if key is not None and compare_digest(key.digest, digest) else None

    async def get(self, key_id: str) -> ApiKey | None:
        sql = f"SELECT {KEY_COLUMNS} FROM api_keys WHERE key_id = ?"
        return make_first(make_key, await self._database.fetch(sql, (key_id,)))

    async def list(self) -> Sequence[ApiKey]:
        rows = await self._database.fetch(f"SELECT {KEY_COLUMNS} FROM api_keys ORDER BY position")
        return [make_key(*row) for row in rows]

    async def revoke(self, key_id: str) -> bool:
        sql = "UPDATE api_keys SET revoked_at = ? WHERE key_id = ? AND revoked_at IS NULL RETURNING 1"
        return bool(await self._database.execute(sql, (time.time(), key_id)))

    async def delete_revoked(self) -> int:
        valid = "SELECT 1 FROM api_keys WHERE revoked_at IS NULL"
        sql = f"DELETE FROM api_keys WHERE NOT EXISTS ({valid}) RETURNING 1"
        return len(await self._database.execute(sql))


def path_condition(connection: sqlite3.Connection, thread_id: str) -> tuple[str, Row]:
    """Return the condition on the runs of a thread, for a branch also those before it, and its values."""
    segments: list[tuple[str, int | None]] = [(thread_id, None)]
    above = (
        "SELECT parent_id, runs.position + (run_id = copied_run) FROM threads "
        "JOIN runs ON run_id IN (branched_run, copied_run) "
        "WHERE threads.thread_id = ? AND parent_id <> ''"
    )
    while (found := connection.execute(above, (segments[-1][0],)).fetchone()) is not None:
        segments.append(found)
    conditions = [
        "thread_id = ?" if end is None else "(thread_id = ? AND position < ?)" for _, end in segments
    ]
    values = [value for segment in segments for value in segment if value is not None]
    return f"({' OR '.join(conditions)})", tuple(values)


def select_page(
    connection: sqlite3.Connection,
    source: tuple[str, str],
    where: Mapping[str, str | Row | None],
    limit: int,
    before: float | None,
) -> list[Row]:
    """Return a page of the rows of `source` (columns, table) that match `where`, newest first.

    `where` maps conditions to the value of their `?`, or to a tuple with those of several; a condition whose
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
            f"position < coalesce((SELECT position FROM {table} WHERE created_at >= ? "
            "ORDER BY created_at LIMIT 1), 9e18)"
        )
        values.append(before)
    matching = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    sql = f"SELECT {columns} FROM {table} {matching} ORDER BY position DESC LIMIT ?"
    return connection.execute(sql, (*values, max(limit, 0))).fetchall()


def find_unused_time(connection: sqlite3.Connection, table: str, at: float) -> float:
    """Return `at`, or the next later time that no row of `table` has."""
    if connection.execute(f"SELECT 1 FROM {table} WHERE created_at = ?", (at,)).fetchone() is None:
        return at
    sql = f"SELECT max(created_at) FROM {table} WHERE created_at >= ? AND created_at < ?"
    (latest,) = connection.execute(sql, (at, at + 1)).fetchone()
    return find_unused_time(connection, table, latest + MICROSECOND)


def _store_spent_usage(connection: sqlite3.Connection, thread_id: str) -> None:
    """Store the usage of a thread's runs before the thread is deleted."""
    ended = f"CASE status WHEN 'interrupted' THEN {_TOUCHED} ELSE ended_at END"
    usage = ", ".join(USAGE_COLUMNS)
    selected = f"SELECT owner, created_at, {ended}, {usage} FROM runs WHERE thread_id = ?"
    connection.execute(f"INSERT INTO spent ({SPENT_COLUMNS}) {selected}", (thread_id,))
    _drop_spent_usage(connection)


def _drop_spent_usage(connection: sqlite3.Connection) -> None:
    """Drop the usage outside of stored runs that no window reaches."""
    now = time.time()
    connection.execute(
        "DELETE FROM spent WHERE coalesce(ended_at, created_at) NOT BETWEEN ? AND ?",
        (now - RETENTION_SECONDS, now + RETENTION_SECONDS),
    )


def _assignments(changes: RunChange) -> tuple[str, Sequence[Any]]:
    """Return the SET clause of a change and its values."""
    columns = changed_columns(changes)
    return ", ".join(f"{column} = ?" for column in columns), (*columns.values(),)
