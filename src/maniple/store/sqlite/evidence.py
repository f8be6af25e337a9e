"""The tables of what runs have read."""

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple

from maniple.evidence.reading import MOST_CHARACTERS, Reading
from maniple.evidence.record import Source, SourceKind
from maniple.store.sqlite.connection import Database
from maniple.store.sqlite.pages import first

_COLUMNS = "number, url, title, kind, retrieved_at, sha256"


class SqliteEvidence:
    """See `maniple.evidence.Evidence`; of one run. `add` raises `StoreError` when the run was deleted."""

    def __init__(self, database: Database, run_id: str) -> None:
        self._database = database
        self._run_id = run_id

    async def add(self, url: str, title: str, kind: SourceKind, text: str) -> Source:
        def add(connection: sqlite3.Connection) -> Source:
            reading = Reading.of(url, title, kind, text)  # here, in a thread: a long text takes its time
            source = self._numbered(connection, reading)
            if source.number and reading.text and self._keeps(connection, reading):
                connection.execute(
                    "INSERT INTO readings (run_id, number, sha256) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    (self._run_id, source.number, reading.sha256),
                )
            return source

        return await self._database.write(add)

    async def sources(self) -> Sequence[Source]:
        sql = f"SELECT {_COLUMNS} FROM sources WHERE run_id = ? ORDER BY number"
        rows = await self._database.read(lambda c: c.execute(sql, (self._run_id,)).fetchall())
        return [Source(*row) for row in rows]

    async def texts(self, number: int) -> Sequence[str]:
        sql = (
            "SELECT body FROM readings JOIN source_texts USING (run_id, sha256) "
            "WHERE run_id = ? AND number = ? ORDER BY position"
        )
        rows = await self._database.read(lambda c: c.execute(sql, (self._run_id, number)).fetchall())
        return [body for (body,) in rows]

    def _numbered(self, connection: sqlite3.Connection, reading: Reading) -> Source:
        """Return the source as it is with the reading, kept unless there is no room for it."""
        sql = f"SELECT {_COLUMNS} FROM sources WHERE run_id = ? AND comparable = ?"
        known = first(Source, connection.execute(sql, (self._run_id, reading.comparable)).fetchall())
        if known is not None:
            source = reading.joined(known)
        else:
            sql = "SELECT count(*) FROM sources WHERE run_id = ?"
            (count,) = connection.execute(sql, (self._run_id,)).fetchone()
            if not reading.finds_room(count):
                return reading.first(0)
            source = reading.first(count + 1)
        # Never REPLACE: that deletes the row first, and what refers to it.
        sql = (
            f"INSERT INTO sources (run_id, comparable, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (run_id, number) DO UPDATE SET title = excluded.title, kind = excluded.kind, "
            "retrieved_at = excluded.retrieved_at, sha256 = excluded.sha256"
        )
        connection.execute(sql, (self._run_id, reading.comparable, *astuple(source)))
        return source

    def _keeps(self, connection: sqlite3.Connection, reading: Reading) -> bool:
        """Keep a text, once however often it is read; says whether it is kept."""
        run, digest, length = self._run_id, reading.sha256, len(reading.text)
        sql = "SELECT 1 FROM source_texts WHERE run_id = ? AND sha256 = ?"
        if connection.execute(sql, (run, digest)).fetchone():
            return True
        sql = "SELECT total(characters) FROM source_texts WHERE run_id = ?"
        (kept,) = connection.execute(sql, (run,)).fetchone()
        if kept + length > MOST_CHARACTERS:
            return False
        sql = "INSERT INTO source_texts (run_id, sha256, characters, body) VALUES (?, ?, ?, ?)"
        connection.execute(sql, (run, digest, length, reading.text))
        return True
