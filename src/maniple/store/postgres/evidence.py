"""The sources of a run in PostgreSQL: their addresses, their texts, and what was noted from them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from psycopg import AsyncConnection

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
from maniple.store.postgres.database import PostgresDatabase, execute_many, fetch_all, lock
from maniple.store.rows import SOURCE_COLUMNS

_UNREAD = (
    "SELECT position, comparable, url, reason, tried_at FROM unread_pages page "
    "WHERE run_id = %(run)s AND NOT EXISTS "
    "(SELECT 1 FROM sources LEFT JOIN source_aliases alias USING (run_id, number) "
    "WHERE sources.run_id = %(run)s AND kind = 'page' "
    "AND page.comparable IN (sources.comparable, alias.comparable))"
)
_INSERT_FINDING = (
    "INSERT INTO findings (run_id, number, statement, quote, sha256, span_start, span_end, noted_at) "
    "SELECT run_id, number, %s, %s, %s, %s, %s, %s FROM sources WHERE run_id = %s AND number = %s "
    "AND (SELECT count(*) FROM findings WHERE run_id = %s AND NOT inherited) < %s "
    "ON CONFLICT (run_id, number, md5(statement)) DO UPDATE SET quote = excluded.quote, "
    "sha256 = excluded.sha256, span_start = excluded.span_start, span_end = excluded.span_end, "
    "noted_at = excluded.noted_at, inherited = false RETURNING 1"
)
_INSERT_READING = (
    "INSERT INTO readings (run_id, number, text_run_id, sha256) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT (run_id, number, sha256) DO UPDATE SET text_run_id = excluded.text_run_id"
)

T = TypeVar("T")


class PostgresEvidence:
    """See `maniple.evidence.Evidence`; of one run. `add` raises `StoreError` when the run was deleted."""

    def __init__(self, database: PostgresDatabase, run_id: str) -> None:
        self._database = database
        self._run_id = run_id

    async def add(self, url: str, title: str, kind: SourceKind, text: str, *, asked: str = "") -> Source:
        # Analysed in a thread: a long text takes a while.
        source_text = await asyncio.to_thread(SourceText.of, url, title, kind, text, asked)

        async def add(connection: AsyncConnection) -> Source:
            await self._detach_redirect(connection, source_text)
            known = await self._find_known(connection, source_text)
            source = await self._store_source(connection, source_text, known)
            if source.number and source_text.text and await self._store_text(connection, source_text):
                rows = [
                    (self._run_id, number, self._run_id, source_text.sha256)
                    for number in sorted({source.number, *known})
                ]
                await execute_many(connection, _INSERT_READING, rows)
            return source

        return await self._write(add)

    async def describe(self, number: int, publication: Publication) -> None:
        sql = (
            "UPDATE sources SET published = %s, author = %s, publisher = %s WHERE run_id = %s AND number = %s"
        )

        async def describe(connection: AsyncConnection) -> None:
            for known in await self._select_sources(connection, number):
                one = describe_source(known, publication)
                row = (one.published, one.author, one.publisher, self._run_id, number)
                await connection.execute(sql.encode(), row)

        await self._write(describe)

    async def add_unread(self, url: str, reason: str) -> None:
        form, page = describe_unread(url, reason)
        sql = (
            "INSERT INTO unread_pages (run_id, comparable, url, reason, tried_at) SELECT %s, %s, %s, %s, %s "
            "WHERE (SELECT count(*) FROM unread_pages WHERE run_id = %s) < %s "
            "ON CONFLICT (run_id, md5(comparable)) DO UPDATE SET "
            "reason = excluded.reason, tried_at = excluded.tried_at"
        )
        row = (self._run_id, form, page.url, page.reason, page.tried_at, self._run_id, MAX_SOURCES)
        await self._write(lambda connection: fetch_all(connection, sql, row))

    async def unread(self) -> Sequence[UnreadPage]:
        sql = f"SELECT url, reason, tried_at FROM ({_UNREAD}) page ORDER BY position"
        return [UnreadPage(*row) for row in await self._database.fetch(sql, {"run": self._run_id})]

    async def add_attempt(self, step: int, url: str) -> None:
        sql = (
            "INSERT INTO page_attempts (run_id, step, comparable, url) SELECT run_id, %s, %s, %s FROM runs "
            "WHERE run_id = %s AND (SELECT count(*) FROM page_attempts WHERE run_id = %s) < %s "
            "ON CONFLICT DO NOTHING"
        )
        row = (step, *describe_attempt(url), self._run_id, self._run_id, MAX_SOURCES)
        await self._write(lambda connection: fetch_all(connection, sql, row))

    async def attempts(self, step: int) -> Sequence[PageAttempt]:
        sql = (
            "SELECT attempt.url, coalesce(page.reason, '') FROM page_attempts attempt "
            f"LEFT JOIN ({_UNREAD}) page ON page.comparable = attempt.comparable "
            "WHERE attempt.run_id = %(run)s AND attempt.step = %(step)s ORDER BY attempt.position"
        )
        rows = await self._database.fetch(sql, {"run": self._run_id, "step": step})
        return [PageAttempt(*row) for row in rows]

    async def add_finding(self, finding: NotedFinding) -> bool:
        one = prepare_finding(finding)
        noted = (one.statement, one.quote, one.sha256, one.start, one.end, one.noted_at)
        row = (*noted, self._run_id, one.source, self._run_id, MAX_FINDINGS)
        return bool(await self._write(lambda connection: fetch_all(connection, _INSERT_FINDING, row)))

    async def findings(self) -> Sequence[NotedFinding]:
        sql = (
            "SELECT number, statement, quote, sha256, span_start, span_end, noted_at, inherited "
            "FROM findings WHERE run_id = %s ORDER BY position"
        )
        rows = await self._database.fetch(sql, (self._run_id,))
        return [NotedFinding(*row[:7], inherited=row[7]) for row in rows]

    async def sources(self) -> Sequence[Source]:
        return await self._database.read(self._select_sources)

    async def texts(self, number: int) -> Sequence[str]:
        sql = (
            "SELECT body FROM readings JOIN source_texts text "
            "ON text.run_id = readings.text_run_id AND text.sha256 = readings.sha256 "
            "WHERE readings.run_id = %s AND number = %s ORDER BY position"
        )
        return [body for (body,) in await self._database.fetch(sql, (self._run_id, number))]

    async def _write(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` while nothing else changes the sources of the run, because it counts them."""

        async def run(connection: AsyncConnection) -> T:
            await lock(connection, "evidence", self._run_id)
            return await work(connection)

        return await self._database.repeat(run)

    async def _select_sources(self, connection: AsyncConnection, number: int | None = None) -> list[Source]:
        """Return the source with this number, or all, with the other addresses that lead to them."""
        # One statement, so that all of it is of the same moment.
        also = (
            "array(SELECT url FROM source_aliases alias WHERE alias.run_id = sources.run_id "
            "AND alias.number = sources.number ORDER BY position)"
        )
        sql = (
            f"SELECT {SOURCE_COLUMNS}, {also} FROM sources WHERE run_id = %(run)s "
            "AND (%(number)s::integer IS NULL OR number = %(number)s) ORDER BY number"
        )
        return [
            Source(
                *row[:6],
                also=tuple(row[10]),
                published=row[6],
                author=row[7],
                publisher=row[8],
                inherited=row[9],
            )
            for row in await fetch_all(connection, sql, {"run": self._run_id, "number": number})
        ]

    async def _detach_redirect(self, connection: AsyncConnection, source_text: SourceText) -> None:
        """Remove the alias of an address that redirected before and is a page of its own now."""
        if source_text.kind == "page":
            sql = "DELETE FROM source_aliases WHERE run_id = %s AND comparable = %s AND redirects"
            await connection.execute(sql, (self._run_id, source_text.comparable))

    async def _find_known(self, connection: AsyncConnection, source_text: SourceText) -> list[int]:
        """Return the numbers of the sources with one of the reading's addresses, its own address first."""
        sql = (
            "SELECT number FROM sources WHERE run_id = %(run)s AND comparable = %(form)s "
            "UNION SELECT number FROM source_aliases WHERE run_id = %(run)s AND comparable = %(form)s "
            "ORDER BY number"
        )
        known: list[int] = []
        for form in source_text.addresses:
            rows = await fetch_all(connection, sql, {"run": self._run_id, "form": form})
            known += [number for (number,) in rows[:1]]
        return known

    async def _store_source(
        self, connection: AsyncConnection, source_text: SourceText, known: Sequence[int]
    ) -> Source:
        """Return the source updated with the text. A new one gets number 0 when the record is full."""
        if known:
            source = source_text.merge_into((await self._select_sources(connection, known[0]))[0])
            sql = (
                "UPDATE sources SET title = %s, kind = %s, retrieved_at = %s, sha256 = %s, inherited = %s "
                "WHERE run_id = %s AND number = %s"
            )
            row = (source.title, source.kind, source.retrieved_at, source.sha256, source.inherited)
            await connection.execute(sql, (*row, self._run_id, source.number))
        else:
            count = await self._count(connection, "sources")
            if not source_text.fits(count):
                return source_text.as_source(0)
            source = source_text.as_source(count + 1)
            sql = (
                "INSERT INTO sources (run_id, comparable, number, url, title, kind, retrieved_at, sha256) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
            )
            row = (source.number, source.url, source.title, source.kind, source.retrieved_at, source.sha256)
            await connection.execute(sql, (self._run_id, source_text.comparable, *row))
        await self._store_aliases(connection, source_text, source.number)
        return (await self._select_sources(connection, source.number))[0]

    async def _store_aliases(self, connection: AsyncConnection, source_text: SourceText, number: int) -> None:
        """Store those addresses of the reading that no source has as aliases of this source."""
        if not source_text.fits(await self._count(connection, "source_aliases")):
            return
        sql = (
            "INSERT INTO source_aliases (run_id, number, comparable, url, redirects) "
            "SELECT %s, %s, %s, %s, %s WHERE NOT EXISTS "
            "(SELECT 1 FROM sources WHERE run_id = %s AND comparable = %s) ON CONFLICT DO NOTHING"
        )
        rows = [
            (self._run_id, number, form, url, form != source_text.comparable, self._run_id, form)
            for form, url in source_text.addresses.items()
        ]
        await execute_many(connection, sql, rows)

    async def _count(self, connection: AsyncConnection, table: str) -> int:
        sql = f"SELECT count(*) FROM {table} WHERE run_id = %s"
        ((count,),) = await fetch_all(connection, sql, (self._run_id,))
        return count

    async def _store_text(self, connection: AsyncConnection, source_text: SourceText) -> bool:
        """Store a text once; return False when the run's share of `MAX_CHARACTERS` is used up."""
        run, digest, length = self._run_id, source_text.sha256, len(source_text.text)
        sql = "SELECT 1 FROM source_texts WHERE run_id = %s AND sha256 = %s"
        if await fetch_all(connection, sql, (run, digest)):
            return True
        sql = "SELECT coalesce(sum(characters), 0) FROM source_texts WHERE run_id = %s"
        ((stored,),) = await fetch_all(connection, sql, (run,))
        if stored + length > MAX_CHARACTERS:
            return False
        sql = "INSERT INTO source_texts (run_id, sha256, characters, body) VALUES (%s, %s, %s, %s)"
        await connection.execute(sql, (run, digest, length, source_text.text))
        return True
