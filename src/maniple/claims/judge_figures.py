"""Whether the figures of a claim stand in the passages of a judge, or follow from them by a calculation.

The rules look a figure up as it is written. A judge has read what is around it, so here it may have another
unit or scale of the same dimension, or the unit that the head of its table gives, or be a date.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from maniple.claims.arithmetic import find_equations
from maniple.claims.dates import MAX_DAY, MAX_MONTH, DateMention
from maniple.claims.figures import find_figures, with_unit
from maniple.claims.judge_passages import SourcePiece
from maniple.claims.quantities import FigureMention, agree, is_rounded, scale_figure
from maniple.claims.source_index import SourceIndex
from maniple.claims.units import FigureTail, read_head_unit

CONSTANTS = frozenset(
    map(Decimal, (1, 2, 4, 7, 10, 12, 24, 30, 52, 60, 100, 360, 365, 366, 1_000, 1_024, 3_600, 10**6, 10**9))
)
"""Numbers that a calculation may use although no source has them: of periods, shares and scales."""
SCALES = (1, 10**3, 10**4, 10**6, 10**8, 10**9, 10**12)
"""Scales that a calculation may leave out: `40 / 120` for "40 million"."""
MAX_HEADED = 40
"""Characters of the head of a table's first column that may give the unit of all its cells: `£m`."""
_HUNDRED = Decimal(100)
_DAY_AND_MONTH = re.compile(r"(\d{1,2})(?:([.])|[/-])(\d{1,2})")
_EQUAL_SIGN = re.compile(r"[=≈]")


@dataclass(frozen=True, slots=True)
class ShownFigure:
    """A figure of a passage, with the unit of its head if it has none, and whether nothing gives its unit."""

    figure: FigureMention
    is_bare: bool


def read_figures(piece: SourcePiece, language: str = "") -> Iterator[ShownFigure]:
    """Yield the figures of a passage; one without a unit with each unit that its table may give it."""
    heads = _split_cells(piece.head)
    for line in piece.lines:
        cells = _split_cells(line)
        for place, cell in enumerate(cells or [line]):
            found = find_figures(cell, language)
            units = _find_units(piece, heads, cells, place, language) if found else []
            for figure in found:
                yield from _with_units(figure, units)


def _with_units(figure: FigureMention, units: Sequence[FigureTail]) -> Iterator[ShownFigure]:
    if figure.unit or figure.scale != 1:
        yield ShownFigure(figure, is_bare=False)
        return
    yield from (ShownFigure(with_unit(figure, unit), is_bare=False) for unit in units)
    if not units:
        yield ShownFigure(figure, is_bare=True)


def _find_units(
    piece: SourcePiece, heads: Sequence[str], cells: Sequence[str], place: int, language: str
) -> list[FigureTail]:
    """Return the units that the column or the row of a cell gives, or else the whole table."""
    if not cells:
        return []
    column = heads[place : place + 1] if len(heads) == len(cells) else heads
    own = [read_head_unit(one, language) for one in (*column, cells[0])]
    if found := [one for one in own if one is not None]:
        return found
    corner = heads[0] if heads and len(heads[0]) <= MAX_HEADED else ""
    whole = [read_head_unit(one, language) for one in (f"({corner})", piece.heading)]
    return [one for one in whole if one is not None]


def _split_cells(line: str) -> list[str]:
    """Return the cells of a row of a table, or none of another line."""
    stripped = line.strip()
    return [one.strip() for one in stripped.strip("|").split("|")] if stripped.startswith("|") else []


def stands_in(figure: FigureMention, shown: Iterable[ShownFigure]) -> bool:
    """Return whether one of the figures of some passages is that of a claim, in any unit of its dimension."""
    return any(_is_converted(figure, one.figure) for one in shown if not one.is_bare)


def _is_converted(claimed: FigureMention, found: FigureMention) -> bool:
    """Return whether two figures agree, also if only one of them is written `per second`."""
    if agree(claimed, found):
        return True
    units = {one.unit.partition("/")[0] for one in (claimed, found)}
    if len(units) > 1 or not claimed.unit or claimed.kind != found.kind:
        return False
    readings = [*zip(claimed.readings, claimed.steps, strict=True)]
    return any(is_rounded(value, claimed, *reading) for value in found.readings for reading in readings)


def read_day_and_month(figure: FigureMention, text: str) -> DateMention | None:
    """Return the date that a figure of `text` may be, as in `on 15.10., they met`; None for another."""
    found = _DAY_AND_MONTH.fullmatch(figure.text)
    if found is None or (found[2] and text[figure.end : figure.end + 1] != "."):
        return None
    day, month = int(found[1]), int(found[3])
    if not (0 < day <= MAX_DAY and 0 < month <= MAX_MONTH):
        return None
    return DateMention(figure.start, figure.end, figure.text, None, month, day, swapped=day <= MAX_MONTH)


@dataclass(frozen=True, slots=True)
class KnownFigures:
    """What a calculation of a judge may use: sources as they are indexed, and the passages that are shown."""

    indexes: Sequence[SourceIndex]
    shown: Sequence[ShownFigure]

    def has(self, figure: FigureMention) -> bool:
        """Return whether a source has a figure as it is written."""
        return any(index.find_figure(figure) for index in self.indexes)

    def give(self, operation: str, figure: FigureMention) -> bool:
        """Return whether an answer's calculations give a figure, hold, and use only what is known.

        `160 Tbit/s = 160,000 Gbit/s` and `43.9 = 43.9` are calculations, too: the first if a source has its
        left side and the units agree, the second if a passage has it and nothing gives it another unit.
        """
        calculated = set[Decimal]()
        lines = _split_operations(operation, figure)
        return any(self._gives(line, figure, calculated) or self._is_restated(line, figure) for line in lines)

    def _gives(self, line: str, figure: FigureMention, calculated: set[Decimal]) -> bool:
        """Return whether a line gives a figure; add to `calculated` what it gives, for the lines behind."""
        figures, is_given = find_figures(line), False
        for one in find_equations(line, figures=figures):
            operands = [
                each
                for each in figures
                if one.start <= each.start < one.end and each.start != one.result.start
            ]
            usable = CONSTANTS | calculated
            if one.holds and all(abs(each.value) in usable or self._knows(each) for each in operands):
                calculated |= {abs(one.expected), abs(one.result.value)}
                is_given = is_given or _is_value_of(one.expected, figure)
        return is_given

    def _knows(self, operand: FigureMention) -> bool:
        """Return whether a source has an operand, also if the calculation leaves out its unit or scale."""
        if self.has(operand) or stands_in(operand, self.shown):
            return True
        bare = replace(operand, kind="number", unit="")
        scales = (1,) if operand.scale != 1 else SCALES
        return any(self.has(scale_figure(bare, Decimal(scale))) for scale in scales) or self._has_share(bare)

    def _has_share(self, bare: FigureMention) -> bool:
        """Return whether a number is a percentage of a source: `38` and `0.38` for 38 %, `0.62` its rest."""
        share = replace(bare, kind="percent", unit="%")
        shares = [share]
        if 0 < bare.value < 1:
            shares = [
                scale_figure(share, _HUNDRED),
                scale_figure(_subtract_from(Decimal(1), share), _HUNDRED),
            ]
        return any(self.has(one) or stands_in(one, self.shown) for one in shares)

    def _is_restated(self, line: str, figure: FigureMention) -> bool:
        """Return whether a line gives a known figure once more, in the unit of the claim."""
        sides = [find_figures(side) for side in _EQUAL_SIGN.split(line)]
        if [len(side) for side in sides] != [1, 1]:
            return False
        known, given = sides[0][0], sides[1][0]
        if known.unit or given.unit:
            is_known = self.has(known) or stands_in(known, self.shown)
            return is_known and _is_converted(given, known) and _is_converted(figure, given)
        is_bare = any(one.is_bare and one.figure.value == known.value for one in self.shown)
        return is_bare and known.value == given.value and _is_value_of(given.value, figure)


def _split_operations(operation: str, figure: FigureMention) -> Iterator[str]:
    """Yield the calculations of an answer; one without a result gets the figure as its result."""
    for line in filter(None, map(str.strip, operation.replace(";", "\n").split("\n"))):
        yield line
        if "=" not in line and "≈" not in line:
            yield f"{line} = {figure.text}"


def _subtract_from(whole: Decimal, figure: FigureMention) -> FigureMention:
    return replace(figure, readings=tuple(whole - one for one in figure.readings))


def _is_value_of(value: Decimal, figure: FigureMention) -> bool:
    """Return whether a calculated value is that of a figure, up to the scale of its unit, and rounded."""
    for reading, step in zip(figure.readings, figure.steps, strict=True):
        for scale in {Decimal(1), figure.scale, figure.factor, figure.scale * figure.factor}:
            for found in {value, value * 100} if figure.kind == "percent" else {value}:
                if is_rounded(found * scale, figure, reading, step):
                    return True
    return False
