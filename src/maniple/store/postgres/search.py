"""The full-text search in PostgreSQL."""

from collections.abc import Sequence

from maniple.store.postgres.database import PostgresDatabase
from maniple.store.records import RunRecord, RunText
from maniple.store.rows import RUN_COLUMNS, Row, like_pattern, make_run
from maniple.store.search_terms import MAX_INDEXED_CHARACTERS, SearchTerms, fold_text, has_unspaced
from maniple.text import fix_surrogates

_RUN = ", ".join(f"runs.{name}" for name in RUN_COLUMNS.split(", "))
_HAS_TERM = r"(question ILIKE %s ESCAPE '\' OR answer ILIKE %s ESCAPE '\')"
_MAX_VECTOR_CHARACTERS = 250_000
"""The most whose words are indexed: the value of a column of words has a limit of 1 MB."""


class PostgresRunTexts:
    """See `protocols.RunTextTable`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def put(self, run_id: str, question: str, answer: str) -> None:
        texts = [_storable(text[:MAX_INDEXED_CHARACTERS]) for text in (question, answer)]
        words = fold_text("\n".join(texts))[:_MAX_VECTOR_CHARACTERS]
        sql = (
            "INSERT INTO run_texts (run_id, question, answer, is_unspaced, words) "
            "SELECT run_id, %s, %s, %s, to_tsvector('simple', %s) FROM runs WHERE run_id = %s "
            "ON CONFLICT (run_id) DO UPDATE SET question = excluded.question, answer = excluded.answer, "
            "is_unspaced = excluded.is_unspaced, words = excluded.words"
        )
        await self._database.execute(sql, (*texts, any(map(has_unspaced, texts)), words, run_id))

    async def list_unindexed(self, limit: int) -> Sequence[RunRecord]:
        sql = (
            f"SELECT {RUN_COLUMNS} FROM runs WHERE ended_at IS NOT NULL "
            "AND NOT EXISTS (SELECT 1 FROM run_texts WHERE run_texts.run_id = runs.run_id) "
            "ORDER BY position DESC LIMIT %s"
        )
        return [make_run(*row) for row in await self._database.fetch(sql, (limit,))]

    async def search(self, owner: str | None, terms: SearchTerms, limit: int) -> Sequence[RunText]:
        if not terms.terms:
            return []
        where, values, rank, ranked = _match(terms)
        sql = (
            f"SELECT question, answer, {_RUN} FROM run_texts JOIN runs USING (run_id) WHERE {where} "
            f"AND runs.owner = coalesce(%s, runs.owner) ORDER BY {rank} run_texts.position DESC LIMIT %s"
        )
        rows = await self._database.fetch(sql, (*values, owner, *ranked, limit))
        return [RunText(make_run(*run), question, answer) for question, answer, *run in rows]


def _match(terms: SearchTerms) -> tuple[str, Row, str, Row]:
    """Return the condition with its values, and the first key of the order with its values."""
    if terms.is_unspaced:
        conditions = " AND ".join([_HAS_TERM] * len(terms.terms))
        values = tuple(like_pattern(_storable(term)) for term in terms.terms for _ in range(2))
        return f"is_unspaced AND {conditions}", values, "", ()
    query = " & ".join(_storable(fold_text(term)) for term in terms.terms) + ":*"
    rank = "ts_rank(words, to_tsquery('simple', %s)) DESC,"
    return "words @@ to_tsquery('simple', %s)", (query,), rank, (query,)


def _storable(text: str) -> str:
    """Return a text without what PostgreSQL cannot store."""
    return fix_surrogates(text).replace("\0", "")
