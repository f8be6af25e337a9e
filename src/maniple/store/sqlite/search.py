"""The full-text search in SQLite (FTS5: https://www.sqlite.org/fts5.html)."""

import sqlite3
from collections.abc import Sequence

from maniple.store.records import RunRecord, RunText
from maniple.store.rows import RUN_COLUMNS, Row, like_pattern, make_run
from maniple.store.search_terms import MAX_INDEXED_CHARACTERS, SearchTerms, has_unspaced
from maniple.store.sqlite.database import SqliteDatabase
from maniple.text import fix_surrogates

_RUN = ", ".join(f"runs.{name}" for name in RUN_COLUMNS.split(", "))
_HAS_TERM = r"(question LIKE ? ESCAPE '\' OR answer LIKE ? ESCAPE '\')"

_SHORT_PREFIX = 3
"""The beginning of so many words that their ranking takes seconds; the newest texts come first then."""


class SqliteRunTexts:
    """See `protocols.RunTextTable`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def put(self, run_id: str, question: str, answer: str) -> None:
        texts = [fix_surrogates(text[:MAX_INDEXED_CHARACTERS]) for text in (question, answer)]
        is_unspaced = any(map(has_unspaced, texts))
        sql = (
            "INSERT INTO run_texts (run_id, question, answer, is_unspaced) SELECT run_id, ?, ?, ? FROM runs "
        )

        def put(connection: sqlite3.Connection) -> None:
            # Replaced in one statement, the row would leave its words in the index: no trigger would run.
            connection.execute("DELETE FROM run_texts WHERE run_id = ?", (run_id,))
            connection.execute(f"{sql} WHERE run_id = ?", (*texts, int(is_unspaced), run_id))

        await self._database.write(put)

    async def list_unindexed(self, limit: int) -> Sequence[RunRecord]:
        sql = (
            f"SELECT {RUN_COLUMNS} FROM runs WHERE ended_at IS NOT NULL "
            "AND NOT EXISTS (SELECT 1 FROM run_texts WHERE run_texts.run_id = runs.run_id) "
            "ORDER BY position DESC LIMIT ?"
        )
        return [make_run(*row) for row in await self._database.fetch(sql, (limit,))]

    async def search(self, owner: str | None, terms: SearchTerms, limit: int) -> Sequence[RunText]:
        if not terms.terms:
            return []
        where, values, order = _match(terms)
        sql = (
            f"SELECT run_texts.question, run_texts.answer, {_RUN} FROM {where} "
            f"AND runs.owner = coalesce(?, runs.owner) ORDER BY {order} LIMIT ?"
        )
        rows = await self._database.fetch(sql, (*values, owner, limit))
        return [RunText(make_run(*run), question, answer) for question, answer, *run in rows]


def _match(terms: SearchTerms) -> tuple[str, Row, str]:
    """Return the tables with their condition, the values of it, and the order."""
    joined = "JOIN run_texts ON run_texts.position = {0}.rowid JOIN runs USING (run_id) WHERE {0} MATCH ?"
    phrases = " ".join(f'"{_quoted(term)}"' for term in terms.terms)
    newest = "run_texts.position DESC"
    if not terms.is_unspaced:
        is_short = len(terms.terms[-1]) <= _SHORT_PREFIX
        order = "run_words.rowid DESC" if is_short else "run_words.rank"
        return f"run_words {joined.format('run_words')}", (f"{phrases}*",), order
    if terms.has_trigrams:
        return f"run_trigrams {joined.format('run_trigrams')}", (phrases,), newest
    conditions = " AND ".join([_HAS_TERM] * len(terms.terms))
    values = tuple(like_pattern(term) for term in terms.terms for _ in range(2))
    return f"run_texts JOIN runs USING (run_id) WHERE is_unspaced AND {conditions}", values, newest


def _quoted(term: str) -> str:
    return fix_surrogates(term).replace('"', '""')
