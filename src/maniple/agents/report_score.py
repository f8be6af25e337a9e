"""The line at the end of a report that says how many of its claims are supported.

Code writes it, behind the list of sources, in the language of the report. It is no text of the report:
`remove_score` takes it out of earlier reports, and a line like it that a model writes is left out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maniple.evidence.source_list import language_of


@dataclass(frozen=True, slots=True)
class _ScoreTexts:
    """The parts of the line in one language. Labels with a colon need no plural."""

    supported: str
    contradicted: str
    absent: str
    not_checked: str
    citations: str
    comma: str = ", "
    semicolon: str = "; "


_TEXTS = {
    "en": _ScoreTexts(
        "{n} of {total} claims supported",
        "{n} contradicted",
        "{n} without support",
        "{n} not checked",
        "citations that support their claim: {n}",
    ),
    "de": _ScoreTexts(
        "{n} von {total} Aussagen belegt",
        "{n} widerlegt",
        "{n} ohne Beleg",
        "{n} nicht geprüft",
        "Quellenangaben, die ihre Aussage stützen: {n}",
    ),
    "fr": _ScoreTexts(
        "Affirmations étayées : {n} sur {total}",
        "contredites : {n}",
        "sans appui : {n}",
        "non vérifiées : {n}",
        "citations qui appuient leur affirmation : {n}",
    ),
    "es": _ScoreTexts(
        "Afirmaciones respaldadas: {n} de {total}",
        "contradichas: {n}",
        "sin respaldo: {n}",
        "no comprobadas: {n}",
        "citas que respaldan su afirmación: {n}",
    ),
    "it": _ScoreTexts(
        "Affermazioni confermate: {n} su {total}",
        "contraddette: {n}",
        "senza riscontro: {n}",
        "non verificate: {n}",
        "citazioni che confermano la loro affermazione: {n}",
    ),
    "pt": _ScoreTexts(
        "Afirmações sustentadas: {n} de {total}",
        "contrariadas: {n}",
        "sem suporte: {n}",
        "não verificadas: {n}",
        "citações que sustentam a sua afirmação: {n}",
    ),
    "nl": _ScoreTexts(
        "{n} van {total} beweringen onderbouwd",
        "{n} weerlegd",
        "{n} zonder steun",
        "{n} niet gecontroleerd",
        "bronvermeldingen die hun bewering steunen: {n}",
    ),
    "ru": _ScoreTexts(
        "Утверждений подтверждено: {n} из {total}",
        "опровергнуто: {n}",
        "без подтверждения: {n}",
        "не проверено: {n}",
        "ссылок, подтверждающих своё утверждение: {n}",
    ),
    "zh": _ScoreTexts(
        "{total} 条论断中 {n} 条有依据",
        "{n} 条与来源相矛盾",
        "{n} 条无依据",
        "{n} 条未核查",
        "支持其论断的引用：{n} 处",
        "，",
        "；",
    ),
    "ja": _ScoreTexts(
        "{total} 件の主張のうち {n} 件に裏付けあり",
        "{n} 件は出典と矛盾",
        "{n} 件は裏付けなし",
        "{n} 件は未確認",
        "主張を裏付ける引用：{n} 件",
        "、",
        "；",
    ),
    "ko": _ScoreTexts(
        "주장 {total}건 중 {n}건 뒷받침됨",
        "{n}건 모순",
        "{n}건 근거 없음",
        "{n}건 미확인",
        "주장을 뒷받침하는 인용: {n}건",
    ),
}


def _pattern_of(text: str) -> str:
    return re.escape(text).replace(r"\{n\}", r"\d{1,9}").replace(r"\{total\}", r"\d{1,9}")


_LINE = rf"\*(?:{'|'.join(_pattern_of(one.supported) for one in _TEXTS.values())})[^*\n]{{0,300}}\*"
_IS_SCORE = re.compile(rf"\s*{_LINE}\s*")
_IN_TEXT = re.compile(rf"(?:\A|\n+){_LINE}[ \t]*(?=\n|\Z)")
MAX_SCORE_CHARACTERS = 400
"""No score is longer, with its marks."""


def format_score(claims: Mapping[str, Any], report: str, locale: str = "") -> str:
    """Return the score of a report as a line of Markdown, in the language of the report.

    `claims` are the fields of the event `ClaimsChecked`.
    """
    decided = claims["supported"] + claims["contradicted"] + claims["absent"]
    unchecked = claims["open"] + claims["not_checked"]
    texts = _TEXTS[language_of(report, locale)]
    parts = [texts.supported.format(n=claims["supported"], total=decided + unchecked)]
    for text, number in (
        (texts.contradicted, claims["contradicted"]),
        (texts.absent, claims["absent"]),
        (texts.not_checked, unchecked),
    ):
        parts += [text.format(n=number)] if number else []
    line = texts.comma.join(parts)
    if claims["citations"]:
        line += texts.semicolon + texts.citations.format(n=claims["supporting_citations"])
    return f"*{line}*"


def is_score(block: str) -> bool:
    """Return whether a block of a report is such a line."""
    return len(block) <= MAX_SCORE_CHARACTERS and _IS_SCORE.fullmatch(block) is not None


def may_be_score(begun: str) -> bool:
    """Return whether an incomplete block can become such a line: it is in emphasis that has not ended."""
    begun = begun.lstrip()
    inner, end, rest = begun[1:].partition("*")
    is_emphasis = begun.startswith("*") and not inner[:1].isspace() and bool(inner or not end)
    return is_emphasis and len(begun) <= MAX_SCORE_CHARACTERS and "\n" not in inner and not rest.strip()


def remove_score(report: str) -> str:
    """Return a report without such lines."""
    return _IN_TEXT.sub("", report)
