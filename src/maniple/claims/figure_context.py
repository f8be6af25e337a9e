"""What the words around a figure say about it: a hedge, a label, a denominator, a clock time."""

import re
from decimal import Decimal
from functools import cache
from typing import cast

from maniple.claims.quantities import Hedge
from maniple.claims.unit_names import HEDGES, HEDGES_BEHIND
from maniple.evidence.negation import is_negation

_LABELS = (
    "version no nr num number numéro numero número nummer page pages p pp seite seiten página "
    "pagina s chapter "
    "chapters kapitel chapitre capítulo section sections abschnitt sección figure figures fig abb "
    "abbildung table "
    "tables tab tabelle tableau tabla article art artikel artículo paragraph absatz step phase "
    "level tier grade class "
    "type version v ver rev release round room apartment suite flight route highway bus line linie "
    "channel gate "
    "platform item question annex appendix anhang footnote note windows python java boeing airbus "
    "iphone galaxy "
    "playstation xbox model mark series season episode volume vol issue band heft bd isbn issn doi "
    "pmid arxiv id § №"
)
_DENOMINATORS = "per pro je par por every alle each across cada ogni elke на tous na każde każdy"
_DENOMINATOR_BEHIND = re.compile(r"[^\W\d_]{0,3}(?:당|につき|あたり|当たり)")
_WINDOW = 26
_CJK_HEDGE = re.compile("[\u3040-\u9fff\uac00-\ud7af~≈≥≤<>]")
_ACRONYM = re.compile(r"(?<![^\W_])[A-Z]{2,6}[ -]$")
_OPPOSITE: dict[Hedge, Hedge] = {"": "", "about": "about", "over": "under", "under": "over"}
_CLOCK = re.compile(
    r"[ \u00a0]?(?:Uhr\b|[ap]\.?[ ]?m\b\.?|o['’]clock|[点點](?![一二三四五六七八九\d])"
    r"|時(?!間)|시(?!간)|h[ ]?\d\d\b(?![ ]?min)|heures? du)",
    re.I,
)
_BEHIND = re.compile(
    r"[ \u00a0]?(?:or (?:so|more|less)\b|左右|上下|程度|前後|정도|가량|以上|以下|以内|未満|이상|이하|미만)"
)
_HOURS = 24
MAX_HEDGE_WORDS = 4
_MARKS = "*_“”„«»\"'‘"
"""Marks of emphasis and quotation around a word."""


@cache
def _labels() -> frozenset[str]:
    return frozenset(_LABELS.split())


@cache
def _denominators() -> frozenset[str]:
    return frozenset(_DENOMINATORS.split())


@cache
def _hedges() -> dict[str, Hedge]:
    return {
        _fold(phrase): cast(Hedge, hedge)
        for hedge, phrases in HEDGES.items()
        for phrase in phrases.split(";")
    }


def _fold(text: str) -> str:
    """Return a text as hedges are compared: the capital of the Turkish `ı` is an `I`, as that of `i`."""
    return text.casefold().replace("ı", "i").replace("’", "'")


@cache
def _hedges_behind() -> dict[str, Hedge]:
    return {
        phrase: cast(Hedge, hedge)
        for hedge, phrases in HEDGES_BEHIND.items()
        for phrase in phrases.split(";")
    }


def read_words_before(text: str, start: int) -> list[str]:
    """Return the last words before `start` on its line, at most four, in lower case, without brackets."""
    before = text[max(0, start - _WINDOW) : start]
    if not before or before[-1] in "|\n":
        return []
    return before.rpartition("\n")[2].casefold().replace("(", " ").split()[-4:]


def find_hedge(text: str, start: int, words: list[str] | None = None) -> Hedge:
    """Return the hedge that ends at `start`: "about", "more than", "knapp", 约. `words` stand before it."""
    if not start:
        return ""
    if _CJK_HEDGE.match(text, start - 1):
        return _hedges().get(text[max(0, start - 2) : start]) or _hedges().get(text[start - 1], "")
    words = read_words_before(text, start) if words is None else words
    if not words:
        return ""
    hedges, plain = _hedges(), [_fold(one).strip(_MARKS) for one in words]
    for length in range(min(len(plain), MAX_HEDGE_WORDS), 0, -1):
        hedge = hedges.get(" ".join(plain[-length:]))
        if hedge is None and length == 1:
            hedge = hedges.get(plain[-1].rstrip(".").rpartition("'")[2])
        if hedge is not None:
            is_negated = len(plain) > length and is_negation(plain[-1 - length])
            return _OPPOSITE[hedge] if is_negated else hedge
    return ""


def find_hedge_behind(text: str, end: int) -> Hedge:
    """Return the hedge behind a figure: "or so", 左右, 以上."""
    behind = _BEHIND.match(text, end)
    return _hedges_behind().get(behind[0].strip(), "") if behind else ""


def is_label(text: str, start: int, words: list[str]) -> bool:
    """Return whether the figure at `start` only names something: "page 12", "ISO 9001", "version 3.1"."""
    if not words:
        return False
    return words[-1].rstrip(".") in _labels() or _ACRONYM.search(text, max(0, start - 8), start) is not None


def is_denominator(text: str, start: int, words: list[str], end: int) -> bool:
    """Return whether the figure at `start` says per how many: "per 100,000", "je 1.000"."""
    if text[start - 1 : start] in ("每", "毎") or (bool(words) and words[-1] in _denominators()):
        return True
    return _DENOMINATOR_BEHIND.match(text, end) is not None


def reads_as_clock(text: str, end: int, value: Decimal) -> bool:
    """Return whether the digits that end at `end` are a time of day: "5 pm", "14 Uhr", "14 h 30"."""
    return 0 <= value <= _HOURS and _CLOCK.match(text, end) is not None
