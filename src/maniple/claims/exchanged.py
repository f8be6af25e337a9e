"""Two figures of one sentence of a source of which a claim gives each for the thing of the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from maniple.claims.context import ClaimContext
from maniple.claims.quantities import FigureMention, agree
from maniple.claims.segments import find_comparison, read_clause_terms
from maniple.claims.source_index import SourceIndex
from maniple.claims.verdict import Verdict

MAX_FIGURES = 5
"""A claim with more figures is a list, whose labels are compared one by one elsewhere."""
MAX_HITS = 8
"""Passages with a figure that are looked at."""


@dataclass(frozen=True, slots=True)
class _LabelledFigure:
    """A figure of a sentence with the words of its clause, and whether the clause is the first."""

    figure: FigureMention
    terms: frozenset[str]
    is_first: bool


def find_exchanged(context: ClaimContext) -> Iterator[Verdict]:
    """Yield a verdict if two figures of a claim have exchanged their labels."""
    if context.claim.kind == "cell" or not 1 < len(context.figures) <= MAX_FIGURES:
        return
    own = [*_read_labels(context.claim.text, context.figures)]
    for one, other in combinations(own, 2):
        for index in context.cited:
            if found := _find_in_source(one, other, index):
                yield found
                return


def _find_in_source(one: _LabelledFigure, other: _LabelledFigure, index: SourceIndex) -> Verdict | None:
    found: Verdict | None = None
    for hit, passage in index.find_figure(one.figure)[:MAX_HITS]:
        if passage.table >= 0 or not hit.is_judged:
            continue
        labels = [*_read_labels(passage.passage.text, passage.figures)]
        first = next((each for each in labels if each.figure is hit), None)
        second = next((each for each in labels if agree(other.figure, each.figure)), None)
        if first is None or second is None or first is second:
            continue
        if not _is_exchanged(one, other, first, second):
            return None
        reason = f"[{index.number}] has {one.figure.text} and {other.figure.text} the other way round"
        found = found or Verdict("contradicted", reason, passage.passage)
    return found


def _is_exchanged(
    one: _LabelledFigure, other: _LabelledFigure, first: _LabelledFigure, second: _LabelledFigure
) -> bool:
    """Whether each clause shares words with the other one's; the words before a list belong to all of it."""
    crossed = [bool(one.terms & second.terms), bool(other.terms & first.terms)]
    straight = [bool(one.terms & first.terms), bool(other.terms & second.terms)]
    if all(crossed):
        return not all(straight)
    if any(straight):
        return False
    return (crossed[0] and not (one.is_first or second.is_first)) or (
        crossed[1] and not (other.is_first or first.is_first)
    )


def _read_labels(text: str, figures: Sequence[FigureMention]) -> Iterator[_LabelledFigure]:
    """Yield the judged figures of a text that have a clause with words which no other clause has."""
    kinds = {one.kind for one in figures if one.is_judged and one.kind != "year"}
    for kind in kinds:
        same = [one for one in figures if one.kind == kind and one.is_judged]
        if len(same) < 2 or find_comparison(text):
            continue
        terms = read_clause_terms(text, same)
        for place, (figure, known) in enumerate(zip(same, terms, strict=False)):
            yield _LabelledFigure(figure, known, place == 0)
