"""Figures of a claim that follow from figures of its sources by a simple calculation."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, combinations, permutations, product

from maniple.claims.calculated_values import (
    ANY_UNIT,
    MAX_OPERANDS,
    CalculatedValue,
    Operand,
    combine_pairs,
    convert_periods,
    divide_pair,
    find_column_values,
    find_pair_values,
    find_per_many,
    find_periods,
    find_products,
    find_rates,
    find_sums,
    multiply_pair,
    read_operands,
)
from maniple.claims.context import ClaimContext
from maniple.claims.operands import MAX_SCANNED, OperandPool, choose_sources, figures_of, find_near_passages
from maniple.claims.quantities import UNITS_OF_SYMBOL, FigureMention, find_coarse_step, is_rounded

MAX_WIDE = 28
"""Figures from which one of three digits or more is calculated, which chance gives seldom."""
PRECISE_DIGITS = 3
MAX_FAR = 60
"""Figures of earlier blocks, or of a source's beginning, that are tried with those of the claim."""
MAX_YEARS = 24
_RATE = re.compile(
    r"(?<!\w)(?:per|a|an|each|every|pro|je|par|chaque|por|cada|al|per|ogni|elke|op|на|каждый|na|każd\w+|"
    r"başına|jut|esik|på)(?!\w)|/|每|平均|人均|あたり|当たり|당|لكل|ανά",
    re.IGNORECASE,
)
_RATE_WINDOW = 40
"""Characters before and behind a figure in which a word tells that it is a rate."""
_CHANGE_WINDOW = 40
_HEDGES = (
    r"(?:about |some |around |roughly |nearly |almost |over |rund |etwa |fast |gut |knapp |environ |près de |"
    r"unos |casi |cerca de |quase )?"
)
_RISE_BEFORE = re.compile(
    r"(?:\b(?:increased?|rise|rose|risen|growth|grew|grown|gain(?:ed)?|jump(?:ed)?|climbed|surged?|"
    r"(?<!mak[es] )(?<!made )(?<!making )(?<!adds )(?<!add )(?<!took )(?<!take )(?<!takes )up)"
    r"(?: of| by)? |"
    r"\b(?:Anstieg von|hausse de|augment(?:é|e|ait|ent) de|progress(?:é|e|ion) de|aumento (?:del?|di)|"
    r"aument(?:ó|ado|a) (?:en )?un|creci(?:ó|do) (?:en )?un|sub(?:ió|e|ido) un|"
    r"cresc(?:eu|er|ido)(?: em)?|aument(?:ou|ado)(?: em)?|sub(?:iu|ida) (?:de )?|subida del?|"
    r"(?:aument|cresci|salit)\w* del|alta de|stijging van|(?:stegen|gestegen|groeide) met|вырос\w* на) )"
    + _HEDGES
    + r"\Z|(?:增长|增加|上升|提高)了?约?\Z",
    re.IGNORECASE,
)
_FALL_BEFORE = re.compile(
    r"(?:\b(?:decreased?|decline[ds]?|fall|fell|fallen|drop(?:ped)?|reduction|reduced|down|slipped|lost)"
    r"(?: of| by)? |"
    r"\b(?:Rückgang von|baiss(?:e|é|ent|ait) de|diminu(?:é|e|ent) de|recul(?:é|e)? de|chute de|"
    r"caída del?|(?:baj|ca|descend|disminu|reduj)\w*[óo] (?:en )?un|"
    r"(?:calat|ridott|dimess|diminuit|sces)\w* del|perso il|calo del?|queda de|"
    r"(?:caiu|diminuiu|recuou|baixou)(?: em)?|daling van|(?:gedaald|daalde) met|"
    r"(?:сни[зж]|упал|сократил|уменьшил)\w* на) )" + _HEDGES + r"\Z|(?:下降|减少|降低)了?约?\Z",
    re.IGNORECASE,
)
_CHANGE_BEFORE = re.compile(r"(?:\b(?:by|um|на) )" + _HEDGES + r"\Z", re.IGNORECASE)
_RISE_BEHIND = re.compile(
    r"\s?(?:more|higher|larger|longer|faster|dearer|mehr|höher|teurer|größer|de plus|plus|más|mais|in più|"
    r"meer|больше|выше|増|上昇|늘)",
    re.IGNORECASE,
)
_FALL_BEHIND = re.compile(
    r"\s?(?:less|fewer|lower|smaller|shorter|slower|cheaper|weniger|niedriger|billiger|kleiner|de moins|"
    r"moins|menos|in meno|minder|меньше|ниже|減|低下|줄)",
    re.IGNORECASE,
)
_YEAR_WORDS = re.compile(
    r"\s?(?:years?|Jahren?|ans?|années?|años?|anni|anos|jaar|jaren|lat|år|vuotta|let|roků|років|роки|"
    r"лет|года?|év\w*|yıl\w*|χρόνια|έτη|سنة|عام\w*|年|년)(?![^\W_])",
    re.IGNORECASE,
)
_PERCENT_ENDS = ("%", "percent", "Prozent", "pour cent", "por ciento", "por cento", "процентов", "procent")
_SHARES = ("%", "pp", "x")
_AVERAGE = re.compile(
    r"averag|mean\b|durchschnitt|mittel|moyen|promedio|\bmedia\b|\bmedio|médi[ao]|gemiddeld|средн|平均|평균",
    re.IGNORECASE,
)
_NARROW, _WIDE = 0.021, 0.121


@dataclass(frozen=True, slots=True)
class Calculation:
    """A calculation that gives a figure, for the reader: `5.3 + 3.8`."""

    operation: str
    has_like_units: bool = True
    """Whether the units of its operands go together, and the claim speaks of a rate if it gives one.

    Else chance may have given it: 318 kg in 47 years is 6.77 kg for each, but no other amount.
    """


def explain_figure(
    context: ClaimContext, figure: FigureMention, *, is_wide: bool = False
) -> Calculation | None:
    """Return a calculation with figures of the claim and of the passages like it that gives `figure`.

    It has two operands from the claim or from sentences beside each other, or it is the sum or a share of a
    table's column. With `is_wide`, figures of the sentences before the claim, of rows and columns of
    tables, sums of lists, differences of years and conversions to other periods are tried as well.
    """
    if context.budget.left < 0:
        return None
    target, doubtful = _Target(figure, context), None
    for results in _find_everything(target, is_wide=is_wide):
        found = target.choose(results)
        if found is not None and (found.has_like_units or is_wide):
            return found
        doubtful = doubtful or found
    return doubtful


def _find_everything(target: "_Target", *, is_wide: bool) -> Iterator[Iterator[CalculatedValue]]:
    context, figure = target.context, target.figure
    for index in choose_sources(context):
        yield from _find_all_results(OperandPool(context, figure, index), target, is_wide=is_wide)
    own = [one for one in context.figures if one.start != figure.start]
    own += [one for one in context.nearby if one is not figure]
    yield find_pair_values(read_operands(own, MAX_WIDE))


def _find_all_results(
    pool: OperandPool, target: "_Target", *, is_wide: bool
) -> Iterator[Iterator[CalculatedValue]]:
    for group in pool.find_groups():
        yield find_pair_values(read_operands(group))
    for table in pool.tables:
        yield find_column_values(table, table.rows.find_named(pool.context.label_terms))
    if not is_wide:
        return
    own = read_operands(pool.own)
    yield _find_periods(pool)
    for group in pool.find_wide_groups():
        operands = read_operands(group, MAX_WIDE if target.is_precise else MAX_OPERANDS)
        yield find_pair_values(operands)
        yield find_sums(operands, is_precise=target.is_precise)
        yield convert_periods(operands)
        yield find_per_many(operands, own)
        if target.is_precise:
            yield find_products(operands)
    yield from _find_wide_results(pool, target)


def _find_wide_results(pool: OperandPool, target: "_Target") -> Iterator[Iterator[CalculatedValue]]:
    """Yield results of figures far from each other: one of the claim's own and another, rates, and sums."""
    everything = read_operands(pool.all_figures(), MAX_FAR)
    own = read_operands(pool.own)
    earlier = read_operands(pool.context.earlier, MAX_FAR)
    yield combine_pairs(chain(product(own, earlier), product(earlier, own)))
    measured = [one for one in earlier if one.kind == "quantity"]
    yield combine_pairs(pair for pair in permutations(measured, 2) if pair[0].unit == pair[1].unit)
    if target.is_precise:
        yield combine_pairs(chain(product(own, everything), product(everything, own)))
        yield find_sums([one for one in everything if one.unit and one.unit == target.unit], is_precise=True)
        if target.has_rate:
            yield find_rates(everything)


def _find_periods(pool: OperandPool) -> Iterator[CalculatedValue]:
    near = [*pool.context.dates, *(each for one in pool.near for each in one.dates)][:MAX_YEARS]
    every = [*near, *pool.index.find_dates_of(MAX_YEARS)]
    scanned = pool.index.passages[:MAX_SCANNED]
    return find_periods(
        near, every, (pair for one in scanned for pair in combinations(one.dates[:MAX_YEARS], 2))
    )


def find_use(context: ClaimContext, figure: FigureMention) -> Calculation | None:
    """Return a calculation of another figure of the claim with `figure`, such as a rate of exchange."""
    own = [one for one in context.figures if one is not figure and one.is_judged]
    used = Operand.of(figure)
    for index in choose_sources(context):
        near = figures_of(find_near_passages(context, figure, index))
        operands = read_operands([*own, *near])
        for wanted in (one for one in own if not index.find_figure(one)):
            pairs = (
                result
                for one in operands
                if one.text != wanted.text
                for first, second in ((used, one), (one, used))
                for result in (*divide_pair(first, second), *multiply_pair(first, second))
            )
            if found := _Target(wanted, context).choose(pairs):
                return found
    return None


class _Target:
    """The figure that a calculation has to give."""

    def __init__(self, figure: FigureMention, context: ClaimContext) -> None:
        text = context.claim.text
        self.figure = figure
        self.context = context
        self._budget = context.budget
        self._directions = find_directions(text, figure)
        self._is_change = any(self._directions) and figure.kind == "percent"
        self._own_texts = frozenset(one.text for one in context.figures)
        known = (found for index in context.cited for found, _ in index.find_figure(figure))
        self._same_texts = frozenset(one.text for one in known)
        """The figures of the sources that agree with it already: a sum with one of them explains nothing."""
        self._has_average = _AVERAGE.search(text) is not None
        self._is_period = _YEAR_WORDS.match(text, figure.end) is not None
        self.unit = figure.unit
        self.has_rate = _RATE.search(text) is not None
        near = text[max(figure.start - _RATE_WINDOW, 0) : figure.end + _RATE_WINDOW]
        self._tells_rate = "/" in figure.unit or _RATE.search(near) is not None or self._has_average
        self.is_precise = count_significant(figure) >= PRECISE_DIGITS
        self._windows = [
            (*_find_window(figure, value / scale, step / scale), value / scale, step / scale)
            for value, step in zip(figure.readings, figure.steps, strict=True)
            for scale in {Decimal(1), figure.factor}
        ]
        self._least = min(low for low, *_ in self._windows)
        self._most = max(high for _, high, *_ in self._windows)

    def choose(self, results: Iterable[CalculatedValue]) -> Calculation | None:
        """Return the first result that rounds to the figure and has its unit, within the budget.

        One whose operands have like units is better than another one.
        """
        doubtful: Calculation | None = None
        for one in results:
            self._budget.left -= 1
            if self._budget.left < 0:
                break
            if self._least <= one.value <= self._most and self._gives(one):
                is_like = one.has_like_units and (one.form != "rate" or self._tells_rate)
                found = Calculation("".join(one.operation).removesuffix(" + "), is_like)
                if is_like:
                    return found
                doubtful = doubtful or found
        return doubtful

    def _gives(self, result: CalculatedValue) -> bool:
        """Whether a result rounds to one of the readings of the figure, in its unit."""
        return any(
            low <= result.value <= high
            and self._has_unit(result)
            and is_rounded(Decimal(repr(result.value)), self.figure, reading, step)
            for low, high, reading, step in self._windows
        )

    def _has_form(self, result: CalculatedValue) -> bool:
        """Whether a mean is announced, a base has its percentage, a change its direction, a sum two parts."""
        if result.form == "mean" and not self._has_average:
            return False
        if result.is_sum and not self._same_texts.isdisjoint(result.operation):
            return False
        if result.form == "base" and result.operation[-2] not in self._own_texts:
            return False
        if result.unit != "%" or not self._is_change:
            return True
        if result.operation[1].endswith(_PERCENT_ENDS) and not self._own_texts.issuperset(
            result.operation[1::2]
        ):
            # "From 14 to 31 %" is a rise by percentage points, unless the claim says otherwise.
            return False
        is_rise, is_fall = self._directions
        return (result.form == "rise" and is_rise) or (result.form == "fall" and is_fall)

    def _has_unit(self, result: CalculatedValue) -> bool:
        wanted = self.figure.unit
        if not self._has_form(result):
            return False
        if result.form == "period":
            return wanted == result.unit or (not wanted and self._is_period)
        if result.unit == wanted or (result.is_sum and not wanted):
            return True
        if result.unit == ANY_UNIT:
            return self.figure.kind in ("quantity", "number", "money")
        if not result.unit or not wanted:
            # Both operands of a sum may have lost their unit, as in a table's cells.
            return not result.unit and (
                self.figure.kind == "factor" or (result.is_sum and wanted not in _SHARES)
            )
        if result.unit == wanted.partition("/")[0]:
            return True
        return wanted in UNITS_OF_SYMBOL.get(result.unit, ()) or result.unit in UNITS_OF_SYMBOL.get(
            wanted, ()
        )


def find_directions(text: str, figure: FigureMention) -> tuple[bool, bool]:
    """Return whether something may have risen by a figure, and whether it may have fallen.

    `36 % more` and `an increase of 36 %` can only be a rise, `changed by 36 %` may be both.
    """
    before, behind = text[max(figure.start - _CHANGE_WINDOW, 0) : figure.start], text[figure.end :]
    rise = _RISE_BEHIND.match(behind) or _RISE_BEFORE.search(before)
    fall = _FALL_BEHIND.match(behind) or _FALL_BEFORE.search(before)
    if not (rise or fall) and _CHANGE_BEFORE.search(before):
        return True, True
    return rise is not None, fall is not None


def count_significant(figure: FigureMention) -> int:
    """Return the number of digits of a figure without zeros at its ends; a decimal's last zeros count."""
    digits = "".join(one for one in figure.text if one.isdigit()).lstrip("0")
    return len(digits if figure.precision < figure.scale * figure.factor else digits.rstrip("0"))


def _find_window(figure: FigureMention, reading: Decimal, step: Decimal) -> tuple[float, float]:
    value = abs(float(reading))
    coarse = float(find_coarse_step(abs(reading), step))
    apart = max(float(step) / 2, min(coarse, value * (_WIDE if figure.about else _NARROW)))
    if figure.about:
        apart = max(apart, value * _NARROW)
    return value - apart - 1e-9, value + apart + 1e-9
