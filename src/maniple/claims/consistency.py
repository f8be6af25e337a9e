"""Whether the figures of one claim agree: an amount and its percentage, a share and its parts.

Each may stand in a source by itself. A claim is contradicted only if one of its figures is a typical error:
a percentage of the new value and not of the old one, a share in words that its parts do not give, a base on
the wrong side of a difference.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import chain, combinations, islice, permutations

from maniple.claims.calculated_values import MAX_OPERANDS
from maniple.claims.calculation import count_significant
from maniple.claims.context import ClaimContext
from maniple.claims.operands import OperandPool, choose_sources
from maniple.claims.quantities import FigureMention, agree, is_rounded
from maniple.claims.source_index import SourceIndex
from maniple.claims.verdict import Verdict
from maniple.evidence.reasons import ReasonCode, explain

MAX_GROUPS = 16
"""Passages, rows and columns whose figures are subtracted from each other."""
MAX_HITS = 8
"""Passages with a figure that are looked at."""
MAX_FIGURES = 6
"""A claim with more figures may relate any of them."""
APPOSITION = 100
"""Characters between an amount and the percentage that says the same."""
CLOSE = 30
"""The same for amounts of which nothing else is known but their difference."""
LEAST_DIGITS = 2
TOLERANCE = Decimal("0.14")
"""By which part of itself a fraction in words, or about a percentage, may be wrong."""
SIMILAR = 0.4
"""The share of a claim's words from which a passage that has a percentage supports it."""
_AMOUNTS = ("money", "quantity", "number")
_HUNDRED = Decimal(100)
_GENITIVE = re.compile(
    r"[ \u00a0](?:of|von|vom|der|des|aller|du|d['’]|de (?!plus|moins|más|menos|mais|aument|crec|subi|baj|"
    r"hausse|baisse)|del|dell\w*|della|dei|do|da|dos|das|van|alle|от)\b|的",
    re.IGNORECASE,
)
_SHARE_WORDS = re.compile(
    r"made up|mak(?:e|es|ing) up|account\w*|represent\w*|share|proportion|anteil\w*|ausmach\w*|"
    r"part\b|représent\w*|porcentaje|supon\w+|quota|rappresent\w*|占|比重|割合|дол[яи]",
    re.IGNORECASE,
)
_RISE = re.compile(
    r"\b(?:gr[eo]w\w*|ris(?:e|es|en|ing)|rose|rais\w+|increas\w+|gain\w*|more|higher|above|excess|exceed\w*|over|up|"
    r"nahm\w* .{0,60}zu|zugenommen|zunahme|anstieg|stieg\w*|wuchs\w*|plus|mehr|höher|über|augment\w*|hausse|"
    r"gagn\w+|progress\w+|supérieur\w*|aument\w*|crec\w+|sub[ie]\w*|más|super\w+|cresc\w+|più|mais|meer|hoger|"
    r"groei\w*|steeg|gestegen|вырос\w*|увелич\w+|больше|выше)\b|增|多|上升|提高|上涨|高于|超|증가|늘",
    re.IGNORECASE,
)
_FALL = re.compile(
    r"\b(?:f[ae]ll\w*|declin\w+|decreas\w+|drop\w*|los[est]\w*|less|fewer|lower|below|reduc\w+|cut\w*|down|shr[aiu]nk|"
    r"nahm\w* .{0,60}ab|abgenommen|rückgang|sank\w*|gesunken|fiel\w*|weniger|niedriger|unter|diminu\w+|"
    r"baiss\w*|recul\w*|perd\w*|rédui\w+|moins|inférieur\w*|dismin\w+|redu[cjzt]\w*|baj\w+|ca[eíy]\w*|menos|"
    r"ridott\w+|calat\w+|pers\w+|meno|caiu|minder|lager|daal\w+|gedaald|сни[зж]\w+|упал\w*|сократил\w*|меньше|ниже)\b"
    r"|减|減|少|下降|下跌|降低|低于|缩|감소|줄",
    re.IGNORECASE,
)
_PART_OF = re.compile(
    r"[ \u00a0]*(?:[^\W\d_]+[ \u00a0]){0,2}(?:of|von|sur|de|di|dos|van|из|/)[ \u00a0]"
    r"(?:[^\W\d_]+['’ \u00a0]){0,2}",
    re.IGNORECASE,
)
_TO = re.compile(
    r"[ \u00a0]*(?:[^\W\d_]{1,12}[ \u00a0])?(?:to|auf|à|a|al|ad|naar|до|到|至|增至|升至|降至)"
    r"[ \u00a0]*(?:[$€£¥]|US\$)?",
    re.IGNORECASE,
)
_THAN = re.compile(r"\b(?:qu['’]|(?:than|que|als|di|del|rispetto|dan|чем)(?!\w))|比", re.IGNORECASE)
_ENDS = re.compile(r"\s*(?:[.,;:)）。，；–—-]|\Z)")
_WHOLE_BEFORE = re.compile(
    r"(?:\A|[.;:,–—]\s)(?:out )?(?:of|von|sur|de|di|van|из)\s(?:[^\W\d_]+['’\s]){0,2}\Z", re.IGNORECASE
)


def find_disagreements(context: ClaimContext) -> Iterator[Verdict]:
    """Yield a verdict for each figure of a claim that does not agree with its others."""
    if context.claim.kind == "cell" or not 1 < len(context.figures) <= MAX_FIGURES:
        return
    for find in (_find_wrong_percentage, _find_wrong_change, _find_wrong_share, _find_wrong_base):
        if found := find(context):
            yield found


def _find_wrong_percentage(context: ClaimContext) -> Verdict | None:
    """Return a verdict if an amount is a difference, and the percentage beside it is of the wrong value."""
    text = context.claim.text
    pairs = [(one, other) for one, other in combinations(context.figures, 2) if other.kind == "percent"]
    for amount, share in pairs:
        between = text[amount.end : share.start]
        if not _is_amount(amount) or len(between) > APPOSITION or _SHARE_WORDS.search(between):
            continue
        if _GENITIVE.match(text, share.end):
            continue
        for index in choose_sources(context):
            if found := _compare_percentage(context, amount, share, index):
                return found
    return None


def _find_wrong_change(context: ClaimContext) -> Verdict | None:
    """Return a verdict if "from A to B, that is by 55 %" gives the ratio, or a share of the new value."""
    text = context.claim.text
    for (old, first), (new, second), (_, share) in zip(
        *(islice(_with_units(context), at, None) for at in range(3)), strict=False
    ):
        if share.kind != "percent" or not (_is_amount(old) and _is_amount(new)) or first.unit != second.unit:
            continue
        is_change = _TO.fullmatch(text, old.end, new.start) and share.start - new.end <= CLOSE
        if not is_change or not first.value or not second.value or _GENITIVE.match(text, share.end):
            continue
        ratio = abs(second.value / first.value)
        if _agrees(share, _HUNDRED * abs(ratio - 1)):
            continue
        if any(_agrees(share, _HUNDRED * one) for one in (ratio, abs(1 - 1 / ratio))):
            return Verdict(
                "contradicted",
                explain(ReasonCode.WRONG_CHANGE, value=share.text, old=old.text, new=new.text),
            )
    return None


def _compare_percentage(
    context: ClaimContext, amount: FigureMention, share: FigureMention, index: SourceIndex
) -> Verdict | None:
    rises = _RISE.search(context.claim.text) is not None
    if rises == (_FALL.search(context.claim.text) is not None) or _is_stated(context, share, index):
        return None
    wrong: Verdict | None = None
    pairs = [*_find_differences(context, amount, index)]
    is_only = (
        len(pairs) == 1
        and share.start - amount.end <= CLOSE
        and min(map(count_significant, (amount, *pairs[0]))) > LEAST_DIGITS
    )
    for high, low in pairs:
        size = abs(abs(high.value) - abs(low.value))
        old, new = (low, high) if rises else (high, low)
        if _agrees(share, _HUNDRED * size / abs(old.value)):
            return None
        if is_only or _agrees(share, _HUNDRED * size / abs(new.value)):
            equation = f"{high.text} - {low.text}"
            reasons = explain(ReasonCode.WRONG_DIFFERENCE, equation=equation, value=share.text, old=old.text)
            wrong = wrong or Verdict("contradicted", reasons)
    return wrong


def _find_differences(
    context: ClaimContext, amount: FigureMention, index: SourceIndex
) -> Iterator[tuple[FigureMention, FigureMention]]:
    """Yield pairs of figures of the claim and of passages like it whose difference is an amount."""
    if count_significant(amount) < LEAST_DIGITS:
        return
    pool = OperandPool(context, amount, index)
    seen = set[tuple[Decimal, Decimal]]()
    for group in islice(chain(pool.find_groups(), pool.find_wide_groups()), MAX_GROUPS):
        chosen = [one for one in group if _is_amount(one) and one.value][:MAX_OPERANDS]
        context.budget.left -= len(chosen) ** 2
        for high, low in permutations(chosen, 2):
            pair = (high.value, low.value)
            if abs(high.value) <= abs(low.value) or high.unit != low.unit or pair in seen:
                continue
            if (high.unit == amount.unit or not high.unit or not amount.unit) and _is_difference(
                amount, *pair
            ):
                seen.add(pair)
                yield high, low


def _is_difference(amount: FigureMention, high: Decimal, low: Decimal) -> bool:
    return _agrees(amount, abs(high) - abs(low)) and not _agrees(amount, abs(high))


def _is_amount(figure: FigureMention) -> bool:
    return figure.kind in _AMOUNTS and figure.is_judged


def _is_stated(context: ClaimContext, share: FigureMention, index: SourceIndex) -> bool:
    """Whether a passage like the claim has the share itself."""
    hits = index.find_figure(share)[:MAX_HITS]
    return any(found.kind == share.kind and context.rate(one, index) >= SIMILAR for found, one in hits)


def _with_units(context: ClaimContext) -> Iterator[tuple[FigureMention, FigureMention]]:
    """Yield the figures of a claim as they stand, and a bare one in the unit of the one beside it."""
    for group in context.groups:
        if group[0].kind != "year":
            read = [one for one in group if one.unit and one.kind != "percent"]
            yield group[0], (read or [group[0]])[0]


def _find_wrong_share(context: ClaimContext) -> Verdict | None:
    """Return a verdict if a claim says "N of M" and gives a share that these two are not."""
    shares = [one for one in context.figures if _read_share(one) is not None]
    amounts = [(one, read) for one, read in _with_units(context) if _is_amount(one)]
    if len(shares) != 1 or len(amounts) != 2:
        return None
    value, parts = _read_share(shares[0]), _find_parts(context.claim.text, *(read for _, read in amounts))
    if value is None or parts is None or any(_is_stated(context, shares[0], one) for one in context.cited):
        return None
    part, whole = parts
    share = _HUNDRED * abs(part.value / whole.value)
    is_apposed = shares[0].start < part.start or _ENDS.match(context.claim.text, shares[0].end)
    # "Down by a third, from 940 to 627": the share may be that of the change.
    is_right = any(_is_near(shares[0], value, one) for one in (share, _HUNDRED - share))
    if not is_apposed or is_right:
        return None
    return Verdict(
        "contradicted",
        explain(ReasonCode.WRONG_SHARE, part=part.text, whole=whole.text, value=shares[0].text),
    )


def _read_share(figure: FigureMention) -> Decimal | None:
    """Return a percentage, or a fraction in words as one; None for other figures."""
    if figure.kind == "percent":
        return abs(figure.value)
    is_fraction = figure.is_word and figure.kind == "number" and not figure.unit and 0 < figure.value < 1
    return figure.value * _HUNDRED if is_fraction else None


def _find_parts(
    text: str, one: FigureMention, other: FigureMention
) -> tuple[FigureMention, FigureMention] | None:
    """Return the part and the whole of "212 of 468" and of "of the 468, 212"; None for others."""
    if (one.unit and other.unit and one.unit != other.unit) or not one.value or not other.value:
        return None
    if _PART_OF.fullmatch(text, one.end, other.start):
        part, whole = one, other
    elif _WHOLE_BEFORE.search(text[: one.start]):
        part, whole = other, one
    else:
        return None
    return (part, whole) if abs(part.value) < abs(whole.value) else None


def _is_near(figure: FigureMention, value: Decimal, expected: Decimal) -> bool:
    if figure.about == "over" and value > expected * (1 + TOLERANCE / 4):
        return False
    if figure.about == "under" and value < expected * (1 - TOLERANCE / 4):
        return False
    return abs(value - expected) <= TOLERANCE * min(value, expected)


def _find_wrong_base(context: ClaimContext) -> Verdict | None:
    """Return a verdict if a claim says "64 more than B" and B is the new value and 64, not the old one."""
    amounts = [one for one in context.figures if _is_amount(one)]
    if len(amounts) != 2:
        return None
    amount, base = amounts
    text = context.claim.text
    compared = _THAN.search(text, amount.end, base.start)
    rises, falls = (one.search(text, amount.end, base.start) for one in (_RISE, _FALL))
    if compared is None or (rises is None) == (falls is None):
        return None
    for index in choose_sources(context):
        if index.find_figure(base):
            return None
        if found := _compare_base(context, amount, base, index, rises=rises is not None):
            return found
    return None


def _compare_base(
    context: ClaimContext, amount: FigureMention, base: FigureMention, index: SourceIndex, *, rises: bool
) -> Verdict | None:
    size = abs(amount.value) if rises else -abs(amount.value)
    beside = [one for _, passage in index.find_figure(amount)[:MAX_HITS] for one in passage.figures]
    news = [one for one in beside if _is_amount(one) and not agree(amount, one)]
    news += [high if rises else low for high, low in _find_differences(context, amount, index)]
    if any(_agrees(base, abs(one.value) - size) for one in news):
        return None
    for one in news:
        if _agrees(base, abs(one.value) + size):
            return Verdict("contradicted", explain(ReasonCode.WRONG_SIDE, value=base.text, other=one.text))
    return None


def _agrees(figure: FigureMention, value: Decimal) -> bool:
    return any(
        is_rounded(value, figure, reading, step)
        for reading, step in zip(figure.readings, figure.steps, strict=True)
    )
