"""Figures of a claim that follow from figures of its sources by a simple calculation."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import accumulate, combinations, permutations

from maniple.claims.context import ClaimContext
from maniple.claims.operands import OperandPool, choose_sources, figures_of, find_near_passages
from maniple.claims.quantities import UNITS_OF_SYMBOL, FigureMention, find_coarse_step, is_rounded
from maniple.claims.table_index import TableIndex

MAX_OPERANDS = 14
"""Figures from which one calculation is tried. With more, chance explains any figure."""
MAX_WIDE = 28
"""The same for a figure of three digits or more, which chance gives seldom."""
PRECISE_DIGITS = 3
MAX_SUMMED = 12
"""Figures of which all sums of three are tried; longer sums are of figures that stand side by side."""
MAX_YEARS = 24
MAX_COLUMN = 200
"""Cells of a column that is summed up."""
_POINTS = "pp"
_ANY_UNIT = "*"
"""The unit of a product of two quantities, such as volts and ampere-hours."""
_PERIODS = (7, 12, 24, 30, 52, 60, 365, 366, 1_440, 3_600, 8_760, 10_080, 86_400)
"""How many of one period another has, such as the days of a year."""
_DENOMINATORS = (100, 1_000, 10_000, 100_000, 1_000_000)
_SECONDS_OF_DAY = 86_400
_YEAR_WORDS = re.compile(
    r"\s?(?:years?|Jahren?|ans?|années?|años?|anni|anos|jaar|jaren|lat|år|vuotta|let|roků|років|роки|лет|года?|év\w*|"
    r"yıl\w*|χρόνια|έτη|سنة|عام\w*|年|년)(?![^\W_])",
    re.IGNORECASE,
)
_MEAN = "the mean of"
_SHARES = ("%", "pp", "x")
_CURRENCIES = ("EUR", "USD", "GBP", "CNY", "JPY", "CHF", "INR")
_AVERAGE = re.compile(
    r"averag|mean\b|durchschnitt|mittel|moyen|promedio|\bmedia\b|\bmedio|médi[ao]|gemiddeld|средн|平均|평균",
    re.IGNORECASE,
)
_NARROW, _WIDE = 0.021, 0.121
_CUE = re.compile(
    r"\b(?:together|total\w*|combined|sum|overall|altogether|average|mean|median|share|ratio|times|twice|"
    r"doubl\w+|trebl\w+|"
    r"tripl\w+|half|halv\w+|third|quarter|fifth|tenth|more|less|fewer|higher|lower|longer|shorter|larger|"
    r"smaller|older|younger|"
    r"faster|slower|cheaper|dearer|than|difference|differ\w*|gap|margin|growth|grew|rose|risen|rising|fell|"
    r"fallen|falling|increas\w+|"
    r"decreas\w+|declin\w+|drop\w*|gain\w*|los[est]\w*|up|down|by|per|each|of (?:the|all)|both|remain\w*|"
    r"rest|left|equals?|"
    r"equivalent|corresponds?|roughly|calculat\w+|comput\w+|estimat\w+|implies|implying|after|later|"
    r"earlier|ago|years?|"
    r"zusammen|insgesamt|gesamt\w*|summe|durchschnitt\w*|mittel|anteil|mal|doppelt\w*|hälfte|drittel|"
    r"viertel|mehr|weniger|höher|"
    r"niedriger|länger|kürzer|größer|kleiner|älter|jünger|teurer|billiger|als|differenz|unterschied|"
    r"wachstum|wuchs|stieg\w*|"
    r"gestiegen|sank\w*|gesunken|fiel|zunahme|rückgang|um|pro|je|beide\w*|übrig\w*|rest|entspricht|macht|"
    r"rechnerisch|jahre?n?|"
    r"ensemble|total\w*|somme|moyenne|part|fois|double|moitié|tiers|quart|plus|moins|supérieure?|"
    r"inférieure?|que|écart|"
    r"différence|hausse|baisse|croissance|augment\w+|diminu\w+|recul\w*|par|chaque|deux|reste|soit|"
    r"correspond|ans?|"
    r"juntos|juntas|total|suma|promedio|media|proporción|veces|doble|mitad|tercio|cuarto|más|menos|mayor|"
    r"menor|diferencia|"
    r"aument\w+|crec\w+|baj\w+|cay\w+|por|cada|ambos|ambas|resto|años?|insieme|totale|somma|media|quota|"
    r"volte|doppio|metà|terzo|"
    r"più|meno|differenza|crescita|calo|per|ciascun\w|entramb\w|anni|juntos|soma|média|vezes|dobro|metade|"
    r"terço|mais|"
    r"diferença|queda|anos|samen|totaal|gemiddeld\w*|aandeel|keer|dubbel\w*|helft|derde|kwart|meer|minder|"
    r"hoger|lager|dan|"
    r"verschil|groei|daling|gestegen|gedaald|jaar|вместе|всего|итого|сумм\w+|средн\w+|дол[яи]|раза?|вдвое|"
    r"половин\w+|треть|"
    r"больше|меньше|выше|ниже|чем|разниц\w+|рост|вырос\w*|сни[зж]\w+|на|лет)\b"
    r"|%|＝|=|≈|~|合计|合計|共|总|總|平均|占|倍|比|差|多|少|增长|增長|增加|下降|减少|減少|每|半|一半|约合|合わせ|全体|割合|より|増|減|"
    r"합계|총|평균|비율|보다|증가|감소",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Calculation:
    """A calculation that gives a figure, for the reader: `5.3 + 3.8`."""

    operation: str


@dataclass(frozen=True, slots=True)
class _Result:
    value: float
    unit: str
    operation: str
    is_sum: bool = False
    """Whether it is a sum or difference, which a text may give without the unit."""
    is_period: bool = False
    """Whether it is the time between two dates; `value` is in months or seconds."""


def has_cue(text: str) -> bool:
    """Whether a text has a word that announces a calculation, such as `together` or `more than`."""
    return _CUE.search(text) is not None


def explain_figure(
    context: ClaimContext, figure: FigureMention, *, is_wide: bool = False
) -> Calculation | None:
    """Return a calculation with figures of the claim and of the passages like it that gives `figure`.

    It has two operands from the claim or from sentences beside each other, or it is the sum or a share of a
    table's column. With `is_wide`, figures of the sentences before the claim, of rows and columns of
    tables, sums of lists, differences of years and conversions to other periods are tried as well.
    """
    target = _Target(figure, context)
    for index in choose_sources(context):
        pool = OperandPool(context, figure, index)
        for results in _find_all_results(pool, target, is_wide=is_wide):
            if calculation := target.choose(results):
                return calculation
    earlier = context.earlier if is_wide else ()
    own = [one for one in (*context.figures, *context.nearby, *earlier) if one is not figure]
    return target.choose(_find_results(limit_operands(own, MAX_WIDE)))


def _find_all_results(
    pool: OperandPool, target: "_Target", *, is_wide: bool
) -> Iterator[Iterator["_Result"]]:
    for group in pool.find_groups():
        yield _find_results(limit_operands(group))
    for table in pool.tables:
        yield _find_column_results(table, pool.context)
    if not is_wide:
        return
    yield _find_periods(pool)
    for group in pool.find_wide_groups():
        operands = limit_operands(group, MAX_WIDE if target.is_precise else MAX_OPERANDS)
        yield _find_results(operands)
        yield _find_sums(operands, is_precise=target.is_precise)
        yield _convert_periods(operands)
        yield _find_per_many(operands, pool.context)
        if target.is_precise:
            yield _find_products(operands)
    yield _find_rates(pool.all_figures())


def find_use(context: ClaimContext, figure: FigureMention) -> Calculation | None:
    """Return a calculation of another figure of the claim with `figure`, such as a rate of exchange."""
    own = [one for one in context.figures if one is not figure and one.is_judged]
    for index in choose_sources(context):
        near = figures_of(find_near_passages(context, figure, index))
        operands = limit_operands([*own, *near])
        for wanted in (one for one in own if not index.find_figure(one)):
            pairs = (
                result
                for one in operands
                if one is not wanted
                for first, second in ((figure, one), (one, figure))
                for result in (*_divide_pair(first, second), *_multiply_pair(first, second))
            )
            if found := _Target(wanted, context).choose(pairs):
                return found
    return None


def limit_operands(figures: Iterable[FigureMention], most: int = MAX_OPERANDS) -> list[FigureMention]:
    """Return at most `most` different figures other than years and counts that are not judged."""
    different = {
        (one.readings, one.unit): one
        for one in figures
        if one.kind not in ("year", "ordinal") and (one.is_judged or not one.is_word or one.value < 1)
    }
    return [*different.values()][:most]


class _Target:
    """The figure that a calculation has to give."""

    def __init__(self, figure: FigureMention, context: ClaimContext) -> None:
        text = context.claim.text
        self._figure = figure
        self._has_average = _AVERAGE.search(text) is not None
        self._is_period = _YEAR_WORDS.match(text, figure.end) is not None
        self.is_precise = count_significant(figure) >= PRECISE_DIGITS
        self._windows = [
            (*_find_window(figure, value / scale, step / scale), value / scale, step / scale)
            for value, step in zip(figure.readings, figure.steps, strict=True)
            for scale in {Decimal(1), figure.factor}
        ]

    def choose(self, results: Iterable[_Result]) -> Calculation | None:
        """Return the first result that rounds to the figure and has its unit."""
        for one in results:
            for low, high, reading, step in self._windows:
                if low <= one.value <= high and self._has_unit(one):
                    value = Decimal(repr(one.value))
                    if is_rounded(value, self._figure, reading, step):
                        return Calculation(one.operation)
        return None

    def _has_unit(self, result: _Result) -> bool:
        wanted = self._figure.unit
        if result.operation.startswith(_MEAN) and not self._has_average:
            return False
        if result.is_period:
            return wanted == result.unit or (not wanted and self._is_period)
        if result.unit == wanted or (result.is_sum and not wanted):
            return True
        if result.unit == _ANY_UNIT:
            return self._figure.kind in ("quantity", "number", "money")
        if not result.unit or not wanted:
            # Both operands of a sum may have lost their unit, as in a table's cells.
            return not result.unit and (
                self._figure.kind == "factor" or (result.is_sum and wanted not in _SHARES)
            )
        if result.unit == wanted.partition("/")[0]:
            return True
        return wanted in UNITS_OF_SYMBOL.get(result.unit, ()) or result.unit in UNITS_OF_SYMBOL.get(
            wanted, ()
        )


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


def _find_per_many(operands: Sequence[FigureMention], context: ClaimContext) -> Iterator[_Result]:
    """Yield rates per as many as the claim says, such as per 1,000."""
    for many in (one for one in context.figures if not one.unit and _value_of(one) in _DENOMINATORS):
        for one, other in permutations(operands, 2):
            if _value_of(other):
                rate = _value_of(one) / _value_of(other) * _value_of(many)
                yield _Result(rate, one.unit, f"{one.text} / {other.text} x {many.text}")


def _find_results(operands: Sequence[FigureMention]) -> Iterator[_Result]:
    for one in operands:
        value = _value_of(one)
        if one.kind == "percent" and value < 100:
            yield _Result(100 - value, one.unit, f"100 % - {one.text}")
    for one, other in combinations(operands, 2):
        if _may_be_added(one, other):
            yield from _add(*((one, other) if one.unit else (other, one)))
    for one, other in permutations(operands, 2):
        yield from _divide_pair(one, other)
        yield from _multiply_pair(one, other)


def _find_sums(operands: Sequence[FigureMention], *, is_precise: bool) -> Iterator[_Result]:
    """Yield sums of three and more figures of one unit: side by side, and if `is_precise` any three."""
    by_unit = dict[str, list[FigureMention]]()
    for one in operands:
        by_unit.setdefault(one.unit, []).append(one)
    for unit, figures in by_unit.items():
        for first in range(len(figures) - 2):
            totals = accumulate(map(_value_of, figures[first:]))
            for count, total in enumerate(totals, start=1):
                if count > 2:
                    last = figures[first + count - 1]
                    yield _Result(total, unit, f"{figures[first].text} + … + {last.text}", is_sum=True)
        for three in combinations(figures[:MAX_SUMMED], 3) if is_precise else ():
            total = sum(map(_value_of, three))
            yield _Result(total, unit, " + ".join(one.text for one in three), is_sum=True)


def _convert_periods(operands: Sequence[FigureMention]) -> Iterator[_Result]:
    """Yield amounts for another period: 118 litres a day in a year."""
    for one in operands:
        if one.unit and one.kind in ("quantity", "money"):
            for times in _PERIODS:
                yield _Result(_value_of(one) * times, one.unit, f"{one.text} x {times:,}")
                yield _Result(_value_of(one) / times, one.unit, f"{one.text} / {times:,}")


def _find_products(operands: Sequence[FigureMention]) -> Iterator[_Result]:
    """Yield products and quotients of quantities of different kinds, whose unit is not derived."""
    quantities = [one for one in operands if one.kind == "quantity"]
    for one, other in permutations(quantities, 2):
        if one.unit != other.unit:
            value = float(one.value / one.factor), float(other.value / other.factor)
            yield _Result(value[0] * value[1], _ANY_UNIT, f"{one.text} x {other.text}")
            if value[1]:
                yield _Result(value[0] / value[1], _ANY_UNIT, f"{one.text} / {other.text}")


def _find_periods(pool: OperandPool) -> Iterator[_Result]:
    """Yield the times between two dates of the claim and its passages, in months and in seconds."""
    near = [*pool.context.dates, *(each for one in pool.near for each in one.dates)][:MAX_YEARS]
    every = [*near, *pool.index.find_dates_of(MAX_YEARS)]
    for one in near:
        for other in every:
            if one.year is None or other.year is None:
                continue
            operation = f"{one.text} to {other.text}"
            years = abs(one.year - other.year)
            yield _Result(years * 12, "month", operation, is_period=True)
            yield _Result(years, "", operation, is_period=True)
            if one.month and other.month:
                months = abs((one.year - other.year) * 12 + one.month - other.month)
                yield _Result(months, "month", operation, is_period=True)
            if one.month and other.month and one.day and other.day:
                days = abs(date(one.year, one.month, one.day) - date(other.year, other.month, other.day)).days
                yield _Result(days * _SECONDS_OF_DAY, "s", operation, is_period=True)


def _find_rates(figures: Sequence[FigureMention]) -> Iterator[_Result]:
    """Yield the amounts of money for each unit of something else, from all figures of a source."""
    sums = [one for one in figures if one.kind == "money"][:MAX_OPERANDS]
    counts = [one for one in figures if one.kind in ("quantity", "number") and one.is_judged][:MAX_OPERANDS]
    for one in sums:
        for other in counts:
            yield from _divide_pair(one, other)


def _value_of(figure: FigureMention) -> float:
    return abs(float(figure.value))


def _may_be_added(one: FigureMention, other: FigureMention) -> bool:
    """Whether two figures have the same unit; "300 million more" may leave it out."""
    if one.unit and other.unit:
        return one.unit == other.unit and one.kind == other.kind
    with_unit, bare = (one, other) if one.unit else (other, one)
    return one.unit == other.unit or (bare.scale > 1 and with_unit.kind in ("money", "quantity"))


def _add(one: FigureMention, other: FigureMention) -> Iterator[_Result]:
    a, b = _value_of(one), _value_of(other)
    high, low = (one, other) if a >= b else (other, one)
    yield _Result(a + b, one.unit, f"{one.text} + {other.text}", is_sum=True)
    yield _Result(abs(a - b), one.unit, f"{high.text} - {low.text}", is_sum=True)
    if one.factor != 1:
        # "312 hours, 125 more": without the unit, the digits are compared.
        yield _Result(abs(a - b) / float(one.factor), "", f"{high.text} - {low.text}")
    if one.kind == "percent":
        yield _Result(abs(a - b), _POINTS, f"{high.text} - {low.text}")
    yield _Result((a + b) / 2, one.unit, f"{_MEAN} {one.text}, {other.text}", is_sum=True)


def _divide_pair(one: FigureMention, other: FigureMention) -> Iterator[_Result]:
    a, b = _value_of(one), _value_of(other)
    if not b:
        return
    operation = f"{one.text} / {other.text}"
    if one.unit == other.unit:
        yield _Result(100 * abs(a - b) / b, "%", f"({one.text} - {other.text}) / {other.text}")
        yield _Result(a / b, "", operation)
        if one.kind != "percent":
            yield _Result(100 * a / b, "%", operation)
        return
    yield from _divide_by_percent(one, a, other, b)
    per_unit = b / float(other.factor)
    # "7.3 million for 96 GWh" may be given per GWh, MWh or kWh.
    for scale in (1, 1e-3, 1e-6, 1e3) if other.factor != 1 else (1,):
        yield _Result(a / per_unit * scale, one.unit, operation)
    if other.unit:
        yield _Result(a / b, f"{one.unit}/{other.unit}", operation)
    if one.kind == "money" == other.kind:
        yield _Result(a / b, "", operation)


def _divide_by_percent(one: FigureMention, a: float, other: FigureMention, b: float) -> Iterator[_Result]:
    if one.kind == "percent" and other.kind == "points":
        yield _Result(a + b, one.unit, f"{one.text} + {other.text}")
        yield _Result(abs(a - b), one.unit, f"{one.text} - {other.text}")
    elif other.kind == "percent" and one.kind != "points":
        for share in (100 + b, 100 - b):
            if share > 0:
                yield _Result(100 * a / share, one.unit, f"{one.text} / {share:g} %")


def _multiply_pair(one: FigureMention, other: FigureMention) -> Iterator[_Result]:
    a, b = _value_of(one), _value_of(other)
    operation = f"{one.text} x {other.text}"
    if other.kind == "percent":
        yield _Result(a * b / 100, one.unit, operation)
    elif other.is_word and b < 1 and not other.unit:
        yield _Result(a * b, one.unit, operation)
        yield _Result(a / b, one.unit, f"{one.text} / {other.text}")
        yield _Result(a - a * b, one.unit, f"{one.text} - {operation}")
    elif not other.unit and other.is_judged:
        yield _Result(a * b, one.unit, operation)
        if one.kind == "money":
            # A rate of exchange has no unit, and gives another currency.
            yield from (_Result(a * b, unit, operation) for unit in _CURRENCIES if unit != one.unit)


def _find_column_results(table: TableIndex, context: ClaimContext) -> Iterator[_Result]:
    rows = table.rows.find_named(context.label_terms)
    for column in table.find_columns():
        cells = [(one.row, one.figures[0]) for one in column if one.figures]
        if not 2 <= len(cells) <= MAX_COLUMN:
            continue
        unit, head = cells[0][1].unit, column[0].column
        total = sum(_value_of(figure) for _, figure in cells)
        yield _Result(total, unit, f"the sum of {head}", is_sum=True)
        yield _Result(total / len(cells), unit, f"{_MEAN} {head}", is_sum=True)
        named = [_value_of(figure) for row, figure in cells if row in rows]
        for value in (sum(named), *named) if total else ():
            yield _Result(value, unit, f"a sum of {head}", is_sum=True)
            yield _Result(total - value, unit, f"the sum of {head} without a row", is_sum=True)
            yield _Result(100 * value / total, "%", f"a share of the sum of {head}")
