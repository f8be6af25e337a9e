"""A full-text index of texts by name, whose hits have a line and a snippet with the words marked.

Passages are indexed with SQLite's FTS5 and ranked by BM25. A query is plain words, never FTS5's own syntax.
Words are found in other cases and forms, with and without diacritics and hyphens, and in text without spaces.
"""

import re
import sqlite3
import unicodedata
import weakref
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from maniple.search.passages import UNSPACED_CHARACTERS, normalize_words, pair_unspaced, split_lines
from maniple.text import fix_surrogates

MAX_WORDS = 24
"""Of a query; the words after them are left out."""
SNIPPET_CHARACTERS = 240
MAX_HITS_OF_TEXT = 2
_BEFORE_MATCH = 60
_MAX_CANDIDATES = 200
_MAX_ALSO = 3
_QUERY_CHARACTERS = 2_000
_OPERATORS = frozenset({"AND", "OR", "NOT", "NEAR"})
_MIN_PREFIX = 4
"""Longer words also find those that begin with them."""
_ENDING = 2
"""The last letters of a word that its other forms may lack, where the words of a snippet are marked."""
# "co-operation" is found as "cooperation", and 1,234.5 as 1234.5, and the other way round.
# The possessive quantifier keeps this linear in a text without spaces.
_HYPHENATED = re.compile(r"(?<![^\W\d_])[^\W\d_]++(?:[-\u2010\u2011'\u2019][^\W\d_]+){1,3}")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:[,.'\u2019\u00a0\u202f]\d{3})+(?:[.,]\d+)?(?!\d)")
_GROUP_END = re.compile(r"[,.'\u2019\u00a0\u202f](?=\d{3}(?!\d))")
_INNER_MARK = r"[-\u2010\u2011'\u2019,.]?"
_UNSPACED = re.compile(f"[{UNSPACED_CHARACTERS}]")
_LETTER = rf"[^\W_{UNSPACED_CHARACTERS}]"
_NOT_WORD = re.compile(r"[\W_]+")
# Letters with marks of Indic scripts are words, too; the default leaves the marks out.
_TOKENIZER = "porter unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc''"
_SCHEMA = f"""
CREATE TABLE text (id INTEGER PRIMARY KEY, name TEXT UNIQUE, stamp TEXT);
CREATE TABLE place (
    id INTEGER PRIMARY KEY, text INTEGER, line INTEGER, character INTEGER, content TEXT
);
CREATE INDEX place_text ON place (text);
CREATE VIRTUAL TABLE passage USING fts5(words, head, tokenize = '{_TOKENIZER}');
"""


class NoFullTextSearch(Exception):
    """Python's SQLite was built without FTS5."""


@dataclass(frozen=True, slots=True)
class TextHit:
    """A passage of the text `name`; `line` and `character`, from 1, are where the snippet's words are.

    `also` are other texts that have the same passage.
    """

    name: str
    line: int
    character: int
    snippet: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextHits:
    """The hits of a query, best first; `has_all` is whether each has all words of the query."""

    hits: tuple[TextHit, ...] = ()
    has_all: bool = True


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a query, as a condition of FTS5 and as a pattern of folded text."""

    condition: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Passage:
    """A row of the index."""

    name: str
    line: int
    character: int
    content: str


class TextIndex:
    """Texts by name, in a temporary file. Every method blocks; one thread at a time."""

    def __init__(self) -> None:
        """Raise `NoFullTextSearch` without FTS5."""
        # "": a temporary file that nobody else can open. Nothing is committed: there is no state to restore.
        self._database = sqlite3.connect("", check_same_thread=False)
        try:
            self._database.executescript(_SCHEMA)
        except sqlite3.OperationalError as error:
            self._database.close()
            raise NoFullTextSearch(str(error)) from error
        # For an index that is dropped: from Python 3.13 on, a connection that nobody closes is a warning.
        self._end = weakref.finalize(self, self._database.close)

    def close(self) -> None:
        """Delete the index. One that nobody uses any more is deleted without it."""
        self._end()

    def stamps(self) -> dict[str, str]:
        """Return the stamps of the indexed texts by name."""
        return dict(self._database.execute("SELECT name, stamp FROM text"))

    def put(self, name: str, stamp: str, text: str, title: str = "") -> None:
        """Index a text, replacing the one of that name; its name and title are found with each passage."""
        self.remove([name])
        number = self._database.execute(
            "INSERT INTO text (name, stamp) VALUES (?, ?)", (name, stamp)
        ).lastrowid
        head = _words_of(f"{name}\n{title}")
        for line, character, content in split_lines(fix_surrogates(text)):
            row = self._database.execute(
                "INSERT INTO place (text, line, character, content) VALUES (?, ?, ?, ?)",
                (number, line, character, content),
            ).lastrowid
            self._database.execute(
                "INSERT INTO passage (rowid, words, head) VALUES (?, ?, ?)", (row, _words_of(content), head)
            )

    def remove(self, names: Collection[str]) -> None:
        """Remove texts from the index."""
        for name in names:
            row = self._database.execute("SELECT id FROM text WHERE name = ?", (name,)).fetchone()
            if row is not None:
                of_text = "IN (SELECT id FROM place WHERE text = ?)"
                self._database.execute(f"DELETE FROM passage WHERE rowid {of_text}", row)
                self._database.execute("DELETE FROM place WHERE text = ?", row)
                self._database.execute("DELETE FROM text WHERE id = ?", row)

    def find(self, query: str, limit: int, min_share: float = 0.0) -> TextHits:
        """Return at most `limit` passages, best first: those with all words, else those with some.

        Of the latter, those with most words come first, and `min_share` of the words is the least.
        """
        words = _query_words(query)
        if not words:
            return TextHits()
        found = self._select(" AND ".join(word.condition for word in words))
        if found:
            return TextHits(_choose(found, words, limit))
        found = self._select(" OR ".join(word.condition for word in words))
        counts = [(_count_words(one, words), one) for one in found]
        wanted = [one for one in counts if one[0] >= max(1, min_share * len(words))]
        ranked = [one for _, one in sorted(wanted, key=lambda one: -one[0])]
        return TextHits(_choose(ranked, words, limit), has_all=False)

    def _select(self, condition: str) -> list[_Passage]:
        rows = self._database.execute(
            "SELECT name, line, character, content FROM passage JOIN place ON place.id = passage.rowid"
            " JOIN text ON text.id = place.text WHERE passage MATCH ? ORDER BY rank LIMIT ?",
            (condition, _MAX_CANDIDATES),
        )
        return [_Passage(*row) for row in rows]


def _words_of(text: str) -> str:
    """Return what is indexed of a text: its words, and the joined forms of its compounds."""
    joined = " ".join(_joined_forms(text))
    return pair_unspaced(normalize_words(f"{text}\n{joined}"), with_ends=True)


def _joined_forms(text: str) -> Iterator[str]:
    for found in _HYPHENATED.finditer(text):
        yield _NOT_WORD.sub("", found[0])
    for found in _GROUPED.finditer(text):
        yield _GROUP_END.sub("", found[0])


def _query_words(query: str) -> list[_Word]:
    query = fix_surrogates(query[:_QUERY_CHARACTERS])
    pieces = [piece for piece in query.split() if piece not in _OPERATORS]
    parts = [part for piece in pieces for part in pair_unspaced(normalize_words(piece)).split()]
    named = [part for part in dict.fromkeys(parts) if any(map(str.isalnum, part))]
    return [_word(part) for part in named[:MAX_WORDS]]


def _word(part: str) -> _Word:
    if _UNSPACED.match(part):
        condition = _quoted(part) + ("*" if len(part) == 1 else "")
        return _Word(condition, re.compile(re.escape(_fold(part)[0])))
    forms = list(dict.fromkeys([part, *_joined_forms(part)]))
    conditions = [_quoted(form) + ("*" if _has_forms(form) else "") for form in forms]
    condition = conditions[0] if len(conditions) == 1 else f"({' OR '.join(conditions)})"
    patterns = "|".join(filter(None, map(_pattern, forms)))
    return _Word(condition, re.compile(f"(?<!{_LETTER})(?:{patterns})"))


def _has_forms(word: str) -> bool:
    last = [part for part in _NOT_WORD.split(word) if part][-1]
    return len(last) >= _MIN_PREFIX and last.isalpha()


def _pattern(form: str) -> str:
    """Return the regular expression of a word in folded text, also with another ending."""
    parts = [part for part in _NOT_WORD.split(_fold(form)[0]) if part]
    if not parts:
        return ""
    if _has_forms(form):
        parts[-1] = parts[-1][: max(_MIN_PREFIX, len(parts[-1]) - _ENDING)]
    spelled = r"[\W_]+".join(map(_INNER_MARK.join, parts))
    return spelled + (f"{_LETTER}*" if _has_forms(form) else f"(?!{_LETTER})")


def _quoted(word: str) -> str:
    return '"' + word.replace('"', " ").replace("\0", " ") + '"'


def _fold(text: str) -> tuple[str, list[int]]:
    """Return `text` without case and diacritics, and for each character the place that it is from."""
    if text.isascii():
        return text.lower(), list(range(len(text)))
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for letter in unicodedata.normalize("NFKD", character).casefold():
            if unicodedata.category(letter) != "Mn" or letter > "\u036f":
                letters.append(letter)
                places.append(place)
    return "".join(letters), places


def _count_words(passage: _Passage, words: Sequence[_Word]) -> int:
    text = f"{_fold(passage.content)[0]}\n{_fold(passage.name)[0]}"
    return sum(word.pattern.search(text) is not None for word in words)


def _choose(found: Sequence[_Passage], words: Sequence[_Word], limit: int) -> tuple[TextHit, ...]:
    """Return the first `limit` of different passages, at most `MAX_HITS_OF_TEXT` of one text."""
    chosen: dict[str, TextHit] = {}
    counts: dict[str, int] = {}
    for one in found:
        same = chosen.get(one.content.strip()) if one.content.strip() else None
        if same is not None:
            if one.name not in (same.name, *same.also) and len(same.also) < _MAX_ALSO:
                chosen[one.content.strip()] = TextHit(
                    same.name, same.line, same.character, same.snippet, (*same.also, one.name)
                )
        elif counts.get(one.name, 0) < MAX_HITS_OF_TEXT and len(chosen) < limit:
            spans = _find_words(one.content, words)
            if not spans and one.name in counts:
                continue  # only its head has the words, which a hit shows already
            counts[one.name] = counts.get(one.name, 0) + 1
            chosen[one.content.strip() or one.name] = _hit(one, spans)
    return tuple(chosen.values())


def _find_words(text: str, words: Sequence[_Word]) -> list[tuple[int, int, int]]:
    """Return the beginning and the end of each word in `text`, with its number in the query."""
    folded, places = _fold(text)
    return sorted(
        (places[found.start()], _end_of_letter(text, places[found.end() - 1]), number)
        for number, word in enumerate(words)
        for found in word.pattern.finditer(folded)
        if found.end() > found.start()
    )


def _end_of_letter(text: str, place: int) -> int:
    """Return the end of the letter at `place`, behind its marks."""
    end = place + 1
    while end < len(text) and unicodedata.category(text[end]).startswith("M"):
        end += 1
    return end


def _hit(passage: _Passage, spans: Sequence[tuple[int, int, int]]) -> TextHit:
    first = max((span[0] for span in spans), key=lambda start: _rate_window(spans, start), default=0)
    before = passage.content[:first]
    line = passage.line + before.count("\n")
    character = len(before) - before.rfind("\n") if "\n" in before else passage.character + len(before)
    return TextHit(passage.name, line, character, _mark(passage.content, spans, first))


def _rate_window(spans: Sequence[tuple[int, int, int]], start: int) -> tuple[int, int, int]:
    """Return how good a snippet from `start` on is: with many words, close together, at the beginning."""
    seen: dict[int, int] = {}
    for begin, stop, number in spans:
        if start <= begin and stop <= start + SNIPPET_CHARACTERS - _BEFORE_MATCH:
            seen.setdefault(number, stop)
    return len(seen), start - max(seen.values(), default=start), -start


def _mark(text: str, spans: Sequence[tuple[int, int, int]], first: int) -> str:
    """Return the part of `text` around `first` in one line, with the words between asterisks."""
    start = max(0, first - _BEFORE_MATCH)
    end = min(len(text), start + SNIPPET_CHARACTERS)
    pieces, at = list[str](), start
    for begin, stop in _merged(spans):
        if begin >= at and stop <= end:
            pieces += (text[at:begin], "**", text[begin:stop], "**")
            at = stop
    pieces.append(text[at:end])
    shown = " ".join("".join(pieces).split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"


def _merged(spans: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Return the spans, with those that overlap or touch as one: pairs of characters are one word."""
    merged: list[tuple[int, int]] = []
    for begin, stop, _ in spans:
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((begin, stop))
    return merged
