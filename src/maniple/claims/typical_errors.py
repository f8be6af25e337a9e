"""Typical errors of calculated and translated figures: what a figure must have been, and was not.

A figure that no calculation explains is not wrong for that. Each function here finds what it was meant to
be: a sum with a wrong digit, points for percent, a ratio for a change, a power of ten too much.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import chain, combinations, islice, pairwise, permutations

from maniple.claims.calculated_values import MAX_OPERANDS
from maniple.claims.calculation import count_significant, find_directions
from maniple.claims.context import ClaimContext, with_neighbours
from maniple.claims.dates import agree_dates
from maniple.claims.misplaced import (
    SLIP_DIGITS,
    is_miscopied,
    is_same_kind,
    report_other,
    squeeze_digits,
)
from maniple.claims.operands import OperandPool
from maniple.claims.passages import IndexedPassage
from maniple.claims.quantities import FigureMention, agree, is_rounded
from maniple.claims.source_index import SourceIndex
from maniple.claims.verdict import Verdict
from maniple.evidence.reasons import ReasonCode, explain

MAX_OWN = 5
"""Other figures of a claim that are combined."""
MAX_NEAR = 2
"""Passages with a figure of the claim whose other figures are compared with it."""
MAX_TERMS = 3
MAX_GROUPS = 12
"""Passages, rows and columns whose figures are compared with each other."""
LEAST_POWER, MOST_POWER = -6, 6
"""Powers of ten by which a scale may be wrong."""
_POWERS = [*range(LEAST_POWER, 0), *range(1, MOST_POWER + 1)]
_HUNDRED = Decimal(100)
_PAIR = 2
_POINT_BEHIND = re.compile(
    r"[ \u00a0\u202f]?(?:points?|Punkte?n?|puntos?|punti|punto|pontos?|punten|пункт\w*)\b", re.IGNORECASE
)
_AMOUNTS = ("money", "quantity", "number")


def find_wrong_digit(context: ClaimContext, figure: FigureMention, index: SourceIndex) -> Verdict | None:
    """Return a verdict if a figure is a sum or difference of the others of its claim, but for a digit.

    The digit is another one of three or more, or it is too high or too low by one.
    """
    if figure.kind not in _AMOUNTS:
        return None
    scale = figure.factor * figure.scale
    given = abs(figure.value) / scale
    same = _find_own(context, figure, like=figure)
    if any(abs(one.value) == abs(figure.value) for one in same):
        return None
    results = [*_find_totals(same)]
    if any(_agrees(figure, value) for value, _ in results):
        return None
    for value, text in results:
        if _has_wrong_digit(given, value / scale):
            return Verdict("contradicted", explain(ReasonCode.NOT_EQUAL, equation=text, value=figure.text))
    return None


def _find_own(context: ClaimContext, figure: FigureMention, *, like: FigureMention) -> list[FigureMention]:
    """Return the other figures of a claim in the unit of `like`; none, if they are more than `MAX_OWN`."""
    found = list[FigureMention]()
    for group in context.groups:
        if group[0].start == figure.start or (group[0].is_word and not group[0].is_judged):
            continue
        same = [one for one in (*group, *_in_unit_of(group[0], like)) if _has_unit(one, like)]
        found += same[:1]
    return found if len(found) <= MAX_OWN else []


def _in_unit_of(one: FigureMention, like: FigureMention) -> Sequence[FigureMention]:
    """Return a bare figure in the unit of another one."""
    if one.unit or one.kind != "number":
        return ()
    return [each for group in with_neighbours([(one,), (like,)]) for each in group if each.start == one.start]


def _has_unit(one: FigureMention, like: FigureMention) -> bool:
    """Whether two figures have one unit; "34 million kroner, 21 million from the State" leaves it out."""
    if one.kind == like.kind and one.unit == like.unit:
        return True
    is_left_out = {one.kind, like.kind} == {"number", "money"} and not (one.unit and like.unit)
    return is_left_out and one.scale > 1 and like.scale > 1


def _find_totals(figures: Sequence[FigureMention]) -> Iterator[tuple[Decimal, str]]:
    """Yield the sums of two and three figures, and what is left of one of them without the others."""
    for count in range(2, MAX_TERMS + 1):
        for chosen in combinations(figures, count):
            values = [abs(one.value) for one in chosen]
            texts = [one.text for one in chosen]
            yield sum(values, Decimal(0)), " + ".join(texts)
            high = max(range(count), key=values.__getitem__)
            rest = 2 * values[high] - sum(values, Decimal(0))
            if rest > 0:
                others = [text for place, text in enumerate(texts) if place != high]
                yield rest, " - ".join((texts[high], *others))


def _has_wrong_digit(given: Decimal, expected: Decimal) -> bool:
    one, other = squeeze_digits(given), squeeze_digits(expected)
    if len(one) != len(other) or given.adjusted() != expected.adjusted():
        return False
    if is_miscopied(one, other) and len(one.strip("0")) >= SLIP_DIGITS:
        return True
    apart = [abs(int(left) - int(right)) for left, right in zip(one, other, strict=True)]
    return sum(apart) == 1


def find_confused_percentage(
    context: ClaimContext, figure: FigureMention, index: SourceIndex
) -> Verdict | None:
    """Return a verdict if a percentage that tells a change is something else of the same two figures.

    It is the difference of two percentages, which are percentage points; or the ratio of the figures, or
    their difference as a share of the wrong one, or the right change with two digits exchanged. A claim with
    two figures of one unit and nothing else must give the change from one to the other.
    """
    directions = find_directions(context.claim.text, figure)
    if figure.kind != "percent" or not any(directions):
        return None
    own = [one for one in context.figures if one.start != figure.start and one.is_judged]
    if len(own) > MAX_OWN:
        return None
    pairs = [pair for pair in _find_own_pairs(own) if _goes(pair, directions)]
    for old, new in pairs:
        found = _find_confusion(figure, old, new)
        if found is None and old.kind != "percent" and len(own) == len(pairs) + 1 == _PAIR:
            found = None if _agrees(figure, _find_change(old, new)) else ReasonCode.NOT_THE_CHANGE
        if found:
            return _report_confusion(found, figure, old, new)
    for (old, new), one in _find_near_pairs(context, own, index):
        if _goes((old, new), directions) and (found := _find_near_confusion(figure, old, new)):
            return replace(_report_confusion(found, figure, old, new), passage=one.passage)
    return None


def _report_confusion(
    code: ReasonCode, figure: FigureMention, old: FigureMention, new: FigureMention
) -> Verdict:
    return Verdict("contradicted", explain(code, value=figure.text, old=old.text, new=new.text))


def find_confused_ratio(context: ClaimContext, figure: FigureMention, index: SourceIndex) -> Verdict | None:
    """Return a verdict if a rise by 100 % or more is the ratio of two figures of passages like the claim."""
    is_rise, is_fall = find_directions(context.claim.text, figure)
    if figure.kind != "percent" or not is_rise or is_fall or abs(figure.value) < _HUNDRED:
        return None
    pool = OperandPool(context, figure, index)
    found: Verdict | None = None
    for group in islice((*pool.find_groups(), *pool.find_wide_groups()), MAX_GROUPS):
        judged = [one for one in group if one.is_judged and one.kind in _AMOUNTS and one.value]
        for old, new in permutations(judged[:MAX_OPERANDS], 2):
            if not _has_unit(old, new):
                continue
            if _agrees(figure, _find_change(old, new)):
                return None
            if _agrees(figure, _HUNDRED * abs(new.value / old.value)):
                found = _report_confusion(ReasonCode.IS_RATIO, figure, old, new)
    return found


def _goes(pair: tuple[FigureMention, FigureMention], directions: tuple[bool, bool]) -> bool:
    """Whether a change goes in the direction that the claim gives, or the claim leaves it open."""
    old, new = (abs(one.value) for one in pair)
    return old != new and old > 0 and new > 0 and (all(directions) or (new > old) == directions[0])


def _find_own_pairs(own: Sequence[FigureMention]) -> Iterator[tuple[FigureMention, FigureMention]]:
    """Yield the pairs of the claim's own figures of one unit, in both orders, each once."""
    groups = [*with_neighbours([(one,) for one in own])]
    for first, second in permutations(groups, 2):
        same = ((one, other) for one in first for other in second if _has_unit(one, other))
        yield from islice(same, 1)


def _find_near_pairs(
    context: ClaimContext, own: Sequence[FigureMention], index: SourceIndex
) -> Iterator[tuple[tuple[FigureMention, FigureMention], IndexedPassage]]:
    """Yield pairs of a figure of the claim and one of a passage that has it, and of the claim's passage."""
    for mine in own:
        for found, one in index.find_figure(mine)[:MAX_NEAR]:
            near = index.find_neighbours(one) if found.kind == "percent" and index.has_place(one) else [one]
            figures = (each for passage in near for each in passage.figures)
            others = [each for each in figures if each is not found and _has_unit(found, each)]
            for other in others[:MAX_OWN]:
                yield (mine, other), one
                yield (other, mine), one
    for one in (
        () if own else (*(one for _, one in context.find_similar(index)[:1]), *_find_dated(context, index))
    ):
        shares = [each for each in one.figures if each.kind == "percent"]
        yield from ((pair, one) for pair in permutations(shares, 2) if len(shares) == _PAIR)


def _find_dated(context: ClaimContext, index: SourceIndex) -> Iterator[IndexedPassage]:
    """Yield the sentences that have both dates of a claim with two."""
    if len(context.dates) == _PAIR:
        first, second = context.dates
        for _, one in index.find_date(first)[:MAX_GROUPS]:
            if one.table < 0 and any(agree_dates(second, other) for other in one.dates):
                yield one


def find_written_points(context: ClaimContext, figure: FigureMention, index: SourceIndex) -> Verdict | None:
    """Return a verdict if the sentence with another percentage of a claim gives this one in points."""
    if figure.kind != "percent" or not any(find_directions(context.claim.text, figure)):
        return None
    others = [one for one in context.figures if one.kind == "percent" and one.start != figure.start]
    for _, one in chain.from_iterable(index.find_figure(other)[:MAX_NEAR] for other in others):
        for found in one.figures:
            is_bare = found.kind == "number" and _POINT_BEHIND.match(one.passage.text, found.end)
            if (is_bare or found.kind == "points") and _agrees(figure, abs(found.value)):
                reasons = explain(ReasonCode.POINTS, source=index.label, found=found.text)
                return Verdict("contradicted", reasons, one.passage)
    return None


def _find_near_confusion(figure: FigureMention, old: FigureMention, new: FigureMention) -> ReasonCode | None:
    """Return what a percentage is instead of the change between figures of which the claim has one."""
    change = _find_change(old, new)
    if found := _find_confusion(figure, old, new):
        return found
    if new.kind == "percent":
        return None
    given, expected = (squeeze_digits(one.quantize(figure.steps[0])) for one in (abs(figure.value), change))
    is_swapped = given != expected and sorted(given) == sorted(expected)
    return ReasonCode.IS_SWAPPED if is_swapped else None


def _find_confusion(figure: FigureMention, first: FigureMention, second: FigureMention) -> ReasonCode | None:
    """Return what a percentage is instead of the change from `first` to `second`."""
    old, new = abs(first.value), abs(second.value)
    if _agrees(figure, _find_change(first, second)):
        return None
    if second.kind == "percent":
        return ReasonCode.IS_POINTS if _agrees(figure, abs(new - old)) else None
    if any(
        _agrees(figure, _HUNDRED * ratio)
        for ratio in (max(new, old) / min(new, old), min(new, old) / max(new, old))
    ):
        return ReasonCode.IS_RATIO
    is_wrong_share = _agrees(figure, _HUNDRED * abs(new - old) / new)
    return ReasonCode.IS_OTHER_SHARE if is_wrong_share else None


def _find_change(old: FigureMention, new: FigureMention) -> Decimal:
    """Return the change in percent of the old value, without its sign."""
    return _HUNDRED * abs(abs(new.value) - abs(old.value)) / abs(old.value)


def _agrees(figure: FigureMention, value: Decimal) -> bool:
    return any(
        is_rounded(value, figure, reading, step)
        for reading, step in zip(figure.readings, figure.steps, strict=True)
    )


def find_wrong_scale(context: ClaimContext, figure: FigureMention, index: SourceIndex) -> Verdict | None:
    """Return a verdict if a source has the figure, in its unit, with another power of ten.

    The figure must have three digits or more that are no zeros at its end, so that this is no chance, and
    the source must have its words, where these can be compared.
    """
    if count_significant(figure) < SLIP_DIGITS or not (figure.unit or figure.scale != 1):
        return None
    if figure.kind not in _AMOUNTS:
        return None
    for power in _POWERS:
        moved = _move(figure, power)
        for other, one in index.find_figure(moved):
            if _is_given_alike(figure, other) and _has_words(context, one, index):
                return report_other(figure.text, [other], one, index)
    return None


def _move(figure: FigureMention, power: int) -> FigureMention:
    return replace(
        figure,
        readings=tuple(value.scaleb(power) for value in figure.readings),
        steps=tuple(step.scaleb(power) for step in figure.steps),
        about="",
    )


def _is_given_alike(figure: FigureMention, other: FigureMention) -> bool:
    """Whether a figure of a source measures the same and is given with as many digits.

    The unit behind the scale of one of them may be in a language that is not known here.
    """
    if not other.unit and other.scale == 1:
        return False
    has_no_unit = any(one.kind == "number" and one.scale != 1 for one in (figure, other))
    if not is_same_kind(figure, other) and not (has_no_unit and other.is_judged):
        return False
    return count_significant(other) == count_significant(figure)


def _has_words(context: ClaimContext, one: IndexedPassage, index: SourceIndex) -> bool:
    """Whether a passage shares a word or a date with the claim, or their words cannot be compared."""
    if not context.can_compare(index) or context.terms & (one.terms | one.around):
        return True
    return any(agree_dates(date, other) for date in context.dates for other in one.dates)


def find_swapped_digits(context: ClaimContext, figure: FigureMention, index: SourceIndex) -> Verdict | None:
    """Return a verdict if a source has the figure, in its unit, with two neighbouring digits exchanged."""
    scale = figure.factor * figure.scale
    number = abs(figure.value) / scale
    if len(squeeze_digits(number).strip("0")) < SLIP_DIGITS or figure.kind not in _AMOUNTS:
        return None
    for swapped in _swap_digits(number):
        moved = replace(figure, readings=(swapped * scale,), steps=figure.steps[:1], about="")
        for other, one in index.find_figure(moved):
            is_other = not any(agree(own, other) for own in context.figures)
            if is_other and is_same_kind(figure, other) and _has_words(context, one, index):
                return report_other(figure.text, [other], one, index)
    return None


def _swap_digits(number: Decimal) -> Iterator[Decimal]:
    """Yield the numbers that have two neighbouring digits of `number` exchanged."""
    text = f"{number.normalize():f}"
    places = [place for place, character in enumerate(text) if character != "."]
    for first, second in pairwise(places):
        if text[first] != text[second] and (first or text[second] != "0"):
            characters = [*text]
            characters[first], characters[second] = text[second], text[first]
            yield Decimal("".join(characters))
