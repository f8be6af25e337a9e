"""Figures that a program of the run has printed for something else than the claim says, or instead."""

from collections.abc import Sequence
from dataclasses import replace

from maniple.claims.context import ClaimContext, blank_spans
from maniple.claims.dates import DateMention
from maniple.claims.misplaced import (
    find_misplacement,
    has_figure,
    is_miscopied,
    kind_of_misplaced,
    squeeze_digits,
)
from maniple.claims.passages import IndexedPassage
from maniple.claims.quantities import FigureMention, agree, shift_to_bare
from maniple.claims.source_index import SourceIndex
from maniple.claims.table_index import LabelIndex
from maniple.claims.verdict import Verdict
from maniple.evidence.reasons import ReasonCode, explain

MISREAD_DIGITS = 4
MAX_PRINTED = 60
"""Figures of a program's output with which one is compared that stands nowhere."""
MAX_LINES = 400
"""Lines of a program's output among which that of a claim is looked for."""


def find_printed_figure(context: ClaimContext, figure: FigureMention, results: SourceIndex) -> Verdict | None:
    """Return a verdict if a line that a program has printed gives another figure for words of the claim.

    All words of the line must be in the claim. None of the claim's figures may agree with its only figure,
    nor with that of another line of the same words; a program may leave out the scale.
    """
    lines = [
        (one, printed[0])
        for _, one in context.find_similar(results)
        if one.terms
        and one.terms <= context.terms
        and len(printed := [each for each in _find_values(one) if each.is_judged]) == 1
    ]
    bare = shift_to_bare(figure)
    given = {
        one.terms
        for one, printed in lines
        if has_figure(context, one) or any(agree(each, printed) for each in bare)
    }
    for one, printed in lines:
        if one.terms not in given and (not printed.unit or printed.unit == figure.unit):
            return _report_other(figure, printed, one)
    return None


def find_other_line(
    context: ClaimContext,
    figure: FigureMention,
    hit: tuple[FigureMention, IndexedPassage],
    results: SourceIndex,
) -> Verdict | None:
    """Return a verdict if the figure of `hit`, which agrees, stands in another row than the claim names.

    The claim must name another row with as many figures by all that only this row has in its head, such as
    its year, and nothing of what only the row of `hit` has.
    """
    _, one = hit
    if one.table >= 0:
        found = find_misplacement(context, figure, hit, results)
        if found is None:
            return None
        reasons = explain(ReasonCode.RESULT_FOR_OTHER, value=figure.text) + found.reasons[1:]
        return replace(found, reasons=reasons)
    rows, head = _find_rows(one, results), _find_head(one)
    index, wanted = LabelIndex(rows), context.label_terms
    if not index.own_terms(head) or index.own_terms(head) & wanted:
        return None
    for other_head in rows:
        own = index.own_terms(other_head)
        if own and own <= wanted and not any(has_figure(context, each) for each in rows[other_head]):
            reasons = explain(ReasonCode.RESULT_IN_OTHER_ROW, value=figure.text)
            return Verdict(kind_of_misplaced(context), reasons, rows[other_head][0].passage)
    return None


def _find_rows(one: IndexedPassage, results: SourceIndex) -> dict[str, list[IndexedPassage]]:
    """Return the lines of an output with as many figures as `one`, which is among them, by their heads."""
    place, shape = results.place_of(one), len(_find_values(one))
    first = max(place - MAX_LINES // 2, 0)
    rows = dict[str, list[IndexedPassage]]()
    for other in results.passages[first : place + MAX_LINES // 2]:
        is_near = other.table < 0 and other.passage.text_index == one.passage.text_index
        if is_near and len(_find_values(other)) == shape:
            rows.setdefault(_find_head(other), []).append(other)
    return rows


def find_misread(context: ClaimContext, figure: FigureMention, results: SourceIndex) -> Verdict | None:
    """Return a verdict if a program has printed a figure of four digits or more with
    another digit, or two exchanged.

    Its author may have told it wrongly. With many printed figures, one is like it by chance.
    """
    digits = squeeze_digits(abs(figure.value) / (figure.factor * figure.scale))
    printed = [(each, one) for one in results.passages for each in _find_values(one) if each.is_judged]
    if len(digits) < MISREAD_DIGITS or len(printed) > MAX_PRINTED:
        return None
    for each, one in printed:
        is_like = is_miscopied(digits, squeeze_digits(abs(each.value) / (each.factor * each.scale)))
        if is_like and not any(agree(own, each) for own in context.figures):
            return _report_other(figure, each, one)
    return None


def _report_other(figure: FigureMention, printed: FigureMention, one: IndexedPassage) -> Verdict:
    reasons = explain(ReasonCode.OTHER_RESULT, found=printed.text, value=figure.text)
    return Verdict("contradicted", reasons, one.passage)


def _find_head(line: IndexedPassage) -> str:
    """Return a line without its figures: the head of its row, with names of columns, if it has them."""
    return blank_spans(line.passage.text, _find_values(line))


def _find_values(line: IndexedPassage) -> list[FigureMention]:
    """Return the figures of a line without dates, and with the number of the line, if it has one."""
    return [one for one in line.figures if not _is_date(one, line.dates)]


def _is_date(figure: FigureMention, dates: Sequence[DateMention]) -> bool:
    return figure.kind == "year" or any(one.start < figure.end and figure.start < one.end for one in dates)
