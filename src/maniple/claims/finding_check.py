"""Checks a statement against the words of a source that it rests on, when a member notes it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from maniple.claims.check import ClaimCheck
from maniple.claims.context import blank_spans, with_neighbours
from maniple.claims.dates import DateMention, agree_dates, find_dates
from maniple.claims.figures import find_figures
from maniple.claims.quantities import FigureMention, agree
from maniple.claims.segments import split_clauses
from maniple.claims.source_index import SourceIndex
from maniple.claims.split import Claim
from maniple.claims.terms import find_terms
from maniple.claims.word_rules import has_other_direction
from maniple.evidence.negation import has_negation
from maniple.evidence.noted_findings import NotedFinding
from maniple.evidence.quote_span import QuoteSpan
from maniple.evidence.record import Source
from maniple.evidence.source_list import detect_language
from maniple.evidence.wording import wording

LEAST_SHARED = 0.25
"""The share of a statement's words that its quote must have, if both are in one language."""
LEAST_TERMS = 3
"""The number of words from which a statement is compared with its quote by words."""
WINDOW_CHARACTERS = 10_000
"""How far before and behind a quote the source is compared with a statement."""
CLAUSE_CHARACTERS = 200
"""How far around a quote the rest of its clause is read."""
_CLAUSE_END = re.compile(r"[.!?;:,(](?=\s|\Z)|[。！？；，、：|\n)]")


@dataclass(frozen=True, slots=True)
class QuotedPassage:
    """The words of a source that a statement rests on.

    `around` are these words with the rest of the clauses that they begin and end in.
    """

    quote: str
    around: str
    left_out: Sequence[str] = ()
    """What the ellipses of the quote stand for."""
    about: str = ""
    """What else may give a date: the title of the source, and when it was published."""

    @classmethod
    def of(cls, text: str, span: QuoteSpan, about: str = "") -> "QuotedPassage":
        """Return the passage of a text at a span."""
        before = text[max(span.start - CLAUSE_CHARACTERS, 0) : span.start]
        behind = text[span.end : span.end + CLAUSE_CHARACTERS]
        begins = [0, *(one.end() for one in _CLAUSE_END.finditer(before))][-1]
        quote = text[span.start : span.end]
        # A quote may have the end of its clause itself: what follows is another one.
        end = _CLAUSE_END.search(f"{quote[-1:]}{behind}")
        rest = behind[: max(end.start() - 1, 0)] if end else behind
        around = f"{before[begins:]}{quote}{rest}"
        return cls(quote, around, span.left_out, about)


def find_disagreement(statement: str, passage: QuotedPassage) -> str:
    """Return what in a statement the quoted words do not support, as a sentence; "" if they agree.

    Compared are figures with their units, dates, negations and directions, and whether both have words in
    common. A statement in another language than the quote is compared by figures and dates only, and by
    negations.
    """
    return next(_find_disagreements(statement, passage), "")


def _find_disagreements(statement: str, passage: QuotedPassage) -> Iterator[str]:
    if any(has_negation(part) for gap in passage.left_out for part in _adjoining(gap)):
        yield "The ellipsis leaves out a negation. Quote the words with the negation."
    languages = [detect_language(statement), detect_language(passage.quote)]
    yield from _find_wrong_figures(statement, passage, languages)
    if wrong := _find_wrong_date(statement, passage, languages):
        yield (
            f"The quote does not give the date {wrong}. Quote the words that give it (join places with …), "
            "or leave it out."
        )
    if _loses_negation(statement, passage):
        yield (
            "The quote's clause has a negation and the statement has none. State it as the source does, or "
            "quote another clause."
        )
    if _negates(statement) and not _negates(passage.around):
        yield "The statement has a negation and the quote has none. State it as the source does."
    if has_other_direction(statement, passage.quote):
        yield "The statement says the opposite of the quote (such as more for less). Use the quote's words."
    if languages[0] == languages[1] and not _shares_words(statement, passage):
        yield "The statement and the quote have hardly a word in common. Quote the words that say it."


def _find_wrong_figures(statement: str, passage: QuotedPassage, languages: Sequence[str]) -> Iterator[str]:
    found = _read_figures(passage.quote, languages[1])
    known = [one for group in found for one in group]
    counts = [one for one in known if not one.is_judged]
    for group in _read_figures(statement, languages[0]):
        figure = group[0]
        if _is_in(group, known) or figure.kind == "year":
            continue  # years are compared as dates
        if figure.is_judged or (counts and figure.kind == "number"):
            given = ", ".join(dict.fromkeys(one.text for one in known)) or "no figure"
            yield (
                f"The quote does not give {figure.text}; it has {given}. State the figure and unit that "
                "stand there, or quote the words with it. Note no figure that you worked out."
            )


def _read_figures(text: str, language: str) -> list[tuple[FigureMention, ...]]:
    return [*with_neighbours([(one,) for one in find_figures(text, language)])]


def _is_in(group: Iterable[FigureMention], known: Sequence[FigureMention]) -> bool:
    return any(agree(one, other) for one in group for other in known)


def _find_wrong_date(statement: str, passage: QuotedPassage, languages: Sequence[str]) -> str:
    """Return the first date of a statement that neither the quote nor what is known of its source gives."""
    known: list[DateMention] = [
        *find_dates(passage.quote, languages[1]),
        *find_dates(passage.about, languages[1]),
    ]
    for date in find_dates(statement, languages[0]):
        if not any(agree_dates(date, one) for one in known):
            return date.text
    return ""


def _adjoining(gap: str) -> tuple[str, str]:
    """Return the beginning and the end of what an ellipsis stands for, up to the next clauses."""
    ends = [*_CLAUSE_END.finditer(gap)]
    return (gap[: ends[0].start()], gap[ends[-1].end() :]) if ends else (gap, "")


def _negates(text: str) -> bool:
    # The names of some months are negations in other languages.
    return has_negation(blank_spans(text, find_dates(text)))


def _loses_negation(statement: str, passage: QuotedPassage) -> bool:
    """Whether a statement without a negation rests on a clause with one.

    Another clause of the quote may have its words: then that is the one that it rests on.
    """
    if _negates(statement) or not _negates(passage.around):
        return False
    wanted = find_terms(statement)
    negated, plain = set[str](), set[str]()
    for clause in split_clauses(passage.around):
        (negated if has_negation(clause) else plain).update(find_terms(clause) & wanted)
    return len(negated) >= len(plain)


def _shares_words(statement: str, passage: QuotedPassage) -> bool:
    wanted = find_terms(statement)
    shared = wanted & find_terms(f"{passage.around} {passage.about}")
    return len(wanted) < LEAST_TERMS or len(shared) >= LEAST_SHARED * len(wanted)


def find_contradiction(statement: str, source: Source, text: str, span: QuoteSpan) -> str:
    """Return why the text around a quote contradicts a statement by the rules for reports, or "".

    These find a figure that the source gives for something else.
    """
    window = text[max(span.start - WINDOW_CHARACTERS, 0) : span.end + WINDOW_CHARACTERS]
    index = SourceIndex(source.number, source.title, [window], detect_language(window))
    nothing = SourceIndex(0, "", [source.published])
    claim = Claim(statement, 0, len(statement), (source.number,))
    check = ClaimCheck({source.number: index}, nothing, SourceIndex(0, "", []))
    (verdict,) = check.judge([claim], detect_language(statement))
    return verdict.reason if verdict.kind == "contradicted" else ""


class FindingIndex:
    """The findings of a run by their statements, whatever their typography."""

    def __init__(self, findings: Iterable[NotedFinding] = ()) -> None:
        self._findings: dict[str, list[NotedFinding]] = {}
        for one in findings:
            self._findings.setdefault(_key(one.statement), []).append(one)

    def find(self, claim: str, citations: Sequence[int] = ()) -> NotedFinding | None:
        """Return the finding that a claim repeats, of a source that it cites if it cites any."""
        known = self._findings.get(_key(claim), ()) if self._findings else ()
        return next((one for one in known if not citations or one.source in citations), None)


def _key(statement: str) -> str:
    return wording(statement).strip(" .。")
