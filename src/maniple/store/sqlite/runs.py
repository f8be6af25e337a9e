"""The table of runs."""

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, fields, replace
from typing import Any, Unpack

from maniple.store.files import ArtifactFiles
from maniple.store.protocols import RunChange
from maniple.store.records import RunRecord, Usage
from maniple.store.sqlite.connection import Database
from maniple.store.sqlite.pages import first, page, unused_time
from maniple.store.sqlite.processes import Processes
from maniple.store.waiting import to_the_end
from maniple.text import whole

_HEAD = ("run_id", "thread_id", "owner", "kind", "process", "status", "request")
_TIMES = ("created_at", "started_at", "ended_at")
_USAGE = tuple(field.name for field in fields(Usage))
_TAIL = ("error_code", "error", "recoveries", "base_checkpoint")
_NAMES = (*_HEAD, *_TIMES, *_USAGE, *_TAIL)
_COLUMNS = ", ".join(_NAMES)
_UNFINISHED = "status IN ('queued', 'running')"


class SqliteRuns:
    """See `protocols.RunTable`."""

    def __init__(self, database: Database, processes: Processes, files: ArtifactFiles) -> None:
        self._database = database
        self._processes = processes
        self._files = files

    async def add(self, run: RunRecord) -> RunRecord:
        def insert(connection: sqlite3.Connection) -> RunRecord:
            kept = replace(run, created_at=unused_time(connection, "runs", run.created_at))
            values = _values(kept)
            marks = ", ".join("?" * len(values))
            connection.execute(f"INSERT INTO runs ({_COLUMNS}) VALUES ({marks})", values)
            return kept

        return await self._database.write(insert)

    async def get(self, run_id: str, owner: str | None = None) -> RunRecord | None:
        sql = f"SELECT {_COLUMNS} FROM runs WHERE run_id = ? AND owner = coalesce(?, owner)"
        rows = await self._database.read(lambda c: c.execute(sql, (run_id, owner)).fetchall())
        return first(_run, rows)

    async def of_thread(
        self, thread_id: str, limit: int = 50, before: float | None = None
    ) -> Sequence[RunRecord]:
        return await self._page({"thread_id": thread_id}, limit, before)

    async def waiting(self, thread_id: str) -> Sequence[RunRecord]:
        where = "thread_id = ? AND status = 'interrupted'"
        sql = f"SELECT {_COLUMNS} FROM runs WHERE {where} ORDER BY position DESC"
        rows = await self._database.read(lambda c: c.execute(sql, (thread_id,)).fetchall())
        return [_run(*row) for row in rows]

    async def list(
        self, owner: str | None, limit: int = 50, before: float | None = None
    ) -> Sequence[RunRecord]:
        return await self._page({"owner": owner}, limit, before)

    async def change(self, run_id: str, **changes: Unpack[RunChange]) -> RunRecord | None:
        columns = _columns(changes)
        settings = ", ".join(f"{column} = ?" for column in columns)
        sql = f"UPDATE runs SET {settings} WHERE run_id = ? RETURNING {_COLUMNS}"
        values = (*columns.values(), run_id)
        return first(_run, await self._database.write(lambda c: c.execute(sql, values).fetchall()))

    async def answer(self, run_id: str, request: str) -> RunRecord | None:
        sql = (
            "UPDATE runs SET status = 'queued', process = ?, request = ? "
            f"WHERE run_id = ? AND status = 'interrupted' RETURNING {_COLUMNS}"
        )
        values = (self._processes.own, whole(request), run_id)
        return first(_run, await self._database.write(lambda c: c.execute(sql, values).fetchall()))

    async def unfinished(self, kind: str) -> Sequence[RunRecord]:
        sql = f"SELECT {_COLUMNS} FROM runs WHERE kind = ? AND {_UNFINISHED} ORDER BY position"

        def nobodys(connection: sqlite3.Connection) -> list[RunRecord]:
            runs = [_run(*row) for row in connection.execute(sql, (kind,)).fetchall()]
            dead = self._processes.dead({run.process for run in runs})
            own = self._processes.own
            return [r for r in runs if r.process in dead or (r.process == own and r.status == "queued")]

        return await self._database.read(nobodys)

    async def claim(self, run: RunRecord) -> RunRecord | None:
        sql = (
            "UPDATE runs SET process = ?, recoveries = recoveries + 1 "
            f"WHERE run_id = ? AND process = ? AND {_UNFINISHED} RETURNING {_COLUMNS}"
        )
        values = (self._processes.own, run.run_id, run.process)
        return first(_run, await self._database.write(lambda c: c.execute(sql, values).fetchall()))

    async def used(self, owner: str, since: float) -> Usage:
        sums = ", ".join(f"total({name})" for name in _USAGE)
        sql = f"SELECT {sums} FROM runs WHERE owner = ? AND created_at > ?"
        rows = await self._database.read(lambda c: c.execute(sql, (owner, since)).fetchall())
        calls, tools, input_tokens, output_tokens, seconds, cost = rows[0]
        return Usage(int(calls), int(tools), int(input_tokens), int(output_tokens), seconds, cost)

    async def remove(self, run_id: str) -> None:
        def delete(connection: sqlite3.Connection) -> list[str]:
            files = connection.execute("SELECT artifact_id FROM artifacts WHERE run_id = ?", (run_id,))
            names = [name for (name,) in files]
            connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
            return names

        async def delete_all() -> None:
            await self._files.remove(await self._database.write(delete))

        await to_the_end(delete_all())

    async def _page(
        self, where: dict[str, str | None], limit: int, before: float | None
    ) -> Sequence[RunRecord]:
        rows = await self._database.read(lambda c: page(c, (_COLUMNS, "runs"), where, limit, before))
        return [_run(*row) for row in rows]


def _run(*row: Any) -> RunRecord:
    named = dict(zip(_NAMES, row, strict=True))
    usage = Usage(**{name: named.pop(name) for name in _USAGE})
    return RunRecord(**named, usage=usage)


def _values(run: RunRecord) -> tuple:
    named = [whole(getattr(run, name)) for name in (*_HEAD, *_TIMES)]
    return (*named, *astuple(run.usage), *(whole(getattr(run, name)) for name in _TAIL))


def _columns(changes: RunChange) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, value in changes.items():
        if isinstance(value, Usage):
            columns |= dict(zip(_USAGE, astuple(value), strict=True))
        elif name in RunChange.__annotations__:
            columns[name] = whole(value)
        else:
            raise TypeError(f"{name} of a run does not change")
    return columns
