"""Number formats of cells, as a person sees them (ECMA-376, part 1, 18.8.30 and 18.8.31)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from maniple.reading.xml_parts import find_child, find_children, local_attribute

if TYPE_CHECKING:
    from lxml.etree import _Element as Element
else:
    Element = Any

Formats = dict[tuple[int, int], str]
"""The codes of the formats of cells, by row and column from 0; cells without a format are not in it."""
_BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: '"$"#,##0', 6: '"$"#,##0', 7: '"$"#,##0.00',
    8: '"$"#,##0.00', 9: "0%", 10: "0.00%", 11: "0.00E+00", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)", 41: "#,##0", 42: '"$"#,##0', 43: "#,##0.00",
    44: '"$"#,##0.00', 17: "mmm-yy", 48: "##0.0E+0",
}  # fmt: skip
_MAX_CELLS = 300_000
_MAX_PLACES = 30
_MAX_CODE = 200
_CELL = re.compile(rb"<c\b([^<>]{0,200})>")
_PLACE = re.compile(rb'\br="([A-Z]{1,3})(\d{1,7})"')
_STYLE = re.compile(rb'\bs="(\d{1,5})"')
_LITERAL = re.compile(r'"([^"]*)"|\\(.)|_.|\*.|\[\$([^\]-]*)(?:-[^\]]*)?\]|\[[^\]]*\]')
_PATTERN = re.compile(
    r"(?P<whole>[0#?](?:[0#?,]*[0#?])?)(?P<scale>,*)"
    r"(?:\.(?P<places>[0#?]*)(?P<late_scale>,*))?(?P<exponent>[Ee][+-]0+)?"
)
_GROUP_ENDS = re.compile(r"(?<=\d)(?=(?:\d{3})+$)")
_DATE_LETTERS = re.compile(r"[ymdhs]", re.IGNORECASE)
_MARK = "\x00"
"""Stands for a literal text while the pattern is searched."""


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """A format of numbers, for one sign."""

    before: str
    after: str
    places: int
    optional: int
    """The last decimal places that are shown only if they are not 0."""
    grouped: bool
    percents: int
    thousands: int
    """How often the number is divided by a thousand."""
    exponent: bool
    digits: int
    """The least digits before the decimal point: 3 shows 7 as 007, and 0 shows 0.5 as .5."""

    def render(self, value: Decimal) -> str:
        """Return a number that is not negative as it is shown."""
        scaled = value.scaleb(2 * self.percents - 3 * self.thousands)
        if self.exponent:
            return f"{self.before}{scaled:.{self.places}E}{self.after}"
        rounded = scaled.quantize(Decimal(1).scaleb(-self.places), ROUND_HALF_UP)
        whole, dot, decimals = format(rounded, "f").partition(".")
        for _ in range(self.optional):
            decimals = decimals[:-1] if decimals.endswith("0") and len(decimals) else decimals
        whole = whole.lstrip("0").zfill(self.digits)
        whole = _GROUP_ENDS.sub(",", whole) if self.grouped else whole
        return f"{self.before}{whole}{dot if decimals else ''}{decimals}{self.after}"


def read_formats(styles: Element | None) -> list[str]:
    """Return the codes of formats by their numbers in cells; "" for those without one."""
    own = {
        local_attribute(one, "numFmtId"): local_attribute(one, "formatCode")
        for one in find_children(find_child(styles, "numFmts"), "numFmt")
    }
    numbers = [local_attribute(one, "numFmtId") for one in find_children(find_child(styles, "cellXfs"), "xf")]
    return [
        own[number] if number in own else _BUILT_IN.get(int(number or 0) if number.isdecimal() else 0, "")
        for number in numbers
    ]


def find_cell_formats(sheet: bytes, formats: list[str], max_rows: int) -> Formats:
    """Return the formats of the cells in the XML of a sheet, up to a row."""
    return dict(islice(_iterate_formats(sheet, formats, max_rows), _MAX_CELLS))


def _iterate_formats(
    sheet: bytes, formats: list[str], max_rows: int
) -> Iterator[tuple[tuple[int, int], str]]:
    for cell in _CELL.finditer(sheet):
        style, place = _STYLE.search(cell[1]), _PLACE.search(cell[1])
        if style is None or place is None or int(style[1]) >= len(formats):
            continue
        row = int(place[2]) - 1
        if row >= max_rows:
            return
        if code := formats[int(style[1])]:
            yield (row, column_number(place[1].decode())), code


def column_number(name: str) -> int:
    """Return the number of a column, from 0, by its letters."""
    number = 0
    for letter in name:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def format_number(value: float | int, code: str) -> str | None:
    """Return a number as `code` shows it; None for a code that shows no decimal number."""
    sections = _split_sections(code[:_MAX_CODE])
    number = Decimal(repr(value))
    section, is_negative = sections[0], number < 0
    if is_negative and len(sections) > 1:
        section, is_negative = sections[1], False
    elif number == 0 and len(sections) > 2:
        section = sections[2]
    found = _parse_section(section)
    if found is None:
        return None
    try:
        with localcontext(prec=400):
            text = found.render(abs(number))
    except InvalidOperation:
        return None
    return f"-{text}" if is_negative and re.search("[1-9]", text) else text


def format_date(value: date | datetime, code: str) -> str | None:
    """Return the month or the year of a date whose format shows no day; None for any other format."""
    letters = set(_DATE_LETTERS.findall(_LITERAL.sub("", code).lower()))
    if letters == {"y", "m"}:
        return f"{value:%Y-%m}"
    return f"{value:%Y}" if letters == {"y"} else None


def _split_sections(code: str) -> list[str]:
    """Return the sections of a code, which semicolons outside of literals separate."""
    literals: list[str] = []
    masked = _LITERAL.sub(lambda match: literals.append(match[0]) or _MARK, code)
    rest = iter(literals)
    return [re.sub(_MARK, lambda _: next(rest), section) for section in masked.split(";")]


@lru_cache(maxsize=500)
def _parse_section(section: str) -> NumberFormat | None:
    literals: list[str] = []
    masked = _LITERAL.sub(lambda match: _add_literal(match, literals), section)
    pattern = _PATTERN.search(masked)
    if pattern is None or _DATE_LETTERS.search(masked) or "@" in masked or "/" in masked:
        return None
    before, after = masked[: pattern.start()], masked[pattern.end() :]
    if _PATTERN.search(after):
        return None
    rest = iter(literals)
    texts = [re.sub(_MARK, lambda _: next(rest), part) for part in (before, after)]
    places = (pattern["places"] or "")[:_MAX_PLACES]
    return NumberFormat(
        texts[0].lstrip(),
        texts[1].rstrip(),
        len(places),
        len(places) - len(places.rstrip("#?")),
        "," in pattern["whole"],
        masked.count("%"),
        len(pattern["scale"] + (pattern["late_scale"] or "")),
        pattern["exponent"] is not None,
        min(pattern["whole"].count("0"), _MAX_PLACES),
    )


def _add_literal(match: re.Match[str], literals: list[str]) -> str:
    text = match[1] or match[2] or match[3] or ""
    if not text:
        return " " if match[0].startswith("_") else ""
    literals.append(text)
    return _MARK
