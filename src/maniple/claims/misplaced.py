"""Figures that a source has, but for something else than the claim says, and figures that it has instead."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import combinations, pairwise
from typing import TypeVar

from maniple.claims.context import LEAST_TERMS, ClaimContext
from maniple.claims.dates import DateMention, agree_dates
from maniple.claims.passages import IndexedPassage
from maniple.claims.quantities import FigureMention, agree, is_rounded
from maniple.claims.segments import FigureClause, belongs_to_other, find_comparison, split_segments
from maniple.claims.source_index import SourceIndex
from maniple.claims.table_index import TableIndex, find_label_terms, find_years
from maniple.claims.terms import find_terms
from maniple.claims.verdict import Verdict, VerdictKind
from maniple.evidence.reasons import ReasonCode, explain

Found = TypeVar("Found")

RIVAL_COVERAGE = 0.6
"""The share of a claim's words, by weight, from which a passage speaks of the same thing."""
FEW_TERMS, FEW_COVERAGE = 2, 0.8
"""The same for a date in a claim of few words."""
DATED_SHARE = 0.5
"""A date is misplaced if its own passage has less than this share of what a passage with another date has."""
DATED_COVERAGE = 0.4
"""The share of a claim's words from which the passage with its figure tells its year."""
SLIP_COVERAGE = 0.3
"""The share of a claim's words from which a passage may have the figure that was miscopied."""
SLIP_DIGITS = 3
MAX_OTHERS = 3
"""Figures or dates of a source that a reason names."""
MAX_SUMMANDS = 8
PERIOD_GAP = 14
"""Characters between the first and the last year of a period."""
OWN_SHARE = 0.35
"""A figure is misplaced if its own passage has less than this share of what the other passage has."""
_BARE = ("number", "year", "ordinal")
"""Kinds of figures that name no unit."""
_NO_PERIOD = re.compile(r"[,;，、；\d]")


def find_misplacement(
    context: ClaimContext,
    figure: FigureMention,
    hit: tuple[FigureMention, IndexedPassage],
    index: SourceIndex,
) -> Verdict | None:
    """Return a verdict if the figure of `hit`, which agrees, belongs to something else.

    In prose with several figures that is a suspicion only: of such claims in sets that nobody had seen, most
    were right.
    """
    found, one = hit
    if one.table >= 0:
        wrong = _find_wrong_cell(context, figure, one, index)
        return replace(wrong, kind=kind_of_misplaced(context)) if wrong else None
    if context.claim.kind == "cell" or not context.can_compare(index):
        return None
    same = [other for other in one.figures if is_same_kind(found, other)]
    own = [other for other in context.figures if is_same_kind(figure, other)]
    if belongs_to_other(
        FigureClause(context.claim.text, figure, own), FigureClause(one.passage.text, found, same)
    ):
        reasons = explain(ReasonCode.OTHER_SUBJECT, source=index.label, value=figure.text)
        return Verdict(kind_of_misplaced(context), reasons, one.passage)
    clause = _clause_terms(context, figure, index)
    if len(clause) < LEAST_TERMS or not context.is_same_language(index):
        return None
    mine = index.coverage(clause, one.terms | one.around)
    for _, rival in _find_rivals(context, figure, index):
        score = index.coverage(clause, rival.terms)
        if len(clause & rival.terms) >= LEAST_TERMS and score >= RIVAL_COVERAGE and mine < OWN_SHARE * score:
            reasons = explain(ReasonCode.OTHER_SUBJECT, source=index.label, value=figure.text)
            instead = explain(ReasonCode.INSTEAD, found=list_texts(find_same_kind(figure, rival)))
            return Verdict(kind_of_misplaced(context), reasons + instead, rival.passage)
    return None


def kind_of_misplaced(context: ClaimContext) -> VerdictKind:
    """Return what follows from a figure that stands elsewhere: among others in a sentence, a suspicion."""
    judged = sum(one.is_judged for one in context.figures)
    is_single = judged <= 1 and len(context.dates) <= 1
    return "contradicted" if is_single or context.claim.kind == "cell" else "suspect"


def report_other(
    text: str, others: Sequence[FigureMention | DateMention], one: IndexedPassage, index: SourceIndex
) -> Verdict:
    """Return that a source has other figures or dates than the one with a text."""
    reasons = explain(ReasonCode.OTHER_VALUE, source=index.label, found=list_texts(others), value=text)
    return Verdict("contradicted", reasons, one.passage)


def list_texts(found: Iterable[FigureMention | DateMention]) -> str:
    """Return the texts of some figures or dates, each once and not more than a reader takes in."""
    texts = [*dict.fromkeys(one.text for one in found)]
    return ", ".join([*texts[:MAX_OTHERS], *(["…"] if len(texts) > MAX_OTHERS else [])])


def _clause_terms(context: ClaimContext, figure: FigureMention, index: SourceIndex) -> frozenset[str]:
    """Return the terms of the clause that a figure is in; none, if the figures cannot be separated."""
    own = context.own_terms(index)
    if len(context.figures) < 2:
        return own
    if not split_segments(context.claim.text, context.figures):
        return frozenset()
    return own & find_terms(FigureClause(context.claim.text, figure, context.figures).read())


def find_misplaced_date(
    context: ClaimContext, date: DateMention, hit: tuple[DateMention, IndexedPassage], index: SourceIndex
) -> Verdict | None:
    """Return a verdict if the date of `hit`, which agrees, belongs to something else in its sentence."""
    found, one = hit
    if one.table >= 0 or context.claim.kind == "cell" or not context.can_compare(index):
        return None
    claimed = FigureClause(context.claim.text, date, context.dates)
    if belongs_to_other(claimed, FigureClause(one.passage.text, found, one.dates)):
        reasons = explain(ReasonCode.OTHER_SUBJECT, source=index.label, value=date.text)
        return Verdict(kind_of_misplaced(context), reasons, one.passage)
    return None


def find_better_dated(
    context: ClaimContext, date: DateMention, hit: IndexedPassage, index: SourceIndex
) -> Verdict | None:
    """Return a verdict if a passage like the claim has other dates, and `hit`, with this one, is unlike it.

    That passage must have all figures of the claim, which may be calculated otherwise.
    """
    if len(context.dates) > 1 or not context.is_same_language(index) or hit.table >= 0:
        return None
    mine = context.rate(hit, index)
    for score, one in context.find_similar(index):
        exact = [other for other in one.dates if _is_as_exact(date, other)]
        if index.is_dateline(one):
            continue
        if score < RIVAL_COVERAGE or mine > DATED_SHARE * score or one is hit:
            break
        figures = (figure for figure in context.figures if figure.is_judged)
        is_complete = all(any(agree(figure, other) for other in one.figures) for figure in figures)
        if exact and is_complete and not any(agree_dates(date, other) for other in one.dates):
            return report_other(date.text, exact, one, index)
    return None


def find_date_of_figure(context: ClaimContext, date: DateMention, index: SourceIndex) -> Verdict | None:
    """Return a verdict if the passage with a figure of the claim gives another year, and none this one."""
    if len(context.dates) > 1 or index.find_date(date):
        return None
    for figure in context.figures:
        hits = choose_best(context, index.find_figure(figure), index) if figure.is_judged else []
        for _, one in hits[:1]:
            years = {other.year for other in one.dates}
            if len(years) == 1 and context.rate(one, index) >= DATED_COVERAGE and one.table < 0:
                return report_other(date.text, one.dates, one, index)
    return None


def find_other_cell(context: ClaimContext, figure: FigureMention, index: SourceIndex) -> Verdict | None:
    """Return a verdict if the cell of a table that the claim names has another figure."""
    cell = _find_own_cell(context, figure, index)
    if cell is None:
        return None
    found = cell.figures[0].text
    reasons = explain(ReasonCode.OTHER_CELL_VALUE, source=index.label, found=found, value=figure.text)
    return Verdict(kind_of_misplaced(context), reasons, cell.passage)


def find_other_figure(context: ClaimContext, figure: FigureMention, index: SourceIndex) -> Verdict | None:
    """Return a verdict if a passage that speaks of the same thing has another figure of the same kind."""
    if not context.is_same_language(index):
        return None
    for score, rival in _find_rivals(context, figure, index):
        if score >= RIVAL_COVERAGE:
            return report_other(figure.text, find_same_kind(figure, rival), rival, index)
    return None


def find_other_date(context: ClaimContext, date: DateMention, index: SourceIndex) -> Verdict | None:
    """Return a verdict if a passage that speaks of the same thing has other dates, as exact as this one."""
    if not context.can_compare(index):
        return None
    for score, one in context.find_similar(index):
        exact = [other for other in one.dates if _is_as_exact(date, other)]
        if index.is_dateline(one):
            continue
        shared = len(one.terms & context.terms)
        if exact and shared and score < FEW_COVERAGE:
            # "Two cables join it. One of them failed in May": the subject stands in the sentence before.
            known = one.terms | index.terms_before(one)
            score, shared = index.coverage(context.own_terms(index), known), len(known & context.terms)
        least = RIVAL_COVERAGE if shared >= LEAST_TERMS else FEW_COVERAGE
        if score < least or shared < FEW_TERMS or not exact:
            continue
        if not any(agree_dates(date, other) for other in one.dates):
            return report_other(date.text, exact, one, index)
    return None


def _is_as_exact(date: DateMention, other: DateMention) -> bool:
    return (date.month is None or other.month is not None) and (date.day is None or other.day is not None)


def find_other_unit(
    context: ClaimContext, figure: FigureMention, index: SourceIndex, *, least: float = RIVAL_COVERAGE / 2
) -> Verdict | None:
    """Return a verdict if a passage like the claim has the digits with another unit, scale or currency."""
    digits = _digits(figure)
    for score, one in context.find_similar(index):
        if score < least:
            break
        for other in one.figures:
            if (
                _digits(other) == digits
                and not agree(figure, other)
                and other.unit
                and _names_unit(context, figure, other)
            ):
                return report_other(figure.text, [other], one, index)
    return None


def _names_unit(context: ClaimContext, figure: FigureMention, other: FigureMention) -> bool:
    """Whether a figure is said in another unit; one without a unit only where the source has a percentage."""
    is_sentence = context.claim.kind != "cell"
    return bool(figure.unit) or figure.kind not in _BARE or (is_sentence and other.kind == "percent")


def find_miscopied(context: ClaimContext, figure: FigureMention, index: SourceIndex) -> Verdict | None:
    """Return a verdict if the passage most like the claim has the figure with two digits exchanged.

    Also if one digit of three or more is another one.
    """
    if context.claim.kind == "cell" or not context.can_compare(index):
        return None
    for score, one in context.find_similar(index):
        if score < SLIP_COVERAGE:
            break
        for other in one.figures:
            if is_same_kind(figure, other) and is_miscopied(_digits(figure), _digits(other)):
                if any(agree(own, other) for own in context.figures) or _is_sum(figure, one.figures):
                    continue
                return report_other(figure.text, [other], one, index)
    return None


def _is_sum(figure: FigureMention, figures: Sequence[FigureMention]) -> bool:
    """Whether a figure is the sum of two others, of which a passage gives few."""
    same = [one.value for one in figures if is_same_kind(figure, one)][:MAX_SUMMANDS]
    totals = map(sum, combinations(same, 2))
    return any(is_rounded(Decimal(one), figure, figure.value, figure.precision) for one in totals)


def is_miscopied(one: str, other: str) -> bool:
    """Whether two numerals differ by two neighbouring digits exchanged, or by one digit of at least three."""
    if len(one) != len(other):
        return False
    places = [place for place, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]
    digits = [place for place, each in enumerate(one) if each.isdigit()]
    if len(places) == 1:
        is_long = min(len(re.sub(r"\D", "", text).rstrip("0")) for text in (one, other)) >= SLIP_DIGITS
        return is_long and one[places[0]].isdigit() and other[places[0]].isdigit()
    if len(places) != 2:
        return False
    first, second = places
    between = [place for place in digits if first < place < second]
    return not between and one[first] == other[second] and one[second] == other[first]


def find_other_sum(context: ClaimContext, figure: FigureMention) -> Verdict | None:
    """Return a verdict if a figure is the sum of the two others of its claim, but for a digit."""
    same = [one for one in context.figures if is_same_kind(figure, one) and one.start != figure.start]
    if len(same) != 2 or any(abs(one.value) >= abs(figure.value) for one in same):
        return None
    scale = figure.factor * figure.scale
    total = sum(abs(one.value) for one in same) / scale
    if is_miscopied(squeeze_digits(abs(figure.value) / scale), squeeze_digits(total)):
        equation = f"{same[0].text} + {same[1].text}"
        return Verdict("contradicted", explain(ReasonCode.NOT_EQUAL, equation=equation, value=figure.text))
    return None


def squeeze_digits(number: Decimal) -> str:
    """Return the digits of a number without a point, as in `159` for 15.90."""
    return re.sub(r"\D", "", f"{number.normalize():f}")


def _find_rivals(
    context: ClaimContext, figure: FigureMention, index: SourceIndex
) -> Iterator[tuple[float, IndexedPassage]]:
    """Yield similar passages that have a figure of the same kind and unit, but not this one."""
    for score, one in context.find_similar(index):
        if len(one.terms & context.own_terms(index)) < LEAST_TERMS:
            continue
        if find_same_kind(figure, one) and not any(agree(figure, other) for other in one.figures):
            yield score, one


def find_same_kind(figure: FigureMention, one: IndexedPassage) -> list[FigureMention]:
    """Return the figures of a passage that measure the same as another one."""
    return [other for other in one.figures if is_same_kind(figure, other)]


def is_same_kind(one: FigureMention, other: FigureMention) -> bool:
    """Whether two figures measure the same: the same kind and, with a unit, the same unit."""
    return one.kind == other.kind and one.unit == other.unit and other.is_judged


def _find_wrong_cell(
    context: ClaimContext, figure: FigureMention, hit: IndexedPassage, index: SourceIndex
) -> Verdict | None:
    table, wanted = index.tables[hit.table], context.label_terms
    if _is_in_period(context, hit):
        return None
    compared = find_comparison(context.claim.text)
    if compared and figure.start < compared.start():
        # "279,000, less than half of the level of 2019": what is compared with is another cell.
        claim = context.claim
        wanted = find_label_terms(f"{claim.row} {claim.column} {claim.text[: compared.start()]}")
    rows, columns = table.rows.find_named(wanted), table.columns.find_named(wanted)
    if rows and hit.row not in rows and not table.rows.shares_more(hit.row, wanted, rows):
        own, place = table.find_cells(rows, [hit.column]), ReasonCode.OTHER_ROW
    elif columns and hit.column not in columns and not table.columns.shares_more(hit.column, wanted, columns):
        own, place = table.find_cells([hit.row], columns), ReasonCode.OTHER_COLUMN
        own = own if hit.row in rows or not rows else []
    else:
        own, place = _find_sibling_cells(table, hit, wanted), ReasonCode.OTHER_CELL
    if not own or any(has_figure(context, one) for one in own):
        return None
    reasons = explain(place, source=index.label, value=figure.text)
    if found := own[0].figures:
        reasons += explain(ReasonCode.INSTEAD, found=found[0].text)
    is_precise = place is not ReasonCode.OTHER_COLUMN
    return Verdict("contradicted", reasons, own[0].passage, is_precise=is_precise)


def _is_in_period(context: ClaimContext, hit: IndexedPassage) -> bool:
    """Whether a claim gives a period, as in "from 2019 to 2023", in which the year of a cell lies."""
    years = [int(one) for one in find_years(f"{hit.row} {hit.column}")]
    return any(first <= year <= last for first, last in _find_periods(context) for year in years)


def _find_periods(context: ClaimContext) -> Iterator[tuple[int, int]]:
    """Yield the first and the last years of the periods that a claim gives."""
    for one in context.dates:
        if one.year is not None and one.years > 1:
            yield one.year, one.year + one.years - 1
    for one, other in pairwise(context.dates):
        between = context.claim.text[one.end : other.start]
        if one.year is None or other.year is None or len(between) > PERIOD_GAP:
            continue
        if not _NO_PERIOD.search(between):
            yield one.year, other.year


def _find_sibling_cells(
    table: TableIndex, hit: IndexedPassage, wanted: frozenset[str]
) -> list[IndexedPassage]:
    """Return the cells of the year, version or quarter that the claim names instead of that of `hit`."""
    row, column = table.rows.find_siblings(hit.row, wanted), table.columns.find_siblings(hit.column, wanted)
    if not row and not column:
        return []
    named = table.rows.find_named(wanted)
    if column and named and hit.row not in named:
        return []
    return table.find_cells(row or [hit.row], column or [hit.column])


def has_figure(context: ClaimContext, one: IndexedPassage) -> bool:
    """Return whether any figure of the claim agrees with one of the passage."""
    return any(agree(own, other) for group in context.groups for own in group for other in one.figures)


def _find_own_cell(context: ClaimContext, figure: FigureMention, index: SourceIndex) -> IndexedPassage | None:
    """Return the only cell of the source whose row and column the claim names, if its figures are others."""
    found = list[IndexedPassage]()
    for table in index.tables:
        rows = table.rows.find_named(context.label_terms)
        found += table.find_cells(rows, table.columns.find_named(context.label_terms)) if rows else ()
    if len(found) != 1 or not any(is_same_kind(figure, one) or not one.unit for one in found[0].figures):
        return None
    heads = find_label_terms(f"{found[0].column} {found[0].row}")
    if context.claim.kind == "cell" and find_label_terms(context.claim.column) - heads:
        return None  # "Goal difference" is no column "Goals"
    return None if has_figure(context, found[0]) else found[0]


def _digits(figure: FigureMention) -> str:
    return "".join(one for one in figure.text if one.isdecimal() or one in ".,").strip(".,")


def choose_best(
    context: ClaimContext, hits: Sequence[tuple[Found, IndexedPassage]], index: SourceIndex
) -> list[tuple[Found, IndexedPassage]]:
    """Return `hits`, those in the passages most similar to the claim first."""
    return sorted(hits, key=lambda hit: -context.rate(hit[1], index))
