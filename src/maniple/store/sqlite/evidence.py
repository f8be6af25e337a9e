"""The tables of what runs have read."""

import sqlite3
from collections.abc import Sequence

from maniple.evidence.reading import MOST_CHARACTERS, Reading
from maniple.evidence.record import Source, SourceKind
from maniple.store.sqlite.connection import Database

_COLUMNS = "number, url, title, kind, retrieved_at, sha256"


class SqliteEvidence:
    """See `maniple.evidence.Evidence`; of one run. `add` raises `StoreError` when the run was deleted."""

    def __init__(self, database: Database, run_id: str) -> None:
        self._database = database
        self._run_id = run_id

    async def add(self, url: str, title: str, kind: SourceKind, text: str, *, asked: str = "") -> Source:
        def add(connection: sqlite3.Connection) -> Source:
            # Here, in a thread: a long text takes its time.
            reading = Reading.of(url, title, kind, text, asked)
            self._let_go(connection, reading)
            known = self._known(connection, reading)
            source = self._joined(connection, reading, known)
            if source.number and reading.text and self._keeps(connection, reading):
                sql = "INSERT INTO readings (run_id, number, sha256) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
                numbers = {source.number, *known}
                connection.executemany(sql, [(self._run_id, number, reading.sha256) for number in numbers])
            return source

        return await self._database.write(add)

    async def sources(self) -> Sequence[Source]:
        return await self._database.read(self._sources)

    async def texts(self, number: int) -> Sequence[str]:
        sql = (
            "SELECT body FROM readings JOIN source_texts USING (run_id, sha256) "
            "WHERE run_id = ? AND number = ? ORDER BY position"
        )
        rows = await self._database.read(lambda c: c.execute(sql, (self._run_id, number)).fetchall())
        return [body for (body,) in rows]

    def _sources(self, connection: sqlite3.Connection, number: int | None = None) -> list[Source]:
        """Return the source of a number, else all of them, with the addresses that lead to them."""
        where = "WHERE run_id = ?1 AND (?2 IS NULL OR number = ?2)"
        also: dict[int, list[str]] = {}
        sql = f"SELECT number, url FROM source_aliases {where} ORDER BY position"
        for to, url in connection.execute(sql, (self._run_id, number)):
            also.setdefault(to, []).append(url)
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM sources {where} ORDER BY number", (self._run_id, number)
        )
        return [Source(*row, also=tuple(also.get(row[0], ()))) for row in rows]

    def _let_go(self, connection: sqlite3.Connection, reading: Reading) -> None:
        """Take an address that redirected before, and is a page of its own now, from the source it led to."""
        if reading.kind == "page":
            sql = "DELETE FROM source_aliases WHERE run_id = ? AND comparable = ? AND redirects"
            connection.execute(sql, (self._run_id, reading.comparable))

    def _known(self, connection: sqlite3.Connection, reading: Reading) -> list[int]:
        """Return the numbers of the sources that are known by the reading's addresses, its own first."""
        sql = (
            "SELECT number FROM sources WHERE run_id = ?1 AND comparable = ?2 "
            "UNION SELECT number FROM source_aliases WHERE run_id = ?1 AND comparable = ?2"
        )
        each = (connection.execute(sql, (self._run_id, form)).fetchone() for form in reading.addresses)
        return [row[0] for row in each if row]

    def _joined(self, connection: sqlite3.Connection, reading: Reading, known: Sequence[int]) -> Source:
        """Return the source as it is with the reading, kept unless there is no room for it."""
        if known:
            source = reading.joined(self._sources(connection, known[0])[0])
            sql = (
                "UPDATE sources SET title = ?, kind = ?, retrieved_at = ?, sha256 = ? "
                "WHERE run_id = ? AND number = ?"
            )
            row = (source.title, source.kind, source.retrieved_at, source.sha256)
            connection.execute(sql, (*row, self._run_id, source.number))
        else:
            count = self._count(connection, "sources")
            if not reading.finds_room(count):
                return reading.first(0)
            source = reading.first(count + 1)
            sql = f"INSERT INTO sources (run_id, comparable, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            row = (source.number, source.url, source.title, source.kind, source.retrieved_at, source.sha256)
            connection.execute(sql, (self._run_id, reading.comparable, *row))
        self._lead(connection, reading, source.number)
        return self._sources(connection, source.number)[0]

    def _lead(self, connection: sqlite3.Connection, reading: Reading, number: int) -> None:
        """Let the address of the reading that no source has yet, if there is one, lead to this source."""
        if not reading.finds_room(self._count(connection, "source_aliases")):
            return
        sql = (
            "INSERT INTO source_aliases (run_id, number, comparable, url, redirects) "
            "SELECT ?1, ?2, ?3, ?4, ?5 WHERE NOT EXISTS "
            "(SELECT 1 FROM sources WHERE run_id = ?1 AND comparable = ?3) ON CONFLICT DO NOTHING"
        )
        rows = [
            (self._run_id, number, form, url, form != reading.comparable)
            for form, url in reading.addresses.items()
        ]
        connection.executemany(sql, rows)

    def _count(self, connection: sqlite3.Connection, table: str) -> int:
        sql = f"SELECT count(*) FROM {table} WHERE run_id = ?"
        (count,) = connection.execute(sql, (self._run_id,)).fetchone()
        return count

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
