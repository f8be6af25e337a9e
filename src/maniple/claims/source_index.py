"""The text of one source, indexed once: its sentences and table cells, their words, figures and dates."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from heapq import nsmallest
from math import log

from maniple.claims.dates import DateMention, agree_dates, find_dates
from maniple.claims.figures import find_figures, with_unit
from maniple.claims.month_names import months_by_name
from maniple.claims.passages import IndexedPassage
from maniple.claims.quantities import AFFINE_UNITS, FigureMention, agree, find_coarse_step
from maniple.claims.sentences import find_sentence_ends
from maniple.claims.table_index import TableIndex
from maniple.claims.terms import find_names, find_terms
from maniple.claims.units import FigureTail, read_head_unit
from maniple.claims.verdict import SourcePassage

MAX_SENTENCE = 1_500
"""Characters of a sentence; a longer one is cut, so that no pattern runs over a whole book."""
MAX_LINE = 60_000
"""Characters of a line; a longer one is cut, too."""
MAX_CANDIDATES = 400
"""Passages that are compared with the words of a claim. The rarest words choose them."""
MAX_NAMED = 40
"""Passages with a word in which it is looked up whether it is a name."""
_WRAPPED_LENGTH = 24
"""Characters from which a line may be wrapped, so that the next one continues it."""
_HYPHEN_END = re.compile(r"[^\W\d_]-\s*\Z")
_CONTINUATION = re.compile(r"\s{0,3}(?!\d+[.)]\s|\((?:[^\W\d_]|\d+|[ivx]+)\)\s)[(\[“„«\"‘]?[^\W_]")
_COLUMNS = re.compile(r"\S\s{2,}\S")
MAX_CAPTION = 120
"""Characters of a line above a table that may give the unit of its cells."""
_DELIMITER = re.compile(r"[\s|:-]*-[\s|:-]*")
_BAR = re.compile(r"(?<!\\)\|")
_MAY_BE_DATE = re.compile(
    r"(?<!\d)\d{4}(?!\d)|\d[./’'‐-]\d|[年月日년월일]|\b(?:FY|Q[1-4]|H[12]|[1-4]Q)|['’]\d\d"
)
_HAS_FIGURE = re.compile(r"\d")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_DATELINE_PLACES = 4
"""Passages at the beginning of a source among which a line may say who published it when."""
_SENTENCE_END = re.compile(r"[.!?:;。！？：；…][\s\"'”’»)\]]*\Z")
_NARROW, _WIDE = 0.03, 0.13
"""The largest distance, as a share of the value, of figures that may agree: without and with a hedge."""
_SAME = 1e-8
_MAX_YEARS = 100


class SourceIndex:
    """The passages of a source by words, figures and dates.

    `number` is that of the source, or 0. `texts` are what was read there. Look-ups take time in
    proportion to what they find, not to the length of the source.
    """

    def __init__(self, number: int, title: str, texts: Iterable[str], language: str = "") -> None:
        self.number = number
        self.title = title
        self.characters = len(title)
        self.language = language
        self.passages: list[IndexedPassage] = []
        self.title_terms = find_terms(title)
        self.tables: list[TableIndex] = []
        builder = _PassageBuilder(number, language, self.tables)
        for index, text in enumerate(texts):
            self.characters += len(text)
            self.passages += builder.read(text, index)
        for table in self.tables:
            table.finish()
        self._place_of = {id(one): place for place, one in enumerate(self.passages)}
        self._postings: dict[str, list[int]] = {}
        for place, one in enumerate(self.passages):
            for term in one.terms:
                self._postings.setdefault(term, []).append(place)
        self._place_sets: dict[str, frozenset[int]] = {}
        """The postings of terms that were looked up as sets."""
        self._is_name: dict[str, bool] = {}
        self._index_values()

    def _index_values(self) -> None:
        title = IndexedPassage(
            SourcePassage(self.number, self.title, 0),
            self.title_terms,
            tuple(find_figures(self.title, self.language)),
            tuple(find_dates(self.title, self.language)),
        )
        everywhere = [*self.passages, title]
        self._figures = [(figure, one) for one in everywhere for figure in one.figures]
        ordered = sorted(
            (value, place) for place, (figure, _) in enumerate(self._figures) for value in _find_keys(figure)
        )
        self._values = [value for value, _ in ordered]
        self._places = [place for _, place in ordered]
        self._dates: dict[int | None, list[tuple[DateMention, IndexedPassage]]] = {}
        for one in everywhere:
            for date in one.dates:
                self._dates.setdefault(date.year, []).append((date, one))

    @property
    def label(self) -> str:
        """The number of the source as a report cites it."""
        return f"[{self.number}]"

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read at the source."""
        return not self.passages

    def find_figure(self, figure: FigureMention) -> list[tuple[FigureMention, IndexedPassage]]:
        """Return the figures that agree with a figure of a claim, with their passages."""
        return [(other, one) for other, one in self.find_near(figure) if agree(figure, other)]

    def find_near(self, figure: FigureMention) -> Iterator[tuple[FigureMention, IndexedPassage]]:
        """Yield the figures of about the same value, of any kind and unit, in the order of the text."""
        places = set[int]()
        for value, apart in _find_ranges(figure):
            low, high = bisect_left(self._values, value - apart), bisect_right(self._values, value + apart)
            places.update(self._places[low:high])
        if figure.unit in AFFINE_UNITS:
            places.update(place for place, (one, _) in enumerate(self._figures) if one.unit in AFFINE_UNITS)
        for place in sorted(places):
            yield self._figures[place]

    def find_date(self, date: DateMention) -> list[tuple[DateMention, IndexedPassage]]:
        """Return the dates that agree with a date of a claim, with their passages."""
        years = self._dates.keys()
        if date.year is not None:
            # A period is found by its first year.
            near = range(date.year - 1, date.year + min(date.years, _MAX_YEARS) + 1)
            years = [None, *near]
        known = (pair for year in years for pair in self._dates.get(year, ()))
        return [(other, one) for other, one in known if agree_dates(date, other)]

    def find_dates_of(self, most: int) -> list[DateMention]:
        """Return one date of each of the first `most` years that the source names."""
        return [self._dates[year][0][0] for year in [*self._dates][:most] if year is not None]

    def weight(self, term: str) -> float:
        """Return the weight of a term: high for a rare one."""
        return log(1 + len(self.passages) / (1 + len(self._postings.get(term, ()))))

    def knows(self, term: str) -> bool:
        """Whether a term occurs in the source or its title."""
        return term in self._postings or term in self.title_terms

    def has_name(self, term: str) -> bool:
        """Whether the source writes a term with a capital letter within a sentence."""
        if term not in self._is_name:
            near = (self.passages[place].passage.text for place in self._postings.get(term, ())[:MAX_NAMED])
            self._is_name[term] = any(term in find_names(text) for text in near)
        return self._is_name[term]

    def find_names(self, text: str) -> frozenset[str]:
        """Return the names of a text that speaks of the source; its first word if it is one in the source."""
        sure = find_names(text)
        return sure.union(filter(self.has_name, find_names(f"x {text}") - sure))

    def coverage(self, wanted: frozenset[str], known: frozenset[str]) -> float:
        """Return which share of `wanted`, by weight, `known` has; 0 without terms."""
        whole = sum(map(self.weight, wanted))
        return sum(self.weight(term) for term in wanted & known) / whole if whole else 0.0

    def find_similar(self, wanted: frozenset[str], most: int = 8) -> list[tuple[float, IndexedPassage]]:
        """Return the passages that have most of `wanted`, best first, each with its coverage."""
        rare = sorted(
            (one for one in wanted if one in self._postings), key=lambda one: len(self._postings[one])
        )
        scores = dict[int, float]()
        for term in rare:
            weight, postings = self.weight(term), self._postings[term]
            if len(scores) < MAX_CANDIDATES:
                for place in postings[:MAX_CANDIDATES]:
                    scores[place] = scores.get(place, 0.0) + weight
            else:
                known = self._places_of(term)
                for place in scores.keys() & known if len(known) > len(scores) else known:
                    if place in scores:
                        scores[place] += weight
        whole = sum(map(self.weight, wanted)) or 1.0
        best = nsmallest(most, [(-score, place) for place, score in scores.items()])
        return [(-score / whole, self.passages[place]) for score, place in best]

    def _places_of(self, term: str) -> frozenset[int]:
        """Return the places of a frequent term as a set, which is made once."""
        if term not in self._place_sets:
            self._place_sets[term] = frozenset(self._postings[term])
        return self._place_sets[term]

    def place_of(self, one: IndexedPassage) -> int:
        """Return the index of a passage in `passages`."""
        return self._place_of[id(one)]

    def has_place(self, one: IndexedPassage) -> bool:
        """Whether it is in `passages`; the title is not."""
        return id(one) in self._place_of

    def is_dateline(self, one: IndexedPassage) -> bool:
        """Whether a passage says when the source was published, as "By Ann Lee, 5 April 2008" at its top.

        Its words are those by which a claim names the source, and its date is that of nothing in it.
        """
        if one.table >= 0 or self._place_of.get(id(one), _DATELINE_PLACES) >= _DATELINE_PLACES:
            return False
        return any(date.day for date in one.dates) and not _SENTENCE_END.search(one.passage.text)

    def find_neighbours(self, one: IndexedPassage) -> list[IndexedPassage]:
        """Return a passage, then the ones before and behind it; of a table, its row."""
        if one.table >= 0:
            return [other for other in self.tables[one.table].cells if other.row == one.row]
        place = self.place_of(one)
        return [one, *self.passages[max(place - 1, 0) : place], *self.passages[place + 1 : place + 2]]

    def terms_before(self, one: IndexedPassage) -> frozenset[str]:
        """Return the terms of the passage before one; none at the beginning, and in tables."""
        place = self._place_of.get(id(one), 0)
        return self.passages[place - 1].terms if place and one.table < 0 else frozenset()

    def around(self, one: IndexedPassage) -> frozenset[str]:
        """Return the terms of a passage, the ones beside it, its headings and the title."""
        place = self.place_of(one)
        near = (other.terms for other in self.passages[max(place - 1, 0) : place + 2])
        return self.title_terms.union(one.around, *near)


def _find_keys(figure: FigureMention) -> set[float]:
    """Return the values under which a figure is found: in base units, as written, fractions as percent."""
    keys = {abs(float(value)) for value in figure.readings}
    keys |= {abs(float(value / figure.factor)) for value in figure.readings}
    is_share = figure.is_word or (figure.kind == "number" and figure.value < 1)
    return keys | {key * 100 for key in keys} if is_share else keys


def _find_ranges(figure: FigureMention) -> set[tuple[float, float]]:
    """Return the values under which the matches of a claim's figure may be, with the distance of each."""
    ranges = set[tuple[float, float]]()
    share = _WIDE if figure.about else _NARROW
    for value, step in zip(figure.readings, figure.steps, strict=True):
        coarse = find_coarse_step(abs(value), step)
        for scale in {Decimal(1), figure.factor}:
            reading = abs(float(value / scale))
            apart = min(float(coarse / scale), reading * share)
            if figure.about:
                apart = max(apart, reading * _NARROW)
            ranges.add((reading, max(apart, float(step / scale)) + reading * _SAME))
    return ranges


def find_cell_figures(
    cell: str, head: str, language: str = "", row: str = "", dates: Sequence[DateMention] | None = None
) -> list[tuple[FigureMention, ...]]:
    """Return the figures of a table's cell, each with the unit of its column or row, and as it stands.

    `dates` are those of the cell, if they are known already.
    """
    found = find_figures(cell, language, dates)
    tail = (read_head_unit(head, language) or read_head_unit(row, language)) if found else None
    if tail is None:
        return [(one,) for one in found]
    return [tuple(dict.fromkeys((with_unit(one, tail), one))) for one in found]


def split_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the sentences of one line. Long lines and sentences are cut."""
    for at in range(0, len(text), MAX_LINE):
        start = 0
        piece = text[at : at + MAX_LINE]
        for end in find_sentence_ends(piece):
            yield from _cut(at + start, at + end)
            start = end


def _cut(start: int, end: int) -> Iterator[tuple[int, int]]:
    for at in range(start, end, MAX_SENTENCE):
        yield at, min(at + MAX_SENTENCE, end)


class _PassageBuilder:
    """Reads texts line by line into passages. What was read before is left out, such as an extract."""

    def __init__(self, number: int, language: str, tables: list[TableIndex]) -> None:
        self._number = number
        self._language = language
        self._tables = tables
        self._around: frozenset[str] = frozenset()
        self._head: list[str] = []
        self._is_first = False
        """Whether the row that follows is the first below the head of a table."""
        self._unit: FigureTail | None = None
        """The unit that the heading or line above a table gives for its cells."""
        self._seen = set[str]()

    def _is_new(self, text: str, row: str = "", column: str = "") -> bool:
        key = f"{row}\n{column}\n{text}"
        return not (key in self._seen or self._seen.add(key))

    def read(self, text: str, index: int) -> Iterator[IndexedPassage]:
        self._around, self._head = frozenset[str](), list[str]()
        self._unit = None
        lines = join_lines(text)
        for place, (line, at) in enumerate(lines):
            passage = SourcePassage(self._number, line.strip(), at, index)
            if self._head and line.lstrip().startswith("|"):
                if not (self._is_first and self._extend_head(line)):
                    yield from self._read_row(line, passage)
                self._is_first = self._is_first and _DELIMITER.fullmatch(line) is not None
            elif place + 1 < len(lines) and _begins_table(line, lines[place + 1][0]):
                self._head, self._is_first = _split_row(line), True
                self._tables.append(TableIndex())
                yield from self._read_head(line, passage)
            else:
                self._head = []
                yield from self._read_line(line, at, index)

    def _extend_head(self, line: str) -> bool:
        """Join the second row of a head whose first row spans columns; return whether `line` is one."""
        cells = _split_row(line)
        if cells[:1] != [""] or not any(cells) or all(self._head[1:]):
            return False
        above, joined = "", [*self._head[:1]]
        for place, cell in enumerate(cells[1:], start=1):
            above = (self._head[place] if place < len(self._head) else "") or above
            joined.append(f"{above} {cell}".strip())
        self._head = joined
        return True

    def _read_head(self, line: str, passage: SourcePassage) -> Iterator[IndexedPassage]:
        """Yield the head of a table as one passage: its figures are limits, such as ages."""
        if _HAS_FIGURE.search(line) and self._is_new(passage.text):
            figures = [one for one in find_figures(line, self._language) if one.kind != "year"]
            yield IndexedPassage(passage, find_terms(line), tuple(figures), (), self._around)

    def _read_line(self, line: str, at: int, index: int) -> Iterator[IndexedPassage]:
        if _HEADING.match(line):
            self._around = find_terms(line)
        if line.strip():
            self._unit = read_head_unit(line.strip(), self._language) if len(line) <= MAX_CAPTION else None
        for start, end in split_sentences(line):
            words = line[start:end].strip()
            if words and self._is_new(words):
                terms = find_terms(words)
                dates = find_dates(words, self._language) if _may_have_date(words, terms) else []
                yield IndexedPassage(
                    SourcePassage(self._number, words, at + start + line[start:end].index(words[0]), index),
                    terms,
                    tuple(find_figures(words, self._language, dates)),
                    tuple(dates),
                    self._around,
                )

    def _read_row(self, line: str, passage: SourcePassage) -> Iterator[IndexedPassage]:
        if _DELIMITER.fullmatch(line):
            return
        row, *cells = _split_row(line)
        row_terms = find_terms(row)
        for place, cell in enumerate(cells, start=1):
            column = self._head[place] if place < len(self._head) else ""
            dates = find_dates(cell, self._language)
            one = IndexedPassage(
                passage,
                row_terms | find_terms(column) | find_terms(cell),
                tuple(one for group in self._find_figures(cell, row, column, dates) for one in group),
                tuple(dates),
                self._around,
                row,
                column,
                len(self._tables) - 1,
                cell,
                self._head[0],
            )
            self._tables[-1].cells.append(one)
            if self._is_new(cell or passage.text, row, column):
                yield one
        if _HAS_FIGURE.search(row) and self._is_new(passage.text):
            dates = find_dates(row, self._language)
            groups = self._find_figures(row, "", self._head[0], dates)
            figures = [one for group in groups for one in (group[-1:] if group[-1].kind == "year" else group)]
            yield IndexedPassage(passage, find_terms(line), tuple(figures), tuple(dates), self._around)

    def _find_figures(
        self, cell: str, row: str, column: str, dates: Sequence[DateMention]
    ) -> list[tuple[FigureMention, ...]]:
        found = find_cell_figures(cell, column, self._language, row, dates)
        if self._unit is None or all(group[0].unit or group[0].scale != 1 for group in found):
            return found
        return [
            group if group[0].unit else tuple(dict.fromkeys((with_unit(group[0], self._unit), *group)))
            for group in found
        ]


def join_lines(text: str) -> list[tuple[str, int]]:
    """Return the lines of a text with their offsets; a line that the next one continues is joined with it.

    Hyphens at the ends of wrapped lines are left out.
    """
    lines, pieces = list[tuple[str, int]](), list[str]()
    start = at = 0
    before = ""
    for line in text.split("\n"):
        if pieces and _is_continued(before, line):
            if _HYPHEN_END.search(before):
                pieces[-1] = pieces[-1].rstrip()[:-1]
            else:
                pieces.append(" ")
            pieces.append(line.lstrip())
        else:
            if pieces:
                lines.append(("".join(pieces), start))
            pieces, start = [line], at
        before = line
        at += len(line) + 1
    return [*lines, ("".join(pieces), start)]


def _is_continued(line: str, following: str) -> bool:
    """Whether `following` goes on with the sentence of a wrapped line: with a small letter or a number."""
    if len(line) < _WRAPPED_LENGTH or line.lstrip()[:1] in ("#", "|") or _COLUMNS.search(line):
        return False
    begins = _CONTINUATION.match(following)
    return begins is not None and (following[begins.end() - 1].islower() or line.rstrip()[-1:] not in ".:;!?")


def _may_have_date(text: str, terms: frozenset[str]) -> bool:
    """Whether a text may have a date: a quick test, as most sentences have none."""
    if text.isascii() and not _HAS_FIGURE.search(text):
        return False
    if _MAY_BE_DATE.search(text):
        return True
    return not terms.isdisjoint(_month_terms()) and _HAS_FIGURE.search(text) is not None


@cache
def _month_terms() -> frozenset[str]:
    return find_terms(" ".join(months_by_name()))


def _begins_table(line: str, following: str) -> bool:
    return "|" in line and "|" in following and _DELIMITER.fullmatch(following) is not None


def _split_row(line: str) -> list[str]:
    cells = _BAR.split(line.strip().removeprefix("|").removesuffix("|"))
    return [" ".join(one.replace("\\|", "|").split()) for one in cells]
