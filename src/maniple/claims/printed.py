"""Figures that a program of the run has printed for something else than the claim says, or instead."""

from collections.abc import Sequence
from itertools import islice

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
from maniple.claims.quantities import FigureMention, agree
from maniple.claims.source_index import SourceIndex
from maniple.claims.table_index import find_label_terms
from maniple.claims.verdict import Verdict

MISREAD_DIGITS = 4
MAX_PRINTED = 60
"""Figures of a program's output with which one is compared that stands nowhere."""
MAX_LINES = 400
"""Lines of a program's output among which that of a claim is looked for."""


def find_printed_figure(context: ClaimContext, figure: FigureMention, results: SourceIndex) -> Verdict | None:
    """Return a verdict if a line that a program has printed gives another figure for words of the claim.

    All words of the line must be in the claim; none of the claim's figures may agree with its only figure.
    """
    for _, one in context.find_similar(results):
        printed = [each for each in _find_values(one) if each.is_judged]
        if len(printed) != 1 or not one.terms or not one.terms <= context.terms:
            continue
        is_bare = not printed[0].unit or printed[0].unit == figure.unit
        if is_bare and not has_figure(context, one):
            reason = f"a result of the run has {printed[0].text}, not {figure.text}"
            return Verdict("contradicted", reason, one.passage)
    return None


def find_other_line(
    context: ClaimContext,
    figure: FigureMention,
    hit: tuple[FigureMention, IndexedPassage],
    results: SourceIndex,
) -> Verdict | None:
    """Return a verdict if the figure of `hit`, which agrees, stands in another row than the claim names.

    The claim must name the whole head of a row with as many figures, such as its year, and nothing of the
    head of the row of `hit`.
    """
    _, one = hit
    if one.table >= 0:
        return find_misplacement(context, figure, hit, results)
    head, shape = _find_head(one), len(_find_values(one))
    if not head or head & context.label_terms:
        return None
    lines = (other for other in results.passages if other.table < 0 and other is not one)
    for other in islice(lines, MAX_LINES):
        other_head = _find_head(other)
        if (
            other_head
            and other_head <= context.label_terms
            and len(_find_values(other)) == shape
            and other.passage.text_index == one.passage.text_index
            and not has_figure(context, other)
        ):
            reason = f"a result of the run has {figure.text} in another row"
            return Verdict(kind_of_misplaced(context), reason, other.passage)
    return None


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
            return Verdict(
                "contradicted", f"a result of the run has {each.text}, not {figure.text}", one.passage
            )
    return None


def _find_head(line: IndexedPassage) -> frozenset[str]:
    return find_label_terms(blank_spans(line.passage.text, _find_values(line)))


def _find_values(line: IndexedPassage) -> list[FigureMention]:
    """Return the figures of a line without dates, and with the number of the line, if it has one."""
    return [one for one in line.figures if not _is_date(one, line.dates)]


def _is_date(figure: FigureMention, dates: Sequence[DateMention]) -> bool:
    return figure.kind == "year" or any(one.start < figure.end and figure.start < one.end for one in dates)
