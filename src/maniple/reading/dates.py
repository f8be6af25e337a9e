"""Dates in texts of pages: numeric forms, and names of months in seven languages."""

import re
from datetime import UTC, datetime

_MONTHS = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9,
    "oct": 10, "nov": 11, "dec": 12,
    "january": 1, "february": 2, "march": 3, "april": 4, "june": 6, "july": 7, "august": 8, "september": 9,
    "october": 10, "november": 11, "december": 12,
    "januar": 1, "jänner": 1, "februar": 2, "märz": 3, "mär": 3, "mrz": 3, "mai": 5, "juni": 6, "juli": 7,
    "okt": 10, "oktober": 10, "dez": 12, "dezember": 12,
    "janvier": 1, "janv": 1, "février": 2, "fevrier": 2, "févr": 2, "fév": 2, "mars": 3, "avril": 4, "avr": 4,
    "juin": 6, "juillet": 7, "juil": 7, "août": 8, "aout": 8, "septembre": 9, "octobre": 10, "novembre": 11,
    "décembre": 12, "decembre": 12, "déc": 12,
    "enero": 1, "ene": 1, "febrero": 2, "marzo": 3, "abril": 4, "abr": 4, "mayo": 5, "junio": 6, "julio": 7,
    "agosto": 8, "ago": 8, "septiembre": 9, "setiembre": 9, "octubre": 10, "noviembre": 11,
    "diciembre": 12, "dic": 12,
    "gennaio": 1, "gen": 1, "febbraio": 2, "aprile": 4, "maggio": 5, "mag": 5, "giugno": 6, "giu": 6,
    "luglio": 7, "lug": 7, "settembre": 9, "set": 9, "ottobre": 10, "ott": 10, "dicembre": 12,
    "janeiro": 1, "fevereiro": 2, "fev": 2, "março": 3, "maio": 5, "junho": 6, "julho": 7, "setembro": 9,
    "outubro": 10, "out": 10, "novembro": 11, "dezembro": 12,
    "maart": 3, "mei": 5, "augustus": 8, "januari": 1, "februari": 2,
}  # fmt: skip
_NAME = "|".join(sorted(map(re.escape, _MONTHS), key=len, reverse=True))
_YEAR = r"(?P<year>1[5-9]\d\d|20\d\d)"
_TEXT_CHARACTERS = 400
_FORMS = (
    re.compile(rf"(?<!\d){_YEAR}-(?P<month>\d\d?)-(?P<day>\d\d?)(?!\d)"),
    re.compile(rf"(?<!\d){_YEAR}\s?年\s?(?P<month>\d\d?)\s?月\s?(?P<day>\d\d?)\s?日"),
    re.compile(rf"(?<!\d){_YEAR}\s?년\s?(?P<month>\d\d?)\s?월\s?(?P<day>\d\d?)\s?일"),
    re.compile(rf"(?<!\d){_YEAR}[/.]\s?(?P<month>\d\d?)[/.]\s?(?P<day>\d\d?)(?!\d)"),
    re.compile(
        rf"(?<!\d)(?P<day>\d\d?)(?:st|nd|rd|th|er|º|\.)?\s+(?:de\s+|of\s+)?(?P<name>{_NAME})\b\.?,?\s+(?:de\s+|del\s+)?{_YEAR}"
    ),
    re.compile(rf"\b(?P<name>{_NAME})\b\.?\s+(?P<day>\d\d?)(?:st|nd|rd|th)?,?\s+{_YEAR}"),
    re.compile(rf"(?<!\d)(?P<day>\d\d?)-(?P<name>{_NAME})-{_YEAR}"),
    re.compile(rf"(?<!\d){_YEAR}[-/ ](?P<name>{_NAME})[-/. ]+(?P<day>\d\d?)(?!\d)"),
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
    shown = text[:_TEXT_CHARACTERS].lower()
    found = [match for form in _FORMS for match in [form.search(shown)] if match and _format(match)]
    if found:
        return _format(min(found, key=lambda match: match.start()))
    match = _SLASHED.search(shown)
    return "" if match is None else _read_slashed(match, month_first)


def parse_date(value: str, *, month_first: bool | None = None) -> str:
    """Return the date that the metadata field `value` holds: `YYYY-MM-DD`, `YYYY-MM` or `YYYY`; else ""."""
    value = value[:_TEXT_CHARACTERS].strip().lower()
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


def _read_slashed(match: re.Match[str], month_first: bool | None) -> str:
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    if first > 12 or (first == second):
        return _iso(year, second, first)
    if second > 12:
        return _iso(year, first, second)
    if month_first is None:
        return ""
    return _iso(year, first, second) if month_first else _iso(year, second, first)


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
