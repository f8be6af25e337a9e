"""A full-text index of passages, ranked by BM25: SQLite's FTS5, in a file that ends with its connection."""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from maniple.search.files import Stamp

PASSAGE_CHARACTERS = 1_000
MAX_PASSAGES = 2_000
"""Of one document; what comes after them is not found."""
_QUERY_WORDS = 16
# Languages that are written without spaces are searched by pairs of neighbouring characters.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+")
_WORD = re.compile(r"[^\W_]+")
_SHORT = 3

_SCHEMA = """
CREATE TABLE document (
    id INTEGER PRIMARY KEY, name TEXT UNIQUE, title TEXT, modified_ns INTEGER, size INTEGER,
    characters INTEGER, note TEXT
);
CREATE VIRTUAL TABLE passage USING fts5(
    words, text UNINDEXED, document UNINDEXED, tokenize = 'porter unicode61'
);
CREATE TABLE place (passage INTEGER PRIMARY KEY, document INTEGER);
CREATE INDEX place_document ON place (document);
"""


@dataclass(frozen=True, slots=True)
class Passage:
    """The best passage of a document, which has so many `characters`; `note` says what of it was left out."""

    name: str
    title: str
    text: str
    characters: int
    note: str


class PassageIndex:
    """Documents by name, cut to passages. Every method blocks; one thread at a time."""

    def __init__(self) -> None:
        # "": a temporary file of its own. Nothing is committed: there is nothing to go back to, and commits
        # after each document make the indexing take 1.6 times as long.
        self._database = sqlite3.connect("", check_same_thread=False)
        self._database.executescript(_SCHEMA)

    def close(self) -> None:
        """Forget everything."""
        self._database.close()

    def stamps(self) -> dict[str, Stamp]:
        """Return what is known, by name."""
        rows = self._database.execute("SELECT name, modified_ns, size FROM document")
        return {name: Stamp(modified_ns, size) for name, modified_ns, size in rows}

    def put(self, name: str, stamp: Stamp, title: str, text: str, note: str = "") -> None:
        """Put a document in the place of what stood under its name; an empty text is never found."""
        self._remove(name)
        row = (name, title, stamp.modified_ns, stamp.size, len(text.strip()), note)
        names = "name, title, modified_ns, size, characters, note"
        put = f"INSERT INTO document ({names}) VALUES (?, ?, ?, ?, ?, ?)"
        document = self._database.execute(put, row).lastrowid
        for passage in passages_of(text):
            words = spaced(f"{title}\n{passage}", with_ends=True)
            insert = "INSERT INTO passage (words, text, document) VALUES (?, ?, ?)"
            place = self._database.execute(insert, (words, passage, document)).lastrowid
            self._database.execute("INSERT INTO place VALUES (?, ?)", (place, document))

    def remove(self, names: Iterable[str]) -> None:
        """Forget documents."""
        for name in names:
            self._remove(name)

    def find(self, query: str, limit: int) -> list[Passage]:
        """Return at most `limit` documents, each with its best passage, best first.

        A document counts when it has two fifths of the query's words: of a question's, many are no topic's.
        """
        words = _asked(query)
        able = self._with_most_of(words)
        if not able:
            return []
        found: dict[int, Passage] = {}
        ranked = self._database.execute(
            "SELECT id, name, title, text, characters, note FROM passage JOIN document ON id = document"
            " WHERE passage MATCH ? ORDER BY rank",
            (" OR ".join(map(_quoted, words)),),
        )
        for document, *passage in ranked:
            if document in able:
                found.setdefault(document, Passage(*passage))
            if len(found) == limit:
                break
        return list(found.values())

    def _with_most_of(self, words: Sequence[str]) -> set[int]:
        has: dict[int, int] = {}
        for word in words:
            rows = self._database.execute(
                "SELECT DISTINCT document FROM passage WHERE passage MATCH ?", (_quoted(word),)
            )
            for (document,) in rows:
                has[document] = has.get(document, 0) + 1
        return {document for document, count in has.items() if 5 * count >= 2 * len(words)}

    def _remove(self, name: str) -> None:
        row = self._database.execute("SELECT id FROM document WHERE name = ?", (name,)).fetchone()
        if row is not None:
            where = "rowid IN (SELECT passage FROM place WHERE document = ?)"
            self._database.execute(f"DELETE FROM passage WHERE {where}", row)
            self._database.execute("DELETE FROM place WHERE document = ?", row)
            self._database.execute("DELETE FROM document WHERE id = ?", row)


def passages_of(text: str) -> Iterator[str]:
    """Yield pieces of at most `PASSAGE_CHARACTERS`, cut at paragraphs, else lines, else words."""
    start, pieces = 0, 0
    while start < len(text) and pieces < MAX_PASSAGES:
        end = start + PASSAGE_CHARACTERS
        if end < len(text):
            middle = start + PASSAGE_CHARACTERS // 2
            cuts = (text.rfind(mark, middle, end) for mark in ("\n\n", "\n", " "))
            end = next((cut for cut in cuts if cut > 0), end)
        if piece := text[start:end].strip():
            pieces += 1
            yield piece
        start = end


def spaced(text: str, *, with_ends: bool = False) -> str:
    """Return `text` with pairs of neighbouring characters in the place of what is written without spaces.

    Every character begins a pair but the last one of each run, which `with_ends` stands alone after them: so
    a single one is found by what begins with it.
    """
    return _UNSPACED.sub(lambda run: f" {' '.join(_pairs(run[0], with_ends))} ", text)


def _pairs(letters: str, with_end: bool) -> list[str]:
    pairs = [letters[i : i + 2] for i in range(len(letters) - 1)]
    return [*pairs, letters[-1]] if with_end or not pairs else pairs


def _asked(query: str) -> list[str]:
    """Return the words to look for; short ones, which say little, only when there are hardly any others."""
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(spaced(query))))
    telling = [word for word in words if len(word) > _SHORT or not word.isascii()]
    return (telling if len(telling) > 1 else words)[:_QUERY_WORDS]


def _quoted(word: str) -> str:
    return f'"{word}"*' if len(word) == 1 and _UNSPACED.match(word) else f'"{word}"'
