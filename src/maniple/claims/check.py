"""Checks the claims of a report by rule against the sources that they cite, without a model."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import groupby
from operator import itemgetter

from maniple.claims.arithmetic import (
    ColumnTotal,
    WrittenEquation,
    check_totals,
    find_equations,
)
from maniple.claims.attribution import check_named_source, check_quotations
from maniple.claims.consistency import find_disagreements
from maniple.claims.context import CalculationBudget, ClaimContext
from maniple.claims.conversation_claims import find_said_clauses
from maniple.claims.exchanged import find_exchanged, find_reversed
from maniple.claims.item_judge import ItemJudge, report_given, report_support
from maniple.claims.quantities import FigureMention
from maniple.claims.source_index import SourceIndex
from maniple.claims.split import Claim
from maniple.claims.verdict import Verdict, join_reasons
from maniple.claims.word_rules import find_suspicion
from maniple.evidence.reasons import ReasonCode, explain, name_sources

WORDS_COVERAGE = 0.75
"""The share of a claim's words from which a passage of a source that is not cited says the same."""
FOREIGN_COVERAGE = 0.3
"""A source that has less of a claim's words than this share speaks of something else."""
LEAST_WORDS = 4
MAX_COMPARED = 4
"""Cited sources whose words are compared with a claim."""
MAX_EARLIER = 60
"""Figures of earlier blocks from which a claim's figure may be calculated."""
MAX_NEARBY = 20
"""Figures of other claims of a block from which a claim's figure may be calculated."""


@dataclass(slots=True)
class ClaimCheck:
    """The sources of a run, against which claims are judged.

    `given` is what the user has said, `results` what programs of the run have printed, `answers` what the
    members who ran them said about it; all have number 0.
    `labels` are the names by which a text may call each source. `unread` are the numbers of sources of which
    nothing was read, `unstored` of those whose text did not fit into the record.
    """

    sources: dict[int, SourceIndex]
    given: SourceIndex
    results: SourceIndex
    answers: SourceIndex = field(default_factory=lambda: SourceIndex(0, "", []))
    labels: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])
    unread: set[int] = field(default_factory=set[int])
    unstored: set[int] = field(default_factory=set[int])
    _earlier: deque[FigureMention] = field(default_factory=lambda: deque(maxlen=MAX_EARLIER), init=False)
    """The last figures of the blocks judged before, the latest first."""
    _budget: CalculationBudget = field(default_factory=CalculationBudget, init=False)

    def judge(self, claims: Sequence[Claim], language: str = "") -> list[Verdict]:
        """Return the verdicts of the claims of one block, in order; its figures are remembered."""
        earlier = tuple(self._earlier)
        contexts = [
            replace(self._read(claim, language), earlier=earlier, budget=self._budget) for claim in claims
        ]
        self._earlier.extendleft(figure for one in contexts for figure in one.figures)
        totals = find_totals(contexts)
        return [self._judge(one, totals.get(place)) for place, one in enumerate(add_nearby(contexts))]

    def forget_blocks(self) -> None:
        """Forget the blocks that were judged."""
        self._earlier.clear()
        self._budget = CalculationBudget()

    def _read(self, claim: Claim, language: str) -> ClaimContext:
        cited = [self.sources[number] for number in claim.citations if number in self.sources]
        others = [one for number, one in self.sources.items() if number not in claim.citations]
        return (
            ClaimContext.of(claim, cited, others, language)
            if claim.citations
            else ClaimContext.of(claim, others, (), language)
        )

    def _judge(self, context: ClaimContext, total: ColumnTotal | None = None) -> Verdict:
        missing = self._find_missing(context)
        if missing is not None:
            return missing
        verdicts = [self._judge_total(context, total)] if total else [*self._judge_items(context)]
        if not any(one.is_marked for one in verdicts):
            verdicts += self._find_suspicions(context, verdicts)
        if not verdicts:
            return self._judge_words(context)
        return join_reasons(verdicts)

    def _judge_total(self, context: ClaimContext, total: ColumnTotal) -> Verdict:
        """Return the verdict on the total of a table of the report: as a source has it, or as added up."""
        for index in (*context.cited, self.given, self.results):
            if hits := index.find_figure(total.result):
                is_given = index is self.given
                return (report_given if is_given else report_support)(total.result.text, hits[0][1])
        if total.holds:
            return Verdict("supported", explain(ReasonCode.IS_COLUMN_SUM))
        shown = show_number(total.expected, total.result)
        reasons = explain(ReasonCode.WRONG_COLUMN_SUM, found=shown, value=total.result.text)
        return Verdict("contradicted", reasons, is_proved=True)

    def _find_suspicions(self, context: ClaimContext, verdicts: Sequence[Verdict]) -> Iterator[Verdict]:
        """Yield the differences in words from the sources that support a claim, or else that it cites."""
        numbers = {one.passage.source for one in verdicts if one.passage} or set(context.claim.citations)
        compared = [index for index in context.cited if index.number in numbers]
        for index in compared[:MAX_COMPARED]:
            if found := find_suspicion(context, index):
                yield found

    def _find_missing(self, context: ClaimContext) -> Verdict | None:
        """Return the verdict on a claim of which a cited source has no text."""
        numbers = context.claim.citations
        if any(number in self.unstored for number in numbers):
            return Verdict("open", explain(ReasonCode.NOT_STORED))
        if numbers and self.unread.issuperset(numbers):
            has_items = any(one.is_judged for one in context.figures) or context.dates
            reasons = explain(ReasonCode.NOTHING_READ, source=name_sources(numbers))
            return Verdict("absent" if has_items else "open", reasons, is_proved=True)
        if numbers and not context.cited:
            return Verdict("open", explain(ReasonCode.NO_KNOWN_SOURCE))
        return None

    def _judge_items(self, context: ClaimContext) -> Iterator[Verdict]:
        """Yield a verdict for each thing in a claim that rules can check."""
        equations = find_written(context)
        yield from map(judge_equation, equations)
        said = find_said_clauses(context.claim.text, has_citation=context.has_citation)
        judge = ItemJudge(context, self.given, self.results, self.answers, said)
        for group in context.groups:
            if not any(_is_result(group[0], one) for one in equations):
                yield from judge.judge_figure(group)
        for date in context.dates:
            yield judge.judge_date(date)
        if not said:
            yield from find_disagreements(context)
            yield from find_exchanged(context)
            yield from find_reversed(context)
        yield from check_quotations(context)
        if named := check_named_source(context, self.labels):
            yield named

    def _judge_words(self, context: ClaimContext) -> Verdict:
        """Return the verdict on a claim without anything that rules can check."""
        if not context.terms:
            return Verdict("exempt", explain(ReasonCode.NOTHING_TO_CHECK))
        if find_said_clauses(context.claim.text, has_citation=context.has_citation):
            return Verdict("open", explain(ReasonCode.ABOUT_CONVERSATION))
        is_comparable = context.has_citation and len(context.terms) >= LEAST_WORDS
        if is_comparable and (other := find_in_other_source(context)):
            return other
        # A claim without a citation may rest on any source, which would all have to be searched.
        compared = context.cited if context.has_citation else ()
        best = max(
            (one for index in compared for one in context.find_similar(index)[:1]),
            default=None,
            key=itemgetter(0),
        )
        return Verdict("open", explain(ReasonCode.NO_RULE), best[1].passage if best else None)


def find_written(context: ClaimContext) -> list[WrittenEquation]:
    """Return the calculations that a sentence writes out; a wrong one that its source has stays unjudged."""
    if context.claim.kind == "cell":
        return []
    return [
        one
        for one in find_equations(context.claim.text, figures=context.figures)
        if one.holds or not any(index.find_figure(one.result) for index in context.cited)
    ]


def judge_equation(equation: WrittenEquation) -> Verdict:
    """Return the verdict on a calculation that a claim writes out."""
    if equation.holds:
        return Verdict("supported", explain(ReasonCode.EQUATION_HOLDS, equation=equation.text))
    shown = show_number(equation.expected, equation.result)
    reasons = explain(ReasonCode.EQUATION_FAILS, equation=equation.text, found=shown)
    return Verdict("contradicted", reasons, is_proved=True)


def show_number(value: Decimal, like: FigureMention) -> str:
    """Return a value in the scale and unit of a figure, with at most six digits behind the point."""
    shown = f"{value / (like.scale * like.factor):,.6f}"
    return shown.rstrip("0").rstrip(".")


def find_totals(contexts: Sequence[ClaimContext]) -> dict[int, ColumnTotal]:
    """Return the totals of the tables of a block by the places of their claims."""
    found = dict[int, ColumnTotal]()
    cells = [(place, one.claim) for place, one in enumerate(contexts) if one.claim.kind == "cell"]
    rows = [[*group] for _, group in groupby(cells, key=lambda cell: cell[1].row)]
    for heads, table in groupby(rows, key=lambda row: tuple(claim.column for _, claim in row)):
        lines = [*table]
        texts = [[row[0][1].row, *(claim.text for _, claim in row)] for row in lines]
        for total in check_totals(["", *heads], texts):
            found[lines[total.row][total.column - 1][0]] = total
    return found


def _is_result(figure: FigureMention, equation: WrittenEquation) -> bool:
    return figure.start < equation.result.end and equation.result.start < figure.end


def add_nearby(contexts: Sequence[ClaimContext]) -> Iterator[ClaimContext]:
    """Yield the claims of a block with the figures of those in the same row or column, or just before."""
    rows, columns = dict[str, list[FigureMention]](), dict[str, list[FigureMention]]()
    for one in contexts:
        if one.claim.kind == "cell":
            rows.setdefault(one.claim.row, []).extend(one.figures)
            columns.setdefault(one.claim.column, []).extend(one.figures)
    recent = list[FigureMention]()
    for one in contexts:
        if one.claim.kind == "cell":
            own = {*map(id, one.figures)}
            near = [*rows[one.claim.row], *columns[one.claim.column]]
            yield replace(one, nearby=tuple(each for each in near if id(each) not in own)[:MAX_NEARBY])
        else:
            yield replace(one, nearby=tuple(recent[-MAX_NEARBY:]))
            recent += one.figures


def find_in_other_source(context: ClaimContext) -> Verdict | None:
    """Return a verdict if the words of a claim stand in a source of the run, and not in the cited ones."""
    if any(context.familiarity(index) > FOREIGN_COVERAGE for index in context.cited):
        return None
    for index in context.others:
        if any(one.language != index.language for one in context.cited) or not context.is_same_language(
            index
        ):
            continue
        for score, one in context.find_similar(index)[:1]:
            if score >= WORDS_COVERAGE:
                reasons = explain(ReasonCode.WORDS_IN_OTHER_SOURCE, source=index.label)
                return Verdict("contradicted", reasons, one.passage)
    return None
