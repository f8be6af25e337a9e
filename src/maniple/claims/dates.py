"""Finds the dates of a text, in many languages, and compares them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain

from maniple.claims.month_names import may_be_no_month, months_by_name
from maniple.claims.numerals import fold_digits, read_chinese
from maniple.claims.units import has_sure_unit

MAX_DAY, MAX_MONTH = 31, 12
_FIRST_YEAR, _LAST_YEAR = 1000, 2199
_S = "[ \u00a0\u202f]"
_NUMERIC = re.compile(
    r"(?<![\d.,/-])(?:(?P<y1>\d{4})(?P<sep>[-/.])(?P<m1>\d{1,2})(?P=sep)(?P<d1>\d{1,2})(?![\d-])"
    r"|(?P<y2>\d{4})-(?P<m2>0[1-9]|1[0-2])(?![\d-])"
    r"|(?P<a>\d{1,2})(?P<sep2>[-/.])(?P<b>\d{1,2})(?P=sep2)(?P<y3>\d{4}|\d\d)(?![\d./-]\d|\d))"
)
_ASIAN = re.compile(
    r"(?:(?<!\d)(?P<year>\d{4})|(?P<era>令和|平成|昭和)(?P<n>\d{1,2}|元)|(?P<han>[一二][〇零一二三四五六七八九]{3}))"
    rf"{_S}?[年년](?![代间間])(?:{_S}?(?P<month>\d{{1,2}}){_S}?[月월](?:{_S}?(?P<day>\d{{1,2}}){_S}?[日号일])?"
    rf"|{_S}?第?(?P<quarter>[一二三四1-4])(?:季度|四半期|분기)|(?P<half>[上下])半年)?"
    rf"|(?<!\d)(?P<m>\d{{1,2}}){_S}?[月월]{_S}?(?P<d>\d{{1,2}}){_S}?[日号일]"
    r"|(?:ngày )?(?P<vd>\d{1,2}) tháng (?P<vm>\d{1,2}) năm (?P<vy>\d{4})"
)
_ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925}
_PERIOD = re.compile(
    rf"\bQ(?P<q1>[1-4]){_S}?[/'’-]?{_S}?(?P<y1>\d{{4}})(?!\d)|(?<!\d)(?P<y2>\d{{4}})[ -]?Q(?P<q2>[1-4])\b"
    rf"|\b[HS](?P<h1>[12]){_S}?[/-]?{_S}?(?P<y3>\d{{4}})(?!\d)"
    r"|(?P<ordinal>first|second|third|fourth|1st|2nd|3rd|4th|erste[ns]?|zweite[ns]?|dritte[ns]?|vierte[ns]?|[1-4]\.|premier"
    r"|deuxième|troisième|quatrième|[1-4]er?|primer|segundo|tercer|cuarto|primo|secondo|terzo|quarto|primeiro|terceiro)"
    rf"{_S}(?P<what>quarter|Quartals?|trimestre|half|Halbjahre?s?|semestre){_S}"
    rf"(?:(?:of|de|del|do|of the year|des Jahres|von){_S})?"
    r"(?P<y4>\d{4})(?!\d)",
    re.I,
)
_PERIOD_WORD = re.compile(r"[QHS][1-4]|quart|half|halb|trimest|semest", re.I)
_DIGIT = re.compile(r"\d")
_NUMERIC_PART = re.compile(r"\d[-/.]\d")
_SPAN_PART = re.compile(r"\d(?:[/–-]\d|['’]?s|er|-?х|年代)")
_YEARS_WORDS = ("ann", "años", "anos")
_FISCAL_WORDS = ("FY", "GJ")
_ASCII_WORD = re.compile("[a-z]{2,14}")
_FISCAL = re.compile(r"\b(?:FY|GJ)[ ]?['’]?(?P<year>20\d\d|\d\d)(?![\w/–-])")
_ORDINALS = (
    ("first", "1", "erste", "premier", "prim"),
    ("second", "2", "zweit", "deux", "seg"),
    ("third", "3", "dritt", "trois", "terc", "terz"),
    ("fourth", "4", "viert", "quat", "cuar", "quar"),
)
_YEARS = re.compile(
    r"(?<![\d.,/])(?P<f1>1[5-9]\d\d|20\d\d)[/–-](?P<f2>\d\d|\d{4})(?![\d/-]|[.,]\d)"
    r"|(?<![\w.,])(?P<decade>1[0-9]\d0|20\d0)(?:['’]?s\b|er\b(?: Jahre)?|-?х|年代)"
    r"|(?:années|años|anos|anni)[ ](?P<decade2>\d{3}0|\d0)\b"
    r"|(?<!\d)(?P<decade3>[2-9]0)年代"
)
_YEAR = re.compile(
    r"(?<![\w.,$€£¥₹+#№§:/])(?<![\w]-)(?P<year>1[0-9]\d\d|20\d\d|21\d\d)(?![\w%‰€$£°]|[.,:]\d|[-–]\d{1,3}(?!\d)"
    r"|[-–][^\W\d_])"
    r"|(?<=[\u3040-\u9fff])(?P<near>1[5-9]\d\d|20\d\d)(?=[年至到—–-])|(?<=\d[–-])(?P<last>1[5-9]\d\d|20\d\d)(?![\w%.,-])"
)
_WORD = re.compile(r"(?:(?![\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])[^\W\d_]){2,14}")
_MARKED = re.compile("[\u0900-\u0eff]")
"""The scripts of India and Thailand."""
_DAY_BEFORE = re.compile(
    rf"(?<![\d.,:])(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|º|ª|°|\.)?(?:{_S}(?:of|de|di|den|af|da))?(?:{_S}|-|{_S}?d['’])$"
)
_RANGE_BEFORE = re.compile(
    rf"(?<![\d.,:])(?P<from>\d{{1,2}})\.?{_S}?(?:[-–/]|to|bis|al?|au|и|and|und|et|y|e){_S}?\d{{1,2}}\.?{_S}?$"
)
_AFTER = re.compile(
    rf"\.?(?:(?:{_S}|-)(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:[-–]\d{{1,2}})?(?:,{_S}?|{_S})(?P<y1>\d{{4}})(?![\d,]\d|\d)"
    rf"|,?(?:{_S}|-|/|{_S}?['’])(?:(?:de|del|of|do|di){_S})?(?P<y2>\d{{4}})(?!\d|[.,]\d)"
    rf"|{_S}(?P<only>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:.%€$]|,\d"
    rf"|{_S}?(?:%|percent|per cent|million|billion)|[^\W_]))"
)
_WINDOW = 22
_CENTURY = 100
_PIVOT = 70


@dataclass(frozen=True, slots=True)
class DateMention:
    """A date of a text; what the text leaves out is None.

    A period begins at `year` and `month` and lasts `months` (a quarter: 3) or `years` (a decade: 10;
    `2023/24`: 2).
    """

    start: int
    end: int
    text: str
    year: int | None
    month: int | None = None
    day: int | None = None
    swapped: bool = False
    """Whether month and day may be the other way round, as in `12/03/2024`."""
    months: int = 1
    years: int = 1


def agree_dates(claimed: DateMention, found: DateMention) -> bool:
    """Return whether `found`, from a source, supports `claimed`.

    A date agrees with one that says more: `March 2024` with `12 March 2024`, not the reverse. The year may be
    missing in one of them where day or month are given.
    """
    return any(
        _has_parts(claimed, found, mine, theirs)
        for mine in _day_readings(claimed)
        for theirs in _day_readings(found)
    )


def _day_readings(date: DateMention) -> list[tuple[int | None, int | None]]:
    readings = [(date.month, date.day)]
    return [*readings, (date.day, date.month)] if date.swapped else readings


def _has_parts(
    claimed: DateMention,
    found: DateMention,
    mine: tuple[int | None, int | None],
    theirs: tuple[int | None, int | None],
) -> bool:
    if not _has_year(claimed, found):
        return False
    month, day = mine
    if month is None:
        return True
    if (
        theirs[0] is None
        or not month <= theirs[0] <= theirs[0] + found.months - 1 <= month + claimed.months - 1
    ):
        return False
    return day is None or day == theirs[1]


def _has_year(claimed: DateMention, found: DateMention) -> bool:
    if claimed.year is None or found.year is None:
        return claimed.month is not None and found.month is not None
    first, last = claimed.year, claimed.year + claimed.years - 1
    if first <= found.year and found.year + found.years - 1 <= last:
        return True
    # "2023/24" is one year: a source may give either of the two.
    return (
        max(claimed.years, found.years) == 2 and found.year <= last and first <= found.year + found.years - 1
    )


def find_dates(text: str, language: str = "") -> list[DateMention]:
    """Return the dates of `text` in order, with offsets into it: days, months, quarters, years, decades.

    Relative dates ("last year") and months alone are none. A bare number from 1000 to 2199 that no unit or
    sign touches is a year. `language` is an ISO 639 code.
    """
    plain = fold_digits(text)
    # The quick tests below only pass over patterns that cannot match.
    found = [] if plain.isascii() else [*_find_asian(plain)]
    if _DIGIT.search(plain):
        found += _find_numeric(plain) if _NUMERIC_PART.search(plain) else ()
        found += _find_named(plain, language) if _may_name_month(plain) else ()
        found += _find_fiscal(plain) if any(one in plain for one in _FISCAL_WORDS) else ()
        found += _find_spans(plain) if _may_have_span(plain) else ()
        found += _find_years(plain)
        found += _find_periods(plain) if _PERIOD_WORD.search(plain) else ()
    found.sort(key=lambda one: (one.start, -one.end))
    kept = list[DateMention]()
    for one in found:
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def _may_name_month(text: str) -> bool:
    """Whether a text may name a month: a quick test of texts in ASCII."""
    return not (text.isascii() and months_by_name().keys().isdisjoint(_ASCII_WORD.findall(text.casefold())))


def _may_have_span(text: str) -> bool:
    return _SPAN_PART.search(text) is not None or any(one in text for one in _YEARS_WORDS)


def _mention(
    text: str, span: tuple[int, int], year: int | None, month: int | None = None, day: int | None = None
) -> DateMention:
    return DateMention(span[0], span[1], text[span[0] : span[1]], year, month, day)


def _find_numeric(text: str) -> Iterator[DateMention]:
    for match in _NUMERIC.finditer(text):
        if match["y1"] or match["y2"]:
            year = int(match["y1"] or match["y2"])
            month, day = int(match["m1"] or match["m2"]), int(match["d1"]) if match["d1"] else None
            if month <= MAX_MONTH and (day or 1) <= MAX_DAY:
                yield _mention(text, match.span(), year, month, day)
            continue
        one, two, year = int(match["a"]), int(match["b"]), int(match["y3"])
        if len(match["y3"]) == 2 and match["sep2"] == "-":
            continue
        if year < _CENTURY:
            year += 2000 if year < _PIVOT else 1900
        if one and two and min(one, two) <= MAX_MONTH and max(one, two) <= MAX_DAY:
            yield _read_two_numbers(text, match, year)


def _read_two_numbers(text: str, match: re.Match[str], year: int) -> DateMention:
    """Return `12.03.2024` with the day first, `12/03/2024` with both readings."""
    day, month = int(match["a"]), int(match["b"])
    if month > MAX_MONTH:
        day, month = month, day
    both = match["sep2"] == "/" and day <= MAX_MONTH and day != month
    return DateMention(match.start(), match.end(), match[0], year, month, day, swapped=both)


def _find_asian(text: str) -> Iterator[DateMention]:
    for match in _ASIAN.finditer(text):
        if match["m"] or match["vd"]:
            year = int(match["vy"]) if match["vy"] else None
            yield _mention(
                text, match.span(), year, int(match["m"] or match["vm"]), int(match["d"] or match["vd"])
            )
            continue
        year = _read_asian_year(match)
        month = int(match["month"]) if match["month"] else None
        day = int(match["day"]) if match["day"] else None
        found = _mention(text, match.span(), year, month, day)
        if match["quarter"]:
            quarter = match["quarter"]
            number = int(quarter) if quarter.isascii() else int(read_chinese(quarter))
            found = _period(text, match.span(), year, number * 3 - 2, 3)
        elif match["half"]:
            found = _period(text, match.span(), year, 1 if match["half"] == "上" else 7, 6)
        if (month or 1) <= MAX_MONTH:
            yield found


def _read_asian_year(match: re.Match[str]) -> int:
    if match["era"]:
        return _ERAS[match["era"]] + (1 if match["n"] == "元" else int(match["n"]))
    return int(match["year"]) if match["year"] else int(read_chinese(match["han"]))


def _period(text: str, span: tuple[int, int], year: int, month: int, months: int) -> DateMention:
    return DateMention(span[0], span[1], text[span[0] : span[1]], year, month, months=months)


def _find_periods(text: str) -> Iterator[DateMention]:
    for match in _PERIOD.finditer(text):
        year = int(match["y1"] or match["y2"] or match["y3"] or match["y4"])
        if match["ordinal"]:
            number = _read_ordinal(match["ordinal"].casefold())
            months = 6 if match["what"][0] in "hHsS" else 3
        else:
            number = int(match["q1"] or match["q2"] or match["h1"])
            months = 6 if match["h1"] else 3
        if number * months <= MAX_MONTH:
            yield _period(text, match.span(), year, (number - 1) * months + 1, months)


def _find_fiscal(text: str) -> Iterator[DateMention]:
    for match in _FISCAL.finditer(text):
        year = int(match["year"]) + (0 if len(match["year"]) == 4 else 2000)
        yield _mention(text, match.span(), year)


@cache
def _read_ordinal(word: str) -> int:
    return next(n for n, stems in enumerate(_ORDINALS, 1) if word.startswith(stems))


def _find_spans(text: str) -> Iterator[DateMention]:
    for match in _YEARS.finditer(text):
        start, end = match.span()
        if match["f1"]:
            yield from _read_two_years(match)
            continue
        decade = int(match["decade"] or match["decade2"] or match["decade3"])
        decade += 1900 if decade < _CENTURY else 0
        yield DateMention(start, end, match[0], decade, years=10)


def _read_two_years(match: re.Match[str]) -> Iterator[DateMention]:
    """Yield `2023/24` as one year, `2019–24` as two."""
    first = int(match["f1"])
    second = int(match["f2"]) + (first // _CENTURY * _CENTURY if len(match["f2"]) == 2 else 0)
    if second == first + 1:
        yield DateMention(match.start(), match.end(), match[0], first, years=2)
    elif second > first:
        yield DateMention(match.start(), match.end("f1"), match["f1"], first)
        yield DateMention(match.start("f2"), match.end(), match["f2"], second)


def _find_years(text: str) -> Iterator[DateMention]:
    for match in _YEAR.finditer(text):
        year, end = int(match["year"] or match["near"] or match["last"]), match.end()
        if text[end : end + 1] in ("年", "년") or not has_sure_unit(text, end):
            yield _mention(text, match.span(), year)


def _find_named(text: str, language: str) -> Iterator[DateMention]:
    months = months_by_name()
    words = (_WORD.finditer(text), _marked_name().finditer(text) if _MARKED.search(text) else ())
    for word in chain.from_iterable(words):
        month = months.get(word[0].casefold())
        if month is None:
            continue
        if language == "hr" and word[0].casefold().startswith("listopad"):
            month -= 1
        found = _read_named(text, word, month, language)
        if found is not None:
            yield found


@cache
def _marked_name() -> re.Pattern[str]:
    """Return the names with signs that are no letters, such as vowels of Hindi, and the points of Thai."""
    names = sorted((one for one in months_by_name() if not _WORD.fullmatch(one)), key=len, reverse=True)
    return re.compile(rf"(?<![^\W\d_])(?:{'|'.join(map(re.escape, names))})(?![^\W\d_])")


def _read_named(text: str, word: re.Match[str], month: int, language: str) -> DateMention | None:
    before = text[max(0, word.start() - _WINDOW) : word.start()]
    shift = max(0, word.start() - _WINDOW)
    after = _AFTER.match(text, word.end())
    between = _RANGE_BEFORE.search(before)
    lead = _DAY_BEFORE.search(before)
    if not lead and not after:
        return None
    start, end = word.span()
    day, year = None, None
    if after:
        year = int(after["y1"] or after["y2"]) if after["y1"] or after["y2"] else None
        day = int(after["day"] or after["only"]) if after["day"] or after["only"] else None
        end = after.end()
    if lead and (day is None or year is None):
        day, start = int(lead["day"]), shift + (between or lead).start()
        end = word.end() if year is None else end
    if day is not None and not 0 < day <= MAX_DAY:
        return None
    if (year is None or day is None) and may_be_no_month(word[0], language):
        return None
    if year is not None and not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    return _mention(text, (start, end), year, month, day)
