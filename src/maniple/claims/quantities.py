"""A figure as a text gives it, and whether a figure of a source supports one of a report."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

FigureKind = Literal["number", "percent", "points", "factor", "money", "quantity", "year", "ordinal"]
Hedge = Literal["", "about", "over", "under"]

SMALL_NUMBER = 12
"""Bare whole numbers up to this one are counts that a text may give in its own words. They are not judged."""
AFFINE_UNITS = ("degC", "degF", "K")
UNITS_OF_SYMBOL = {
    "$": frozenset({"USD", "AUD", "CAD", "NZD", "HKD", "TWD", "SGD", "MXN", "ARS", "CLP", "COP"}),
    "¥": frozenset({"CNY", "JPY"}),
    "kr": frozenset({"SEK", "NOK", "DKK", "ISK"}),
    "pound": frozenset({"GBP", "g"}),
    "degree": frozenset({"degC", "degF"}),
    "cent": frozenset({"EUR", "USD", "AUD", "CAD", "NZD", "HKD", "$"}),
}
"""A symbol or word that several units share, with these units. It agrees with each of them."""
_GRAMS_OF_POUND = Decimal("453.59237")
_OWN_KIND = ("percent", "points", "factor")
_SAME = Decimal("1e-9")
_HEDGED_SHARE = Decimal("0.12")
_ZEROS_SHARE = Decimal("0.02")
_BARE_PERCENT_DIGITS = 3
_HUNDRED = Decimal(100)


_TABLE_SCALES = tuple(Decimal(10) ** power for power in (3, 4, 6, 8, 9))
"""The scales that the head or the title of a table may name, and that its figures leave out."""


@dataclass(frozen=True, slots=True)
class FigureMention:
    """A figure of a text.

    `readings` are all values that the digits may have, in the base unit of `unit` and with their scale:
    `1.136` is 1136 and 1.136, `23.7 Mio.` is 23,700,000, `1.5 GW` is 1,500,000,000 of `W`. `steps` are the
    values of the last digit given, one for each reading.
    """

    start: int
    end: int
    text: str
    readings: tuple[Decimal, ...]
    kind: FigureKind
    unit: str
    steps: tuple[Decimal, ...]
    about: Hedge = ""
    factor: Decimal = Decimal(1)
    """The part of the scale that comes from the unit: 1,000 for `5 km`."""
    scale: Decimal = Decimal(1)
    """The part of the scale that comes from a word: 1,000,000 for `5 million km`."""
    is_word: bool = False
    """Whether it is written as a word or a fraction: `twenty`, `two thirds`, `½`."""
    is_judged: bool = True
    """Whether a claim fails without it. Counts up to 12, words and ordinal numbers are not judged."""

    @property
    def precision(self) -> Decimal:
        """The value of the last digit given, of the first reading."""
        return self.steps[0]

    @property
    def value(self) -> Decimal:
        """The first and most likely reading."""
        return self.readings[0]


def agree(claimed: FigureMention, found: FigureMention) -> bool:
    """Return whether `found`, from a source, supports `claimed`.

    The value found must round to the digits claimed. Signs are not compared: "fell by 5 %" and "-5 %" agree.
    Percent, points and factors agree only with their own kind, currencies only with themselves. A bare number
    agrees with one that has a unit if the digits do; with a percentage only if it has three digits or more.
    """
    return any(
        is_rounded(value, claimed, reading, step)
        for value, scale in _find_comparable(claimed, found)
        for reading, step in _scaled(claimed, scale)
    )


def is_rounded(value: Decimal, claimed: FigureMention, reading: Decimal, step: Decimal) -> bool:
    """Return whether `value` may be written as `reading` with the last digit at `step`.

    Trailing zeros may be rounded, to 2 %. A hedge of `claimed` allows one step of the last digit that is not
    zero, at most 12 %.
    """
    value, reading = abs(value), abs(reading)
    apart = abs(reading - value)
    if apart <= max(reading, value) * _SAME or apart <= step / 2:
        return True
    coarse = find_coarse_step(reading, step)
    if apart <= min(coarse / 2, reading * _ZEROS_SHARE) and coarse > step:
        return True
    if not claimed.about or (claimed.about == "over" and value < reading):
        return False
    if claimed.about == "under" and value > reading:
        return False
    return apart <= min(max(coarse, reading * _ZEROS_SHARE), reading * _HEDGED_SHARE)


def find_coarse_step(reading: Decimal, step: Decimal) -> Decimal:
    """Return the value of the last digit of `reading` that is not zero, at least `step`."""
    if not reading or not step:
        return step
    units = reading / step
    if units != units.to_integral_value():
        return step
    zeros = units.normalize().as_tuple().exponent
    return step.scaleb(zeros) if isinstance(zeros, int) and zeros > 0 else step


def _scaled(figure: FigureMention, scale: Decimal) -> Iterator[tuple[Decimal, Decimal]]:
    for reading, step in zip(figure.readings, figure.steps, strict=True):
        yield reading / scale, step / scale


def _find_comparable(claimed: FigureMention, found: FigureMention) -> Iterator[tuple[Decimal, Decimal]]:
    """Yield each value of `found` with the divisor that brings `claimed` to the same unit."""
    one = Decimal(1)
    if claimed.kind in _OWN_KIND or found.kind in _OWN_KIND:
        yield from _find_shares(claimed, found)
    elif _is_convertible(claimed.unit, found.unit):
        yield from ((_in_unit(value, found.unit, claimed.unit), one) for value in found.readings)
    elif not found.unit:
        yield from ((value, claimed.factor) for value in found.readings)
    elif not claimed.unit or claimed.unit.split("/")[0] == found.unit.split("/")[0]:
        yield from ((value / found.factor, claimed.factor) for value in found.readings)


def _find_shares(claimed: FigureMention, found: FigureMention) -> Iterator[tuple[Decimal, Decimal]]:
    one = Decimal(1)
    if claimed.kind == found.kind:
        yield from ((value, one) for value in found.readings)
        return
    kinds = {claimed.kind, found.kind}
    bare = found if found.kind == "number" else claimed
    if bare.kind != "number" or bare.unit:
        return
    if "factor" in kinds:
        yield from ((value, one) for value in found.readings)
    elif "percent" in kinds and bare is found and _is_share(bare):
        yield from ((value * _HUNDRED, one) for value in found.readings)
    elif "percent" in kinds and (bare.is_word or _count_digits(bare) >= _BARE_PERCENT_DIGITS):
        if not bare.is_word:
            yield from ((value, one) for value in found.readings)
        if bare is found:
            yield from ((value * _HUNDRED, one) for value in found.readings)


def _is_share(figure: FigureMention) -> bool:
    """Whether a bare figure is a share of 1, such as 0.35."""
    return 0 < figure.value < 1 and not figure.is_word and figure.text[:1] in "0."


def _count_digits(figure: FigureMention) -> int:
    return sum(character.isdigit() for character in figure.text.lstrip("0.,-−"))


def _is_convertible(one: str, other: str) -> bool:
    if one == other or (one in AFFINE_UNITS and other in AFFINE_UNITS):
        return True
    return other in UNITS_OF_SYMBOL.get(one, ()) or one in UNITS_OF_SYMBOL.get(other, ())


def _in_unit(value: Decimal, unit: str, wanted: str) -> Decimal:
    if unit == wanted:
        return value
    if unit in AFFINE_UNITS and wanted in AFFINE_UNITS:
        celsius = {"degC": value, "degF": (value - 32) * 5 / 9, "K": value - Decimal("273.15")}[unit]
        return {"degC": celsius, "degF": celsius * 9 / 5 + 32, "K": celsius + Decimal("273.15")}[wanted]
    if {unit, wanted} == {"pound", "g"}:
        return value * _GRAMS_OF_POUND if unit == "pound" else value / _GRAMS_OF_POUND
    return value


def scale_figure(figure: FigureMention, scale: Decimal) -> FigureMention:
    """Return the figure with all its readings, and their last digits, multiplied by `scale`."""
    readings, steps = (tuple(value * scale for value in some) for some in (figure.readings, figure.steps))
    return replace(figure, readings=readings, steps=steps)


def shift_to_bare(figure: FigureMention) -> list[FigureMention]:
    """Return the figure as bare numbers, in each of the scales in which a table may give it."""
    bare = replace(figure, unit="", kind="number", factor=Decimal(1), scale=Decimal(1))
    return [scale_figure(bare, 1 / scale) for scale in _TABLE_SCALES]
