"""Recomputes what a text calculates in writing: equations, changes, shares, totals of tables."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, DivisionByZero, InvalidOperation, Overflow
from itertools import islice, product

from maniple.claims.figures import find_figures
from maniple.claims.quantities import FigureMention, find_coarse_step

MAX_OPERANDS = 40
"""The number of operands of an equation that is recomputed; a longer one is not looked at."""
MAX_READINGS = 16
"""The number of combinations of readings that are tried."""
_OPERATOR = re.compile(
    r"[ \u00a0]*(?:[^\W\d_][\w.-]{0,20}(?:[ \u00a0][^\W\d_][\w.-]{0,20})?[ \u00a0]+)?(?P<close>\)*)[ \u00a0]*"
    r"(?P<op>[+−–×x*·⋅∙÷/∕-]|plus|minus|times|multiplied by|divided by|mal|geteilt durch|fois|divisé par|"
    r"por|dividido por"
    r"|per|diviso|加上?|减去?|減|乘以?|除以)[ \u00a0]*(?P<open>\(*)[ \u00a0]*(?:[$€£¥]|US\$)?",
    re.I,
)
_EQUALS = re.compile(
    r"[ \u00a0]*(?:[^\W\d_][\w.-]{0,20}(?:[ \u00a0][^\W\d_][\w.-]{0,20})?[ \u00a0]+)?(?P<close>\)*)[ \u00a0]*"
    r"(?P<op>=|≈|≃|≅|equals|is equal to|makes|ergibt|macht|sind|gleich|égale?|font|es igual a|è uguale a|"
    r"é igual a|等于|等於)"
    r"[ \u00a0]*(?:about|around|approx\.?|rund|etwa|ca\.|environ|约|~)?[ \u00a0]*(?:[$€£¥]|US\$)?",
    re.I,
)
_WRITTEN = {
    "+": ("+", "plus", "加", "加上"),
    "-": ("-", "−", "–", "minus", "减", "减去", "減"),
    "*": ("×", "x", "*", "·", "⋅", "∙", "times", "multiplied by", "mal", "fois", "por", "per", "乘", "乘以"),
    "/": ("÷", "/", "∕", "divided by", "geteilt durch", "divisé par", "dividido por", "diviso", "除以"),
}
_OPERATIONS = {written: sign for sign, forms in _WRITTEN.items() for written in forms}
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2}
_APPROXIMATE = "≈≃≅"
_RISE = (
    r"rise|increase|growth|gain|jump|surge|fall|drop|decline|decrease|reduction|loss|change|Anstieg|"
    r"Zunahme|Zuwachs|Wachstum|Plus|"
    r"Rückgang|Abnahme|Minus|hausse|augmentation|progression|croissance|baisse|diminution|recul|aumento|"
    r"alza|subida|descenso|"
    r"caída|crecimiento|disminución|crescita|calo|aumento|queda|crescimento|stijging|daling|рост|снижение"
)
_FROM = re.compile(
    r"(?:\bfrom|\bvon|\bde|\bdes|\bda|\bvan|\bс|\bот|从|由|\bfrom about)[ \u00a0]*(?:[$€£¥]|US\$)?$", re.I
)
_TO = re.compile(
    r"[ \u00a0]*(?:[^\W\d_]{1,12}[ \u00a0])?(?:to|auf|à|a|al|naar|до|到|至|增至|升至|降至)"
    r"[ \u00a0]*(?:[$€£¥]|US\$)?",
    re.I,
)
_BY_THAT = re.compile(
    rf"[ \u00a0]*(?:,|;|–|—|\(|，|（)[ \u00a0]*(?:(?:or|i\.e\.|that is|which is|das ist|ein|eine|einem|an?|"
    rf"une?|soit|una?|um|uma|een)[ \u00a0])*"
    rf"(?:(?:{_RISE})[ \u00a0](?:of|by|von|um|de|del|di|van)[ \u00a0](?:about |around |rund |etwa |environ )?"
    r"|(?:up|down|plus|minus|增长|下降|上升|同比增长|同比下降)[ \u00a0]?|[+−-])?",
    re.I,
)
_CUE = re.compile(rf"(?:{_RISE}|up|down|plus|minus|增长|下降|上升|[+−-])", re.I)
_ANNUAL = re.compile(
    r"[ \u00a0](?:a|per|each|pro|par|por|im|al)[ \u00a0](?:year|annum|month|Jahr|an|año|ano|anno)|"
    r"[ \u00a0](?:annual|jährlich|p\.\s?a\.)",
    re.I,
)
_OF = re.compile(
    r"[ \u00a0]*(?:(?:out )?of|von|sur|de|di|van|из|/)[ \u00a0]*(?:the |den |the total |insgesamt |les |"
    r"los )?",
    re.I,
)
_SHARE = re.compile(
    r"[ \u00a0]*(?:[^\W\d_][\w-]{0,20}[ \u00a0]*){0,3}[(（][ \u00a0]*(?:about |rund |≈|~|or |i\.e\. )?"
)
_TOTAL = re.compile(
    r"[*_ ]*(?:(?:grand |sub)?total(?:s|e|es)?|sum|summe|gesamt|insgesamt|somme|suma|soma|totaal|итого|"
    r"всего|razem|合计|总计|總計|合計|小计|합계|총계)\b[ :*_]*",
    re.I,
)
_PARTS = re.compile(
    r"(?:of which|davon|darunter|dont|de los cuales|di cui|dos quais|waarvan|其中|うち|в том числе|subtotal|"
    r"zwischensumme)",
    re.I,
)
_NOT_ADDED = re.compile(
    r"(?:avg|average|mean|median|rate|price|year|per|share|ratio|index|rank|%|mittel|durchschnitt|anteil|"
    r"preis|jahr|quote|moyen|taux|prix|année|media|precio|tasa|año|prezzo|preço|单价|均|率|价|年|排名|比)",
    re.I,
)
_LONGEST_GAP = 60
_HUNDRED = Decimal(100)
_HALF = Decimal("0.5")
_LOOSE = Decimal("0.02")
_SAME = Decimal("1e-9")


@dataclass(frozen=True, slots=True)
class WrittenEquation:
    """A calculation that a text writes out, with its result as written and as recomputed."""

    start: int
    end: int
    text: str
    result: FigureMention
    expected: Decimal
    holds: bool


@dataclass(frozen=True, slots=True)
class ColumnTotal:
    """The total of a table's column: the place of its cell, the figure written, the sum of the others."""

    row: int
    column: int
    result: FigureMention
    expected: Decimal
    holds: bool


def find_equations(
    text: str, language: str = "", figures: Sequence[FigureMention] | None = None
) -> list[WrittenEquation]:
    """Return the calculations that `text` writes out, recomputed with rounding to the digits given.

    `799 × 0.88 = 730.12`, "a + b + c = d", "from 120 to 150, a rise of 25 %", "12 of 48 (25 %)". `figures`
    are those of `text`, if they are known already.
    """
    all_figures = find_figures(text, language) if figures is None else list(figures)
    found = [
        *_find_symbolic(text, all_figures),
        *_find_changes(text, all_figures),
        *_find_shares(text, all_figures),
    ]
    return sorted(found, key=lambda one: one.start)


def _find_symbolic(text: str, figures: Sequence[FigureMention]) -> Iterator[WrittenEquation]:
    first = 0
    signs = list[re.Match[str]]()
    for i in range(len(figures) - 1):
        gap = figures[i + 1].start - figures[i].end
        start, stop = _operand_end(figures[i]), figures[i + 1].start
        operator = _OPERATOR.fullmatch(text, start, stop) if gap <= _LONGEST_GAP else None
        if operator is not None and i + 1 - first < MAX_OPERANDS:
            signs.append(operator)
            continue
        equals = _EQUALS.fullmatch(text, start, stop) if gap <= _LONGEST_GAP and signs else None
        if equals is not None:
            operands = figures[first : i + 1]
            if not _is_preceded(text, operands[0].start):
                yield from _check_equation(text, operands, signs, equals, figures[i + 1])
        first, signs = i + 1, []


def _operand_end(figure: FigureMention) -> int:
    """Return the end of the digits of `3 ×`, which is a factor or an operand."""
    return figure.end - 1 if figure.text[-1:] in "×x" and figure.kind == "factor" else figure.end


def _is_preceded(text: str, start: int) -> bool:
    """Return whether something before the first operand belongs to the equation, which is then not read."""
    before = text[max(0, start - 12) : start].rstrip(" $€£¥(")
    return bool(before) and before[-1] in "+−×*·÷/=^√)"


def _check_equation(
    text: str,
    operands: Sequence[FigureMention],
    signs: Sequence[re.Match[str]],
    equals: re.Match[str],
    result: FigureMention,
) -> Iterator[WrittenEquation]:
    operations = [_OPERATIONS[sign["op"].casefold()] for sign in signs]
    if _adds_percent([*operands, result], operations):
        return
    opening = text[max(0, operands[0].start - 3) : operands[0].start].count("(")
    expressions = [_expression(values, operations, signs, equals, opening) for values in _readings(operands)]
    values = [value for tokens in expressions if (value := _evaluate(tokens)) is not None]
    if not values:
        return
    loose = equals["op"] in _APPROXIMATE or bool(result.about)
    slack = _rounding_slack(operands, operations, result)
    holds = any(
        _is_result(value, result, slack, loose, _has_mixed_units(operands, operations)) for value in values
    )
    end = result.end
    yield WrittenEquation(operands[0].start, end, text[operands[0].start : end], result, values[0], holds)


def _adds_percent(figures: Sequence[FigureMention], operations: Sequence[str]) -> bool:
    """Whether a percentage is added to another figure: `800 + 20 %` may mean 20 % of the 800."""
    kinds = {one.kind == "percent" for one in figures}
    return len(kinds) > 1 and not {"+", "-"}.isdisjoint(operations)


def _readings(operands: Sequence[FigureMention]) -> Iterator[tuple[Decimal, ...]]:
    choices = [
        [value / _HUNDRED if one.kind == "percent" else value for value in one.readings] for one in operands
    ]
    return islice(product(*choices), MAX_READINGS)


def _expression(
    values: Sequence[Decimal],
    operations: Sequence[str],
    signs: Sequence[re.Match[str]],
    equals: re.Match[str],
    opening: int,
) -> list[Decimal | str]:
    tokens: list[Decimal | str] = ["("] * opening
    tokens.append(values[0])
    for value, operation, sign in zip(values[1:], operations, signs, strict=True):
        tokens += [*[")"] * len(sign["close"]), operation, *["("] * len(sign["open"]), value]
    tokens += [")"] * len(equals["close"])
    return tokens


def _evaluate(tokens: Sequence[Decimal | str]) -> Decimal | None:
    """Return the value of an expression, or None if its brackets do not match or it cannot be computed."""
    values, pending = list[Decimal](), list[str]()
    try:
        for token in tokens:
            if isinstance(token, Decimal):
                values.append(token)
            elif token == "(":
                pending.append(token)
            else:
                level = _PRECEDENCE.get(token, 0)
                while pending and pending[-1] != "(" and _PRECEDENCE[pending[-1]] >= level:
                    _apply(values, pending.pop())
                if token == ")":
                    pending.pop()
                else:
                    pending.append(token)
        while pending:
            _apply(values, pending.pop())
    except (IndexError, KeyError, DivisionByZero, InvalidOperation, Overflow):
        return None
    return values[0] if len(values) == 1 else None


def _apply(values: list[Decimal], operation: str) -> None:
    right, left = values.pop(), values.pop()
    if operation == "+":
        values.append(left + right)
    elif operation == "-":
        values.append(left - right)
    elif operation == "*":
        values.append(left * right)
    else:
        values.append(left / right)


def _rounding_slack(
    operands: Sequence[FigureMention], operations: Sequence[str], result: FigureMention
) -> Decimal:
    """Return by how much the result may differ because the operands are rounded.

    A result with as many digits as the exact one must be exact. A sum of rounded operands may be off by half
    a step for each; a product or quotient by the share of its operands.
    """
    rounded = [one for one in operands if one.precision != 1 or one.scale != 1]
    if set(operations) <= {"+", "-"}:
        return sum((one.precision / 2 for one in rounded), Decimal(0)) if len(operands) > 2 else Decimal(0)
    exact = Decimal(1)
    for one in operands:
        exact *= one.precision / (_HUNDRED if one.kind == "percent" else 1)
    if set(operations) <= {"*"} and result.precision <= exact:
        return Decimal(0)
    share = sum((one.precision / 2 / abs(one.value) for one in rounded if one.value), Decimal(0))
    return share * abs(result.value)


def _has_mixed_units(operands: Sequence[FigureMention], operations: Sequence[str]) -> bool:
    """Return whether units are multiplied, so that the result's unit may differ by a power of ten."""
    return bool({"*", "/"} & set(operations)) and any(one.kind == "quantity" for one in operands)


def _is_result(value: Decimal, result: FigureMention, slack: Decimal, loose: bool, is_scaled: bool) -> bool:
    # "9.4 - 8 = 1.4 million": the scale may be given once.
    candidates = [value, value * (_HUNDRED if result.kind == "percent" else result.scale)]
    for reading, step in zip(result.readings, result.steps, strict=True):
        allowed = max(step * _HALF + slack, abs(reading) * _SAME)
        if loose:
            allowed = max(allowed, find_coarse_step(reading, step), abs(reading) * _LOOSE)
        if any(abs(abs(candidate) - abs(reading)) <= allowed for candidate in candidates):
            return True
        if is_scaled and _is_same_up_to_scale(value, reading, allowed):
            return True
    return False


def _is_same_up_to_scale(value: Decimal, reading: Decimal, allowed: Decimal) -> bool:
    if not value or not reading:
        return False
    shift = reading.adjusted() - value.adjusted()
    return any(abs(abs(value.scaleb(shift + one)) - abs(reading)) <= allowed for one in (-1, 0, 1))


def _find_changes(text: str, figures: Sequence[FigureMention]) -> Iterator[WrittenEquation]:
    """Yield "from 120 to 150, a rise of 25 %" and "from 120 to 150 (+25 %)"."""
    for one, two, three in zip(figures, figures[1:], figures[2:], strict=False):
        if three.kind not in ("percent", "points") or three.start - one.end > 2 * _LONGEST_GAP:
            continue
        if not _is_comparable(one, two) or not _FROM.search(text[max(0, one.start - 14) : one.start]):
            continue
        between = text[two.end : three.start]
        is_told = _BY_THAT.fullmatch(between) and (
            _CUE.search(between) or three.value < 0 or three.text[0] in "+-"
        )
        if not _TO.fullmatch(text, one.end, two.start) or not is_told or _ANNUAL.match(text, three.end):
            continue
        if (three.kind == "points") != (one.kind == "percent" and three.kind == "points"):
            continue
        expected = _change(one, two, three)
        if expected is not None:
            holds = _holds_change(expected, one, two, three)
            yield WrittenEquation(one.start, three.end, text[one.start : three.end], three, expected, holds)


def _is_comparable(one: FigureMention, two: FigureMention) -> bool:
    return (
        one.kind == two.kind
        and one.unit == two.unit
        and one.kind not in ("year", "ordinal")
        and one.value != 0
    )


def _change(one: FigureMention, two: FigureMention, told: FigureMention) -> Decimal | None:
    if told.kind == "points":
        return two.value - one.value
    return (two.value / one.value - 1) * _HUNDRED


def _holds_change(expected: Decimal, one: FigureMention, two: FigureMention, told: FigureMention) -> bool:
    steps = one.precision + two.precision
    exact = one.precision == two.precision == 1 and one.scale == two.scale == 1
    slack = Decimal(0) if exact else steps / 2
    if told.kind == "percent":
        slack = slack / abs(one.value) * _HUNDRED * max(Decimal(1), abs(two.value / one.value))
    return _is_result(expected, told, slack, bool(told.about), False)


def _find_shares(text: str, figures: Sequence[FigureMention]) -> Iterator[WrittenEquation]:
    """Yield "12 of 48 (25 %)" and "12/48 (25 %)"."""
    for one, two, three in zip(figures, figures[1:], figures[2:], strict=False):
        if (
            three.kind != "percent"
            or not _is_comparable(two, one)
            or one.kind not in ("number", "quantity", "money")
        ):
            continue
        closed = text[three.end : three.end + 1] in (")", "）")
        if not closed or abs(one.value) > abs(two.value) or three.start - one.end > 2 * _LONGEST_GAP:
            continue
        if not _OF.fullmatch(text, one.end, two.start) or not _SHARE.fullmatch(text, two.end, three.start):
            continue
        expected = one.value / two.value * _HUNDRED
        exact = one.precision == two.precision == 1 and one.scale == two.scale == 1
        slack = Decimal(0) if exact else (one.precision + two.precision) / 2 / abs(two.value) * _HUNDRED
        holds = _is_result(expected, three, slack, bool(three.about), False)
        yield WrittenEquation(one.start, three.end, text[one.start : three.end], three, expected, holds)


def check_totals(head: Sequence[str], rows: Sequence[Sequence[str]], language: str = "") -> list[ColumnTotal]:
    """Return the cells of a table's last row that are called a total, each with the sum of its column.

    A column counts only if each of its cells has exactly one figure of one unit, and if it holds neither
    percentages, averages, prices nor years. A table with subtotals or parts ("of which") has no total here.
    """
    labels = [row[0] if row else "" for row in rows]
    if (
        len(rows) < 3
        or not _TOTAL.match(labels[-1])
        or any(_PARTS.match(one) or _TOTAL.match(one) for one in labels[:-1])
    ):
        return []
    found = list[ColumnTotal]()
    for column in range(1, max(len(row) for row in rows)):
        title = head[column] if column < len(head) else ""
        cells = [_read_cell(row, column, language) for row in rows]
        figures = [cell for cell in cells if cell is not None]
        if _NOT_ADDED.search(title) or len(figures) < len(rows) or not _can_be_added(figures):
            continue
        found.append(_check_total(figures, len(rows) - 1, column))
    return found


def _read_cell(row: Sequence[str], column: int, language: str) -> FigureMention | None:
    figures = find_figures(row[column], language, ()) if column < len(row) else []
    return figures[0] if len(figures) == 1 else None


def _can_be_added(figures: Sequence[FigureMention]) -> bool:
    kinds = {(one.kind if one.kind != "year" else "number", one.unit) for one in figures}
    return len(kinds) == 1 and next(iter(kinds))[0] in ("number", "money", "quantity")


def _check_total(figures: Sequence[FigureMention], row: int, column: int) -> ColumnTotal:
    parts, result = figures[:-1], figures[-1]
    # Ambiguous digits are read in the same way in the whole column.
    sums = [sum((one.readings[min(k, len(one.readings) - 1)] for one in parts), Decimal(0)) for k in (0, 1)]
    rounded = any(one.precision != 1 or one.scale != 1 for one in parts)
    slack = sum((one.precision / 2 for one in parts), Decimal(0)) if rounded else Decimal(0)
    holds = any(_is_result(value, result, slack, bool(result.about), False) for value in sums)
    return ColumnTotal(row, column, result, sums[0], holds)
