"""The full-text search over questions and answers, with the passage that was found."""

import asyncio
import re
from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from maniple.store import RunText, Store
from maniple.store.search_terms import SearchTerms, fold_text, has_unspaced
from maniple.text import shorten_words

_BEFORE, _AFTER = 60, 180
"""Characters of a passage before and after the first word that was found."""
_MAX_QUESTION = 200
_MARKUP: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^[ \t|:-]*--[ \t|:-]*$", re.MULTILINE), ""),  # below a table's head, or a rule
    (re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|```\w*[ \t]*$|[-*+][ \t]+)", re.MULTILINE), ""),
    (re.compile(r"!?\[([^\]\n]*)\]\([^()\s]*\)?"), r"\1"),
    (re.compile(r"[ \t]*\|[ \t]*$|^[ \t]*\|[ \t]*", re.MULTILINE), ""),
    (re.compile(r"[ \t]+\|[ \t]+"), " · "),
    (re.compile(r"\*\*|__(?=\w)|(?<=\w)__|~~|`|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])"), ""),
)
"""Marks of Markdown, also of a text that is cut anywhere, and what a reader sees instead."""
_FORMULA = re.compile(
    r"\$\$?(?=\S)([^$\n]*[\\^_{][^$\n]*?)(?<=\S)\$\$?(?!\d)|\$\$?([^$\n]*\\[^$\n]*)$", re.MULTILINE
)
"""A formula, or the beginning of one that is cut; no amounts of dollars."""
_TEX: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}"), r"\1/\2"),
    (re.compile(r"\\(?:text|mathrm|mathbf|operatorname)\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\(?:times|cdot)\b[ ]?"), "· "),
    (re.compile(r"\\(?:left|right)(?![a-zA-Z])|\\[,;:! ]"), ""),
    (re.compile(r"\\([a-zA-Z]+|[%$#&_{}])"), r"\1"),
    (re.compile(r"[{}]"), ""),
)


class FoundPassage(BaseModel):
    """A run whose question or answer has the words of a search.

    `passage` is a part of the answer (`in_answer`) or of the question; `marks` are the places of the words in
    it, as [start, end] in characters. `asked_at` in Unix seconds.
    """

    run_id: str
    thread_id: str
    title: str
    asked_at: float
    question: str
    in_answer: bool
    passage: str
    marks: list[tuple[int, int]]


class FoundPassages(BaseModel):
    """What was found, the best first."""

    hits: list[FoundPassage]


async def search_runs(store: Store, owner: str, query: str, limit: int) -> FoundPassages:
    """Return the owner's runs whose question and answer have all words of `query`; raises `StoreError`."""
    terms = SearchTerms.of(query)
    found = await store.texts.search(owner, terms, limit)
    # In a thread: the texts may have megabytes.
    passages = await asyncio.to_thread(lambda: [_find_best(one, terms) for one in found])
    hits: list[FoundPassage] = []
    for one, (in_answer, passage, marks) in zip(found, passages, strict=True):
        thread = await store.threads.get(one.run.thread_id, None)
        hits.append(
            FoundPassage(
                run_id=one.run.run_id,
                thread_id=one.run.thread_name,
                title=thread.title if thread else "",
                asked_at=one.run.created_at,
                question=shorten_words(one.question, _MAX_QUESTION),
                in_answer=in_answer,
                passage=passage,
                marks=marks,
            )
        )
    return FoundPassages(hits=hits)


def _find_best(found: RunText, terms: SearchTerms) -> tuple[bool, str, list[tuple[int, int]]]:
    """Return the passage with more of the terms: of the answer, or of the question."""
    question = find_passage(found.question, terms.terms)
    answer = find_passage(found.answer, terms.terms)
    in_answer = bool(answer[1]) and len(answer[1]) >= len(question[1])
    return (in_answer, *(answer if in_answer else question))


def find_passage(text: str, terms: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Return the part of a text around the first of the terms, and the places of all terms in it."""
    folded = fold_text(text)
    words = [fold_text(term) for term in terms if term]
    places = [place for word in words if (place := _find_word(folded, word)) >= 0]
    first = min(places, default=0)
    start = _word_start(text, max(0, first - _BEFORE))
    source = text[start : first + _AFTER]
    passage = _strip_markup(source)
    marks = _mark_words(passage, words)
    if places and not marks:  # the words are in what is stripped, as an address is
        passage, marks = source, _mark_words(source, words)
    return passage, marks


def _strip_markup(passage: str) -> str:
    """Return a part of a Markdown text as its reader sees it, formulas as plain characters."""
    passage = _FORMULA.sub(_read_formula, passage)
    for form, shown in _MARKUP:
        passage = form.sub(shown, passage)
    return passage


def _read_formula(found: re.Match[str]) -> str:
    formula = found[1] or found[2]
    for form, shown in _TEX:
        formula = form.sub(shown, formula)
    return formula


def _mark_words(passage: str, words: Sequence[str]) -> list[tuple[int, int]]:
    folded = fold_text(passage)
    return _joined(sorted(mark for word in words for mark in _mark_all(folded, word)))


def _find_word(folded: str, word: str) -> int:
    """Return the place of a word at the beginning of a word, else anywhere; -1 for none."""
    place = folded.find(word)
    first = place
    while place > 0 and folded[place - 1].isalnum():
        place = folded.find(word, place + 1)
    return place if place >= 0 else first


def _word_start(text: str, at: int) -> int:
    space = text.find(" ", at, at + _BEFORE // 2) if at else -1
    return space + 1 if space >= 0 else at


def _mark_all(folded: str, word: str) -> Iterable[tuple[int, int]]:
    """Return the places of a word at the beginnings of words; those anywhere if there are none."""
    places = [one.span() for one in re.finditer(re.escape(word), folded)]
    if has_unspaced(word):
        return places
    return [
        (start, end) for start, end in places if not folded[max(0, start - 1) : start].isalnum()
    ] or places


def _joined(marks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in marks:
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined
