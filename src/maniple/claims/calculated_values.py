"""The values that simple calculations with figures give: sums, differences, shares, changes, rates."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from itertools import accumulate, combinations, islice, permutations, product
from typing import Literal, NamedTuple

from maniple.claims.dates import DateMention
from maniple.claims.quantities import FigureKind, FigureMention
from maniple.claims.table_index import TableIndex

MAX_OPERANDS = 14
"""Figures from which one calculation is tried. With more, chance explains any figure."""
MAX_COLUMN = 200
"""Cells of a column that is summed up."""
MAX_SUMMED = 12
"""Figures of which all sums of three are tried; longer sums are of figures that stand side by side."""
ANY_UNIT = "*"
"""The unit of a product of two quantities, such as volts and ampere-hours."""
_POINTS = "pp"
_SHARE_KINDS = frozenset(("percent", "points"))
_CURRENCIES = ("EUR", "USD", "GBP", "CNY", "JPY", "CHF", "INR")
_PERIODS = (7, 12, 24, 30, 52, 60, 365, 366, 1_440, 3_600, 8_760, 10_080, 86_400)
"""How many of one period another has, such as the days of a year."""
_DENOMINATORS = (100, 1_000, 10_000, 100_000, 1_000_000)
_SECONDS_OF_DAY = 86_400


class Operand(NamedTuple):
    """A figure with one of its values, in its base unit and without its sign."""

    value: float
    unit: str
    kind: FigureKind
    text: str
    factor: float
    """What a unit with a prefix is in the base unit."""
    is_scaled: bool
    """Whether a word such as "million" stands behind it."""
    is_share: bool
    """Whether it is a fraction in words, such as "a third"."""
    is_judged: bool

    @classmethod
    def of(cls, figure: FigureMention, reading: Decimal | None = None) -> "Operand":
        """Return a figure with its first value, or with another reading."""
        value = figure.value if reading is None else reading
        return cls(
            abs(float(value)),
            figure.unit,
            figure.kind,
            figure.text,
            float(figure.factor),
            figure.scale > 1,
            figure.is_word and 0 < figure.value < 1 and not figure.unit,
            figure.is_judged,
        )


class CalculatedValue(NamedTuple):
    """A value with its unit, and the operation that gives it, in parts: `5.3`, ` + `, `3.8`."""

    value: float
    unit: str
    operation: tuple[str, ...]
    is_sum: bool = False
    """Whether it is a sum or difference, which a text may give without the unit."""
    form: Literal["", "mean", "rise", "fall", "share", "period", "base", "rate"] = ""
    """`rise`, `fall` and `share` are percentages; `period` is the time between two dates, in months or
    seconds; `base` is a value before a change by a percentage, which is the last part but one; `rate` is an
    amount for each unit of something else."""
    has_like_units: bool = True
    """Whether the units go together: euros and a percentage are multiplied, but not divided."""


def read_operands(figures: Iterable[FigureMention], most: int = MAX_OPERANDS) -> list[Operand]:
    """Return at most `most` different figures other than years and counts that are not judged.

    A figure that may be read in two ways is there once for each.
    """
    different = {
        (one.readings, one.unit): one
        for one in figures
        if one.kind not in ("year", "ordinal") and (one.is_judged or not one.is_word or one.value < 1)
    }
    chosen = islice(different.values(), most)
    return [Operand.of(one, reading) for one in chosen for reading in one.readings]


def find_per_many(operands: Sequence[Operand], own: Sequence[Operand]) -> Iterator[CalculatedValue]:
    """Yield rates per as many as the claim says, such as per 1,000."""
    for many in (one for one in own if not one.unit and one.value in _DENOMINATORS):
        for one, other in permutations(operands, 2):
            if other.value:
                rate = one.value / other.value * many.value
                yield CalculatedValue(rate, one.unit, (one.text, " / ", other.text, " x ", many.text))


def find_pair_values(operands: Sequence[Operand]) -> Iterator[CalculatedValue]:
    """Yield what each pair of operands gives, and what is missing to 100 %."""
    for one in operands:
        value = one.value
        if one.kind == "percent" and value < 100:
            yield CalculatedValue(100 - value, one.unit, ("100 % - ", one.text))
    yield from combine_pairs(permutations(operands, 2))


def combine_pairs(pairs: Iterable[tuple[Operand, Operand]]) -> Iterator[CalculatedValue]:
    """Yield sums, differences, quotients, changes and products of pairs."""
    for one, other in pairs:
        if _may_be_added(one, other):
            yield from _add(*((one, other) if one.unit else (other, one)))
        yield from divide_pair(one, other)
        yield from multiply_pair(one, other)


def find_sums(operands: Sequence[Operand], *, is_precise: bool) -> Iterator[CalculatedValue]:
    """Yield sums of three and more figures of one unit: side by side, and if `is_precise` any three."""
    by_unit = dict[str, list[Operand]]()
    for one in operands:
        by_unit.setdefault(one.unit, []).append(one)
    for unit, figures in by_unit.items():
        for first in range(len(figures) - 2):
            totals = accumulate(one.value for one in figures[first:])
            for count, total in enumerate(totals, start=1):
                if count > 2:
                    last = figures[first + count - 1]
                    yield CalculatedValue(
                        total, unit, (figures[first].text, " + … + ", last.text), is_sum=True
                    )
        for three in combinations(figures[:MAX_SUMMED], 3) if is_precise else ():
            total = sum(one.value for one in three)
            yield CalculatedValue(total, unit, tuple(f"{one.text} + " for one in three), is_sum=True)


def convert_periods(operands: Sequence[Operand]) -> Iterator[CalculatedValue]:
    """Yield amounts for another period: 118 litres a day in a year."""
    for one in operands:
        if one.unit and one.kind in ("quantity", "money"):
            for times in _PERIODS:
                yield CalculatedValue(one.value * times, one.unit, (one.text, f" x {times:,}"))
                yield CalculatedValue(one.value / times, one.unit, (one.text, f" / {times:,}"))


def find_products(operands: Sequence[Operand]) -> Iterator[CalculatedValue]:
    """Yield products and quotients of quantities of different kinds, whose unit is not derived."""
    quantities = [one for one in operands if one.kind == "quantity"]
    for one, other in permutations(quantities, 2):
        if one.unit != other.unit:
            value = one.value / one.factor, other.value / other.factor
            yield CalculatedValue(value[0] * value[1], ANY_UNIT, (one.text, " x ", other.text))
            if value[1]:
                yield CalculatedValue(value[0] / value[1], ANY_UNIT, (one.text, " / ", other.text))


def find_periods(
    near: Sequence[DateMention],
    every: Sequence[DateMention],
    pairs: Iterable[tuple[DateMention, DateMention]],
) -> Iterator[CalculatedValue]:
    """Yield the times between each of `near` and each of `every`, and between `pairs`."""
    for one in every:
        if one.years > 1:
            yield CalculatedValue((one.years - 1) * 12, "month", (one.text,), form="period")
    for one, other in product(near, every):
        yield from _subtract_dates(one, other)
    for one, other in pairs:
        yield from _subtract_dates(one, other)


def _subtract_dates(one: DateMention, other: DateMention) -> Iterator[CalculatedValue]:
    if one.year is None or other.year is None:
        return
    operation = (one.text, " to ", other.text)
    years = abs(one.year - other.year)
    yield CalculatedValue(years * 12, "month", operation, form="period")
    yield CalculatedValue(years, "", operation, form="period")
    if one.month and other.month:
        months = abs((one.year - other.year) * 12 + one.month - other.month)
        yield CalculatedValue(months, "month", operation, form="period")
        first, last = _read_day(one), _read_day(other)
        if first and last:
            days = abs(first - last).days
            yield CalculatedValue(days * _SECONDS_OF_DAY, "s", operation, form="period")


def _read_day(mention: DateMention) -> date | None:
    """Return the day of a date; None if it has none, or names one that does not exist, such as 31 April."""
    if not (mention.year and mention.month and mention.day):
        return None
    try:
        return date(mention.year, mention.month, mention.day)
    except ValueError:
        return None


def find_rates(figures: Sequence[Operand]) -> Iterator[CalculatedValue]:
    """Yield amounts for each unit of something else, such as inhabitants for a square kilometre."""
    for one, other in permutations(figures, 2):
        if one.kind in ("money", "number", "quantity") and (
            one.unit != other.unit or one.is_scaled != other.is_scaled
        ):
            yield from divide_pair(one, other)


def _may_be_added(one: Operand, other: Operand) -> bool:
    """Whether two figures have the same unit; "300 million more" may leave it out."""
    if one.unit and other.unit:
        return one.unit == other.unit and one.kind == other.kind
    with_unit, bare = (one, other) if one.unit else (other, one)
    return one.unit == other.unit or (bare.is_scaled and with_unit.kind in ("money", "quantity"))


def _add(one: Operand, other: Operand) -> Iterator[CalculatedValue]:
    a, b = one.value, other.value
    high, low = (one, other) if a >= b else (other, one)
    yield CalculatedValue(a + b, one.unit, (one.text, " + ", other.text), is_sum=True)
    yield CalculatedValue(abs(a - b), one.unit, (high.text, " - ", low.text), is_sum=True)
    if one.factor != 1:
        # "312 hours, 125 more": without the unit, the digits are compared.
        yield CalculatedValue(abs(a - b) / one.factor, "", (high.text, " - ", low.text))
    if one.kind == "percent":
        yield CalculatedValue(abs(a - b), _POINTS, (high.text, " - ", low.text))
    yield CalculatedValue(
        (a + b) / 2, one.unit, ("the mean of ", one.text, ", ", other.text), is_sum=True, form="mean"
    )


def divide_pair(one: Operand, other: Operand) -> Iterator[CalculatedValue]:
    """Yield the change from `other` to `one`, and their ratio in all units that it may have."""
    a, b = one.value, other.value
    if not b:
        return
    operation = (one.text, " / ", other.text)
    if one.unit == other.unit:
        parts = ("(", one.text, " - ", other.text, ") / ", other.text)
        yield CalculatedValue(100 * abs(a - b) / b, "%", parts, form="rise" if a > b else "fall")
        yield CalculatedValue(a / b, "", operation)
        if one.kind != "percent":
            yield CalculatedValue(100 * a / b, "%", operation, form="share")
        return
    yield from _divide_by_percent(one, a, other, b)
    is_like = _SHARE_KINDS.isdisjoint((one.kind, other.kind))
    per_unit = b / other.factor
    # "7.3 million for 96 GWh" may be given per GWh, MWh or kWh.
    for scale in (1, 1e-3, 1e-6, 1e3) if other.factor != 1 else (1,):
        yield CalculatedValue(a / per_unit * scale, one.unit, operation, form="rate", has_like_units=is_like)
    if other.unit:
        yield CalculatedValue(
            a / b, f"{one.unit}/{other.unit}", operation, form="rate", has_like_units=is_like
        )
    if one.kind == "money" == other.kind:
        yield CalculatedValue(a / b, "", operation)


def _divide_by_percent(one: Operand, a: float, other: Operand, b: float) -> Iterator[CalculatedValue]:
    if one.kind == "percent" and other.kind == "points":
        yield CalculatedValue(a + b, one.unit, (one.text, " + ", other.text))
        yield CalculatedValue(abs(a - b), one.unit, (one.text, " - ", other.text))
    elif other.kind == "percent" and one.kind != "points":
        for share in (100 + b, 100 - b):
            if share > 0:
                yield CalculatedValue(
                    100 * a / share, one.unit, (one.text, " / (1 ± ", other.text, ")"), form="base"
                )


def multiply_pair(one: Operand, other: Operand) -> Iterator[CalculatedValue]:
    """Yield a product, a share or an amount in another currency."""
    a, b = one.value, other.value
    operation = (one.text, " x ", other.text)
    if other.kind == "percent":
        yield CalculatedValue(a * b / 100, one.unit, operation)
    elif other.is_share:
        yield CalculatedValue(a * b, one.unit, operation, is_sum=True)
        yield CalculatedValue(a / b, one.unit, (one.text, " / ", other.text), is_sum=True)
        yield CalculatedValue(a - a * b, one.unit, (one.text, " - ", *operation), is_sum=True)
    elif not other.unit and other.is_judged and one.kind not in ("percent", "points"):
        yield CalculatedValue(a * b, one.unit, operation)
        if one.kind == "money":
            # A rate of exchange has no unit, and gives another currency.
            yield from (CalculatedValue(a * b, unit, operation) for unit in _CURRENCIES if unit != one.unit)


def find_column_values(table: TableIndex, rows: set[str]) -> Iterator[CalculatedValue]:
    """Yield sums, means and shares of the columns of a table, and of its `rows`."""
    for column in table.find_columns():
        cells = [(one.row, one.figures[0]) for one in column if one.figures]
        if not 2 <= len(cells) <= MAX_COLUMN:
            continue
        is_like = len({(figure.unit, figure.kind) for _, figure in cells}) == 1
        unit, head = cells[0][1].unit, column[0].column
        total = sum(abs(float(figure.value)) for _, figure in cells)
        named = [abs(float(figure.value)) for row, figure in cells if row in rows]
        found = [
            CalculatedValue(total, unit, ("the sum of ", head), is_sum=True),
            CalculatedValue(total / len(cells), unit, ("the mean of ", head), is_sum=True, form="mean"),
        ]
        if len(named) > 1:
            found.append(CalculatedValue(sum(named), unit, ("a sum of ", head), is_sum=True))
        for value in (sum(named), *named) if total else ():
            rest, share = ("the sum of ", head, " without a row"), ("a share of the sum of ", head)
            found.append(CalculatedValue(total - value, unit, rest, is_sum=True))
            found.append(CalculatedValue(100 * value / total, "%", share, form="share"))
        yield from found if is_like else (one._replace(has_like_units=False) for one in found)
