"""The vectors of passages, in the database of the index: which passages are near a question in meaning.

They are stored as float16. To rank them all, the signs of their numbers are kept in memory (128 bytes for
1,024 numbers) and compared first; the nearest `_RESCORED` are then compared exactly, by their cosine.
"""

import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

NEAREST = 50
"""The documents that a search by meaning gives."""
_RESCORED = 1_000
_LOADED = 4_096
"""The vectors that are read at once."""
_STALE_SHARE = 0.25
_STALE_MIN = 1_000
_UNUSED_SECONDS = 60 * 86_400.0
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS embedding_model (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " used_at REAL NOT NULL)",
    # A number is never used again: see `PassageVectors._load`. An empty value is that of a refused passage.
    "CREATE TABLE IF NOT EXISTS vector (id INTEGER PRIMARY KEY AUTOINCREMENT, passage INTEGER NOT NULL,"
    " model INTEGER NOT NULL, collection INTEGER NOT NULL, value BLOB NOT NULL, UNIQUE (passage, model))",
    "CREATE INDEX IF NOT EXISTS vector_place ON vector (model, collection)",
    # It also works where a process without embeddings deletes the passage, whose number may be used again.
    "CREATE TRIGGER IF NOT EXISTS passage_vector AFTER DELETE ON passage BEGIN"
    " DELETE FROM vector WHERE passage = old.id; END",
)


class WrongDimensions(Exception):
    """A vector has another length than those of the index."""


@dataclass(frozen=True, slots=True)
class PassageText:
    """A passage to be embedded: the document's title, the heading and the text."""

    passage: int
    stored: str
    """The text as it is in the database, by which a changed passage is noticed."""
    text: str


@dataclass(frozen=True, slots=True)
class VectorCounts:
    """How many passages there are, and of how many the vectors are missing or were refused."""

    passages: int = 0
    missing: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class NearPassage:
    """A document's nearest passage, and the cosine of both directions, from -1 to 1."""

    document: int
    passage: int
    cosine: float


class PassageVectors:
    """The vectors of one model and one collection.

    Every method blocks; one thread at a time. `transaction` opens a transaction that writes. Raises
    `sqlite3.Error`.
    """

    def __init__(
        self,
        database: sqlite3.Connection,
        transaction: AbstractContextManager[None],
        collection: int,
        name: str,
    ) -> None:
        self._database = database
        self._collection = collection
        with transaction:
            for statement in _SCHEMA:
                database.execute(statement)
            self._model = self._register(name)
        self._dimensions = 0
        self._last = 0
        self._version = -1
        self._signs: np.ndarray[Any, Any] | None = None
        self._ids: np.ndarray[Any, Any] | None = None

    def missing(self, after: int, limit: int) -> list[PassageText]:
        """Return passages without a vector in their order, those whose number is greater than `after`."""
        rows = self._database.execute(
            "SELECT passage.id, title, heading, text FROM passage JOIN document ON document.id = document"
            " WHERE passage.id > ? AND collection = ?"
            " AND NOT EXISTS (SELECT 1 FROM vector WHERE vector.passage = passage.id AND model = ?)"
            " ORDER BY passage.id LIMIT ?",
            (after, self._collection, self._model, limit),
        )
        return [
            PassageText(number, text, "\n".join(dict.fromkeys(filter(None, (title, heading, text)))))
            for number, title, heading, text in rows
        ]

    def put(self, passages: Sequence[PassageText], vectors: Iterable[Sequence[float] | None]) -> None:
        """Store the vectors of passages that are still there; None is a passage that the model refuses.

        Needs a transaction. Raises `WrongDimensions`.
        """
        for passage, vector in zip(passages, vectors, strict=True):
            value = b"" if vector is None else self._encode(vector)
            self._database.execute(
                "INSERT OR REPLACE INTO vector (passage, model, collection, value)"
                " SELECT id, ?, ?, ? FROM passage WHERE id = ? AND text = ?",
                (self._model, self._collection, value, passage.passage, passage.stored),
            )
        self._version = -1  # it does not change with what this connection writes

    def counts(self) -> VectorCounts:
        """Return how much of the collection is embedded."""
        [passages] = self._database.execute(
            "SELECT count(*) FROM passage JOIN document ON document.id = document WHERE collection = ?",
            (self._collection,),
        ).fetchone()
        [found, refused] = self._database.execute(
            "SELECT count(*), coalesce(sum(value = x''), 0) FROM vector WHERE model = ? AND collection = ?",
            (self._model, self._collection),
        ).fetchone()
        return VectorCounts(passages, max(0, passages - found), refused)

    def rank(self, query: Sequence[float]) -> list[NearPassage]:
        """Return the nearest `NEAREST` documents, the nearest one first. Raises `WrongDimensions`."""
        import numpy as np

        self._load()
        if self._signs is None or self._ids is None:
            return []
        self._check(len(query))
        wanted = _unit(np.asarray(query, np.float32)[None])[0]
        ids = self._ids
        if len(ids) > _RESCORED:
            distances = np.bitwise_count(self._signs ^ _signs(wanted[None])).sum(axis=1, dtype=np.uint16)
            ids = ids[np.argpartition(distances, _RESCORED)[:_RESCORED]]
        return self._rescore(ids.tolist(), wanted)

    def _rescore(self, ids: list[int], wanted: "np.ndarray[Any, Any]") -> list[NearPassage]:
        import numpy as np

        marks = ", ".join("?" * len(ids))
        rows = self._database.execute(
            "SELECT document, passage.id, value FROM vector JOIN passage ON passage.id = vector.passage"
            f" WHERE vector.id IN ({marks})",
            ids,
        ).fetchall()
        if not rows:
            return []
        cosines = _decode([row[2] for row in rows]).astype(np.float32) @ wanted
        best: dict[int, NearPassage] = {}
        for place in np.argsort(-cosines, kind="stable").tolist():
            document, passage, _ = rows[place]
            best.setdefault(document, NearPassage(document, passage, float(cosines[place])))
            if len(best) == NEAREST:
                break
        return list(best.values())

    def _register(self, name: str) -> int:
        """Return the number of the model; remove the vectors of those that nobody has used for two months."""
        now = time.time()
        self._database.execute(
            "INSERT INTO embedding_model (name, used_at) VALUES (?, ?)"
            " ON CONFLICT DO UPDATE SET used_at = excluded.used_at",
            (name, now),
        )
        unused = "SELECT id FROM embedding_model WHERE used_at < ?"
        self._database.execute(f"DELETE FROM vector WHERE model IN ({unused})", (now - _UNUSED_SECONDS,))
        self._database.execute("DELETE FROM embedding_model WHERE used_at < ?", (now - _UNUSED_SECONDS,))
        [number] = self._database.execute("SELECT id FROM embedding_model WHERE name = ?", (name,)).fetchone()
        return number

    def _encode(self, vector: Sequence[float]) -> bytes:
        import numpy as np

        self._check(len(vector))
        return _unit(np.asarray(vector, np.float32)[None])[0].astype("<f2").tobytes()

    def _check(self, dimensions: int) -> None:
        """Raise `WrongDimensions` where the index has vectors of another length."""
        if not self._dimensions:
            row = self._database.execute(
                "SELECT length(value) FROM vector WHERE model = ? AND value <> x'' LIMIT 1", (self._model,)
            ).fetchone()
            self._dimensions = row[0] // 2 if row else 0
        if self._dimensions and dimensions != self._dimensions:
            raise WrongDimensions(
                f"its vectors have {dimensions} dimensions, those of the index {self._dimensions}: it is "
                "another model of the same name. Set models.embedding.dimensions, so that all are made again"
            )

    def _load(self) -> None:
        """Read the vectors that other connections have stored since the last call.

        Those that were deleted stay in memory until they are many; `_rescore` does not find them any more.
        """
        [version] = self._database.execute("PRAGMA data_version").fetchone()
        if version == self._version and self._ids is not None:
            return
        held = 0 if self._ids is None else len(self._ids)
        [count] = self._database.execute(
            "SELECT count(*) FROM vector WHERE model = ? AND collection = ?", (self._model, self._collection)
        ).fetchone()
        if held > count * (1 + _STALE_SHARE) + _STALE_MIN:
            self._signs = self._ids = None
            self._last = 0
        self._append()
        self._version = version

    def _append(self) -> None:
        import numpy as np

        signs, ids = [self._signs], [self._ids]
        while rows := self._database.execute(
            "SELECT id, value FROM vector WHERE model = ? AND collection = ? AND id > ? ORDER BY id LIMIT ?",
            (self._model, self._collection, self._last, _LOADED),
        ).fetchall():
            self._last = rows[-1][0]
            if known := [row for row in rows if row[1]]:
                ids.append(np.array([number for number, _ in known], np.int64))
                signs.append(_signs(_decode([value for _, value in known])))
        found = [one for one in ids if one is not None]
        self._ids = np.concatenate(found) if found else None
        self._signs = np.concatenate([one for one in signs if one is not None]) if found else None


def _decode(values: Sequence[bytes]) -> "np.ndarray[Any, Any]":
    """Return float16, one row for each value."""
    import numpy as np

    return np.frombuffer(b"".join(values), "<f2").reshape(len(values), -1)


def _unit(vectors: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return the rows with length 1."""
    import numpy as np

    scaled = vectors / np.maximum(np.abs(vectors).max(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return scaled / np.linalg.norm(scaled, axis=1, keepdims=True)


def _signs(vectors: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return the signs of each row, 64 in a number."""
    import numpy as np

    bits = np.packbits(vectors > 0, axis=1)
    padded = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))
    return np.ascontiguousarray(padded).view(np.uint64)
