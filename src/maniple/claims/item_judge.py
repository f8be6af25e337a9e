"""Judges one figure or date of a claim."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice, product

from maniple.claims.calculation import count_significant, explain_figure, find_use
from maniple.claims.calculation_cues import (
    announces_calculation,
    announces_result,
    has_cue,
    says_calculated,
)
from maniple.claims.context import ClaimContext
from maniple.claims.conversation_claims import SaidClause
from maniple.claims.dates import DateMention
from maniple.claims.figures import find_figures
from maniple.claims.misplaced import (
    RIVAL_COVERAGE,
    choose_best,
    find_better_dated,
    find_date_of_figure,
    find_miscopied,
    find_misplaced_date,
    find_misplacement,
    find_other_cell,
    find_other_date,
    find_other_figure,
    find_other_sum,
    find_other_unit,
    is_same_kind,
)
from maniple.claims.passages import IndexedPassage
from maniple.claims.printed import find_misread, find_other_line, find_printed_figure
from maniple.claims.quantities import FigureMention, agree, shift_to_bare
from maniple.claims.signs import find_other_sign, find_other_statistic
from maniple.claims.source_index import SourceIndex
from maniple.claims.typical_errors import (
    find_confused_percentage,
    find_confused_ratio,
    find_swapped_digits,
    find_written_points,
    find_wrong_digit,
    find_wrong_scale,
)
from maniple.claims.verdict import Verdict
from maniple.evidence.reasons import ReasonCode, explain, name_sources

FindSlip = Callable[[ClaimContext, FigureMention, SourceIndex], Verdict | None]
_TYPICAL_ERRORS: tuple[FindSlip, ...] = (
    find_wrong_digit,
    find_confused_percentage,
    find_written_points,
    find_confused_ratio,
    find_wrong_scale,
    find_swapped_digits,
)
LEAST_PRECISE = 4
"""Digits from which a figure that stands nowhere is marked. Of shorter ones, most follow from others."""
RIVAL_COVERAGE_OF_SHORT = 0.8
"""The share of a claim's words from which a passage says the same with another figure."""
MAX_RIVALS = 3
ELSEWHERE_COVERAGE = 0.4
"""The share of a claim's words from which a passage of a source that is not cited speaks of the same."""
_BRACKET = re.compile(r"\s?[(（](?:[^\W\d_]{1,12}\s|[≈~约約])?\Z")
MAX_HITS = 200
"""Passages with a figure that are compared with the words of a claim."""
# A recommendation or an example does not report what a source says.
_HYPOTHETICAL = re.compile(
    r"\b(?:should|recommend\w*|suggest\w*|advis\w+|suppose|assum\w+|imagine|for example|e\.g\.|"
    r"for instance|would|could|"
    r"might|if|let us|let's|consider|plan|target|aim|at least|sollte\w*|empfehl\w*|empfohlen|angenommen|"
    r"zum Beispiel|z\. ?B\.|"
    r"wenn|falls|würde\w*|könnte\w*|ziel|devrai\w+|recommand\w+|conseil\w+|supposons|par exemple|"
    r"pourrai\w+|debería\w*|"
    r"recom\w+|supong\w+|por ejemplo|podría\w*|dovrebbe\w*|consigli\w+|per esempio|potrebbe\w*|deveria\w*|"
    r"por exemplo|"
    r"poderia\w*|zou\w*|aanbevol\w+|bijvoorbeeld|stel|следует|рекоменд\w+|например|если)\b|建议|建議|应该|假设|例如|"
    r"比如|如果|"
    r"すべき|例えば|もし|예를 들어|만약|권장",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ItemJudge:
    """Judges the figures and dates of one claim.

    `given` is what the user has said, `results` what programs of the run have printed, `answers` what the
    team has said, and `said` the clauses of the claim that are about those.
    """

    context: ClaimContext
    given: SourceIndex
    results: SourceIndex
    answers: SourceIndex
    said: Sequence[SaidClause] = ()

    def judge_figure(self, group: Sequence[FigureMention]) -> Iterator[Verdict]:
        """Yield the verdict on a figure, given with its alternatives; nothing if it is not to be judged."""
        figure = group[0]
        if figure.is_judged and self._is_said(figure.start):
            yield self._judge_said_figure(group)
        elif figure.is_judged:
            yield (
                next(filter(None, map(self._find_in_cited, group)), None)
                or next(filter(None, map(self._find_outside, group)), None)
                or self._find_other_cell(figure)
                or self._find_slip(figure, find_other_unit)
                or find_other_sum(self.context, figure)
                or next(filter(None, map(self._find_calculation, group)), None)
                or self._find_miscopied(group)
                or next(filter(None, (self._find_slip(figure, find) for find in _TYPICAL_ERRORS)), None)
                or self._find_contradiction(group)
                or self._find_doubt(group)
                or self._report_absence(figure.text)
            )

    def judge_date(self, date: DateMention) -> Verdict:
        """Return the verdict on a date."""
        if self.given.find_date(date):
            return report_given(date.text)
        if self._is_said(date.start):
            return self._judge_said_date(date)
        return (
            self._find_date_in_cited(date)
            or self._find_date_in_results(date)
            or self._find_other_date(date)
            or self._find_date_elsewhere(date)
            or self._doubt_date(date)
        )

    def _is_said(self, start: int) -> bool:
        return any(one.has(start) for one in self.said)

    def _judge_said_figure(self, group: Sequence[FigureMention]) -> Verdict:
        """Return the verdict on a figure of the conversation, which no source can contradict."""
        for one in group:
            if found := self._find_outside(one):
                return found
            if self.answers.find_figure(one):
                return Verdict("exempt", explain(ReasonCode.TEAM_SAID, value=one.text))
        found = self._find_in_cited(group[0]) if self.context.has_citation else None
        return _keep_support(found, group[0].text)

    def _judge_said_date(self, date: DateMention) -> Verdict:
        if self.answers.find_date(date):
            return Verdict("exempt", explain(ReasonCode.TEAM_SAID, value=date.text))
        return _keep_support(self._find_date_in_cited(date) if self.context.has_citation else None, date.text)

    def _find_date_in_cited(self, date: DateMention) -> Verdict | None:
        """Return the support of a date by a cited source, or the objection to all its places."""
        objection: Verdict | None = None
        for index in self.context.cited:
            for hit in choose_best(self.context, index.find_date(date)[:MAX_HITS], index):
                found = find_misplaced_date(self.context, date, hit, index) or find_better_dated(
                    self.context, date, hit[1], index
                )
                if found is None:
                    return report_support(date.text, hit[1])
                objection = objection or found
        return objection

    def _find_date_in_results(self, date: DateMention) -> Verdict | None:
        hits = self.results.find_date(date)
        return report_support(date.text, hits[0][1]) if hits else None

    def _find_other_date(self, date: DateMention) -> Verdict | None:
        # "In 2023 it had 815": both may be worked out from the figures of 2024.
        if date.month is None and any(one.is_judged for one in self.context.figures):
            found = (find_date_of_figure(self.context, date, index) for index in self.context.cited)
            return next(filter(None, found), None)
        found = (find_other_date(self.context, date, index) for index in self.context.cited)
        return next(filter(None, found), None)

    def _find_in_cited(self, figure: FigureMention) -> Verdict | None:
        """Return the support of a figure by a cited source, or the objection to all its places."""
        objection: Verdict | None = None
        for index in self.context.cited:
            for hit in choose_best(self.context, index.find_figure(figure)[:MAX_HITS], index):
                found = (
                    find_misplacement(self.context, figure, hit, index)
                    or find_other_sign(self.context, figure, hit, index)
                    or find_other_statistic(self.context, figure, hit, index)
                )
                if found is None and figure.unit and not hit[0].unit:
                    found = find_other_unit(self.context, figure, index, least=RIVAL_COVERAGE)
                if found is None:
                    return report_support(figure.text, hit[1])
                # A bare number elsewhere that rounds to a percentage says nothing about it.
                is_bare = all(one.kind != figure.kind for one in hit[1].figures)
                is_chance = figure.kind == "percent" and is_bare and hit[0].value != figure.value
                objection = objection or (None if is_chance else found)
        outside = self._find_outside(figure)
        if objection is None or (outside is not None and not outside.is_marked):
            return None
        return self._find_other_cell(figure) or self._find_calculation(figure) or objection

    def _find_other_cell(self, figure: FigureMention) -> Verdict | None:
        return self._find_slip(figure, find_other_cell) if self.context.claim.kind == "cell" else None

    def _find_slip(self, figure: FigureMention, find: FindSlip) -> Verdict | None:
        """Return the figure of the passage most like the claim that this one was miscopied from."""
        found = (find(self.context, figure, index) for index in self.context.cited)
        return next(filter(None, found), None)

    def _find_miscopied(self, group: Sequence[FigureMention]) -> Verdict | None:
        """Return the figure that this one was miscopied from; a rounded one may as well be calculated."""
        found = self._find_slip(group[0], find_miscopied)
        return found and ((self._explain(group) if group[0].about else None) or found)

    def _find_outside(self, figure: FigureMention) -> Verdict | None:
        """Return the support of a figure by what the user said or a program printed."""
        if self.given.find_figure(figure):
            return report_given(figure.text)
        return self._find_printed(figure)

    def _find_printed(self, figure: FigureMention) -> Verdict | None:
        """Return the support of a figure by what a program printed, or the objection to all its rows."""
        objection: Verdict | None = None
        for hit in choose_best(self.context, self.results.find_figure(figure)[:MAX_HITS], self.results):
            found = find_other_line(self.context, figure, hit, self.results) or find_other_sign(
                self.context, figure, hit, self.results
            )
            if found is None:
                return report_support(figure.text, hit[1])
            objection = objection or found
        return objection and (self._find_calculation(figure) or objection)

    def _find_calculation(self, figure: FigureMention) -> Verdict | None:
        """Return the support of a figure by a calculation that it announces; open if units are mixed."""
        if not has_cue(self.context.claim.text) and self.context.claim.kind == "sentence":
            return None
        found = explain_figure(self.context, figure)
        if found is None or found.has_like_units:
            return found and Verdict("supported", explain(ReasonCode.CALCULATED, equation=found.operation))
        return Verdict("open", explain(ReasonCode.UNLIKE_UNITS, equation=found.operation))

    def _find_contradiction(self, group: Sequence[FigureMention]) -> Verdict | None:
        """Return what a source or result has instead of a figure, or which other source of the run has it."""
        figure = group[0]
        if printed := find_printed_figure(self.context, figure, self.results):
            return printed
        for index in self.context.cited:
            if not self._may_be_calculated(figure) and (
                found := find_other_cell(self.context, figure, index)
            ):
                return found
            if found := find_other_figure(self.context, figure, index):
                return self._explain(group) or found
        for index in self.context.others:
            for _, one in choose_best(self.context, index.find_figure(figure)[:MAX_HITS], index):
                if self.context.rate(one, index) >= ELSEWHERE_COVERAGE:
                    return _report_elsewhere(figure.text, one, index)
        return None

    def _explain(self, group: Sequence[FigureMention]) -> Verdict | None:
        """Return what a figure, read in any of its ways, may have been calculated from."""
        for one in group:
            if found := explain_figure(self.context, one, is_wide=True):
                return Verdict("open", explain(ReasonCode.PERHAPS_CALCULATED, equation=found.operation))
        return None

    def _find_doubt(self, group: Sequence[FigureMention]) -> Verdict | None:
        """Return why a figure that stands nowhere is not marked."""
        figure = group[0]
        if figure.kind in ("year", "ordinal"):
            return Verdict("open", explain(ReasonCode.NOT_FOUND, value=figure.text))
        if found := self._explain(group):
            return found
        if said := self._find_said(group):
            return said
        if form := self._find_other_form(figure):
            return form
        if self._is_repeated(figure):
            return Verdict("open", explain(ReasonCode.GIVEN_BEFORE, value=figure.text))
        if found := find_use(self.context, figure):
            return Verdict("open", explain(ReasonCode.USED, equation=found.operation))
        return self._doubt_calculated(figure) if self.context.has_citation else self._doubt_uncited(figure)

    def _find_said(self, group: Sequence[FigureMention]) -> Verdict | None:
        """Return which output of a program a figure was misread from, or that the team itself has said it."""
        if misread := find_misread(self.context, group[0], self.results):
            return misread
        if not any(self.answers.find_figure(one) for one in group):
            return None
        return Verdict("open", explain(ReasonCode.ONLY_TEAM_SAID, value=group[0].text))

    def _may_be_calculated(self, figure: FigureMention) -> bool:
        claim = self.context.claim
        return claim.kind == "sentence" and announces_calculation(claim.text, figure)

    def _doubt_calculated(self, figure: FigureMention) -> Verdict | None:
        if self.context.budget.left < 0:
            return Verdict("open", explain(ReasonCode.MANY_FIGURES, value=figure.text))
        if self._may_be_calculated(figure):
            return Verdict("open", explain(ReasonCode.MAY_BE_CALCULATED, value=figure.text))
        if count_significant(figure) < LEAST_PRECISE and not self._has_rival(figure):
            return Verdict("open", explain(ReasonCode.MAY_FOLLOW, value=figure.text))
        return None

    def _has_rival(self, figure: FigureMention) -> bool:
        """Whether a passage with nearly all words of the claim has another figure of the kind instead."""
        return any(
            rate >= RIVAL_COVERAGE_OF_SHORT and any(is_same_kind(figure, other) for other in one.figures)
            for index in self.context.cited
            for rate, one in islice(self.context.find_similar(index), MAX_RIVALS)
        )

    def _find_other_form(self, figure: FigureMention) -> Verdict | None:
        """Return that a figure may be one that a source gives in another unit, or as a bare number.

        The unit may stand where it is not looked for, such as in the title of a table.
        """
        if self._is_conversion(figure):
            return Verdict("open", explain(ReasonCode.CONVERSION, value=figure.text))
        if count_significant(figure) < LEAST_PRECISE or figure.scale * figure.factor == 1:
            return None
        for bare, index in product(shift_to_bare(figure), self.context.cited):
            if any(other.kind == "number" and not other.unit for other, _ in index.find_figure(bare)):
                reasons = explain(ReasonCode.BARE_DIGITS, source=index.label, value=figure.text)
                return Verdict("open", reasons)
        return None

    def _is_conversion(self, figure: FigureMention) -> bool:
        """Whether a figure stands in brackets behind another one, in a unit that the sources do not use."""
        behind = _BRACKET.search(self.context.claim.text, 0, figure.start)
        if behind is None or not figure.unit or figure.kind not in ("quantity", "money"):
            return False
        return any(
            one.end == behind.start() and one.kind == figure.kind and one.unit != figure.unit
            for one in self.context.figures
        )

    def _is_repeated(self, figure: FigureMention) -> bool:
        """Whether the report has given a figure before, and a source of the run has it."""
        if not any(agree(figure, one) for one in self.context.earlier):
            return False
        return any(index.find_figure(figure) for index in self.context.others)

    def _doubt_uncited(self, figure: FigureMention) -> Verdict | None:
        """Return why a figure without a citation, which stands nowhere, is not marked."""
        if _HYPOTHETICAL.search(self.context.claim.text):
            return Verdict("exempt", explain(ReasonCode.PROPOSAL, value=figure.text))
        if self.context.budget.left < 0:
            return Verdict("open", explain(ReasonCode.MANY_FIGURES, value=figure.text))
        if self._has_digits(figure):
            return Verdict("open", explain(ReasonCode.OTHER_UNIT, value=figure.text))
        claim = self.context.claim
        may_follow = claim.kind == "cell" or announces_result(claim.text)
        if says_calculated(claim.text) or (
            may_follow and any(map(self._is_known, self._find_operands(figure)))
        ):
            return Verdict("open", explain(ReasonCode.MAY_BE_CALCULATED, value=figure.text))
        return None

    def _has_digits(self, figure: FigureMention) -> bool:
        """Whether the number of a figure stands in anything that is known, whatever its unit."""
        bare = shift_to_bare(figure)[0]
        near = (one for index in self._known for one, _ in index.find_near(figure))
        return any(agree(bare, shift_to_bare(one)[0]) for one in near)

    def _find_operands(self, figure: FigureMention) -> Iterator[FigureMention]:
        """Yield the other figures of the claim and of those beside it."""
        yield from (one for one in self.context.figures if one.start != figure.start)
        yield from self.context.nearby

    def _is_known(self, figure: FigureMention) -> bool:
        """Whether a figure stands in anything that the team read, was told or printed."""
        return any(index.find_figure(figure) for index in self._known)

    @property
    def _known(self) -> tuple[SourceIndex, ...]:
        """Everything that the team read, was told or printed."""
        return (self.given, self.results, self.answers, *self.context.cited)

    def _report_absence(self, text: str) -> Verdict:
        if not self.context.has_citation:
            return Verdict("absent", explain(ReasonCode.IN_NO_SOURCE, value=text))
        cited = name_sources(index.number for index in self.context.cited)
        return Verdict("absent", explain(ReasonCode.NOT_IN_CITED, value=text, source=cited))

    def _find_date_elsewhere(self, date: DateMention) -> Verdict | None:
        for index in self.context.others:
            for _, one in choose_best(self.context, index.find_date(date)[:MAX_HITS], index):
                if self.context.rate(one, index) >= ELSEWHERE_COVERAGE:
                    return _report_elsewhere(date.text, one, index)
        return None

    def _doubt_date(self, date: DateMention) -> Verdict:
        """Return the verdict on a date that was not found.

        A year alone in a claim with a citation may be worked out by the reader.
        """
        has_citation = self.context.has_citation
        if not has_citation and _HYPOTHETICAL.search(self.context.claim.text):
            return Verdict("exempt", explain(ReasonCode.PROPOSAL, value=date.text))
        is_open = date.day is None if has_citation else self._is_ahead(date) or self._is_number(date)
        if is_open or self.answers.find_date(date):
            return Verdict("open", explain(ReasonCode.NOT_FOUND, value=date.text))
        return self._report_absence(date.text)

    def _is_number(self, date: DateMention) -> bool:
        """Whether what was read as a year may be a number that is known, such as an operand."""
        numbers = (replace(one, kind="number") for one in find_figures(date.text))
        return date.month is None and any(self._is_known(one) or self._has_digits(one) for one in numbers)

    def _is_ahead(self, date: DateMention) -> bool:
        """Whether a date is in this year or later: it is a plan, or known without a source."""
        return date.year is not None and date.year >= datetime.now(UTC).year


def _keep_support(found: Verdict | None, text: str) -> Verdict:
    """Return a verdict that objects to nothing; the conversation that is known may not be all of it."""
    if found is not None and not found.is_marked:
        return found
    return Verdict("open", explain(ReasonCode.NOT_IN_CONVERSATION, value=text))


def report_given(text: str, one: IndexedPassage | None = None) -> Verdict:
    """Return that the user has given a figure or date with a text."""
    return Verdict("exempt", explain(ReasonCode.GIVEN, value=text), one.passage if one else None)


def report_support(text: str, one: IndexedPassage) -> Verdict:
    """Return that a source, or what a program of the run has printed, has a figure or date with a text."""
    number = one.passage.source
    reasons = (
        explain(ReasonCode.STANDS_IN_SOURCE, source=f"[{number}]", value=text)
        if number
        else explain(ReasonCode.STANDS_IN_RESULT, value=text)
    )
    return Verdict("supported", reasons, one.passage)


def _report_elsewhere(text: str, one: IndexedPassage, index: SourceIndex) -> Verdict:
    reasons = explain(ReasonCode.OTHER_SOURCE, value=text, source=index.label)
    return Verdict("contradicted", reasons, one.passage)
