"""A claim of a report with what it is compared with."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from maniple.claims.dates import DateMention, find_dates
from maniple.claims.passages import IndexedPassage
from maniple.claims.quantities import FigureMention
from maniple.claims.segments import TextSpan
from maniple.claims.source_index import SourceIndex, find_cell_figures
from maniple.claims.split import Claim
from maniple.claims.table_index import find_label_terms
from maniple.claims.terms import find_names, find_terms, is_unspaced

SAME_LANGUAGE = 0.5
"""The share of a claim's terms that a source in the same language has."""
GERMAN_NAMES = 3
UNSPACED_TERMS = 8
"""Pairs of ideographs that a claim must have to be compared with a source that it does not cite."""
MAX_CALCULATED = 300_000
"""Results of calculations that are tried for a report, which takes about one second."""
LEAST_TERMS = 3
"""The number of terms from which the words of a claim are compared."""


@dataclass(slots=True)
class CalculationBudget:
    """How many results of calculations may still be tried for the figures of a report."""

    left: int = MAX_CALCULATED


@dataclass(frozen=True, slots=True)
class ClaimContext:
    """A claim, its terms, figures and dates, and the sources that it may rest on.

    `cited` are the sources that the claim cites, or all sources if it cites none; `others` are the rest.
    `nearby` are figures of the claims beside it, such as those in its row of a table.
    """

    claim: Claim
    terms: frozenset[str]
    label_terms: frozenset[str]
    """The terms with the years, by which a claim names a row or column of a table."""
    groups: tuple[tuple[FigureMention, ...], ...]
    """Each figure with its alternatives: a cell's figure with the unit of the column's head, and without."""
    dates: tuple[DateMention, ...]
    cited: Sequence[SourceIndex]
    others: Sequence[SourceIndex]
    language: str = ""
    """An ISO 639 code; "" if it is not known."""
    nearby: tuple[FigureMention, ...] = ()
    earlier: tuple[FigureMention, ...] = ()
    """Figures of the blocks of the report before this one, the last ones first."""
    budget: CalculationBudget = field(default_factory=CalculationBudget)
    similar: dict[int, list[tuple[float, IndexedPassage]]] = field(
        default_factory=dict[int, list[tuple[float, IndexedPassage]]]
    )
    """The passages most similar to the claim, by source; filled by `find_similar`."""

    @classmethod
    def of(
        cls, claim: Claim, cited: Sequence[SourceIndex], others: Sequence[SourceIndex], language: str = ""
    ) -> "ClaimContext":
        """Read the figures and dates of `claim`; figures inside of a date are left out."""
        dates = tuple(find_dates(claim.text, language))
        is_cell = claim.kind == "cell"
        heads = (claim.column, claim.row) if is_cell else ("", "")
        groups = find_cell_figures(claim.text, heads[0], language, heads[1], dates)
        if not is_cell:
            groups = [*with_neighbours(groups, with_percent=True)]
        outside = tuple(one for one in groups if not _is_inside(one[-1], dates))
        words = f"{claim.row} {claim.column} {claim.text}"
        # Months and units are compared with the dates and figures, not as words.
        read = [*dates, *(one[-1] for one in outside)]
        terms = find_terms(f"{claim.row} {claim.column} {blank_spans(claim.text, read)}")
        return cls(claim, terms, find_label_terms(words), outside, dates, cited, others, language)

    @property
    def figures(self) -> tuple[FigureMention, ...]:
        """The figures of the claim, each once."""
        return tuple(group[0] for group in self.groups)

    @property
    def has_citation(self) -> bool:
        """Whether the claim names its source."""
        return bool(self.claim.citations)

    def is_same_language(self, index: SourceIndex) -> bool:
        """Whether the words of the claim can be compared with those of a source."""
        known = sum(map(index.knows, self.terms))
        return len(self.terms) >= LEAST_TERMS and known >= SAME_LANGUAGE * len(self.terms)

    def is_about(self, index: SourceIndex) -> bool:
        """Whether a claim without a citation speaks of what a source speaks of: it has a name from there.

        German writes all nouns like names, and some scripts have no capitals, so more words must be the same.
        """
        if not self.is_same_language(index):
            return False
        if is_unspaced(self.claim.text):
            return len(self.terms) >= UNSPACED_TERMS
        names = [*filter(index.knows, find_names(blank_spans(self.claim.text, self.figures)))]
        return len(names) >= (1 if index.language != "de" else GERMAN_NAMES)

    def can_compare(self, index: SourceIndex) -> bool:
        """Whether most of the claim's words occur in a source, however few there are."""
        return 2 * sum(map(index.knows, self.terms)) >= len(self.terms) > 0

    def familiarity(self, index: SourceIndex) -> float:
        """Return which share of the claim's terms, by weight, occurs anywhere in a source."""
        return index.coverage(self.terms, frozenset(filter(index.knows, self.terms)))

    def find_similar(self, index: SourceIndex) -> list[tuple[float, IndexedPassage]]:
        """Return the passages of a source that share most of the claim's words, best first."""
        if index.number not in self.similar:
            self.similar[index.number] = index.find_similar(self.own_terms(index))
        return self.similar[index.number]

    def own_terms(self, index: SourceIndex) -> frozenset[str]:
        """Return the claim's terms without those of the source's title, which every passage may leave out."""
        return self.terms - index.title_terms or self.terms

    def rate(self, one: IndexedPassage, index: SourceIndex) -> float:
        """Return which share of the claim's words a passage and its headings have."""
        return index.coverage(self.own_terms(index), one.terms | one.around)


def blank_spans(text: str, spans: Iterable[TextSpan]) -> str:
    """Return a text with spaces instead of its figures or dates."""
    pieces, at = list[str](), 0
    for one in sorted(spans, key=lambda one: one.start):
        if one.start >= at:
            pieces += [text[at : one.start], " " * (one.end - one.start)]
            at = one.end
    return "".join((*pieces, text[at:]))


def with_neighbours(
    groups: Sequence[tuple[FigureMention, ...]], *, with_percent: bool = False
) -> Iterator[tuple[FigureMention, ...]]:
    """Yield figures with their alternatives, a bare one also in the units of the ones beside it.

    In "18.4 instead of 19.1 million" the first is 18.4 million, and in "2 + 3 = 5 km" it is 2 km. Years
    between them are passed over. `with_percent` tells that a bare figure may also be a percentage.
    """
    units = [
        one[0] if _gives_unit(one[0]) or (with_percent and one[0].kind == "percent") else None
        for one in groups
    ]
    before, behind = _carry_on(units), _carry_on(units[::-1])[::-1]
    for group, following, last in zip(groups, behind, before, strict=True):
        one = group[0]
        if one.unit or one.kind != "number" or one.scale != 1:
            yield group
        else:
            beside = (each for each in (following, last) if each is not None)
            yield tuple(dict.fromkeys((*group, *(_scale_like(one, other) for other in beside))))


def _gives_unit(one: FigureMention) -> bool:
    """Whether a bare figure beside this one may be in its unit."""
    return one.kind in ("money", "quantity") or (one.kind == "number" and one.scale != 1)


def _carry_on(figures: Sequence[FigureMention | None]) -> list[FigureMention | None]:
    """Return, for each place, the last figure up to there."""
    found, last = list[FigureMention | None](), None
    for one in figures:
        last = one or last
        found.append(last)
    return found


def _scale_like(one: FigureMention, other: FigureMention) -> FigureMention:
    times = other.scale * other.factor
    readings, steps = (tuple(value * times for value in values) for values in (one.readings, one.steps))
    return replace(
        one,
        readings=readings,
        steps=steps,
        kind=other.kind,
        unit=other.unit,
        factor=other.factor,
        scale=other.scale,
    )


def _is_inside(figure: FigureMention, dates: Iterable[DateMention]) -> bool:
    return any(date.start < figure.end and figure.start < date.end for date in dates)
