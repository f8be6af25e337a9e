"""Two figures of one sentence of a source of which a claim gives each for the thing of the other."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from maniple.claims.context import ClaimContext
from maniple.claims.quantities import FigureMention, agree
from maniple.claims.segments import find_comparison, read_clause_terms
from maniple.claims.source_index import SourceIndex
from maniple.claims.verdict import Verdict
from maniple.claims.word_rules import has_other_direction
from maniple.evidence.reasons import ReasonCode, explain

MAX_FIGURES = 5
"""A claim with more figures is a list, whose labels are compared one by one elsewhere."""
MAX_HITS = 8
"""Passages with a figure that are looked at."""
_BEFORE = 12
"""Characters before a figure in which "from" and "to" are looked for."""
_GAP = r"[ \u00a0\u202f]*"
_CURRENCY = r"(?:US)?[$€£¥]?"
_FROM = rf"(?:\b(?:from|von|de|du|da|dal|desde|van|с|со)\b|由|从|從){_GAP}{_CURRENCY}"
_TO = rf"(?:\b(?:to|auf|à|a|al|hasta|para|naar|до)\b|[^\W\d_]?[到至]){_GAP}{_CURRENCY}"
_BEGINS_FROM, _BEGINS_TO = re.compile(rf"{_FROM}\Z", re.IGNORECASE), re.compile(rf"{_TO}\Z", re.IGNORECASE)
_GOES_TO = re.compile(rf"(?:[^\W\d_.;]|[ \u00a0,]){{0,30}}{_TO}", re.IGNORECASE)
_COMES_FROM = re.compile(rf"(?:[^\W\d_.;]|[ \u00a0,]){{0,30}}{_FROM}", re.IGNORECASE)
Change = tuple[FigureMention, FigureMention]
"""The old figure and the new one."""


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


def find_reversed(context: ClaimContext) -> Iterator[Verdict]:
    """Yield a verdict if a claim tells a change from A to B, and its source only one from B to A.

    Each must name its direction, such as `rose` and `fell`: the figures alone may be a range.
    """
    if context.claim.kind == "cell":
        return
    for old, new in _find_changes(context.claim.text, context.figures):
        for index in context.cited:
            passages = [one for _, one in index.find_figure(old)[:MAX_HITS] if one.table < 0]
            pairs = [(each, one) for one in passages for each in _find_changes(one.passage.text, one.figures)]
            if any(_is_change(pair, old, new) for pair, _ in pairs):
                break
            if found := next((one for pair, one in pairs if _is_change(pair, new, old)), None):
                if not has_other_direction(context.claim.text, found.passage.text):
                    continue
                reasons = explain(ReasonCode.OPPOSITE_CHANGE, source=index.label, old=new.text, new=old.text)
                yield Verdict("contradicted", reasons, found.passage)
                return


def _find_changes(text: str, figures: Sequence[FigureMention]) -> Iterator[Change]:
    """Yield what goes from one figure to another: "from A to B", and "to B from A"."""
    judged = [one for one in figures if one.is_judged and one.kind != "year"]
    for one, other in pairwise(judged):
        before = text[max(one.start - _BEFORE, 0) : one.start]
        if _BEGINS_FROM.search(before) and _GOES_TO.fullmatch(text, one.end, other.start):
            yield one, other
        elif _BEGINS_TO.search(before) and _COMES_FROM.fullmatch(text, one.end, other.start):
            yield other, one


def _is_change(pair: Change, old: FigureMention, new: FigureMention) -> bool:
    return agree(old, pair[0]) and agree(new, pair[1])


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
        values = {"value": one.figure.text, "other": other.figure.text}
        reasons = explain(ReasonCode.EXCHANGED, source=index.label, **values)
        found = found or Verdict("contradicted", reasons, passage.passage)
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
