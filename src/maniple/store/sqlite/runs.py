"""The table of runs."""

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any, Unpack

from maniple.store.protocols import RunChange
from maniple.store.records import RunRecord, Usage
from maniple.store.sqlite.connection import Database
from maniple.store.sqlite.pages import first, page, unused_time
from maniple.store.sqlite.processes import Processes
from maniple.store.sqlite.spent import USAGE, used
from maniple.text import whole
from maniple.types import RunState

_HEAD = ("run_id", "thread_id", "owner", "kind", "process", "status", "request")
_TIMES = ("created_at", "started_at", "ended_at")
_TAIL = ("error_code", "error", "recoveries", "base_checkpoint")
_NAMES = (*_HEAD, *_TIMES, *USAGE, *_TAIL)
_COLUMNS = ", ".join(_NAMES)
_UNFINISHED = "status IN ('queued', 'running')"


class SqliteRuns:
    """See `protocols.RunTable`."""

    def __init__(self, database: Database, processes: Processes) -> None:
        self._database = database
        self._processes = processes

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
        return await self._page({"thread_id = ?": thread_id}, limit, before)

    async def statuses(self, thread_ids: Sequence[str]) -> Mapping[str, Sequence[RunState]]:
        newest = "SELECT max(position) FROM runs WHERE thread_id = asked.value"
        sql = (
            "SELECT asked.value, status FROM json_each(?) asked CROSS JOIN runs ON thread_id = asked.value "
            f"WHERE {_UNFINISHED} OR status = 'interrupted' OR position = ({newest}) ORDER BY position DESC"
        )
        values = (json.dumps([*thread_ids]),)
        found: dict[str, list[RunState]] = {thread_id: [] for thread_id in thread_ids}
        for thread_id, status in await self._database.read(lambda c: c.execute(sql, values).fetchall()):
            found[thread_id].append(status)
        return found

    async def waiting(self, thread_id: str) -> Sequence[RunRecord]:
        where = "thread_id = ? AND status = 'interrupted'"
        sql = f"SELECT {_COLUMNS} FROM runs WHERE {where} ORDER BY position DESC"
        rows = await self._database.read(lambda c: c.execute(sql, (thread_id,)).fetchall())
        return [_run(*row) for row in rows]

    async def list(
        self, owner: str | None, limit: int = 50, before: float | None = None
    ) -> Sequence[RunRecord]:
        return await self._page({"owner = ?": owner}, limit, before)

    async def change(self, run_id: str, **changes: Unpack[RunChange]) -> RunRecord | None:
        settings, values = _settings(changes)
        sql = f"UPDATE runs SET {settings} WHERE run_id = ? RETURNING {_COLUMNS}"
        return first(_run, await self._database.execute(sql, (*values, run_id)))

    async def answer(self, run_id: str, request: str) -> RunRecord | None:
        sql = (
            "UPDATE runs SET status = 'queued', process = ?, request = ? "
            f"WHERE run_id = ? AND status = 'interrupted' RETURNING {_COLUMNS}"
        )
        values = (self._processes.own, whole(request), run_id)
        return first(_run, await self._database.execute(sql, values))

    async def begin(self, run_id: str, **changes: Unpack[RunChange]) -> RunRecord | None:
        settings, values = _settings({**changes, "status": "running"})
        own = f"run_id = ? AND process = ? AND {_UNFINISHED}"
        sql = f"UPDATE runs SET {settings} WHERE {own} RETURNING {_COLUMNS}"
        # Within one transaction, so that of two processes that ask at once the second sees the first.
        before = (
            "SELECT other.process FROM runs other, runs this WHERE this.run_id = ? "
            "AND other.thread_id = this.thread_id AND other.process <> this.process "
            "AND other.status = 'running'"
        )

        def first_of_all(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            others = {process for (process,) in connection.execute(before, (run_id,)).fetchall()}
            if others - self._processes.dead(others):
                return []
            return connection.execute(sql, (*values, run_id, self._processes.own)).fetchall()

        return first(_run, await self._database.write(first_of_all))

    async def elsewhere(self, thread_id: str) -> Sequence[RunRecord]:
        living = [run for run, lives in await self._under_way(thread_id=thread_id) if lives]
        return [run for run in living if run.process != self._processes.own]

    async def unfinished(
        self, kind: str | None, driven: Collection[str] = (), thread_id: str | None = None
    ) -> Sequence[RunRecord]:
        runs = await self._under_way(kind, thread_id)
        own = self._processes.own
        return [r for r, lives in runs if not lives or (r.process == own and r.run_id not in driven)]

    async def _under_way(
        self, kind: str | None = None, thread_id: str | None = None
    ) -> Sequence[tuple[RunRecord, bool]]:
        """Return queued and running runs, oldest first, and whether the process lives that drives them."""
        asked = {
            name: value for name, value in (("kind", kind), ("thread_id", thread_id)) if value is not None
        }
        where = " AND ".join([_UNFINISHED, *(f"{name} = ?" for name in asked)])
        sql = f"SELECT {_COLUMNS} FROM runs WHERE {where} ORDER BY position"

        def under_way(connection: sqlite3.Connection) -> list[tuple[RunRecord, bool]]:
            runs = [_run(*row) for row in connection.execute(sql, (*asked.values(),)).fetchall()]
            dead = self._processes.dead({run.process for run in runs})
            return [(run, run.process not in dead) for run in runs]

        return await self._database.read(under_way)

    async def claim(self, run: RunRecord) -> RunRecord | None:
        sql = (
            "UPDATE runs SET process = ?, recoveries = recoveries + 1 "
            f"WHERE run_id = ? AND process = ? AND {_UNFINISHED} RETURNING {_COLUMNS}"
        )
        values = (self._processes.own, run.run_id, run.process)
        return first(_run, await self._database.execute(sql, values))

    async def used(self, owner: str, since: float, until: float) -> Usage:
        return await self._database.read(lambda c: used(c, owner, since, until))

    async def _page(
        self, where: dict[str, str | None], limit: int, before: float | None
    ) -> Sequence[RunRecord]:
        rows = await self._database.read(lambda c: page(c, (_COLUMNS, "runs"), where, limit, before))
        return [_run(*row) for row in rows]


def _run(*row: Any) -> RunRecord:
    named = dict(zip(_NAMES, row, strict=True))
    usage = Usage(**{name: named.pop(name) for name in USAGE})
    return RunRecord(**named, usage=usage)


def _values(run: RunRecord) -> tuple:
    named = [whole(getattr(run, name)) for name in (*_HEAD, *_TIMES)]
    return (*named, *astuple(run.usage), *(whole(getattr(run, name)) for name in _TAIL))


def _settings(changes: RunChange) -> tuple[str, Sequence[Any]]:
    columns = _columns(changes)
    return ", ".join(f"{column} = ?" for column in columns), (*columns.values(),)


def _columns(changes: RunChange) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, value in changes.items():
        if isinstance(value, Usage):
            columns |= dict(zip(USAGE, astuple(value), strict=True))
        elif name in RunChange.__annotations__:
            columns[name] = whole(value)
        else:
            raise TypeError(f"{name} of a run does not change")
    return columns
