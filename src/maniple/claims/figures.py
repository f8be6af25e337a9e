"""Finds the figures of a text, in many languages, with every value, scale, unit and hedge that they have."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import cast

from maniple.claims.dates import DateMention, find_dates
from maniple.claims.figure_context import (
    find_hedge,
    find_hedge_behind,
    is_denominator,
    is_label,
    read_words_before,
    reads_as_clock,
)
from maniple.claims.numerals import (
    CHINESE_NUMERAL,
    DIGITS,
    FRACTION_SIGNS,
    NumberWord,
    Readings,
    find_number_words,
    fold_digits,
    read_chinese,
    read_digits,
    split_list,
)
from maniple.claims.quantities import SMALL_NUMBER, FigureMention, agree
from maniple.claims.unit_names import CJK_SCALES
from maniple.claims.units import NO_UNIT, FigureTail, Unit, currency_of, has_sure_unit, read_tail, read_unit

__all__ = ["FigureMention", "agree", "find_figures", "with_unit"]

_SCALES = "[兆조亿億억万萬만]"
_NUMBER = re.compile(
    # Only these characters begin an alternative.
    r"(?=[\dhwd+\\\[【百½⅓⅔¼¾⅕-⅞一二两兩三四五六七八九十])(?:"
    r"(?P<skip>https?://\S+|www\.\S+|\bdoi:\S+|\b10\.\d{4,9}/\S+"
    r"|\\?\[\^?\d{1,3}(?:[ ,;，、–-]{1,3}\d{1,3}){0,40}\\?\](?!\()"
    r"|【\d[^】\n]{0,30}】|\d{1,3}(?:[:：]\d{1,3}){1,3}(?![\d%])"
    r"|\d{1,2}[ ]?h[ ]?[0-5]\d(?!\w|[ ]?min)|\d{1,6}(?:-\d{1,6}){2,8}(?!\d)"
    r"|\+\d{1,3}(?:[ \-./()]{1,2}\d{2,9}){2,6}(?!\d))"
    rf"|百分之(?P<percent>{CHINESE_NUMERAL}|\d+(?:\.\d+)?)"
    r"|(?P<below>[一二两三四五六七八九十]{1,3})分之(?P<above>[一二两三四五六七八九十]{1,3})"
    rf"|(?P<compound>\d[\d,]{{0,15}}{_SCALES} ?\d[\d,]{{0,15}}[千천]?{_SCALES}?"
    rf"(?: ?\d[\d,]{{0,15}}[万萬만]?)?(?![\d.年년]))"
    rf"|(?P<digits>{DIGITS})(?P<part>[½⅓⅔¼¾⅕-⅞])?|(?P<fraction>[½⅓⅔¼¾⅕-⅞])"
    r"|(?<![第\d十百千万几数])(?P<chinese>[一二两兩三四五六七八九十][〇零一二两兩三四五六七八九十百千]{0,10}(?:点[〇零一二三四五六七八九]{1,6})?))"
)
_DIGIT = re.compile(r"\d")
_BEFORE_SIGN = " \t\n(|[:=\u00a0（：为為是は"
"""What a minus sign stands behind; a hyphen behind anything else joins words or ends a range."""
_COMPOUND = re.compile(rf"(\d[\d,]*)([千천])?({_SCALES})?")
_CURRENCY = re.compile(
    r"(?:(?:US|AU|CA|NZ|HK|NT|MX|[ACSR])?[$＄]|[€£￡¥￥₹₩₽₺₪₫₴฿₦]"
    r"|(?<![^\W\d_])(?:[A-Z]{3}|Rs\.?|kr\.?|Fr\.))[ \u00a0\u202f]?$"
)
_CURRENCY_ENDS = frozenset("$＄€£￡¥￥₹₩₽₺₪₫₴฿₦%.sreABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""The last characters of what `_CURRENCY` and `_PERCENT_BEFORE` find, without the space behind it."""
_CURRENCY_GAPS = " \u00a0\u202f"
_CURRENCY_LENGTH = 6
_LETTER = re.compile("[^\\W\\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af²³]")
_ORDINAL = re.compile(
    r"(?:st|nd|rd|th|er|ère|ème|eme|re|e|º|ª)(?![^\W_])|[-‑](?:й|го|е|я|м|х|му)(?![^\W_])|s(?![^\W_])"
)
_GERMAN_ORDINAL = re.compile(r"\.[ \u00a0][^\W\d_]")
_CENTURY = re.compile(r"\.[ \u00a0](?:Jahrhundert|Jh\b|Quartal|Platz|století|wiek|århundrad)")
_GERMAN_ORDINALS = frozenset(["de", "da", "nb", "no", "fi", "cs", "sk", "hu", "pl", "hr", "sl", "et", "lv"])
_PERCENT_BEFORE = re.compile(r"(?:(?<![\d)])%|(?<![^\W_])y[üu]zde[ \u00a0])$", re.I)
_PERCENT = Unit("percent", "%", Decimal(1))
_PENCE = re.compile(r"p(?![\w./])")
_PENCE_LENGTH = 4
"""Characters of pence; `1080p` is something else, and so is `720p`, which no text adds up."""
_LARGEST_ORDINAL = 31
_COUNTED = re.compile("[人名个個件家户戶戸辆輛台臺头頭座所位次本冊冊份只隻棵株艘架명개대권채]")
"""What four digits count that are no year, in languages without spaces."""
_TENTHS = re.compile(r"成(?![为立功员本长人果品分就都了家交熟])")
_MANY = re.compile(r"[多余餘来]")
_FACTOR_WORDS = re.compile(
    r"(?<![^\W_])(?:(?P<two>twice|doubl(?:e[ds]?|ing)|verdoppel\w{1,4}|doppelt\w{0,2}|doubl(?:é|ée|er|ent|ait)|duplic\w{1,4}|raddoppi\w{1,4}"
    r"|удво\w{1,6})|(?P<three>thrice|tripl(?:e[ds]?|ing|é|ée|er)|verdreifach\w{1,3})|(?P<four>quadrupl\w{1,4}|vervierfach\w{1,3})"
    r"|(?P<count>[^\W\d_]{3,12}?)(?:fold|fach\w{0,2}|mal))(?![^\W_])",
    re.I,
)
_FACTOR_PARTS = (
    "fold",
    "fach",
    "mal",
    "twice",
    "doubl",
    "doppel",
    "duplic",
    "raddoppi",
    "удво",
    "thrice",
    "tripl",
    "quadrupl",
)
"""A text without any of these, casefolded, has no word that `_FACTOR_WORDS` finds."""
_FACTOR_NAMES = {"two": 2, "three": 3, "four": 4}
_RANGE = re.compile(
    r"[ \u00a0]?(?:-|–|—|~|～|/|to|and|or|through|bis|auf|und|oder|à|et|ou|a|y|o|e|al"
    r"|до|и|или|tot|en|of|至|到|和|与|、|から|～|에서|,)[ \u00a0]?"
    r"(?:[$€£¥]|US\$|EUR |USD |about |around |etwa |rund |约|約)?",
    re.I,
)
_DASH = re.compile("[-–—~]|to|bis|à|至|到")
_LONGEST_RANGE = 14
_PERIOD_UNITS = ("s", "month")
_GROUPED = re.compile(r"\d{1,3}(?:[,\u00a0\u202f]\d{3})+")
"""Digits with separators of thousands: no label, as in "in the last round 18,640 took part"."""
_PADDED_UNIT = re.compile(r"[ \u00a0]?(?:min|s|sec)(?![^\W_])|秒|分")
PADDED_LENGTH = 2
"""Digits of minutes and seconds that may begin with a zero: `4 min 06 s`."""
_PERIOD_GAP = re.compile(r"[ \u00a0]?(?:,|and|und|et|y|e|en|и|och|og|i|a)?[ \u00a0]?")
_FIRST_YEAR, _LAST_YEAR = 1000, 2199
_HUNDRED = Decimal(100)
_ONE = Decimal(1)
_FAR = Decimal(1000)


def find_figures(
    text: str, language: str = "", dates: Sequence[DateMention] | None = None
) -> list[FigureMention]:
    """Return the figures of `text` in order, with offsets into it.

    `language` is an ISO 639 code; without it digits that may mean two values have both. Addresses, citation
    numbers, clock times, scores, versions, phone numbers and identifiers are no figures. The parts of a date
    are none either, only bare years are. `dates` are those of `text`, if they are known already.
    """
    plain = fold_digits(text)
    found = [*_find_digits(plain, language), *_find_words(plain, language), *_find_factor_words(plain)]
    if not found:
        return found
    found.sort(key=lambda one: (one.start, -one.end))
    found = _without_dates(found, find_dates(text, language) if dates is None else dates)
    return _share_units(plain, _join_periods(plain, _without_overlaps(found)))


def _join_periods(text: str, figures: Sequence[FigureMention]) -> list[FigureMention]:
    """Return figures with the parts of a period as one: `41 h 17 min 08 s`."""
    joined = list[FigureMention]()
    for one in figures:
        last = joined[-1] if joined else None
        if last and _is_part(last, one) and _PERIOD_GAP.fullmatch(text, last.end, one.start):
            values = [last.value + one.value]
            text_of_both = f"{last.text}{text[last.end : one.start]}{one.text}"
            joined[-1] = replace(
                one,
                start=last.start,
                text=text_of_both,
                readings=(*values,),
                steps=one.steps[:1],
                about=last.about,
                is_judged=True,
            )
        else:
            joined.append(one)
    return joined


def _is_part(one: FigureMention, other: FigureMention) -> bool:
    """Whether `other` is a period in a smaller unit, less than one of the last unit of `one`."""
    if one.unit not in _PERIOD_UNITS or one.unit != other.unit:
        return False
    return other.factor < one.factor and abs(other.value) < one.factor == one.precision


def with_unit(figure: FigureMention, tail: FigureTail) -> FigureMention:
    """Return a bare `figure` of a table's cell with the scale and unit of its column's head."""
    if figure.unit or figure.kind not in ("number", "year") or figure.scale != 1:
        return figure
    scale = _ONE.scaleb(tail.scale)
    return replace(_rescale(replace(figure, kind="number"), tail.unit, scale), scale=scale)


def _rescale(figure: FigureMention, unit: Unit, scale: Decimal) -> FigureMention:
    times = scale * unit.factor
    return replace(
        figure,
        readings=tuple(value * times for value in figure.readings),
        steps=tuple(step * times for step in figure.steps),
        kind=figure.kind if unit.kind == "number" else unit.kind,
        unit=unit.name,
        factor=unit.factor,
        is_judged=figure.is_judged or (unit.kind != "number" and not figure.is_word),
    )


def _without_dates(figures: Sequence[FigureMention], dates: Sequence[DateMention]) -> list[FigureMention]:
    spans = [(date.start, date.end) for date in dates if date.month or date.years > 1]
    starts = [start for start, _ in spans]
    kept = list[FigureMention]()
    for one in figures:
        at = bisect_right(starts, one.start) - 1
        if at < 0 or one.start >= spans[at][1]:
            kept.append(one)
    return kept


def _without_overlaps(figures: Sequence[FigureMention]) -> list[FigureMention]:
    kept = list[FigureMention]()
    for one in figures:
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def _find_digits(text: str, language: str) -> Iterator[FigureMention]:
    if text.isascii() and not _DIGIT.search(text):
        return
    for match in _NUMBER.finditer(text):
        group = match.lastgroup
        if group == "skip":
            continue
        if match["digits"]:
            part = match["part"]
            for start, token in split_list(match["digits"], match.start()):
                figure = _read_number(text, start, token, part or "", language)
                if figure is not None:
                    yield figure
            continue
        figure = _read_chinese_figure(text, match, language)
        if figure is not None:
            yield figure


def _read_number(text: str, start: int, token: str, part: str, language: str) -> FigureMention | None:
    end = start + len(token) + len(part)
    readings = _read_mixed(text, end, token, part, language)
    if not readings:
        return None
    begin, currency = _find_currency(text, start)
    if currency is None and _is_identifier_start(text, start, token):
        return None
    if reads_as_clock(text, end, readings[0][0]):
        return None
    many = _MANY.match(text, end)
    tail = read_tail(text, many.end() if many else end, language, is_money=currency is not None)
    tail = _correct_tail(text, token, tail, end)
    if tail.scale or tail.unit != NO_UNIT:
        # "386 000 hl" is one number.
        readings = readings[:1] if " " in token else readings
    figure = _build(text, (begin, start, end), readings, tail, currency)
    if _is_identifier_end(text, figure.end, end) or (figure.unit == "s" and text[end : figure.end] == "s"):
        return _as_ordinal(text, figure, (start, end))
    figure = _classify(text, figure, (start, end), language)
    return replace(figure, about="over") if many else figure


def _read_mixed(text: str, end: int, token: str, part: str, language: str) -> Readings:
    """Return the values of digits with a fraction behind them: `10½` is rounded to halves."""
    is_padded = len(token) == PADDED_LENGTH and _PADDED_UNIT.match(text, end) is not None
    readings = read_digits(token.removeprefix("0") if is_padded else token, language)
    if not readings or not part:
        return readings
    share = Decimal(FRACTION_SIGNS[part])
    return ((readings[0][0] + share, min(share, _ONE - share)),)


def _correct_tail(text: str, token: str, tail: FigureTail, end: int) -> FigureTail:
    """Return the tail with the pence of `3.1p`, and without the unit of a year (`2019 J. Smith`)."""
    if tail.unit == NO_UNIT and end == tail.end and len(token) <= _PENCE_LENGTH:
        pence = _PENCE.match(text, end)
        return FigureTail(0, Unit("money", "GBP", Decimal("0.01")), pence.end()) if pence else tail
    is_year = tail.unit.kind == "quantity" and len(token) == 4 and token.isdigit()
    return FigureTail(0, NO_UNIT, end) if is_year and not has_sure_unit(text, end) else tail


def _find_currency(text: str, start: int) -> tuple[int, Unit | None]:
    before = text[start - 1 : start]
    if not before or before in "\n|(,":
        return start, None
    last = text[start - 2 : start - 1] if before in _CURRENCY_GAPS else before
    if last not in _CURRENCY_ENDS:
        return start, None
    if percent := _PERCENT_BEFORE.search(text, max(0, start - _CURRENCY_LENGTH), start):
        return percent.start(), _PERCENT
    sign = _CURRENCY.search(text, max(0, start - _CURRENCY_LENGTH), start)
    unit = currency_of(sign[0]) if sign else None
    return (sign.start(), unit) if sign and unit else (start, None)


def _is_identifier_start(text: str, start: int, token: str) -> bool:
    before = text[start - 1 : start]
    if not before:
        return False
    if before in "_#№§@" or _LETTER.match(before):
        return True
    if before in "-‑" and _LETTER.match(text[start - 2 : start - 1] or " "):
        return not (
            len(token) == 4
            and token.isdigit()
            and text[start - 4 : start - 1].casefold() in ("mid", "pre", "end")
        )
    # ".05", "v.2"
    return before == "." and not text[start - 2 : start - 1].isspace() and start > 1


def _is_identifier_end(text: str, end: int, digits_end: int) -> bool:
    after = text[end : end + 1]
    return end == digits_end and bool(after) and (after in "_@" or _LETTER.match(after) is not None)


def _as_ordinal(text: str, figure: FigureMention, digits: tuple[int, int]) -> FigureMention | None:
    """Return `21st` and `the 1990s`; `5G` is an identifier. `30s` may be seconds and is not judged."""
    start, end = digits
    suffix = _ORDINAL.match(text, end)
    if not suffix:
        return None
    if figure.unit == "s" and end - start != 4:
        return replace(figure, is_judged=False)
    kind = "year" if suffix[0] == "s" else "ordinal"
    readings, steps = figure.readings[:1], figure.steps[:1]
    spelled = text[start : suffix.end()]
    return FigureMention(start, suffix.end(), spelled, readings, kind, "", steps, is_judged=False)


def _build(
    text: str, place: tuple[int, int, int], readings: Readings, tail: FigureTail, currency: Unit | None
) -> FigureMention:
    begin, start, _ = place
    unit = tail.unit
    if currency is not None and (unit.kind in ("number", "quantity") or unit.name == "$"):
        unit, stop = _per_unit(text, currency, tail)
    else:
        stop = tail.end
    scale = _ONE.scaleb(tail.scale) * unit.factor
    scales = (scale, _ONE.scaleb(tail.other_scale)) if tail.other_scale else (scale,)
    sign = -1 if currency is None and _is_negative(text, start) else 1
    begin -= sign < 0
    return FigureMention(
        begin,
        stop,
        text[begin:stop],
        tuple(value * times * sign for times in scales for value, _ in readings),
        unit.kind,
        unit.name,
        tuple(step * times for times in scales for _, step in readings),
        factor=unit.factor,
        scale=_ONE.scaleb(tail.scale),
    )


def _per_unit(text: str, currency: Unit, tail: FigureTail) -> tuple[Unit, int]:
    """Return the unit of `$80/MWh`; a quantity behind a currency's figure is not its unit."""
    end = tail.end if tail.unit == NO_UNIT or tail.unit.kind == "money" else _end_of_scale(text, tail)
    if text[end : end + 1] == "/":
        below, stop = read_unit(text, end + 1)
        if below is not None and below.kind == "quantity":
            return Unit("money", f"{currency.name}/{below.name}", currency.factor / below.factor), stop
    return currency, end


def _end_of_scale(text: str, tail: FigureTail) -> int:
    end = tail.end
    while end and not text[end - 1].isspace() and not text[end - 1].isdigit():
        end -= 1
    return end if text[end - 1 : end].isdigit() else end - 1


def _is_negative(text: str, start: int) -> bool:
    if text[start - 1 : start] != "-" or start < 1:
        return False
    before = text[start - 2 : start - 1] if start > 1 else ""
    return not before or before in _BEFORE_SIGN


def _classify(text: str, figure: FigureMention, digits: tuple[int, int], language: str) -> FigureMention:
    """Return `figure` with its kind, its hedge, and whether it is judged."""
    start, end = digits
    bare = figure.kind == "number" and figure.end == end
    tenths = _TENTHS.match(text, end) if bare else None
    if tenths and abs(figure.value) <= 10:
        return _as_tenths(text, figure, tenths.end())
    words = read_words_before(text, figure.start)
    hedge = find_hedge(text, figure.start, words) or find_hedge_behind(text, figure.end)
    if not bare:
        small = figure.kind == "quantity" and is_denominator(text, figure.start, words, figure.end)
        return replace(figure, about=hedge, is_judged=not small) if hedge or small else figure
    is_grouped = _GROUPED.fullmatch(figure.text) is not None
    if (is_label(text, figure.start, words) and not is_grouped) or _is_ordinal(
        text, figure, digits, language
    ):
        return replace(figure, kind="ordinal", is_judged=False)
    if end - figure.start == 4 and _is_year(figure) and not _COUNTED.match(text, end):
        return replace(figure, kind="year", about=hedge)
    is_whole = figure.precision == 1
    small = is_whole and abs(figure.value) <= SMALL_NUMBER
    slashed = is_whole and "/" in (text[start - 1 : start], text[end : end + 1])
    if hedge or small or slashed or is_denominator(text, figure.start, words, figure.end):
        return replace(figure, about=hedge, is_judged=bool(hedge) and not (small or slashed))
    return figure


def _is_ordinal(text: str, figure: FigureMention, digits: tuple[int, int], language: str) -> bool:
    start, end = digits
    if text[start - 1 : start] == "第" or _ORDINAL.match(text, end):
        return True
    pattern = _GERMAN_ORDINAL if language in _GERMAN_ORDINALS else _CENTURY
    return pattern.match(text, end) is not None and 0 < figure.value <= _LARGEST_ORDINAL


def _is_year(figure: FigureMention) -> bool:
    return figure.text.isdigit() and _FIRST_YEAR <= figure.value <= _LAST_YEAR


def _as_tenths(text: str, figure: FigureMention, end: int) -> FigureMention:
    percent = Unit("percent", "%", _ONE)
    scaled = _rescale(figure, percent, Decimal(10))
    return replace(scaled, end=end, text=text[figure.start : end], about=find_hedge(text, figure.start))


def _read_chinese_figure(text: str, match: re.Match[str], language: str) -> FigureMention | None:
    start, end = match.span()
    if match["percent"]:
        digits = match["percent"]
        value = Decimal(digits) if digits[0].isdigit() and digits.isascii() else _chinese_or_none(digits)
        if value is None:
            return None
        step = _ONE.scaleb(cast(int, value.as_tuple().exponent))
        tail = FigureTail(0, Unit("percent", "%", _ONE), end)
        return replace(
            _build(text, (start, start, end), ((value, step),), tail, None), about=find_hedge(text, start)
        )
    if match["below"]:
        value = read_chinese(match["above"]) / (read_chinese(match["below"]) or _ONE)
        return _word_figure(text, NumberWord(start, end, value, Decimal("0.01")), FigureTail(0, NO_UNIT, end))
    if match["compound"]:
        return _read_compound(text, match)
    if match["fraction"]:
        word = NumberWord(start, end, Decimal(FRACTION_SIGNS[match["fraction"]]), Decimal("0.01"))
        return _word_figure(text, word, read_tail(text, end, language))
    return _read_chinese_word(text, match["chinese"], start)


def _chinese_or_none(numeral: str) -> Decimal | None:
    return read_chinese(numeral) if any(c in "一二两三四五六七八九十百" for c in numeral) else None


def _read_chinese_word(text: str, numeral: str, start: int) -> FigureMention | None:
    end = start + len(numeral)
    value = read_chinese(numeral)
    if (tenths := _TENTHS.match(text, end)) and value <= 10:
        figure = _word_figure(text, NumberWord(start, end, value, _ONE), FigureTail(0, NO_UNIT, end))
        return replace(_as_tenths(text, figure, tenths.end()), is_judged=False)
    many = _MANY.match(text, end)
    tail = read_tail(text, many.end() if many else end)
    # 一 alone is a word of many others.
    if tail.unit == NO_UNIT and not tail.scale and not (len(numeral) > 1 and value > 10):
        return None
    figure = _word_figure(text, NumberWord(start, end, value, _ONE), tail)
    return replace(figure, about="over") if many else figure


def _read_compound(text: str, match: re.Match[str]) -> FigureMention | None:
    """Return `3亿5000万`, `1兆2345億円`, `3조 5천억`."""
    total, step, last = Decimal(0), _ONE, None
    for digits, thousands, scale in _COMPOUND.findall(match["compound"]):
        power = CJK_SCALES.get(scale, 0) + (3 if thousands else 0)
        if last is not None and power >= last:
            return None
        step, last = _ONE.scaleb(power), power
        total += Decimal(digits.replace(",", "") or "0") * step
    tail = read_tail(text, match.end())
    tail = FigureTail(0, tail.unit, tail.end) if not tail.scale else FigureTail(0, NO_UNIT, match.end())
    begin, currency = _find_currency(text, match.start())
    figure = _build(text, (begin, match.start(), match.end()), ((total, step),), tail, currency)
    return replace(figure, about=find_hedge(text, figure.start))


def _find_words(text: str, language: str) -> Iterator[FigureMention]:
    for word in find_number_words(text):
        tail = read_tail(text, word.end, language)
        if word.value == 1 and not tail.scale:
            continue
        yield _word_figure(text, word, tail)


def _word_figure(text: str, word: NumberWord, tail: FigureTail) -> FigureMention:
    figure = _build(text, (word.start, word.start, word.end), ((word.value, word.step),), tail, None)
    is_amount = tail.unit.kind in ("percent", "points", "money") or (tail.scale > 2 and word.value > 1)
    hedge = find_hedge(text, word.start)
    return replace(figure, about=hedge, is_word=True, is_judged=is_amount and word.step == 1)


def _find_factor_words(text: str) -> Iterator[FigureMention]:
    """Yield `doubled`, `threefold`, `zehnfach`: factors, which are not judged."""
    folded = text.casefold()
    if not any(part in folded for part in _FACTOR_PARTS):
        return
    for match in _FACTOR_WORDS.finditer(text):
        value = _FACTOR_NAMES.get(match.lastgroup or "")
        if match["count"]:
            numbers = find_number_words(match["count"])
            value = int(numbers[0].value) if numbers and numbers[0].end == len(match["count"]) else None
        if value and value > 1:
            unit = FigureTail(0, Unit("factor", "x", _ONE), match.end())
            place = (match.start(), match.start(), match.end())
            figure = _build(text, place, ((Decimal(value), _ONE),), unit, None)
            yield replace(figure, is_word=True, is_judged=False)


def _share_units(text: str, figures: list[FigureMention]) -> list[FigureMention]:
    """Give the first figures of ranges and lists the unit of the last: `5–7 %`, `12, 14 and 16 km`."""
    for i in range(len(figures) - 2, -1, -1):
        one, two = figures[i], figures[i + 1]
        if two.start - one.end > _LONGEST_RANGE or one.scale != 1:
            continue
        joint = _RANGE.fullmatch(text, one.end, two.start)
        if not joint:
            continue
        if one.kind == "money" and two.kind == "number" and _DASH.search(joint[0]):
            # "$5-7 billion"
            two = figures[i + 1] = replace(two, kind="money", unit=one.unit, is_judged=True)
        if one.kind in ("number", two.kind) and one.unit in ("", two.unit):
            figures[i] = _share(one, two, is_list="," in joint[0])
    return figures


def _share(one: FigureMention, two: FigureMention, *, is_list: bool) -> FigureMention:
    if two.kind in ("year", "ordinal") or (two.kind == "number" and two.scale == 1):
        return one
    if two.kind in ("percent", "points", "factor") and abs(one.value) > abs(two.value) * _HUNDRED:
        # "22,600 or 14 %" gives an amount and its share.
        return one
    plain = _rescale(one, Unit(two.kind, two.unit, two.factor if one.unit != two.unit else _ONE), _ONE)
    plain = replace(plain, factor=two.factor)
    scaled = _rescale(plain, Unit(plain.kind, plain.unit, _ONE), two.scale)
    if two.scale == 1 or abs(scaled.value) > abs(two.value) * _FAR:
        return plain
    # "5 to 7 million" may still be five, as in "12 and 7 million".
    return replace(
        scaled,
        factor=two.factor,
        is_judged=plain.is_judged or not (is_list or one.is_word),
        readings=scaled.readings + plain.readings,
        steps=scaled.steps + plain.steps,
    )
