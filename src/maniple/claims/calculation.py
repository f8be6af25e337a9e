"""Figures of a claim that follow from figures of its sources by a simple calculation."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from heapq import nlargest
from itertools import chain, combinations, islice, permutations

from maniple.claims.context import ClaimContext
from maniple.claims.passages import IndexedPassage
from maniple.claims.quantities import UNITS_OF_SYMBOL, FigureMention, find_coarse_step, is_rounded
from maniple.claims.source_index import SourceIndex
from maniple.claims.table_index import TableIndex

MAX_OPERANDS = 14
"""Figures from which one calculation is tried. With more, chance explains any figure."""
MAX_COLUMN = 200
"""Cells of a column that is summed up."""
MAX_TERMS = 4
"""Cells of a column of which a sum is tried, if the claim names their rows."""
PASSAGES = 4
"""The most similar passages of each source whose figures are tried."""
MAX_SOURCES = 4
"""Cited sources whose figures are tried."""
MAX_TABLES = 4
MAX_SCANNED = 60
"""Passages from the beginning of a source that are tried if nothing else explains a figure."""
_POINTS = "pp"
_MEAN = "the mean of"
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


def has_cue(text: str) -> bool:
    """Whether a text has a word that announces a calculation, such as `together` or `more than`."""
    return _CUE.search(text) is not None


def explain_figure(
    context: ClaimContext, figure: FigureMention, *, is_wide: bool = False
) -> Calculation | None:
    """Return a calculation with figures of the claim and of the passages like it that gives `figure`.

    It has two operands from the claim or from sentences beside each other, or it is the sum or a share of a
    table's column. With `is_wide`, all passages of a short source are tried if the claim shares no words with
    it, and all rates, such as a cost per hectare.
    """
    own = [one for one in (*context.figures, *context.nearby) if one is not figure]
    target = _Target(figure, has_average=_AVERAGE.search(context.claim.text) is not None)
    best = list[FigureMention]()
    for index in _choose_sources(context):
        near = [*_find_passages(context, figure, index)]
        best += (other for one in near[:2] for other in one.figures)
        groups = [index.find_neighbours(one) for one in near]
        if is_wide and not context.can_compare(index):
            groups += [index.passages[at : at + 2] for at in range(min(len(index.passages), MAX_SCANNED))]
        results = chain(
            *(_find_results(limit_operands([*own, *_figures_of(group)])) for group in groups),
            *(_find_column_results(one, context) for one in _find_tables(near, index)),
            _find_rates(_figures_of(index.passages[:MAX_SCANNED])) if is_wide else (),
        )
        if calculation := target.choose(results):
            return calculation
    return target.choose(_find_results(limit_operands([*own, *best])))


def find_use(context: ClaimContext, figure: FigureMention) -> Calculation | None:
    """Return a calculation of another figure of the claim with `figure`, such as a rate of exchange."""
    own = [one for one in context.figures if one is not figure and one.is_judged]
    for index in _choose_sources(context):
        near = _figures_of(_find_passages(context, figure, index))
        operands = limit_operands([*own, *near])
        for wanted in (one for one in own if not index.find_figure(one)):
            pairs = (
                result
                for one in operands
                if one is not wanted
                for first, second in ((figure, one), (one, figure))
                for result in (*_divide_pair(first, second), *_multiply_pair(first, second))
            )
            if found := _Target(wanted).choose(pairs):
                return found
    return None


def _choose_sources(context: ClaimContext) -> Sequence[SourceIndex]:
    """Return the sources of a claim; of many, those that share most of its words."""
    if len(context.cited) <= MAX_SOURCES:
        return context.cited
    scores = {
        index.number: max((score for score, _ in context.find_similar(index)), default=0)
        for index in context.cited
    }
    return nlargest(MAX_SOURCES, context.cited, key=lambda index: scores[index.number])


def _figures_of(passages: Iterable[IndexedPassage]) -> list[FigureMention]:
    return [figure for one in passages for figure in one.figures]


def _find_passages(
    context: ClaimContext, figure: FigureMention, index: SourceIndex
) -> Iterator[IndexedPassage]:
    """Yield the passages with other figures of the claim, and those that share its words."""
    # Here units are words, too: what is added up has the same.
    similar = [one for _, one in index.find_similar(context.label_terms, most=PASSAGES)]
    others = (one for one in context.figures if one is not figure and one.is_judged)
    same = [one for other in islice(others, PASSAGES) for _, one in index.find_figure(other)[:PASSAGES]]
    known = {id(one): one for one in (*similar[:1], *same, *similar[1:])}
    yield from (one for one in known.values() if index.has_place(one))


def _find_tables(near: Iterable[IndexedPassage], index: SourceIndex) -> list[TableIndex]:
    """Return the tables that passages are in, or all, if a source has few."""
    if len(index.tables) <= MAX_TABLES:
        return index.tables
    return [index.tables[number] for number in sorted({one.table for one in near if one.table >= 0})]


def limit_operands(figures: Iterable[FigureMention]) -> list[FigureMention]:
    """Return at most `MAX_OPERANDS` different figures other than years and counts that are not judged."""
    different = {
        (one.readings, one.unit): one
        for one in figures
        if one.kind not in ("year", "ordinal") and (one.is_judged or not one.is_word)
    }
    return [*different.values()][:MAX_OPERANDS]


class _Target:
    """The figure that a calculation has to give."""

    def __init__(self, figure: FigureMention, *, has_average: bool = False) -> None:
        self._figure = figure
        self._has_average = has_average
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
        if result.unit == wanted or (result.is_sum and not wanted):
            return True
        if not result.unit or not wanted:
            return not result.unit and self._figure.kind == "factor"
        if result.unit == wanted.partition("/")[0]:
            return True
        return wanted in UNITS_OF_SYMBOL.get(result.unit, ()) or result.unit in UNITS_OF_SYMBOL.get(
            wanted, ()
        )


def _find_window(figure: FigureMention, reading: Decimal, step: Decimal) -> tuple[float, float]:
    value = abs(float(reading))
    coarse = float(find_coarse_step(abs(reading), step))
    apart = max(float(step) / 2, min(coarse, value * (_WIDE if figure.about else _NARROW)))
    if figure.about:
        apart = max(apart, value * _NARROW)
    return value - apart - 1e-9, value + apart + 1e-9


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
