"""The event log: a row for each group of events that were written together."""

import sqlite3
from collections.abc import Sequence

from maniple.errors import StoreError
from maniple.store.lines import joined, numbered
from maniple.store.records import EventRecord
from maniple.store.sqlite.connection import Database

Batches = Sequence[tuple[str, Sequence[EventRecord]]]
_INSERT = (
    "INSERT INTO events SELECT ?1, ?2, ?3, ?4 FROM runs WHERE run_id = ?1 "
    "AND ?2 = 1 + coalesce((SELECT max(last) FROM events WHERE run_id = ?1), 0) RETURNING 1"
)


class SqliteEvents:
    """See `protocols.EventTable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, batches: Batches) -> None:
        rows = [_row(run_id, records) for run_id, records in batches if records]
        if len(rows) == 1 and await self._database.execute(_INSERT, rows[0]):
            return  # as a rule: in one statement

        def insert(connection: sqlite3.Connection) -> None:
            for row in rows:
                if not connection.execute(_INSERT, row).fetchall():
                    _explain(connection, *row[:2])

        await self._database.write(insert)

    async def read(self, run_id: str, after: int = 0, limit: int = 1000) -> list[EventRecord]:
        def select(connection: sqlite3.Connection) -> list[EventRecord]:
            found: list[EventRecord] = []
            rows = connection.execute(
                "SELECT first, body FROM events WHERE run_id = ? AND last > ? ORDER BY last LIMIT ?",
                (run_id, after, limit),
            )
            for first, body in rows:
                found += (record for record in numbered(first, body) if record.number > after)
                if len(found) >= limit:
                    break
            rows.close()  # an open one would keep the log from being folded into the file
            return found[:limit]

        return await self._database.read(select) if limit > 0 else []

    async def last(self, run_id: str) -> EventRecord | None:
        sql = "SELECT first, body FROM events WHERE run_id = ? ORDER BY last DESC LIMIT 1"
        rows = await self._database.read(lambda c: c.execute(sql, (run_id,)).fetchall())
        return numbered(*rows[0])[-1] if rows else None


def _row(run_id: str, records: Sequence[EventRecord]) -> tuple[str, int, int, str]:
    return run_id, records[0].number, records[-1].number, joined(records)


def _explain(connection: sqlite3.Connection, run_id: str, first: int) -> None:
    """Raise `StoreError` for events that do not follow; those of a deleted run are dropped."""
    newest = connection.execute(
        "SELECT coalesce((SELECT max(last) FROM events WHERE run_id = runs.run_id), 0) "
        "FROM runs WHERE run_id = ?",
        (run_id,),
    ).fetchone()
    if newest is not None:
        raise StoreError(
            f"Event {first} of run {run_id} does not follow its newest, {newest[0]}: another process "
            "drives it."
        )
