"""Reads numerals: digits with every kind of separator, number words, and Chinese numerals."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from maniple.claims.unit_names import SCALE_WORDS

Readings = tuple[tuple[Decimal, Decimal], ...]
"""The values that digits may have, the likeliest first, each with the value of its last digit."""

DIGITS = r"\d{1,3}(?:[ \u00a0\u2007\u2009\u202f'’]\d{3})+(?!\d)(?:[.,]\d+)*|\d+(?:[.,]\d+)*"
MAX_DIGITS = 15
"""A longer run of digits without separators is an identifier."""
_ZEROS = "0０٠۰०"
_SIGNS = {
    "％": "%",
    "－": "-",
    "−": "-",
    "﹣": "-",
    "．": ".",
    "٫": ".",
    "٬": ",",
    "‐": "-",
    "‑": "-",
    "＋": "+",
    "＝": "=",
}
_GROUPING = re.compile("[ \u00a0\u2007\u2009\u202f'’]")
_PLAIN_GROUPS = re.compile(r"\d{1,3}(?: \d{3})+")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,2}(?:\.\d{3})+|[1-9]\d?(?:,\d\d)+,\d{3}")
_SPACED_LANGUAGES = frozenset(
    [
        "fr",
        "ru",
        "uk",
        "pl",
        "cs",
        "sk",
        "sv",
        "nb",
        "no",
        "da",
        "fi",
        "de",
        "es",
        "it",
        "pt",
        "nl",
        "bg",
        "hu",
    ]
)
_POINT_LANGUAGES = frozenset(["en", "zh", "ja", "ko", "he", "th"])
_ONE = Decimal(1)

_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_GERMAN = (
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn"
)
_GERMAN_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"
_DUTCH = (
    "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien "
    "zeventien achttien negentien"
)
_DUTCH_TENS = "twintig dertig veertig vijftig zestig zeventig tachtig negentig"
_COMPOUNDS = ((_GERMAN, _GERMAN_TENS, "ein", ("und",)), (_DUTCH, _DUTCH_TENS, "een", ("en", "ën")))
_OTHER_WORDS = {
    2: "deux dos due dois duas два две zwo",
    3: "trois tres tre três три",
    4: "quatre cuatro quattro quatro четыре",
    5: "cinq cinco cinque пять",
    6: "six seis sei шесть",
    7: "sept siete sette sete семь",
    8: "huit ocho otto oito восемь",
    9: "neuf nueve nove девять",
    10: "dix diez dieci dez десять",
    11: "onze once undici onze одиннадцать",
    12: "douze doce dodici doze двенадцать dozen dutzend douzaine docena dozzina dúzia",
    13: "treize trece tredici treze тринадцать",
    14: "quatorze catorce quattordici catorze четырнадцать",
    15: "quinze quince quindici пятнадцать",
    16: "seize dieciséis sedici dezesseis шестнадцать",
    20: "vingt veinte venti vinte двадцать",
    30: "trente treinta trenta trinta тридцать",
    40: "quarante cuarenta quaranta quarenta сорок",
    50: "cinquante cincuenta cinquanta cinquenta пятьдесят",
    60: "soixante sesenta sessanta sessenta шестьдесят",
    70: "setenta settanta семьдесят",
    80: "ochenta ottanta oitenta восемьдесят",
    90: "noventa novanta девяносто",
    100: "hundred hundert cent cien cento cem honderd сто",
}
_ARTICLES = frozenset(
    ["a", "an", "ein", "eine", "einer", "einem", "einen", "un", "une", "una", "uno", "um", "uma", "een"]
)
_FRACTIONS = {
    "0.5": "half halves halb halbe halben hälfte moitié mitad metà metade helft половина половины половину "
    "половини půl polovina polovinu polovice połowa połowę połowy hälften halva puolet felét fele feleannyi "
    "yarısı yarı",
    "0.333333": "third thirds drittel tiers tercio tercios terzo terzi terço terços derde треть трети",
    "0.25": "quarter quarters viertel quart quarts cuarto cuartos quarti kwart четверть четверти",
    "0.2": "fifth fifths fünftel cinquième cinquièmes quinto quintos quinti vijfde",
    "0.166667": "sixth sixths sechstel sixième",
    "0.125": "eighth eighths achtel huitième",
    "0.1": "tenth tenths zehntel dixième dixièmes décimo décimos decimo decimi tiende",
}
FRACTION_SIGNS = {
    "½": "0.5", "⅓": "0.333333", "⅔": "0.666667", "¼": "0.25", "¾": "0.75", "⅕": "0.2", "⅖": "0.4",
    "⅗": "0.6", "⅘": "0.8", "⅙": "0.166667", "⅛": "0.125", "⅜": "0.375", "⅝": "0.625", "⅞": "0.875",
}  # fmt: skip
_FRACTION_STEP = Decimal("0.01")
_WORD = re.compile(r"[^\W\d_]+")
_WORD_GAPS = frozenset([" ", "-", " and ", " und ", " y ", " e ", " et ", "\u00a0"])
_MAX_GAP = 5

CHINESE_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_CHINESE_TENS = {"十": 10, "百": 100, "千": 1000}
CHINESE_NUMERAL = "[〇零一二两兩三四五六七八九十百千]+(?:点[〇零一二三四五六七八九]+)?"


@dataclass(frozen=True, slots=True)
class NumberWord:
    """A number in words; `end` is behind its last word."""

    start: int
    end: int
    value: Decimal
    step: Decimal


@cache
def _digit_table() -> dict[int, str]:
    table = {ord(zero) + n: str(n) for zero in _ZEROS for n in range(10)}
    return table | {ord(sign): plain for sign, plain in _SIGNS.items()}


def fold_digits(text: str) -> str:
    """Return `text` with digits, percent signs, hyphens and decimal marks of all scripts in ASCII.

    Every character stands for one character, so offsets stay.
    """
    return text if text.isascii() else text.translate(_digit_table())


def split_list(token: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield each number of digits that `DIGITS` found at `start`, with its offset.

    `1,2,3` and `12.5,13.5` are lists. A number of any other form is yielded whole.
    """
    if token.count(",") < 1 or _is_number(token):
        yield start, token
        return
    for part in token.split(","):
        yield start, part
        start += len(part) + 1


def _is_number(token: str) -> bool:
    plain = _GROUPING.sub("", token)
    if plain.count(",") + plain.count(".") < 2 or _THOUSANDS.fullmatch(plain):
        return True
    mark = plain[max(plain.rfind("."), plain.rfind(","))]
    head = plain.rpartition(mark)[0]
    return mark not in head and _THOUSANDS.fullmatch(head) is not None


def read_digits(token: str, language: str = "") -> Readings:
    """Return every value that `token` may have, the likeliest in `language` first; none for an identifier.

    `1.136` is 1136 and 1.136. Versions, addresses (`3.11.7`) and numbers with leading zeros have no value.
    """
    plain = _GROUPING.sub("", token)
    marks = plain.count(",") + plain.count(".")
    if not marks:
        return _read_whole(token, plain, language)
    if marks == 1:
        return _read_marked(token, plain, language)
    if _THOUSANDS.fullmatch(plain):
        return ((Decimal(re.sub("[.,]", "", plain)), _ONE),)
    if not _is_number(token):
        return ()
    mark = plain[max(plain.rfind("."), plain.rfind(","))]
    head, _, tail = plain.rpartition(mark)
    return (_decimal(re.sub("[.,]", "", head), tail),)


def _read_whole(token: str, plain: str, language: str) -> Readings:
    if len(plain) > MAX_DIGITS or (plain[0] == "0" and len(plain) > 1):
        return ()
    found = ((Decimal(plain), _ONE),)
    if language not in _SPACED_LANGUAGES and _PLAIN_GROUPS.fullmatch(token):
        # "100 200 300" may be three numbers where spaces are not the usual separator.
        return found + tuple((Decimal(part), _ONE) for part in token.split(" "))
    return found


def _read_marked(token: str, plain: str, language: str) -> Readings:
    mark = "," if "," in plain else "."
    head, _, tail = plain.partition(mark)
    if len(head) > MAX_DIGITS or len(tail) > MAX_DIGITS or (head[0] == "0" and len(head) > 1):
        return ()
    decimal = _decimal(head, tail)
    if len(tail) != 3 or len(head) > 3 or head == "0" or len(plain) < len(token):
        return (decimal,)
    whole = (Decimal(head + tail), _ONE)
    if mark == ",":
        return (whole,) if language in _POINT_LANGUAGES else (whole, decimal)
    return (decimal, whole) if language in _POINT_LANGUAGES else (whole, decimal)


def _decimal(head: str, tail: str) -> tuple[Decimal, Decimal]:
    return Decimal(f"{head}.{tail}"), _ONE.scaleb(-len(tail))


@cache
def _number_words() -> dict[str, int]:
    words = {word: n for n, word in enumerate(_ENGLISH.split())}
    for n, names in _OTHER_WORDS.items():
        words |= dict.fromkeys(names.split(), n)
    words |= {word: n * 10 for n, word in enumerate(_ENGLISH_TENS.split(), 2)}
    for units, tens, one, joins in _COMPOUNDS:
        names, ten_names = units.split(), tens.split()
        words |= {word: n for n, word in enumerate(names)} | {
            word: n * 10 for n, word in enumerate(ten_names, 2)
        }
        for n, ten in enumerate(ten_names, 2):
            for unit in range(1, 10):
                name = one if unit == 1 else names[unit]
                words |= {f"{name}{join}{ten}": n * 10 + unit for join in joins}
    return words | dict.fromkeys(_ARTICLES, 1)


@cache
def _fraction_words() -> dict[str, Decimal]:
    return {name: Decimal(value) for value, names in _FRACTIONS.items() for name in names.split()}


@cache
def _telling_words() -> frozenset[str]:
    """Return the words without one of which a text has no number in words; an article alone is none."""
    scales = (word for words in SCALE_WORDS for word in words.split())
    return frozenset((*(_number_words().keys() - _ARTICLES), *_fraction_words(), *scales))


def find_number_words(text: str) -> list[NumberWord]:
    """Return the numbers in words of `text`: `twenty-five`, `dreißig`, `two thirds`, `half`.

    An article or "one" counts only before a scale or a fraction, so a bare one is returned as well, with the
    value 1: the caller looks at what follows.
    """
    found = list[NumberWord]()
    if _telling_words().isdisjoint(_WORD.findall(text.casefold())):
        return found
    words, fractions = _number_words(), _fraction_words()
    run = list[tuple[int, int, int]]()
    for word in _WORD.finditer(text):
        name = word[0].casefold()
        value, share = words.get(name), fractions.get(name)
        if value is None and share is None:
            continue
        start, end = word.span()
        if run and not _continues(text, run[-1][1], start):
            found.append(_join(run))
            run = []
        if value is not None:
            run.append((start, end, value))
            continue
        assert share is not None
        count = _join(run) if run else None
        times = count.value if count is not None and count.value < 10 else _ONE
        run = []
        found.append(NumberWord(count.start if count else start, end, share * times, _FRACTION_STEP))
    if run:
        found.append(_join(run))
    return found


def _continues(text: str, end: int, start: int) -> bool:
    return start - end <= _MAX_GAP and text[end:start] in _WORD_GAPS


def _join(run: list[tuple[int, int, int]]) -> NumberWord:
    """Return the number of neighbouring words: `one hundred and five`. What does not fit is left out."""
    total, end = run[0][2], run[0][1]
    for _, stop, value in run[1:]:
        if value == 100 and 0 < total < 100:
            total *= 100
        elif (value < 100 and total >= 100 and total % 100 == 0) or (
            value < 10 and total % 10 == 0 and total % 100
        ):
            total += value
        else:
            break
        end = stop
    return NumberWord(run[0][0], end, Decimal(total), _ONE)


def read_chinese(numeral: str) -> Decimal:
    """Return the value of a Chinese numeral below 10,000: `一百二十`, `三点五`, `二〇一九`."""
    whole, _, tail = numeral.partition("点")
    if not any(c in _CHINESE_TENS for c in whole):
        digits = "".join(str(CHINESE_DIGITS[c]) for c in whole)
    else:
        digits = str(_add_chinese(whole))
    return Decimal(f"{digits}.{''.join(str(CHINESE_DIGITS[c]) for c in tail)}" if tail else digits)


def _add_chinese(numeral: str) -> int:
    total, digit = 0, 0
    for character in numeral:
        if character in _CHINESE_TENS:
            total += (digit or 1) * _CHINESE_TENS[character]
            digit = 0
        else:
            digit = CHINESE_DIGITS[character]
    return total + digit
