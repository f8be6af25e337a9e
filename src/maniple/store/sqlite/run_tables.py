"""The tables of what runs are sent and produce: inputs, events, tool calls, artifacts, and their sources."""

import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from maniple.errors import StoreError
from maniple.evidence.noted_findings import MAX_FINDINGS, NotedFinding, prepare_finding
from maniple.evidence.record import PageAttempt, Source, SourceKind, UnreadPage
from maniple.evidence.source_text import (
    MAX_CHARACTERS,
    MAX_SOURCES,
    SourceText,
    describe_attempt,
    describe_source,
    describe_unread,
)
from maniple.reading.publication import Publication
from maniple.store.artifact_contents import ArtifactContent, ArtifactContents, open_content, safe_name
from maniple.store.executors import run_to_completion
from maniple.store.records import Artifact, EventRecord, InputRecord, RunRecord, ToolCallRecord
from maniple.store.rows import (
    ARTIFACT_COLUMNS,
    CALL_COLUMNS,
    INPUT_COLUMNS,
    SOURCE_COLUMNS,
    Row,
    join_batch,
    make_first,
    split_batch,
)
from maniple.store.sqlite.database import SqliteDatabase
from maniple.store.sqlite.tables import add_inputs, path_condition
from maniple.text import fix_surrogates

_INSERT_EVENTS = (
    "INSERT INTO events SELECT ?1, ?2, ?3, ?4 FROM runs WHERE run_id = ?1 "
    "AND ?2 = 1 + coalesce((SELECT max(last) FROM events WHERE run_id = ?1), 0) RETURNING 1"
)

_UNREAD = (
    "SELECT position, comparable, url, reason, tried_at FROM unread_pages page "
    "WHERE run_id = ?1 AND NOT EXISTS "
    "(SELECT 1 FROM sources LEFT JOIN source_aliases alias USING (run_id, number) "
    "WHERE sources.run_id = ?1 AND kind = 'page' "
    "AND page.comparable IN (sources.comparable, alias.comparable))"
)
_INSERT_FINDING = (
    "INSERT INTO findings (run_id, number, statement, quote, sha256, span_start, span_end, noted_at) "
    "SELECT run_id, number, ?3, ?4, ?5, ?6, ?7, ?8 FROM sources WHERE run_id = ?1 AND number = ?2 "
    "AND (SELECT count(*) FROM findings WHERE run_id = ?1 AND NOT inherited) < ?9 "
    "ON CONFLICT (run_id, number, statement) DO UPDATE SET quote = excluded.quote, "
    "sha256 = excluded.sha256, span_start = excluded.span_start, span_end = excluded.span_end, "
    "noted_at = excluded.noted_at, inherited = 0 RETURNING 1"
)


class SqliteInputs:
    """See `protocols.InputTable`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def write(
        self, run_id: str, added: Sequence[InputRecord], replies: Mapping[str, str] | None = None
    ) -> None:
        sql = "UPDATE run_inputs SET reply = ? WHERE run_id = ? AND input_id = ? AND reply IS NULL"
        rows = [(fix_surrogates(reply), run_id, input_id) for input_id, reply in (replies or {}).items()]

        def write(connection: sqlite3.Connection) -> None:
            add_inputs(connection, run_id, added)
            connection.executemany(sql, rows)

        await self._database.write(write)

    async def list_by_run(self, run_id: str) -> list[InputRecord]:
        columns = ", ".join(INPUT_COLUMNS)
        sql = f"SELECT {columns} FROM run_inputs WHERE run_id = ? ORDER BY position"
        return [InputRecord(*row) for row in await self._database.fetch(sql, (run_id,))]


class SqliteEvents:
    """See `protocols.EventTable`. Events that are appended together are one row."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def append(self, batches: Sequence[tuple[str, Sequence[EventRecord]]]) -> None:
        rows = [_batch_row(run_id, records) for run_id, records in batches if records]
        if len(rows) == 1 and await self._database.execute(_INSERT_EVENTS, rows[0]):
            return  # the usual case takes one statement

        def insert(connection: sqlite3.Connection) -> None:
            for row in rows:
                if not connection.execute(_INSERT_EVENTS, row).fetchall():
                    _refuse_gap(connection, *row[:2])

        await self._database.write(insert)

    async def read(
        self, run_id: str, after: int = 0, limit: int = 1000, types: Collection[str] | None = None
    ) -> list[EventRecord]:
        wanted = None if types is None else frozenset(types)
        # Rows without the name of such a type are not read from the database.
        named = "" if wanted is None else " OR ".join(["instr(body, ?)"] * len(wanted)) or "FALSE"
        where = f"run_id = ? AND last > ?{f' AND ({named})' if named else ''}"
        # Other rows may hold the name in an event's data, so rows are not limited.
        rows_at_most = limit if wanted is None else -1

        def select(connection: sqlite3.Connection) -> list[EventRecord]:
            found: list[EventRecord] = []
            rows = connection.execute(
                f"SELECT first, body FROM events WHERE {where} ORDER BY last LIMIT ?",
                (run_id, after, *(f"{one} " for one in wanted or ()), rows_at_most),
            )
            for first, body in rows:
                found += (
                    record
                    for record in split_batch(run_id, first, body)
                    if record.number > after and (wanted is None or record.type in wanted)
                )
                if len(found) >= limit:
                    break
            rows.close()  # an open cursor would keep the log from being merged into the file
            return found[:limit]

        return await self._database.read(select) if limit > 0 else []

    async def last(self, run_id: str) -> EventRecord | None:
        sql = "SELECT first, body FROM events WHERE run_id = ? ORDER BY last DESC LIMIT 1"
        rows = await self._database.fetch(sql, (run_id,))
        return split_batch(run_id, *rows[0])[-1] if rows else None


def _batch_row(run_id: str, records: Sequence[EventRecord]) -> tuple[str, int, int, str]:
    return run_id, records[0].number, records[-1].number, join_batch(run_id, records)


def _refuse_gap(connection: sqlite3.Connection, run_id: str, first: int) -> None:
    """Raise `StoreError` for events that do not continue the run. Events of a deleted run are dropped."""
    newest = connection.execute(
        "SELECT coalesce((SELECT max(last) FROM events WHERE run_id = runs.run_id), 0) "
        "FROM runs WHERE run_id = ?",
        (run_id,),
    ).fetchone()
    if newest is not None:
        raise StoreError(
            f"Event {first} of run {run_id} does not follow its newest event, {newest[0]}: another process "
            "drives the run."
        )


class SqliteLedger:
    """See `protocols.ToolCallLedger`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def begin(self, run_id: str, tool_call_id: str, tool_name: str, arguments: str) -> ToolCallRecord:
        sql = (
            f"INSERT INTO tool_calls ({CALL_COLUMNS}) VALUES (?, ?, ?, ?, NULL, ?, NULL, 1, NULL) "
            "ON CONFLICT (run_id, tool_call_id) DO UPDATE SET attempts = attempts + 1 "
            f"RETURNING {CALL_COLUMNS}"
        )
        values = (run_id, tool_call_id, tool_name, fix_surrogates(arguments), time.time())
        return ToolCallRecord(*(await self._database.execute(sql, values))[0])

    async def start(self, run_id: str, tool_call_id: str) -> None:
        sql = (
            "UPDATE tool_calls SET started_at = ? "
            "WHERE run_id = ? AND tool_call_id = ? AND started_at IS NULL"
        )
        await self._database.execute(sql, (time.time(), run_id, tool_call_id))

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        sql = (
            "UPDATE tool_calls SET result = ?, ended_at = ? "
            "WHERE run_id = ? AND tool_call_id = ? AND result IS NULL"
        )
        await self._database.execute(sql, (fix_surrogates(result), time.time(), run_id, tool_call_id))

    async def list_by_run(self, run_id: str) -> list[ToolCallRecord]:
        sql = f"SELECT {CALL_COLUMNS} FROM tool_calls WHERE run_id = ? ORDER BY position"
        return [ToolCallRecord(*row) for row in await self._database.fetch(sql, (run_id,))]


class SqliteArtifacts:
    """See `protocols.ArtifactStore`."""

    def __init__(self, database: SqliteDatabase, contents: ArtifactContents) -> None:
        self._database = database
        self.contents = contents

    async def add(
        self, run: RunRecord, name: str, media_type: str, data: bytes | Path | BinaryIO
    ) -> Artifact:
        return await run_to_completion(self._add(run, name, media_type, data))

    async def get(self, artifact_id: str, owner: str | None) -> Artifact | None:
        sql = f"SELECT {ARTIFACT_COLUMNS} FROM artifacts WHERE artifact_id = ? AND owner = coalesce(?, owner)"
        return make_first(Artifact, await self._database.fetch(sql, (artifact_id, owner)))

    async def open(self, artifact: Artifact) -> ArtifactContent:
        return await open_content(self.contents, artifact.artifact_id, artifact.size)

    async def list_by_run(self, run_id: str) -> list[Artifact]:
        sql = f"SELECT {ARTIFACT_COLUMNS} FROM artifacts WHERE run_id = ? ORDER BY position"
        return [Artifact(*row) for row in await self._database.fetch(sql, (run_id,))]

    async def list_by_thread(self, thread_id: str) -> list[Artifact]:
        def select(connection: sqlite3.Connection) -> list[Row]:
            where, values = path_condition(connection, thread_id)
            runs = f"SELECT run_id FROM runs WHERE {where}"
            sql = f"SELECT {ARTIFACT_COLUMNS} FROM artifacts WHERE run_id IN ({runs}) ORDER BY position"
            return connection.execute(sql, values).fetchall()

        return [Artifact(*row) for row in await self._database.read(select)]

    async def _add(
        self, run: RunRecord, name: str, media_type: str, data: bytes | Path | BinaryIO
    ) -> Artifact:
        # The content before the row: a crash in between leaves an unused one, never a row without content.
        artifact_id = str(uuid4())
        written = await self.contents.write(artifact_id, data)
        values = (
            artifact_id,
            run.run_id,
            run.thread_id,
            run.owner,
            safe_name(name),
            fix_surrogates(media_type),
        )
        row = (*values, written.size, written.sha256, time.time())
        sql = f"INSERT INTO artifacts ({ARTIFACT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        try:
            await self._database.execute(sql, row)
        except StoreError:
            await self.contents.remove([artifact_id])
            raise
        return Artifact(*row)


class SqliteEvidence:
    """See `maniple.evidence.Evidence`; of one run. `add` raises `StoreError` when the run was deleted."""

    def __init__(self, database: SqliteDatabase, run_id: str) -> None:
        self._database = database
        self._run_id = run_id

    async def add(self, url: str, title: str, kind: SourceKind, text: str, *, asked: str = "") -> Source:
        def add(connection: sqlite3.Connection) -> Source:
            # Analysed here, in the store's thread: a long text takes a while.
            source_text = SourceText.of(url, title, kind, text, asked)
            self._detach_redirect(connection, source_text)
            known = self._find_known(connection, source_text)
            source = self._store_source(connection, source_text, known)
            if source.number and source_text.text and self._store_text(connection, source_text):
                sql = (
                    "INSERT INTO readings (run_id, number, text_run_id, sha256) VALUES (?1, ?2, ?1, ?3) "
                    "ON CONFLICT (run_id, number, sha256) DO UPDATE SET text_run_id = excluded.text_run_id"
                )
                numbers = {source.number, *known}
                connection.executemany(
                    sql, [(self._run_id, number, source_text.sha256) for number in numbers]
                )
            return source

        return await self._database.write(add)

    async def describe(self, number: int, publication: Publication) -> None:
        def describe(connection: sqlite3.Connection) -> None:
            for known in self._select_sources(connection, number):
                one = describe_source(known, publication)
                sql = (
                    "UPDATE sources SET published = ?, author = ?, publisher = ? "
                    "WHERE run_id = ? AND number = ?"
                )
                row = (one.published, one.author, one.publisher, self._run_id, number)
                connection.execute(sql, row)

        await self._database.write(describe)

    async def add_unread(self, url: str, reason: str) -> None:
        form, page = describe_unread(url, reason)
        sql = (
            "INSERT INTO unread_pages (run_id, comparable, url, reason, tried_at) SELECT ?1, ?2, ?3, ?4, ?5 "
            "WHERE (SELECT count(*) FROM unread_pages WHERE run_id = ?1) < ?6 "
            "ON CONFLICT (run_id, comparable) DO UPDATE SET "
            "reason = excluded.reason, tried_at = excluded.tried_at"
        )
        row = (self._run_id, form, page.url, page.reason, page.tried_at, MAX_SOURCES)
        await self._database.execute(sql, row)

    async def unread(self) -> Sequence[UnreadPage]:
        sql = f"SELECT url, reason, tried_at FROM ({_UNREAD}) ORDER BY position"
        return [UnreadPage(*row) for row in await self._database.fetch(sql, (self._run_id,))]

    async def add_attempt(self, step: int, url: str) -> None:
        sql = (
            "INSERT INTO page_attempts (run_id, step, comparable, url) SELECT run_id, ?2, ?3, ?4 FROM runs "
            "WHERE run_id = ?1 AND (SELECT count(*) FROM page_attempts WHERE run_id = ?1) < ?5 "
            "ON CONFLICT DO NOTHING"
        )
        await self._database.execute(sql, (self._run_id, step, *describe_attempt(url), MAX_SOURCES))

    async def attempts(self, step: int) -> Sequence[PageAttempt]:
        sql = (
            "SELECT attempt.url, coalesce(page.reason, '') FROM page_attempts attempt "
            f"LEFT JOIN ({_UNREAD}) page ON page.comparable = attempt.comparable "
            "WHERE attempt.run_id = ?1 AND attempt.step = ?2 ORDER BY attempt.position"
        )
        return [PageAttempt(*row) for row in await self._database.fetch(sql, (self._run_id, step))]

    async def add_finding(self, finding: NotedFinding) -> bool:
        one = prepare_finding(finding)
        row = (one.source, one.statement, one.quote, one.sha256, one.start, one.end, one.noted_at)
        return bool(await self._database.execute(_INSERT_FINDING, (self._run_id, *row, MAX_FINDINGS)))

    async def findings(self) -> Sequence[NotedFinding]:
        sql = (
            "SELECT number, statement, quote, sha256, span_start, span_end, noted_at, inherited "
            "FROM findings WHERE run_id = ? ORDER BY position"
        )
        rows = await self._database.fetch(sql, (self._run_id,))
        return [NotedFinding(*row[:7], inherited=bool(row[7])) for row in rows]

    async def sources(self) -> Sequence[Source]:
        return await self._database.read(self._select_sources)

    async def texts(self, number: int) -> Sequence[str]:
        sql = (
            "SELECT body FROM readings JOIN source_texts text "
            "ON text.run_id = readings.text_run_id AND text.sha256 = readings.sha256 "
            "WHERE readings.run_id = ? AND number = ? ORDER BY position"
        )
        return [body for (body,) in await self._database.fetch(sql, (self._run_id, number))]

    def _select_sources(self, connection: sqlite3.Connection, number: int | None = None) -> list[Source]:
        """Return the source with this number, or all, with the other addresses that lead to them."""
        where = "WHERE run_id = ?1 AND (?2 IS NULL OR number = ?2)"
        also: dict[int, list[str]] = {}
        sql = f"SELECT number, url FROM source_aliases {where} ORDER BY position"
        for target, url in connection.execute(sql, (self._run_id, number)):
            also.setdefault(target, []).append(url)
        rows = connection.execute(
            f"SELECT {SOURCE_COLUMNS} FROM sources {where} ORDER BY number", (self._run_id, number)
        )
        return [
            Source(
                *row[:6],
                also=tuple(also.get(row[0], ())),
                published=row[6],
                author=row[7],
                publisher=row[8],
                inherited=bool(row[9]),
            )
            for row in rows
        ]

    def _detach_redirect(self, connection: sqlite3.Connection, source_text: SourceText) -> None:
        """Remove the alias of an address that redirected before and is a page of its own now."""
        if source_text.kind == "page":
            sql = "DELETE FROM source_aliases WHERE run_id = ? AND comparable = ? AND redirects"
            connection.execute(sql, (self._run_id, source_text.comparable))

    def _find_known(self, connection: sqlite3.Connection, source_text: SourceText) -> list[int]:
        """Return the numbers of the sources with one of the reading's addresses, its own address first."""
        sql = (
            "SELECT number FROM sources WHERE run_id = ?1 AND comparable = ?2 "
            "UNION SELECT number FROM source_aliases WHERE run_id = ?1 AND comparable = ?2"
        )
        rows = (connection.execute(sql, (self._run_id, form)).fetchone() for form in source_text.addresses)
        return [row[0] for row in rows if row]

    def _store_source(
        self, connection: sqlite3.Connection, source_text: SourceText, known: Sequence[int]
    ) -> Source:
        """Return the source updated with the text. A new one gets number 0 when the record is full."""
        if known:
            source = source_text.merge_into(self._select_sources(connection, known[0])[0])
            sql = (
                "UPDATE sources SET title = ?, kind = ?, retrieved_at = ?, sha256 = ?, inherited = ? "
                "WHERE run_id = ? AND number = ?"
            )
            row = (source.title, source.kind, source.retrieved_at, source.sha256, source.inherited)
            connection.execute(sql, (*row, self._run_id, source.number))
        else:
            count = self._count(connection, "sources")
            if not source_text.fits(count):
                return source_text.as_source(0)
            source = source_text.as_source(count + 1)
            sql = (
                f"INSERT INTO sources (run_id, comparable, {SOURCE_COLUMNS}) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', '', '', 0)"
            )
            row = (source.number, source.url, source.title, source.kind, source.retrieved_at, source.sha256)
            connection.execute(sql, (self._run_id, source_text.comparable, *row))
        self._store_aliases(connection, source_text, source.number)
        return self._select_sources(connection, source.number)[0]

    def _store_aliases(self, connection: sqlite3.Connection, source_text: SourceText, number: int) -> None:
        """Store those addresses of the reading that no source has as aliases of this source."""
        if not source_text.fits(self._count(connection, "source_aliases")):
            return
        sql = (
            "INSERT INTO source_aliases (run_id, number, comparable, url, redirects) "
            "SELECT ?1, ?2, ?3, ?4, ?5 WHERE NOT EXISTS "
            "(SELECT 1 FROM sources WHERE run_id = ?1 AND comparable = ?3) ON CONFLICT DO NOTHING"
        )
        rows = [
            (self._run_id, number, form, url, form != source_text.comparable)
            for form, url in source_text.addresses.items()
        ]
        connection.executemany(sql, rows)

    def _count(self, connection: sqlite3.Connection, table: str) -> int:
        sql = f"SELECT count(*) FROM {table} WHERE run_id = ?"
        (count,) = connection.execute(sql, (self._run_id,)).fetchone()
        return count

    def _store_text(self, connection: sqlite3.Connection, source_text: SourceText) -> bool:
        """Store a text once; return False when the run's share of `MAX_CHARACTERS` is used up."""
        run, digest, length = self._run_id, source_text.sha256, len(source_text.text)
        sql = "SELECT 1 FROM source_texts WHERE run_id = ? AND sha256 = ?"
        if connection.execute(sql, (run, digest)).fetchone():
            return True
        sql = "SELECT total(characters) FROM source_texts WHERE run_id = ?"
        (stored,) = connection.execute(sql, (run,)).fetchone()
        if stored + length > MAX_CHARACTERS:
            return False
        sql = "INSERT INTO source_texts (run_id, sha256, characters, body) VALUES (?, ?, ?, ?)"
        connection.execute(sql, (run, digest, length, source_text.text))
        return True
