"""Chooses the passages of the sources that a judge of claims is shown, by BM25 over pieces of their texts."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import groupby, islice, zip_longest
from math import log
from typing import Literal

from maniple.claims.dates import DateMention, find_dates
from maniple.claims.figures import find_figures
from maniple.claims.passages import IndexedPassage
from maniple.claims.quantities import FigureMention
from maniple.claims.source_index import SourceIndex
from maniple.claims.split import Claim
from maniple.claims.table_index import TOTAL_TERMS, find_years
from maniple.claims.terms import find_terms, iterate_terms
from maniple.claims.verdict import SourcePassage

PIECE_CHARACTERS = 600
"""Characters of a piece of a source, with the head of its table."""
HEAD_CHARACTERS = 200
"""Characters of the head of a table that its pieces repeat."""
HTML_TABLE = -2
MAX_PIECES = 4
"""Pieces that are shown for a claim in one request."""
MAX_LIKE = 2
"""Of these, those of a second search that are chosen by their units."""
TINY = Decimal("1e-30")
"""What values are divided by if they are zero."""
MAX_POSTINGS = 2_000
"""Pieces of a source that are rated for one word, earlier ones first."""
SATURATION, LENGTH_SHARE = 1.2, 0.75
"""The constants k1 and b of BM25 (Robertson and Zaragoza 2009)."""
BEFORE_WEIGHT = 0.3
"""The weight of the words before a claim, and of its heading, beside those of the claim."""
RELATED_SHARE = 0.4
"""The share of the best rating from which a piece is shown for a claim that cites nothing."""
HEADING_SHARE = 0.5
"""The share of its rating that a piece has which is only a heading."""
FIGURE_WEIGHT = 2.0
"""The weight of a figure or date of the claim, beside that of an equally rare word."""
_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»‹›「」『』〝〟｢｣＂", '"') | dict.fromkeys("‘’‚‛`´＇", "'"))
_SPACES = re.compile(r"[\s\u200b\u00ad]+")
_OWN_QUOTES = "\"' |"
_IS_HTML_ROW = re.compile(r"</?(?:table|thead|tbody|tr|td|th)\b", re.I)
_HEAD_CELL = re.compile(r"<th\b", re.I)
_CELL_TAGS = re.compile(r"\s*(?:</?(?:table|thead|tbody|tr|td|th)\b[^>]{0,200}>\s*)+", re.I)
_HEADING = re.compile(r"#{1,6}\s+")

Origin = Literal["source", "user", "program"]
"""Where a piece comes from: a source of the run, what the user said, what a program of the run printed."""


@dataclass(frozen=True, slots=True, eq=False)
class SourcePiece:
    """Consecutive sentences or rows of a source."""

    origin: Origin
    parts: tuple[SourcePassage, ...]
    heading: str = ""
    """The heading above it, or the title of the source."""
    head: str = ""
    """The head of the table that its rows are from."""

    @property
    def source(self) -> int:
        """The number of its source; 0 for the user and programs."""
        return self.parts[0].source

    @property
    def is_heading(self) -> bool:
        """Whether it is only a heading, which the piece below it has, too."""
        return all(_HEADING.match(one.text) for one in self.parts)

    @property
    def text(self) -> str:
        """What is shown."""
        return "\n".join([self.head, *self.lines] if self.head else self.lines)

    @property
    def lines(self) -> list[str]:
        """Its rows, or its sentences as one line."""
        return [show_row(one.text) for one in self.parts] if self.head else [self._join()]

    def find_part(self, span: str) -> SourcePassage | None:
        """Return the part in which `span` stands, or which has most of its words; None if it stands nowhere.

        White space and the forms of quotation marks are not compared.
        """
        wanted = normalise(span)
        if not any(map(str.isalnum, wanted)) or wanted not in normalise(self.text):
            return None
        words = find_terms(span)
        whole = (one for one in self.parts if wanted in normalise(one.text))
        return next(whole, None) or max(self.parts, key=lambda one: len(find_terms(one.text) & words))

    def _join(self) -> str:
        return " ".join(show_row(one.text) for one in self.parts)


def normalise(text: str) -> str:
    """Return a text with one kind of space and of quotation mark, without those and bars at its ends."""
    plain = unicodedata.normalize("NFKC", show_row(text).translate(_QUOTES)).translate(_QUOTES)
    return _SPACES.sub(" ", plain).strip(_OWN_QUOTES)


def show_row(text: str) -> str:
    """Return a row of an HTML table with bars between its cells; another text as it is."""
    return _CELL_TAGS.sub(" | ", text).strip() if _IS_HTML_ROW.search(text) else text


@dataclass(slots=True)
class PassageFinder:
    """Finds the pieces of a run's sources that a claim may rest on.

    `given` is what the user has said, `results` what programs of the run have printed.
    """

    sources: Mapping[int, SourceIndex]
    given: SourceIndex
    results: SourceIndex
    _searches: dict[int, "_PieceSearch"] = field(default_factory=dict[int, "_PieceSearch"], init=False)

    def find(
        self, claim: Claim, language: str = "", *, shown: Collection[SourcePiece] = (), is_wide: bool = False
    ) -> list[SourcePiece]:
        """Return at most four pieces that are not in `shown`, those of cited sources first.

        If nothing in a cited source is like the claim, for example in another language, its beginning is
        returned. For a cell without a citation, only pieces with a word of the heads of its row and column
        are returned, if there are any: figures and years are in many tables. `is_wide` adds the others, and
        the sources that the claim does not cite.
        """
        query = _read_query(claim, language, has_heads=not is_wide)
        cited = [self.sources[number] for number in claim.citations if number in self.sources]
        near = cited or [*self.sources.values()]
        far = [one for one in self.sources.values() if one not in near] if is_wide else []
        known = {*map(id, shown)}
        ranked = self._rank(near, query, least=0.0 if cited else RELATED_SHARE)
        like = islice(self._find_like(cited, query, known), MAX_LIKE) if is_wide else ()
        new = (one for one in (*like, *ranked, *self._begin(cited)) if id(one) not in known)
        first = [*{id(one): one for one in new}.values()]
        outside = self._rank([self.given, self.results, *far], query)
        beside = [one for one in outside if id(one) not in known]
        share = MAX_PIECES - min(len(beside), MAX_PIECES // 2 if is_wide else 1)
        chosen = first[:share]
        return chosen + beside[: MAX_PIECES - len(chosen)]

    def index_of(self, piece: SourcePiece) -> SourceIndex:
        """Return the index that a piece is from."""
        match piece.origin:
            case "user":
                return self.given
            case "program":
                return self.results
            case "source":
                return self.sources[piece.source]

    def _rank(
        self, indexes: Sequence[SourceIndex], query: "_ClaimQuery", *, least: float = 0.0
    ) -> list[SourcePiece]:
        """Return the pieces like a claim, the best one of each source first, then by rating.

        `least` is the share of the best rating from which a piece is returned.
        """
        cited = {*query.citations}
        rated = [self._search_of(one).rate(query, is_cited=one.number in cited) for one in indexes]
        if least:
            enough = least * max((rating for some in rated for rating, _ in some), default=0.0)
            rated = [[pair for pair in some if pair[0] >= enough] for some in rated]
            headed = [[pair for pair in some if _has_word(pair[1], query.heads)] for some in rated]
            rated = headed if any(headed) else rated
        ordered = [sorted(some, key=lambda pair: -pair[0]) for some in rated]
        best = sorted((some[0] for some in ordered if some), key=lambda pair: -pair[0])
        others = sorted((pair for some in ordered for pair in some[1:]), key=lambda pair: -pair[0])
        return [piece for _, piece in (*best, *others)]

    def _find_like(
        self, indexes: Sequence[SourceIndex], query: "_ClaimQuery", known: Collection[int]
    ) -> Iterator[SourcePiece]:
        """Yield pieces with a figure near one of the claim, in its unit, which may be calculated from them.

        The mean of a range lies near its ends, a sum near its largest part. The nearest piece for each figure
        of the claim is first, then the second one for each.
        """
        nearest = [
            [
                pair
                for index in indexes
                for pair in self._search_of(index).find_near(figure)
                if id(pair[1]) not in known
            ]
            for figure in query.figures
            if figure.unit
        ]
        ordered = [sorted(some, key=lambda pair: pair[0]) for some in nearest]
        for pairs in zip_longest(*ordered):
            yield from (pair[1] for pair in pairs if pair)

    def _begin(self, indexes: Sequence[SourceIndex]) -> Iterator[SourcePiece]:
        for index in indexes:
            pieces = (one for one in self._search_of(index).pieces if not one.is_heading)
            yield from islice(pieces, MAX_PIECES)

    def _search_of(self, index: SourceIndex) -> "_PieceSearch":
        if id(index) not in self._searches:
            origin: Origin = (
                "user" if index is self.given else "program" if index is self.results else "source"
            )
            self._searches[id(index)] = _PieceSearch(index, origin)
        return self._searches[id(index)]


@dataclass(frozen=True, slots=True)
class _ClaimQuery:
    """The words of a claim with their weights, and its figures and dates."""

    terms: Mapping[str, float]
    figures: Sequence[FigureMention]
    dates: Sequence[DateMention]
    citations: Collection[int]
    labels: Collection[str]
    """The head of its row, and the years that it names: what rows and columns of a table may be called."""
    heads: frozenset[str]
    """The words of its row and column, if a piece must have one of them."""

    @property
    def has_share(self) -> bool:
        """Whether it gives a share, which rests on a total."""
        return any(one.kind == "percent" or (one.is_word and one.value < 1) for one in self.figures)


def _distance(one: FigureMention, other: FigureMention) -> Decimal:
    first, second = abs(one.value), abs(other.value)
    return abs(first - second) / max(first, second, TINY)


def _has_word(piece: SourcePiece, words: frozenset[str]) -> bool:
    return not find_terms(f"{piece.heading} {piece.text}").isdisjoint(words)


def _read_query(claim: Claim, language: str, *, has_heads: bool) -> _ClaimQuery:
    words = f"{claim.row} {claim.column} {claim.text}"
    around = find_terms(f"{claim.heading} {claim.before}")
    terms = dict.fromkeys(around, BEFORE_WEIGHT) | dict.fromkeys(find_terms(words), 1.0)
    dates = find_dates(claim.text, language)
    labels = {claim.row.casefold(), *find_years(f"{claim.row} {claim.column} {claim.text}")} - {""}
    is_headed = has_heads and claim.kind == "cell" and not claim.citations
    heads = find_terms(f"{claim.row} {claim.column}") if is_headed else frozenset[str]()
    figures = find_figures(claim.text, language, dates)
    return _ClaimQuery(terms, figures, dates, claim.citations, labels, heads)


class _PieceSearch:
    """The pieces of a source, and their words."""

    def __init__(self, index: SourceIndex, origin: Origin) -> None:
        self._index = index
        self.pieces: list[SourcePiece] = []
        self._piece_of: list[int] = []
        for piece, passages in cut_pieces(index, origin):
            self._piece_of += [len(self.pieces)] * passages
            self.pieces.append(piece)
        self._postings: dict[str, list[tuple[int, int]]] = {}
        self._lengths: list[int] = []
        for number, piece in enumerate(self.pieces):
            counts = Counter(iterate_terms(f"{piece.heading} {piece.text}"))
            self._lengths.append(counts.total())
            for term, count in counts.items():
                self._postings.setdefault(term, []).append((number, count))
        self._labels = _LabelPlaces(self.pieces)
        self._mean = sum(self._lengths) / max(len(self._lengths), 1) or 1.0

    def rate(self, query: _ClaimQuery, *, is_cited: bool) -> list[tuple[float, SourcePiece]]:
        """Return the pieces that have something of a claim, each with its rating above 0.

        In a source that the claim does not cite, years, totals and numbers without their unit are of any
        subject: they count only for a piece that has a word or figure of the claim.
        """
        ratings = dict[int, float]()
        for term, weight in query.terms.items():
            self._add(ratings, self._postings.get(term, ()), weight)
        for places in self._find_exact(query, has_bare=is_cited):
            self._add(ratings, [(place, 1) for place in sorted(places)], FIGURE_WEIGHT)
        for places in (*self._find_years(query), *self._labels.find(query)):
            counted = [(place, 1) for place in places if is_cited or place in ratings]
            self._add(ratings, counted, FIGURE_WEIGHT)
        return [
            (rating * (HEADING_SHARE if self.pieces[place].is_heading else 1.0), self.pieces[place])
            for place, rating in ratings.items()
        ]

    def find_near(self, figure: FigureMention) -> Iterator[tuple[Decimal, SourcePiece]]:
        """Yield the pieces that have figures in the unit of `figure`, each with the distance of the nearest.

        A distance is the share of the larger value by which the two differ.
        """
        distances = dict[int, Decimal]()
        for one in self._index.passages:
            found = [_distance(figure, other) for other in one.figures if other.unit == figure.unit]
            if found:
                number = self._piece_of[self._index.place_of(one)]
                distances[number] = min([distances.get(number, found[0]), *found])
        for number, distance in distances.items():
            if not self.pieces[number].is_heading:
                yield distance, self.pieces[number]

    def _add(self, ratings: dict[int, float], postings: Sequence[tuple[int, int]], weight: float) -> None:
        known = len(self.pieces)
        rarity = log(1 + (known - len(postings) + 0.5) / (len(postings) + 0.5))
        for place, count in postings[:MAX_POSTINGS]:
            length = 1 - LENGTH_SHARE + LENGTH_SHARE * self._lengths[place] / self._mean
            gain = count * (SATURATION + 1) / (count + SATURATION * length)
            ratings[place] = ratings.get(place, 0.0) + weight * rarity * gain

    def _find_exact(self, query: _ClaimQuery, *, has_bare: bool) -> Iterator[set[int]]:
        """Yield, for each figure and date of a claim but bare years, the pieces that have it."""
        for date in query.dates:
            if date.month is not None:
                yield {*self._places(hit for _, hit in self._index.find_date(date))}
        for figure in (one for one in query.figures if one.kind != "year"):
            hits = self._index.find_figure(figure)
            if has_bare and not hits and figure.unit:
                # The head of its table may give the unit.
                hits = self._index.find_figure(replace(figure, kind="number", unit=""))
            yield {*self._places(hit for _, hit in hits)}

    def _find_years(self, query: _ClaimQuery) -> Iterator[list[int]]:
        """Yield, for each year of a claim without a month, the pieces that have it."""
        for date in query.dates:
            if date.month is None:
                yield sorted({*self._places(hit for _, hit in self._index.find_date(date))})
        for figure in (one for one in query.figures if one.kind == "year"):
            yield sorted({*self._places(hit for _, hit in self._index.find_figure(figure))})

    def _places(self, hits: Iterator[IndexedPassage]) -> Iterator[int]:
        yield from (self._piece_of[self._index.place_of(one)] for one in hits if self._index.has_place(one))


class _LabelPlaces:
    """The pieces of a source by what the rows and columns of their tables are called."""

    def __init__(self, pieces: Sequence[SourcePiece]) -> None:
        self._by_label: dict[str, list[int]] = {}
        """By the head of a row, and by the years in the heads of rows and columns."""
        self._by_term: dict[str, list[tuple[frozenset[str], int]]] = {}
        """The terms of the head of a row by the first of them."""
        self._totals: list[int] = []
        for place, piece in enumerate(pieces):
            if piece.head:
                self._read(piece, place)

    def _read(self, piece: SourcePiece, place: int) -> None:
        heads = dict.fromkeys(line.strip("| ").partition("|")[0].strip() for line in piece.lines)
        for label in dict.fromkeys(
            [*(one.casefold() for one in heads), *find_years(" ".join([piece.head, *heads]))]
        ):
            self._by_label.setdefault(label, []).append(place)
        for terms in dict.fromkeys(map(find_terms, heads)):
            if terms and terms <= TOTAL_TERMS:
                self._totals.append(place)
            elif terms:
                self._by_term.setdefault(min(terms), []).append((terms, place))

    def find(self, query: _ClaimQuery) -> Iterator[list[int]]:
        """Yield the pieces with a row or column that a claim names, and with a total if it gives a share."""
        for label in sorted(query.labels):
            yield self._by_label.get(label, [])
        named = query.terms.keys()
        for term in query.terms:
            found = self._by_term.get(term, ())[:MAX_POSTINGS]
            yield [*dict.fromkeys(place for terms, place in found if terms <= named)]
        if query.has_share:
            yield [*dict.fromkeys(self._totals)]


def cut_pieces(index: SourceIndex, origin: Origin = "source") -> Iterator[tuple[SourcePiece, int]]:
    """Yield the pieces of a source in order, each with the number of its passages in the index.

    A piece ends before a heading, and where a table begins or ends. A sentence or row that is longer than a
    piece is a piece by itself, and is cut.
    """
    builder = _PieceBuilder(origin, index.title)
    for _, group in groupby(index.passages, key=lambda one: (one.passage.text_index, one.passage.start)):
        yield from builder.add([*group])
    yield from builder.finish()


class _PieceBuilder:
    def __init__(self, origin: Origin, title: str) -> None:
        self._origin: Origin = origin
        self._heading = title
        self._place: tuple[int, int] = (0, -1)
        """The index of the text, and of the table in it: -1 for sentences, -2 for tables in HTML."""
        self._head = ""
        self._head_row: SourcePassage | None = None
        """The last row of the head of an HTML table."""
        self._parts: list[SourcePassage] = []
        self._passages = 0
        self._length = 0

    def add(self, group: Sequence[IndexedPassage]) -> Iterator[tuple[SourcePiece, int]]:
        """Add a sentence, or the cells of a row."""
        one = group[0]
        heading = _HEADING.match(one.passage.text)
        is_html = _IS_HTML_ROW.search(one.passage.text) is not None
        place = (one.passage.text_index, HTML_TABLE if is_html else max(cell.table for cell in group))
        if heading or place != self._place or self._length + len(one.passage.text) >= PIECE_CHARACTERS:
            yield from self.finish()
        if heading:
            self._heading = one.passage.text[heading.end() :].strip()
        if place != self._place:
            self._place, self._head = place, _format_head(group)
        if (
            is_html
            and not self._parts
            and (_HEAD_CELL.search(one.passage.text) or not show_row(one.passage.text).strip("| "))
        ):
            self._add_to_head(one.passage)
            self._passages += len(group)
            return
        self._length = self._length or len(self._head)
        room = PIECE_CHARACTERS - len(self._head)
        self._parts.append(_cut(one.passage, room))
        self._passages += len(group)
        self._length += len(one.passage.text) + 1
        # What does not fit is shown, too, though its words lead to the first piece.
        for start in range(room, len(one.passage.text), room):
            yield from self.finish()
            self._parts.append(_cut(one.passage, room, start))
            self._length = len(self._head) + len(self._parts[0].text)

    def _add_to_head(self, passage: SourcePassage) -> None:
        """Add a row of an HTML table to its head, which is repeated above each of its pieces."""
        self._head_row = passage
        row = show_row(passage.text)
        if row.strip("| "):
            self._head = f"{self._head}\n{row}".strip()[:HEAD_CHARACTERS]

    def finish(self) -> Iterator[tuple[SourcePiece, int]]:
        """Yield the piece that has begun, if any; a head without rows is one, too."""
        if self._passages and not self._parts and self._head_row is not None:
            self._parts = [self._head_row]
        if self._parts:
            piece = SourcePiece(self._origin, tuple(self._parts), self._heading, self._head)
            yield piece, self._passages
        self._parts, self._passages, self._length = [], 0, 0


def _format_head(row: Sequence[IndexedPassage]) -> str:
    columns = [one.column for one in row if one.table >= 0]
    return f"| {row[0].corner} | {' | '.join(columns)} |"[:HEAD_CHARACTERS] if any(columns) else ""


def _cut(passage: SourcePassage, room: int, start: int = 0) -> SourcePassage:
    if len(passage.text) <= room:
        return passage
    text = passage.text[start : start + room]
    return SourcePassage(passage.source, text, passage.start + start, passage.text_index)
