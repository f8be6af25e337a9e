"""What a report says of the steps that lack something, and the lines for those that it does not speak of."""

import re
from collections.abc import Iterator, Sequence

from maniple.agents.answer_words import ABSENCE
from maniple.agents.task import LATER_TRY_FAILED, MISSING_IN_IT, NEEDED_FOR_IT, StepResult
from maniple.evidence import PageAttempt
from maniple.evidence.source_list import language_of
from maniple.text import counted, shorten

_HEADS = {
    "en": "Missing",
    "de": "Es fehlt",
    "fr": "Il manque",
    "es": "Falta",
    "it": "Manca",
    "pt": "Falta",
    "nl": "Ontbreekt",
    "ru": "Не хватает",
    "zh": "缺失",
    "ja": "不足",
    "ko": "누락",
}
"""The first words of a line about a gap by language."""
_SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]+|(?<=[。！？])")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]|[ \t]*(?:\*\*|__)[^*_\n]{1,80}(?:\*\*|__)[:：]?[ \t]*$")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+•|]|\d{1,2}[.)])")
_EXACT = re.compile(
    r"(?<![\w./-])(?:[\w.-]{1,80}/){0,8}[\w-]{1,80}\.[a-z]\w{1,5}\b|\d{1,20}(?:[.,:/]\d{1,20}){0,5}",
    re.IGNORECASE,
)
"""Paths, and numbers."""
_NAME = re.compile(r"(?<=[^\W_] )(?<![.!?:] )[^\W\d_a-zß-öø-ÿа-яё\u2e80-\uffff]\w{2,}")
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2}|[^\W\d_\u3040-\uffff]{4,}")
_NAMED_PAGES, _ADDRESS_CHARACTERS = 3, 80
"""How many pages that could not be read are named, and how much of their addresses."""
_STEM = 5
"""The number of letters that inflected forms of a word share."""


def state_gap(result: StepResult, report: str, locale: str = "") -> str:
    """Return the line about what a step lacks, with a first word in the report's language."""
    head = _HEADS.get(language_of(report, locale), _HEADS["en"])
    return f"**{head} ({result.title}):** {_gap_of(result)}".rstrip()


def describe_unread_share(attempts: Sequence[PageAttempt]) -> str:
    """Return which pages could not be read, if they are half or more of those that a step tried; else ""."""
    failed = [one.url for one in attempts if one.reason]
    if not failed or 2 * len(failed) < len(attempts):
        return ""
    named = ", ".join(shorten(url, _ADDRESS_CHARACTERS) for url in failed[:_NAMED_PAGES])
    more = f" and {len(failed) - _NAMED_PAGES} more" if len(failed) > _NAMED_PAGES else ""
    return f"{len(failed)} of {counted(len(attempts), 'page')} could not be read: {named}{more}."


def is_stated(report: str, result: StepResult) -> bool:
    """Return whether one sentence of a report says that what a step lacks is not there.

    The sentence, with the heading or the line with a colon above it, has a word of absence and the title of
    the step, or what distinguishes the gap: all its numbers and paths; if it has none, most of its names; if
    it has none, a third of its words.
    """
    title, gap = result.title.casefold(), _gap_of(result) or result.title
    return any(
        ABSENCE.search(said) and (title in said.casefold() or _is_about(said.casefold(), gap))
        for said in _sentences(report)
    )


def _gap_of(result: StepResult) -> str:
    """Return what a step lacks, or why it is not done, in the member's own words."""
    text = (result.lacks or result.reason).removeprefix(MISSING_IN_IT)
    for label in (NEEDED_FOR_IT, LATER_TRY_FAILED):
        text = text.partition(label)[0]
    return text.strip()


def _is_about(sentence: str, gap: str) -> bool:
    if exact := {one.casefold() for one in _EXACT.findall(gap)}:
        return exact <= set(_EXACT.findall(sentence))
    names = set(_NAME.findall(gap))
    stems = {one.casefold()[:_STEM] for one in names or _WORD.findall(gap)}
    found = sum(one in sentence for one in stems)
    return 2 * found > len(stems) if names else found > 0 and 3 * found >= len(stems)


def _sentences(report: str) -> Iterator[str]:
    """Yield the sentences of a report, each with the heading and the line with a colon that it is under."""
    heading = lead = ""
    for line in filter(str.strip, report.splitlines()):
        if _HEADING.match(line):
            heading, lead = line, ""
        elif not _LIST_ITEM.match(line):
            lead = ""
        for sentence in _SENTENCE_END.split(line):
            yield " ".join(dict.fromkeys((heading, lead, sentence)))
        if line.rstrip(" *_").endswith((":", "：")):
            lead = line
