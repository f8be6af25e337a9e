"""The full-text index of folders of documents: an SQLite database that outlives the process.

Documents are ranked by BM25 (SQLite's FTS5) twice: as a whole, with title and path, and by their best
passage. The words themselves are stored once, with the passages: both full-text tables are contentless.
"""

import math
import re
import sqlite3
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from maniple.search.languages import (
    WordStemmer,
    identify_language,
    possible_languages,
    without_function_words,
)
from maniple.search.passage_vectors import NearPassage, PassageText, PassageVectors
from maniple.search.passages import (
    MAX_PASSAGES,
    TextPassage,
    is_unspaced,
    normalize_words,
    pair_unspaced,
    split_document,
)

ALL = "all"
"""The collection of all documents of a folder."""
TITLE_WEIGHT = 3.0
PATH_WEIGHT = 2.0
HEAD_WEIGHT = 1.5
STEM_WEIGHT = 0.2
"""In BM25, beside 1 for the text. The head is title and path, which each passage has, too. Stems are those of
other languages than English: a word's own form counts more than its other ones."""
MAX_QUERY_WORDS = 32
_SCHEMA_VERSION = 1
_BUSY_SECONDS = 10.0
_WAL_ATTEMPTS = 40
_WAL_SECONDS = 0.05
_CANDIDATES = 50
_PASSAGE_CANDIDATES = 200
_COMMON_SHARE = 0.5
"""A word of more documents than this says nothing about one of them: BM25 gives it no weight."""
_LANGUAGE_SHARE = 0.1
_MIN_DOCUMENTS = 20
"""In a smaller collection no word counts as common."""
_RANK_OFFSET = 3
"""Of reciprocal rank fusion: a document counts 1 / (offset + rank) in each ranking.

`python -m bench.folder_search` measures it. With greater ones the first document by words loses
its place to those that a weak model found near: with 10, 0.835 of the questions by keyword fell to 0.745.
"""
_UNUSED_SECONDS = 60 * 86_400.0
# Letters with marks of Indic scripts are words, too; the default leaves the marks out.
_TOKENIZER = "porter unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc''"
_SCHEMA = f"""
CREATE TABLE collection (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, folder TEXT NOT NULL, used_at REAL NOT NULL,
    UNIQUE (name, folder)
);
CREATE TABLE document (
    id INTEGER PRIMARY KEY, collection INTEGER NOT NULL, name TEXT NOT NULL, modified_ns INTEGER NOT NULL,
    size INTEGER NOT NULL, sha256 BLOB NOT NULL, reader TEXT NOT NULL, read_at REAL NOT NULL,
    format TEXT NOT NULL, language TEXT NOT NULL, title TEXT NOT NULL, characters INTEGER NOT NULL,
    note TEXT NOT NULL, problem TEXT NOT NULL,
    UNIQUE (collection, name)
);
CREATE TABLE passage (
    id INTEGER PRIMARY KEY, document INTEGER NOT NULL, line INTEGER NOT NULL, heading TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX passage_document ON passage (document);
CREATE VIRTUAL TABLE whole USING fts5(title, path, body, stems, content = '', tokenize = '{_TOKENIZER}');
CREATE VIRTUAL TABLE part USING fts5(head, body, stems, content = '', tokenize = '{_TOKENIZER}');
INSERT INTO whole (whole, rank) VALUES ('rank', 'bm25({TITLE_WEIGHT}, {PATH_WEIGHT}, 1.0, {STEM_WEIGHT})');
INSERT INTO part (part, rank) VALUES ('rank', 'bm25({HEAD_WEIGHT}, 1.0, {STEM_WEIGHT})');
"""
_SPLIT = re.compile(r"[\s!-/:-@\[-`{-~\u2010-\u2027\u3000-\u3004\u3008-\u3020\uff01-\uff0f]+")
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


@dataclass(frozen=True, slots=True)
class IndexStamp:
    """The modification time and size of a file, by which changes are noticed."""

    modified_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """What the index knows about the file of a document. `problem` is why it could not be read, or ""."""

    stamp: IndexStamp
    sha256: bytes
    reader: str
    read_at: float
    """In seconds since 1970."""
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDocument:
    """A document to be indexed. `reader` is the version of what has read it."""

    name: str
    stamp: IndexStamp
    sha256: bytes
    reader: str
    title: str = ""
    text: str = ""
    note: str = ""
    """A sentence about what of it is missing."""
    problem: str = ""
    """Why it could not be read; such a document is never found."""
    format_key: str = "text"


@dataclass(frozen=True, slots=True)
class DocumentPassage:
    """The best passage of a document.

    `place` is where it is in the document, `characters` the document's length, `note` what of it is not
    indexed. `coverage` is the part of the query that the passage, the title and the path have: the sum of the
    weights (inverse document frequencies) of their words, from 0 to 1. Where the passage is the best one by
    meaning, that of the best one by words counts if it is greater.
    """

    name: str
    title: str
    text: str
    place: str
    characters: int
    note: str
    coverage: float


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    condition: str
    documents: int
    weight: float
    """The inverse document frequency, as in BM25."""


def is_damaged(error: sqlite3.Error) -> bool:
    """Return whether an error says that the database is damaged, so that it must be made again."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _DAMAGED


@cache
def database_name() -> str:
    """Return the name, without suffix, of the databases that this program can use.

    It names all that the indexed words depend on: they are computed again when a document is removed.
    """
    return f"v{_SCHEMA_VERSION}-unicode{unicodedata.unidata_version}-snowball{version('snowballstemmer')}"


class FolderIndex:
    """The documents of one `collection` of one `folder`, in a database that others may use, too.

    Every method blocks; one thread at a time. Raises `sqlite3.Error`; see `is_damaged`.
    """

    def __init__(self, database: Path, folder: Path, collection: str = ALL) -> None:
        self._stemmer = WordStemmer()
        self._database = sqlite3.connect(
            database, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._use_wal()
            # A commit that is lost with the machine is only read again.
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._create_schema()
            self._collection = self._register(collection, str(folder))
            self._vectors: dict[str, PassageVectors] = {}
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def check(self) -> None:
        """Read the whole database; raises `sqlite3.DatabaseError` where it is damaged."""
        [found] = self._database.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            error = sqlite3.DatabaseError(found)
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error

    def documents(self) -> dict[str, KnownDocument]:
        """Return what is known of each file by name."""
        rows = self._database.execute(
            "SELECT name, modified_ns, size, sha256, reader, read_at, problem FROM document"
            " WHERE collection = ?",
            (self._collection,),
        )
        return {
            name: KnownDocument(IndexStamp(modified, size), digest, reader, read_at, problem)
            for name, modified, size, digest, reader, read_at, problem in rows
        }

    def put(self, documents: Iterable[NewDocument]) -> None:
        """Index documents, replacing those of the same names, in one transaction."""
        with self._transaction():
            for document in documents:
                self._remove(document.name)
                self._insert(document)

    def put_stamps(self, stamps: Mapping[str, IndexStamp]) -> None:
        """Store new stamps of files whose content is the same."""
        with self._transaction():
            for name, stamp in stamps.items():
                self._database.execute(
                    "UPDATE document SET modified_ns = ?, size = ? WHERE collection = ? AND name = ?",
                    (stamp.modified_ns, stamp.size, self._collection, name),
                )

    def remove(self, names: Iterable[str]) -> None:
        """Remove documents, in one transaction."""
        with self._transaction():
            for name in names:
                self._remove(name)

    def vectors(self, model: str) -> PassageVectors:
        """Return the vectors of a model."""
        if model not in self._vectors:
            self._vectors[model] = PassageVectors(
                self._database, self._transaction(), self._collection, model
            )
        return self._vectors[model]

    def put_vectors(
        self, model: str, passages: Sequence[PassageText], vectors: Iterable[Sequence[float] | None]
    ) -> None:
        """Store the vectors of passages in one transaction; see `PassageVectors.put`."""
        stored = self.vectors(model)
        with self._transaction():
            stored.put(passages, vectors)

    def find(self, query: str, limit: int, near: Sequence[NearPassage] = ()) -> list[DocumentPassage]:
        """Return at most `limit` documents, each with its best passage, best first.

        The query's words are alternatives: a document is ranked by those that it has. Words that most
        documents have are left out where there are others. `near` are the documents that are near the query
        in meaning, the nearest one first.
        """
        named = query_words(query)
        words = self._weigh(without_function_words(named)[:MAX_QUERY_WORDS], self._languages(named))
        known = _informative(words, self._count())
        condition = " OR ".join(word.condition for word in known)
        wholes = self._rank_documents(condition) if known else {}
        parts = self._rank_passages(condition) if known else {}
        ranked = _fuse(wholes, {document: score for document, (_, score) in parts.items()})
        if near:
            first = parts.get(ranked[0]) if ranked else None
            certain = self._cover(first[0], words) if first else 0.0
            ranked = _fuse_ranks(ranked, [one.document for one in near], certain)
        choices = _choose_passages(
            {document: passage for document, (passage, _) in parts.items()},
            {one.document: one.passage for one in near},
        )
        found = list[DocumentPassage]()
        for document in ranked[:limit]:
            passages = choices.get(document) or (self._best_passage(document, condition),)
            found.append(self._passage(passages[0], max(self._cover(one, words) for one in passages), words))
        return found

    def _use_wal(self) -> None:
        """Switch to the write-ahead log: readers do not wait for the writer."""
        for left in reversed(range(_WAL_ATTEMPTS)):
            try:
                self._database.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                # Where another connection switches at the same time, SQLite does not wait.
                if not left or is_damaged(error):
                    raise
                time.sleep(_WAL_SECONDS)
            else:
                return

    def _create_schema(self) -> None:
        with self._transaction():
            if not self._database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                for statement in _SCHEMA.split(";\n"):
                    self._database.execute(statement)

    def _register(self, name: str, folder: str) -> int:
        """Return the number of the collection; remove what nobody has used for two months."""
        now = time.time()
        with self._transaction():
            self._database.execute(
                "INSERT INTO collection (name, folder, used_at) VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET used_at = excluded.used_at",
                (name, folder, now),
            )
            unused = self._database.execute(
                "SELECT id FROM collection WHERE used_at < ?", (now - _UNUSED_SECONDS,)
            ).fetchall()
            for (number,) in unused:
                rows = self._database.execute("SELECT id FROM document WHERE collection = ?", (number,))
                for (document,) in rows.fetchall():
                    self._delete(document)
                self._database.execute("DELETE FROM collection WHERE id = ?", (number,))
            [number] = self._database.execute(
                "SELECT id FROM collection WHERE name = ? AND folder = ?", (name, folder)
            ).fetchone()
        return number

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def _insert(self, new: NewDocument) -> None:
        characters, note = len(new.text.strip()), new.note
        passages = list(split_document(new.text, new.format_key))
        language = identify_language(new.text)
        if len(passages) == MAX_PASSAGES:
            note = f"{note} Only its first {MAX_PASSAGES:,} passages are indexed.".strip()
        columns = (
            "collection, name, modified_ns, size, sha256, reader, read_at, format, language, title, "
            "characters, note, problem"
        )
        values = (self._collection, new.name, new.stamp.modified_ns, new.stamp.size, new.sha256, new.reader)
        document = self._database.execute(
            f"INSERT INTO document ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, time.time(), new.format_key, language, new.title, characters, note, new.problem),
        ).lastrowid
        if not passages:
            return
        whole, parts = self._indexed(new.title, new.name, language, [one.text for one in passages])
        for passage, part in zip(passages, parts, strict=True):
            row = self._database.execute(
                "INSERT INTO passage (document, line, heading, text) VALUES (?, ?, ?, ?)",
                (document, passage.line, passage.heading, passage.text),
            ).lastrowid
            self._database.execute(
                "INSERT INTO part (rowid, head, body, stems) VALUES (?, ?, ?, ?)", (row, *part)
            )
        self._database.execute(
            "INSERT INTO whole (rowid, title, path, body, stems) VALUES (?, ?, ?, ?, ?)", (document, *whole)
        )

    def _remove(self, name: str) -> None:
        row = self._database.execute(
            "SELECT id FROM document WHERE collection = ? AND name = ?", (self._collection, name)
        ).fetchone()
        if row is not None:
            self._delete(row[0])

    def _delete(self, document: int) -> None:
        """Delete a document. Contentless tables must be given the words that they forget."""
        name, title, language = self._database.execute(
            "SELECT name, title, language FROM document WHERE id = ?", (document,)
        ).fetchone()
        passages = self._database.execute(
            "SELECT id, text FROM passage WHERE document = ? ORDER BY id", (document,)
        ).fetchall()
        whole, parts = self._indexed(title, name, language, [text for _, text in passages])
        for (row, _), part in zip(passages, parts, strict=True):
            self._database.execute(
                "INSERT INTO part (part, rowid, head, body, stems) VALUES ('delete', ?, ?, ?, ?)",
                (row, *part),
            )
        if passages:
            self._database.execute(
                "INSERT INTO whole (whole, rowid, title, path, body, stems) VALUES ('delete', ?, ?, ?, ?, ?)",
                (document, *whole),
            )
        self._database.execute("DELETE FROM passage WHERE document = ?", (document,))
        self._database.execute("DELETE FROM document WHERE id = ?", (document,))

    def _indexed(
        self, title: str, name: str, language: str, texts: Sequence[str]
    ) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the columns of `whole`, and those of `part` for each passage.

        The same texts always give the same words: see `database_name`.
        """
        titles, names = normalize_words(title), normalize_words(name)
        head = pair_unspaced(f"{titles}\n{names}", with_ends=True)
        head_stems = self._stemmer.stems_of(f"{titles}\n{names}", language)
        normal = [normalize_words(text) for text in texts]
        bodies = [pair_unspaced(text, with_ends=True) for text in normal]
        stems = [self._stemmer.stems_of(text, language) for text in normal]
        parts = [(head, body, f"{head_stems} {own}") for body, own in zip(bodies, stems, strict=True)]
        paired = (pair_unspaced(text, with_ends=True) for text in (titles, names))
        return (*paired, "\n".join(bodies), " ".join((head_stems, *stems))), parts

    def _languages(self, words: Sequence[str]) -> list[str]:
        """Return the languages whose stems are looked for: the query's, else those of many documents.

        Where few documents have stems, each counts as a rare word, and would outweigh the words themselves.
        """
        named = possible_languages(words)
        if len(named) == 1:
            return named
        rows = self._database.execute(
            "SELECT language FROM document WHERE collection = ? GROUP BY language HAVING count(*) >= ?",
            (self._collection, _LANGUAGE_SHARE * self._count()),
        )
        return [language for (language,) in rows]

    def _count(self) -> int:
        [count] = self._database.execute(
            "SELECT count(*) FROM document WHERE collection = ?", (self._collection,)
        ).fetchone()
        return count

    def _weigh(self, texts: Sequence[str], languages: Sequence[str]) -> list[_Word]:
        count = self._count()
        words = list[_Word]()
        for text in texts:
            # Only documents of another language than English have stems.
            stems = dict.fromkeys(self._stemmer.stem(text, language) for language in languages)
            others = [f"stems : {_condition(stem)}" for stem in stems if stem != text]
            condition = f"({' OR '.join((_condition(text), *others))})" if others else _condition(text)
            [found] = self._database.execute(
                "SELECT count(*) FROM whole WHERE whole MATCH ?", (condition,)
            ).fetchone()
            weight = math.log(1 + (max(0, count - found) + 0.5) / (found + 0.5))
            words.append(_Word(text, condition, found, weight))
        return words

    def _rank_documents(self, condition: str) -> dict[int, float]:
        """Return the best documents with their scores, which are greater for better ones."""
        rows = self._database.execute(
            "SELECT document.id, -rank FROM whole JOIN document ON document.id = whole.rowid"
            " WHERE whole MATCH ? AND collection = ? ORDER BY rank LIMIT ?",
            (condition, self._collection, _CANDIDATES),
        )
        return dict(rows.fetchall())

    def _rank_passages(self, condition: str) -> dict[int, tuple[int, float]]:
        """Return the best passage of each document that has one of the best, and its score."""
        rows = self._database.execute(
            "SELECT document, passage.id, -rank FROM part JOIN passage ON passage.id = part.rowid"
            " JOIN document ON document.id = document WHERE part MATCH ? AND collection = ?"
            " ORDER BY rank LIMIT ?",
            (condition, self._collection, _PASSAGE_CANDIDATES),
        )
        best: dict[int, tuple[int, float]] = {}
        for document, passage, score in rows:
            best.setdefault(document, (passage, score))
        return best

    def _passage(self, passage: int, coverage: float, words: Sequence[_Word]) -> DocumentPassage:
        name, title, characters, note, key, *where = self._database.execute(
            "SELECT name, title, characters, note, format, line, heading, text FROM passage"
            " JOIN document ON document.id = document WHERE passage.id = ?",
            (passage,),
        ).fetchone()
        found = TextPassage(*where)
        rarest = [word.text for word in sorted(words, key=lambda word: -word.weight) if word.documents]
        place = found.locate(rarest, key)
        return DocumentPassage(name, title, found.text, place, characters, note, coverage)

    def _best_passage(self, document: int, condition: str) -> int:
        """Return the best passage of a document; the first one where only its title or path was found."""
        first, last = self._database.execute(
            "SELECT min(id), max(id) FROM passage WHERE document = ?", (document,)
        ).fetchone()
        row = self._database.execute(
            "SELECT rowid FROM part WHERE part MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rank LIMIT 1",
            (condition, first, last),
        ).fetchone()
        return row[0] if row else first

    def _cover(self, passage: int, words: Sequence[_Word]) -> float:
        found = sum(word.weight for word in words if word.documents and self._has(passage, word.condition))
        return found / (sum(word.weight for word in words) or 1.0)

    def _has(self, passage: int, condition: str) -> bool:
        row = self._database.execute(
            "SELECT 1 FROM part WHERE part MATCH ? AND rowid = ?", (condition, passage)
        ).fetchone()
        return row is not None


def _informative(words: Sequence[_Word], documents: int) -> list[_Word]:
    """Return the words that some document has, without those that most have where there are others."""
    known = [word for word in words if word.documents]
    if documents < _MIN_DOCUMENTS:
        return known
    return [word for word in known if word.documents <= _COMMON_SHARE * documents] or known


def _fuse(wholes: Mapping[int, float], parts: Mapping[int, float]) -> list[int]:
    """Return the documents by the sum of both scores, each in relation to the best of its kind."""
    best_whole = max(wholes.values(), default=0.0) or sys.float_info.min
    best_part = max(parts.values(), default=0.0) or sys.float_info.min
    scores = {
        document: wholes.get(document, 0.0) / best_whole + parts.get(document, 0.0) / best_part
        for document in (*wholes, *parts)
    }
    return sorted(scores, key=lambda document: (-scores[document], document))


def _fuse_ranks(by_words: Sequence[int], by_meaning: Sequence[int], certainty: float) -> list[int]:
    """Return the documents of both rankings by reciprocal rank fusion.

    `certainty` is the part of the question's words that the best passage has. The more it has, the less
    meaning counts: where it has all of them, meaning only adds documents behind those with the words.
    """
    scores: dict[int, float] = {}
    for weight, ranking in ((1.0, by_words), ((1.0 - certainty) ** 2, by_meaning)):
        for rank, document in enumerate(ranking, 1):
            scores[document] = scores.get(document, 0.0) + weight / (_RANK_OFFSET + rank)
    return sorted(scores, key=lambda document: -scores[document])


def _choose_passages(
    by_words: Mapping[int, int], by_meaning: Mapping[int, int]
) -> dict[int, tuple[int, ...]]:
    """Return the best passages of each document, first the one whose document has the better rank.

    Both are the passages by document, best first.
    """
    chosen: dict[int, tuple[int, ...]] = {}
    ranks = {document: rank for rank, document in enumerate(by_words)}
    nearest = {document: rank for rank, document in enumerate(by_meaning)}
    for document in (*by_words, *by_meaning):
        found = [one[document] for one in (by_words, by_meaning) if document in one]
        if len(found) == 2 and nearest[document] < ranks[document]:
            found.reverse()
        chosen[document] = tuple(dict.fromkeys(found))
    return chosen


def query_words(query: str) -> list[str]:
    """Return the words of a query, each once."""
    pieces = _SPLIT.split(pair_unspaced(normalize_words(query)))
    return [piece for piece in dict.fromkeys(pieces) if any(map(str.isalnum, piece))]


def _condition(word: str) -> str:
    """Return a word of a query as a condition of FTS5."""
    quoted = '"' + word.replace('"', " ").replace("\0", " ") + '"'
    return f"{quoted}*" if len(word) == 1 and is_unspaced(word) else quoted
