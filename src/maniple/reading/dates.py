"""Dates in texts of pages: numeric forms, and names of months in forty languages."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from maniple.reading.month_names import list_months

_MONTHS = list_months()
_NAME = "|".join(sorted(map(re.escape, _MONTHS), key=len, reverse=True))
_YEAR = r"(?P<year>1[5-9]\d\d|20\d\d)"
_TEXT_CHARACTERS = 400
_FORMS = (
    re.compile(rf"(?<!\d){_YEAR}-(?P<month>\d\d?)-(?P<day>\d\d?)(?!\d)"),
    re.compile(rf"(?<!\d){_YEAR}\s?年\s?(?P<month>\d\d?)\s?月\s?(?P<day>\d\d?)\s?日"),
    re.compile(rf"(?<!\d){_YEAR}\s?년\s?(?P<month>\d\d?)\s?월\s?(?P<day>\d\d?)\s?일"),
    re.compile(rf"(?<!\d){_YEAR}[/.]\s?(?P<month>\d\d?)[/.]\s?(?P<day>\d\d?)(?!\d)"),
    re.compile(
        rf"(?<!\d)(?P<day>\d\d?)(?:st|nd|rd|th|er|º|ª|\.)?\s+(?:de\s+|of\s+|ב)?(?P<name>{_NAME})(?!\w)\.?,?\s+(?:de\s+|del\s+)?{_YEAR}(?!\d)"
    ),
    re.compile(rf"(?<!\w)(?P<name>{_NAME})(?!\w)\.?\s+(?P<day>\d\d?)(?:st|nd|rd|th)?,?\s+{_YEAR}"),
    re.compile(rf"(?<!\d)(?P<day>\d\d?)-(?P<name>{_NAME})-{_YEAR}"),
    re.compile(rf"(?<!\d){_YEAR}(?:\.|\s?m\.)?[-/ ](?P<name>{_NAME})[-/. ]+(?P<day>\d\d?)(?!\d)"),
    re.compile(
        rf"(?<!\w)(?P<name>{_NAME})\s+(?P<day>\d\d?)\s+\d\d?:\d\d(?::\d\d)?\s+(?:[a-z]{{2,5}}\s+)?{_YEAR}(?!\d)"
    ),
    re.compile(rf"(?<!\d)(?P<day>\d\d?) tháng (?P<month>\d\d?)(?:,| năm)? {_YEAR}(?!\d)"),
    re.compile(rf"(?<!\d)(?P<day>\d\d?)\.\s?(?P<month>\d\d?)\.\s?{_YEAR}(?!\d)"),
)
_COMPACT = re.compile(rf"^\s*{_YEAR}(?P<month>[01]\d)(?P<day>[0-3]\d)(?:\d{{4}}|\d{{6}}|t\d+.*)?\s*$")
_SLASHED = re.compile(r"(?<!\d)(?P<first>\d\d?)[/-](?P<second>\d\d?)[/-](?P<year>1[5-9]\d\d|20\d\d)(?!\d)")
_STAMP = re.compile(r"^\s*(\d{10})(?:\d{3}|\.\d+)?\s*$")
_MONTH_ONLY = (
    re.compile(rf"^\s*{_YEAR}[-/](?P<month>\d\d?)\s*$"),
    re.compile(rf"^\s*(?P<name>{_NAME})\b\.?,?\s+{_YEAR}\s*$"),
    re.compile(rf"^\s*{_YEAR}[-/ ](?P<name>{_NAME})\b\.?\s*$"),
    re.compile(rf"^\s*{_YEAR}年(?P<month>\d\d?)月\s*$"),
)
_YEAR_ONLY = re.compile(rf"^\s*{_YEAR}\s*$")
_WEEKDAYS = re.compile(r"(?<!\w)(mon|tue|wed|thu|fri|sat|sun)(?:day|sday|nesday|rsday|urday)?,?\s*$")
_LOWER = {
    **{ord(one): one.lower() for one in map(chr, range(0x41, 0x2000)) if len(one.lower()) == 1},
    **{first + digit: str(digit) for first in (0x660, 0x6F0, 0x966, 0x9E6) for digit in range(10)},
}
"""Lower case and plain digits, with every character in its place."""
_IN_ADDRESS = (
    re.compile(rf"/{_YEAR}[/-](?P<month>\d\d?)[/-](?P<day>\d\d?)(?:[/._-]|$)"),
    re.compile(rf"[/_-]{_YEAR}(?P<month>[01]\d)(?P<day>[0-3]\d)(?:[/._-]|$)"),
    re.compile(rf"[/_-]{_YEAR}-(?P<month>[01]\d)-(?P<day>[0-3]\d)(?:[/._-]|$)"),
    re.compile(rf"/{_YEAR}[/-](?P<month>[01]\d)(?P<day>[0-3]\d)/"),
    re.compile(rf"/{_YEAR}/(?P<name>{_NAME})/(?P<day>\d\d?)/"),
)


def find_date(text: str, *, month_first: bool | None = None) -> str:
    """Return the first date in `text` as `YYYY-MM-DD`; "" if there is none.

    `month_first` says how `03/04/2024` is read; None: such a date is none, if both readings are possible.
    """
    return next((date for date, _, _ in find_dates(text, month_first=month_first)), "")


def find_dates(text: str, *, month_first: bool | None = None) -> Iterator[tuple[str, int, int]]:
    """Yield the dates in `text` as in `find_date`, each with its start and end; those with slashes last."""
    shown = text[:_TEXT_CHARACTERS].translate(_LOWER)
    matches = [match for form in _FORMS for match in form.finditer(shown)]
    end = 0
    for match in sorted(matches, key=lambda one: one.start()):
        if match.start() >= end and (date := _format(match)):
            end = match.end()
            yield date, *match.span()
    for match in _SLASHED.finditer(shown):
        if date := _read_slashed(match, month_first, _WEEKDAYS.search(shown[: match.start()])):
            yield date, *match.span()


def parse_date(value: str, *, month_first: bool | None = None) -> str:
    """Return the date that the metadata field `value` holds: `YYYY-MM-DD`, `YYYY-MM` or `YYYY`; else ""."""
    value = value[:_TEXT_CHARACTERS].strip().translate(_LOWER)
    if match := _COMPACT.match(value):
        return _format(match)
    if match := _STAMP.match(value):
        return datetime.fromtimestamp(int(match[1]), UTC).date().isoformat()
    if date := find_date(value, month_first=month_first):
        return date
    for form in _MONTH_ONLY:
        if (match := form.match(value)) and 1 <= (month := _month(match)) <= 12:
            return f"{match['year']}-{month:02}"
    match = _YEAR_ONLY.match(value)
    return match["year"] if match else ""


def find_date_in_address(url: str) -> str:
    """Return the date in the path of an address, such as `/2024/03/12/`; "" if there is none."""
    path = url.partition("?")[0].partition("#")[0].lower()
    for form in _IN_ADDRESS:
        if (match := form.search(path)) and (date := _format(match)):
            return date
    return ""


def _read_slashed(match: re.Match[str], month_first: bool | None, weekday: re.Match[str] | None) -> str:
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    if first > 12 or (first == second):
        return _iso(year, second, first)
    if second > 12:
        return _iso(year, first, second)
    if weekday is not None:
        shown = weekday[1]
        fitting = [
            one for one in (_iso(year, first, second), _iso(year, second, first)) if _weekday(one) == shown
        ]
        if len(fitting) == 1:
            return fitting[0]
    if month_first is None:
        return ""
    return _iso(year, first, second) if month_first else _iso(year, second, first)


def _weekday(date: str) -> str:
    return datetime.fromisoformat(date).strftime("%a").lower() if date else ""


def _month(match: re.Match[str]) -> int:
    fields = match.groupdict()
    return _MONTHS[fields["name"]] if fields.get("name") else int(fields["month"])


def _format(match: re.Match[str]) -> str:
    return _iso(int(match["year"]), _month(match), int(match["day"]))


def _iso(year: int, month: int, day: int) -> str:
    try:
        return datetime(year, month, day, tzinfo=UTC).date().isoformat()
    except ValueError:
        return ""
