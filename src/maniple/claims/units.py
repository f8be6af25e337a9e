"""Reads what stands behind the digits of a figure: its scale and its unit."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, lru_cache
from typing import NamedTuple, TypeVar, cast

from maniple.claims import unit_names as names
from maniple.claims.quantities import FigureKind

Value = TypeVar("Value")
SPACES = " \u00a0\u2007\u2009\u202f"
_ONE = Decimal(1)
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af℃℉㎡%]")
_GAP = re.compile(f"[-‑](?=[^\\W\\d_])|[{SPACES}\t]{{0,2}}")
_LETTERS = "(?:(?![\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af²³¹⁰-₉])[^\\W\\d_])"
_WORD = re.compile(rf"(?!{_LETTERS}['’]\w){_LETTERS}{{1,24}}")
_PHRASE = re.compile(rf"{_LETTERS}{{1,24}}\.?(?:[{SPACES}-]{_LETTERS}{{1,24}}){{0,2}}")
_SIGN = re.compile(
    r"%[ -]?points?\b|%(?!p\b|포인트|ポイント)|‰|[°º˚][ ]?[CF]\b|℃|℉|°|US\$|[$€£¥₹₩₽₺₪₫₴￥￡]"
    r"|×(?![ ]?\d)|p\.[ ]?p\.|п\.[ ]?п\.|v\.[ ]?H\."
)
_SIGN_BEGINS = "%$Upv"
"""The ASCII characters with which a sign begins."""
_ATTACHED = re.compile(r"(bn|tn|mn|[kKMmBbT])(?![^\W_]|[²³^/])")
_ATTACHED_SCALES = {"k": 3, "K": 3, "M": 6, "m": 6, "mn": 6, "B": 9, "b": 9, "bn": 9, "T": 12, "tn": 12}
_MONEY_PREFIX = re.compile(r"(k|K|M|m|bn|b|T|Mrd|Md)[ ]?(?=[€$£¥])")
_MONEY_SCALES = {"k": 3, "K": 3, "M": 6, "m": 6, "bn": 9, "b": 9, "T": 3, "Mrd": 9, "Md": 9}
_POWER_OF_TEN = re.compile(
    r"[ ]?[×x·*⋅∙][ ]?10(?:(?:\^\{?|\{|(?!0))([-−]?\d{1,2})\}?|(⁻?[⁰¹²³⁴-⁹]{1,2}))"
    r"(?![⁰¹²³⁴-⁹\d]|[.,]\d)"
)
_EXPONENT = re.compile(r"[eE]([+-]?\d{1,2})(?!\w|\.\d)")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_JOIN = re.compile(r"(?:de|di|do|dos|des|of)[ \u00a0]|d['’]", re.I)
_POWER = re.compile(r"[ ]?(²|³|\^?2|\^?3)(?![\d.,]\d|\d)")
_OWN_POWER = re.compile(r"(²|³|\^[23])(?!\d)")
_INVERSE = re.compile(r"(?:⁻|\^\{?[-−])([¹²³123])\}?(?!\d)")
_POWERS = {"¹": 1, "²": 2, "³": 3, "1": 1, "2": 2, "3": 3}
_PER = re.compile(
    r"[ ]?/[ ]?|[ ]?每|[ ](?:per|pro|je|par|por|al|в)[ ]|[ ](?:all|per l)['’]|[ ]à l['’]", re.IGNORECASE
)
_PER_NUMBER = re.compile(rf"(10|100|1[.,{SPACES}]?000)[{SPACES}]?(?=[^\W\d_])")
"""The number in `l/100 km`."""
_FACTOR = re.compile(r"[ ]?[·⋅∙][ ]?|[ ](?=[A-Za-zµμΩ]{1,3}(?:⁻|\^\{?[-−]))")
"""What stands between two units that are multiplied: `N·m`, `m s⁻¹`."""
_NAMED_FACTOR = re.compile(r"[-‑](?=[^\W\d_]{4})")
_PRODUCT = re.compile(r"(?:[ ]?[·⋅∙*-][ ]?|[ ])h(?:ours?)?(?![^\W_])")
_COLUMN = re.compile(r"(mm|cm|мм)[ ]?(Hg\b|рт\.?[ ]?ст\b\.?|H[2₂]O\b)")
"""The pressure of a column of mercury or water."""
_COLUMN_BEGINS = "mcм"
_COLUMN_UNITS = {"mm": Decimal(1), "мм": Decimal(1), "cm": Decimal(10)}
_MERCURY, _WATER = Decimal("133.322387415"), Decimal("9.80665")
_GAS_BEFORE_SLASH = re.compile(r"[ ]CO[2₂](?:e|[ -]?eq\.?)?(?=[ ]?/)")
_KATAKANA = re.compile("[ァ-ヺー]")
_PER_HOUR = re.compile(r"[ ](?:per|an|pro|par|por|all'|per l')[ ]?(?:hour|stunde|heure|hora|ora)\b", re.I)
_MATERIAL = re.compile(r"(?:CO|CH|N)(?=[2₂4₄])")
_MATERIAL_DIGITS = ("2", "₂", "4", "₄")
_US_DOLLAR = "us dollar"
_FILLERS = ("metric", "short", "long", "net", "gross", "britische", "us")
_FILLER = re.compile(rf"(?:{'|'.join(_FILLERS)})[ -](?=[^\W\d_])", re.I)
_LONGEST_CJK = 9
_HEAD_CURRENCY = re.compile(r"((?:US|AU|CA|NZ|HK|NT|[ACSR])?\$|[€£¥₹₩₽₺]|[A-Z]{3})[ \u00a0]?(?=\w|\Z)")
_YEAR_BEHIND = re.compile(rf"[{SPACES}](?:1[5-9]|20)\d\d(?![\d.,])")
_OF_YEAR = re.compile(rf"[{SPACES}]roku(?![^\W_])")
_INFLECTED_LETTERS, _SUFFIX_LETTERS = 5, 5
"""The least letters of a name that may have a suffix (`forintra`), and the most letters of the suffix."""
_LONG_SCALE = {"billion": 12, "trillion": 18}
_SHORT_SCALE = {"billion": 9, "billions": 9}
_MARKED_SCALE = re.compile("|".join(sorted(names.MARKED_SCALES, key=len, reverse=True)))
_PLAIN_WORD = re.compile(r"[A-Za-z]{1,24}(?![^\W\d_])")
_UNIT_SIGNS = "%$*"
"""The ASCII characters other than letters with which a unit or a power of ten may begin."""
_SHORT_BEGINS = frozenset(["x", "e", "E", "US", "p", "v", "mm", "cm"])
"""What a power of ten, a sign or a column of mercury begins with."""
_MATERIALS = ("CO", "CH", "N")
MAX_CACHED_WORDS = 20_000
"""Words for which is remembered whether a unit may begin with them."""


class Unit(NamedTuple):
    """A unit: its kind, its canonical name, and the factor that converts to the canonical unit."""

    kind: FigureKind
    name: str
    factor: Decimal


@dataclass(frozen=True, slots=True)
class FigureTail:
    """The scale (a power of ten) and the unit behind a figure; `end` is the offset behind both."""

    scale: int
    unit: Unit
    end: int
    other_scale: int = 0
    """Another power of ten that the scale may mean: `84.6m` is metres or millions."""


NO_UNIT = Unit("number", "", _ONE)


@cache
def _symbol_table() -> dict[str, Unit]:
    """Return all unit symbols with their prefixes. They are compared with their case."""
    table = {
        code: Unit("money", "CNY" if code == "RMB" else code, _ONE) for code in names.CURRENCY_CODES.split()
    }
    for symbol, (unit, factor, prefixes) in names.SYMBOLS.items():
        for prefix in prefixes:
            scaled = Decimal(factor).scaleb(names.SYMBOL_PREFIXES[prefix])
            table[prefix + symbol] = Unit("quantity", unit, scaled)
    for symbol, (unit, factor, _) in names.SYMBOLS.items():
        table[symbol] = Unit("quantity", unit, Decimal(factor))
    return table


@cache
def _name_table() -> dict[str, Unit]:
    """Return all names of units and currencies, casefolded, of one or several words."""
    table: dict[str, Unit] = {}
    for words, (unit, factor) in names.PREFIXED_NAMES.items():
        for name in words.split():
            for prefix, power in names.WORD_PREFIXES.items():
                table[prefix + name] = Unit("quantity", unit, Decimal(factor).scaleb(power))
            table[name] = Unit("quantity", unit, Decimal(factor))
    for words, (unit, factor) in names.PLAIN_NAMES.items():
        table |= dict.fromkeys(
            words.split(), Unit("money" if unit in ("GBP", "cent") else "quantity", unit, Decimal(factor))
        )
    for words, unit in names.CURRENCY_NAMES.items():
        table |= dict.fromkeys(words.split(), Unit("money", unit, _ONE))
    for phrases, (kind, unit, factor) in names.PHRASES.items():
        if unit:
            table |= dict.fromkeys(phrases.split(";"), Unit(cast(FigureKind, kind), unit, Decimal(factor)))
    table |= {
        sign: Unit("money", unit, _ONE) for sign, unit in names.CURRENCY_SIGNS.items() if not sign.isalpha()
    }
    return {name.casefold(): unit for name, unit in table.items()}


@cache
def _inflected_table() -> dict[str, Unit]:
    """Return the names that are found with a suffix of a few letters: percent, and currencies."""
    return {
        name: unit
        for name, unit in _name_table().items()
        if unit.kind in ("percent", "points", "money") and len(name) >= _INFLECTED_LETTERS
    }


@cache
def _cjk_table() -> dict[str, Unit]:
    units = {
        text: Unit(cast(FigureKind, kind), unit, Decimal(f))
        for text, (kind, unit, f) in names.CJK_UNITS.items()
    }
    for prefixes, bases in names.CJK_PREFIXED_UNITS:
        for prefix, power in prefixes.items():
            for base, (unit, factor) in bases.items():
                if not prefix and base in names.CJK_NEVER_ALONE:
                    continue
                units.setdefault(prefix + base, Unit("quantity", unit, Decimal(factor).scaleb(power)))
    for word, power in names.CJK_POWERS.items():
        for length, factor in names.CJK_LENGTHS.items():
            units.setdefault(word + length, _raise(Unit("quantity", "m", Decimal(factor)), power))
    return units | {"%": Unit("percent", "%", _ONE)}


@cache
def _scale_table(is_long: bool) -> dict[str, int]:
    table = {word: power for words, power in names.SCALE_WORDS.items() for word in words.casefold().split()}
    return table | _SHORT_SCALE | (_LONG_SCALE | {"billions": 12, "trillions": 18} if is_long else {})


def currency_of(sign: str) -> Unit | None:
    """Return the currency of a sign or code before a figure: `US$`, `EUR`, `Rs.`."""
    sign = sign.strip()
    unit = names.CURRENCY_SIGNS.get(sign)
    if unit is None:
        return _symbol_table().get(sign) if sign in names.CURRENCY_CODES.split() else None
    return Unit("money", unit, _ONE)


def read_tail(text: str, at: int, language: str = "", *, is_money: bool = False) -> FigureTail:
    """Return the scale and unit that stand at offset `at` of `text`, behind a figure's digits.

    `text` must have plain digits and percent signs (`numerals.fold_digits`). `is_money` tells that a currency
    stands before the digits: then `5m` is five millions.
    """
    if _begins_nothing(text, at):
        return FigureTail(0, NO_UNIT, at)
    tail = _read_letter_scale(text, at, is_money=is_money)
    if tail is None:
        scale, end = _read_scales(text, at, language)
        tail = FigureTail(scale, NO_UNIT, end)
    unit, end = _read_unit_behind(text, tail.end, bool(tail.scale) or tail.end > at)
    if unit is None:
        return tail
    if tail.other_scale and unit.kind == "quantity":
        return tail
    if unit.name == "month" and _YEAR_BEHIND.match(text, end):
        # "7 920 år 2013" is the number of the year 2013, and no age.
        return tail
    return FigureTail(tail.scale, unit, end, tail.other_scale)


def _begins_nothing(text: str, at: int) -> bool:
    """Whether neither a scale nor a unit can stand at `at`: a quick test, as most figures have none."""
    start = _skip_gap(text, at)
    first = text[start : start + 1]
    if not first.isascii():
        return False
    if not first.isalpha():
        return first not in _UNIT_SIGNS or not first
    word = _PLAIN_WORD.match(text, start)
    return word is not None and not _may_begin_unit(word[0])


@lru_cache(maxsize=MAX_CACHED_WORDS)
def _may_begin_unit(word: str) -> bool:
    """Whether a scale or a unit may begin with a word of ASCII letters; True in cases of doubt."""
    folded = word.casefold()
    if word in _SHORT_BEGINS or word in _ATTACHED_SCALES or word in _MONEY_SCALES or folded in _FILLERS:
        return True
    if word in _symbol_table() or word.endswith(_MATERIALS) or folded in _first_words():
        return True
    powers = (*names.SQUARE_WORDS, *names.CUBIC_WORDS)
    if any(folded.startswith(one) or one.startswith(folded) for one in powers):
        return True
    return (
        _find_inflected(_scale_table(is_long=True), folded) is not None
        or _find_inflected(_inflected_table(), folded) is not None
    )


@cache
def _first_words() -> frozenset[str]:
    """Return the first words of the names of units."""
    return frozenset(re.split(f"[{SPACES}.-]", name, maxsplit=1)[0] for name in _name_table())


def _read_letter_scale(text: str, at: int, *, is_money: bool) -> FigureTail | None:
    """Return the scale of `5k`, `84.6m`, `$5 bn`, `5 M€`."""
    start = _skip_gap(text, at)
    money = _MONEY_PREFIX.match(text, start)
    if money:
        return FigureTail(_MONEY_SCALES[money[1]], NO_UNIT, money.end())
    attached = _ATTACHED.match(text, start if is_money else at)
    if not attached:
        return None
    power = _ATTACHED_SCALES[attached[1]]
    if attached[1] == "m" and not is_money:
        return FigureTail(0, Unit("quantity", "m", _ONE), attached.end(), other_scale=power)
    return FigureTail(power, NO_UNIT, attached.end())


def _read_scales(text: str, at: int, language: str) -> tuple[int, int]:
    power = _POWER_OF_TEN.match(text, at) or _EXPONENT.match(text, at)
    if power:
        digits = next(group for group in power.groups() if group)
        return int(digits.replace("−", "-").translate(_SUPERSCRIPTS)), power.end()
    scale, end = 0, at
    for _ in range(2):
        one, stop = _read_scale(text, end, language)
        if stop == end:
            break
        scale, end = scale + one, stop
    return scale, end


def _read_scale(text: str, at: int, language: str) -> tuple[int, int]:
    start = _skip_gap(text, at)
    if start < len(text) and _CJK.match(text, start):
        found, end = _longest(names.CJK_SCALES, text, start)
        # 兆瓦 is a megawatt.
        if found is None or _longest(_cjk_table(), text, start)[1] > end:
            return 0, at
        return found, end
    if start < len(text) and not text[start].isascii() and (marked := _MARKED_SCALE.match(text, start)):
        return names.MARKED_SCALES[marked[0]], marked.end()
    word = _WORD.match(text, start)
    if not word:
        return 0, at
    table = _scale_table(language in names.LONG_SCALE_LANGUAGES)
    power = _find_inflected(table, word[0].casefold())
    if power is None or (len(word[0]) < 3 and word[0].casefold() not in names.SHORT_SCALES):
        return 0, at
    end = word.end()
    return power, end + 1 if len(word[0]) < 5 and text[end : end + 1] == "." and text[end + 1 : end + 2] in (
        *SPACES,
        "€",
    ) else end


def _read_unit_behind(text: str, at: int, has_scale: bool) -> tuple[Unit | None, int]:
    start = _skip_gap(text, at)
    if has_scale and (join := _JOIN.match(text, start)):
        unit, end = read_unit(text, join.end())
        return unit, end
    return read_unit(text, start)


def read_unit(text: str, at: int) -> tuple[Unit | None, int]:
    """Return the unit that stands at `at`, with its end; what multiplies or divides it belongs to it.

    `N·m`, `m/s²`, `l/100 km`, `mg L⁻¹` and `tonnes per hectare` are units of their own.
    """
    unit, end = _read_simple_unit(text, at)
    if unit is None or unit.kind not in ("quantity", "money"):
        return unit, end
    if unit.kind == "quantity":
        unit, end = _multiply(text, unit, end)
    if unit.name == "m" and (hourly := _PER_HOUR.match(text, end)):
        return Unit("quantity", "m/s", unit.factor / 3600), hourly.end()
    if gas := _GAS_BEFORE_SLASH.match(text, end):
        end = gas.end()
    per = _PER.match(text, end)
    if per and (unit.kind == "quantity" or "/" in per[0]):
        below, stop = _read_denominator(text, per.end())
        if below is not None and below.kind == "quantity":
            return _divide(unit, below), stop
    return unit, end


def _multiply(text: str, unit: Unit, end: int) -> tuple[Unit, int]:
    """Return a unit with the units behind it that multiply it, of which `s⁻¹` divides it."""
    if unit.name == "W" and (product := _PRODUCT.match(text, end)):
        return Unit("quantity", "J", unit.factor * 3600), product.end()
    if inverse := _INVERSE.match(text, end):
        return _divide(Unit("quantity", "1", _ONE), _raise(unit, _POWERS[inverse[1]])), inverse.end()
    between = _FACTOR.match(text, end) or _NAMED_FACTOR.match(text, end)
    if between is None:
        return unit, end
    other, stop = _read_simple_unit(text, between.end())
    if other is None or other.kind != "quantity":
        return unit, end
    if inverse := _INVERSE.match(text, stop):
        return _divide(unit, _raise(other, _POWERS[inverse[1]])), inverse.end()
    if other.name == unit.name:
        return unit, end
    return Unit("quantity", f"{unit.name}·{other.name}", unit.factor * other.factor), stop


def _read_denominator(text: str, at: int) -> tuple[Unit | None, int]:
    """Return the unit behind `/` or `per`: `s²`, `100 km`, `(m²·K)`."""
    is_grouped = text[at : at + 1] == "("
    number = _PER_NUMBER.match(text, at)
    start = number.end() if number else at + is_grouped
    word = _WORD.match(text, start)
    if word and (factor := names.DENOMINATORS.get(word[0].casefold())):
        unit, end = Unit("quantity", "s", Decimal(factor)), word.end()
    else:
        unit, end = _read_simple_unit(text, start)
    if unit is None:
        return None, at
    if power := _OWN_POWER.match(text, end):
        unit, end = _raise(unit, 2 if power[1] in ("²", "^2") else 3), power.end()
    if is_grouped:
        unit, end = _multiply(text, unit, end)
        if text[end : end + 1] != ")":
            return None, at
        end += 1
    if number:
        unit = unit._replace(factor=unit.factor * Decimal(re.sub(r"\D", "", number[1])))
    return unit, end


def _divide(unit: Unit, below: Unit) -> Unit:
    return Unit(unit.kind, f"{unit.name}/{below.name}", unit.factor / below.factor)


def _read_simple_unit(text: str, at: int) -> tuple[Unit | None, int]:
    first = text[at : at + 1]
    if not first:
        return None, at
    if (not first.isascii() or first in _SIGN_BEGINS) and (sign := _SIGN.match(text, at)):
        name = re.sub("[º˚]", "°", sign[0].casefold()).replace(" ", " " if "point" in sign[0] else "")
        return _name_table().get(name), sign.end()
    if _CJK.match(first):
        return _read_cjk_unit(text, at)
    if first in _COLUMN_BEGINS and (column := _COLUMN.match(text, at)):
        liquid = _WATER if column[2].startswith("H2") or column[2].startswith("H₂") else _MERCURY
        return Unit("quantity", "Pa", liquid * _COLUMN_UNITS[column[1]]), column.end()
    word = _WORD.match(text, at)
    if not word:
        return None, at
    unit = _symbol_table().get(word[0])
    if unit is not None:
        return _with_power(text, unit, word.end())
    has_digit = text[word.end() : word.end() + 1] in _MATERIAL_DIGITS
    material = _MATERIAL.search(text, at, word.end() + 1) if has_digit else None
    if material and material.end() == word.end():
        unit = _symbol_table().get(text[at : material.start()])
        return (unit, material.start()) if unit else (None, at)
    return _read_name(text, at)


def _read_cjk_unit(text: str, at: int) -> tuple[Unit | None, int]:
    """Return the longest unit at `at`; none if it is only the beginning of a longer word in Katakana."""
    unit, end = _longest(_cjk_table(), text, at)
    if unit is not None and _KATAKANA.match(text, end - 1) and _KATAKANA.match(text, end):
        return None, at
    return unit, end


def _read_name(text: str, at: int) -> tuple[Unit | None, int]:
    at = (
        filler.end()
        if (filler := _FILLER.match(text, at)) and text[at : at + len(_US_DOLLAR)].casefold() != _US_DOLLAR
        else at
    )
    phrase = _PHRASE.match(text, at)
    if not phrase:
        return None, at
    folded = phrase[0].casefold()
    ends = [at + len(folded)] + [
        phrase.start() + i for i in range(len(folded) - 1, 0, -1) if folded[i] in f"{SPACES}-."
    ]
    for end in ends:
        name = folded[: end - at].rstrip(".")
        if (unit := _name_table().get(name)) is not None:
            return _with_power_word(text, unit, at + len(name))
    powered = _read_powered_name(text, at, folded)
    if powered[0] is not None:
        return powered
    word = _WORD.match(text, at)
    unit = _find_inflected(_inflected_table(), word[0].casefold()) if word else None
    return (unit, word.end()) if word and unit else powered


def _read_powered_name(text: str, at: int, phrase: str) -> tuple[Unit | None, int]:
    """Return `square kilometres`, `sq km`, `Quadratkilometer`, `cubic feet`."""
    for words, power in ((names.SQUARE_WORDS, 2), (names.CUBIC_WORDS, 3)):
        for word in words:
            if phrase.startswith(word):
                start = at + len(word)
                start += text[start : start + 1] == "."
                unit, end = _read_length(text, _skip_gap(text, start))
                if unit is not None:
                    return _raise(unit, power), end
    return None, at


def _read_length(text: str, at: int) -> tuple[Unit | None, int]:
    word = _WORD.match(text, at)
    unit = word and (_symbol_table().get(word[0]) or _name_table().get(word[0].casefold()))
    return (unit, word.end()) if word and unit and unit.name == "m" else (None, at)


def _with_power(text: str, unit: Unit, end: int) -> tuple[Unit, int]:
    if unit.name == "m" and (power := _POWER.match(text, end)):
        return _raise(unit, 2 if power[1] in ("²", "2", "^2") else 3), power.end()
    return _with_power_word(text, unit, end)


def _with_power_word(text: str, unit: Unit, end: int) -> tuple[Unit, int]:
    if unit.name != "m":
        return unit, end
    word = _WORD.match(text, _skip_gap(text, end))
    folded = word[0].casefold() if word else ""
    if word and folded in names.SQUARE_ENDS | names.CUBIC_ENDS:
        return _raise(unit, 2 if folded in names.SQUARE_ENDS else 3), word.end()
    return unit, end


def _raise(unit: Unit, power: int) -> Unit:
    return unit if power == 1 else unit._replace(name=f"{unit.name}{power}", factor=unit.factor**power)


def _find_inflected(table: Mapping[str, Value], word: str) -> Value | None:
    """Return the value of a word, or of the longest name that it has with a suffix: `milliárdot`."""
    found = table.get(word)
    for length in range(len(word) - 1, max(_INFLECTED_LETTERS, len(word) - _SUFFIX_LETTERS) - 1, -1):
        if found is not None:
            break
        found = table.get(word[:length])
    return found


def _longest(table: Mapping[str, Value], text: str, at: int) -> tuple[Value | None, int]:
    for length in range(_LONGEST_CJK, 0, -1):
        found = table.get(text[at : at + length])
        if found is not None:
            return found, min(at + length, len(text))
    return None, at


def has_sure_unit(text: str, at: int) -> bool:
    """Return whether a scale or a unit of more than one capital letter stands at `at`, as in `2000 kg`.

    "2019 J. Smith" has none, nor has "w 2019 roku".
    """
    if _OF_YEAR.match(text, at):
        return False
    tail = read_tail(text, at)
    if tail.scale:
        return True
    spelled = text[at : tail.end].strip()
    return tail.unit != NO_UNIT and not (len(spelled) == 1 and (spelled.isupper() or spelled in "sh"))


def _skip_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _read_head_tail(text: str, language: str) -> FigureTail:
    """Return what `million €` or `€ million` says."""
    sign = _HEAD_CURRENCY.match(text)
    unit = currency_of(sign[1]) if sign else None
    if sign is None or unit is None:
        return read_tail(text, 0, language)
    tail = read_tail(text, sign.end(), language, is_money=True)
    return FigureTail(tail.scale, unit, max(tail.end, sign.end()))


def read_head_unit(head: str, language: str = "") -> FigureTail | None:
    """Return the scale and unit that a column's head gives: `Population (thousand)`, `Umsatz in Mio. €`."""
    for part in (
        re.findall(r"[(（\[]([^()（）\[\]]{1,40})[)）\]]", head) + re.split(r",|(?:^| )in ", head)[1:][-1:]
    ):
        text = part.strip()
        tail = _read_head_tail(text, language) if text and not text[0].isdigit() else None
        if tail is not None and tail.end and (tail.scale or tail.unit != NO_UNIT):
            return replace(tail, other_scale=0)
    unit, end = read_unit(head.strip(), 0)
    if unit and unit.kind == "percent":
        return FigureTail(0, unit, end)
    return FigureTail(0, unit, end) if unit and end == len(head.strip()) and unit.name != "month" else None
