"""The clauses of a sentence that belong to its figures: `A cost 5 million, B 7 million` has one for each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from maniple.claims.terms import find_names, find_terms

_BOUNDARY = re.compile(
    r"[;；。]|,\s|[，、]|\s(?:and|but|while|whereas|against|versus|vs\.?|followed|und|aber|während|gegenüber|gegen|"
    r"et|mais|tandis|contre|y|pero|mientras|frente|e|ma|mentre|contro|mas|enquanto|en|maar|terwijl|tegen|"
    r"и|а|но|против)\s"
)
_COMPARISON = re.compile(
    r"\b(?:than|compared|comparison|unlike|instead|versus|vs|against|without|not|no|never|neither|other|before|after|"
    r"als|gegenüber|verglichen|vergleich|statt|anders|ohne|nicht|kein\w*|que|contre|comparé\w*|rapport|sans|pas|"
    r"comparad\w|frente|sin|no|rispetto|senza|non|comparação|relação|sem|não|dan|vergeleken|zonder|niet|чем|"
    r"сравнени\w+|без|не)\b|n['’]t\b|比|较|較|不|没|より",
    re.IGNORECASE,
)
_LEAD = re.compile(r"[:：]\s*")
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")


class TextSpan(Protocol):
    """Anything with a place in a text, such as a figure or a date."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


def split_segments(text: str, spans: Sequence[TextSpan]) -> list[tuple[int, int]]:
    """Return the part of `text` that belongs to each of `spans`; empty if they cannot be separated."""
    # "Types by share: PET 41 %, PE 19 %": what leads in a list belongs to all of it.
    lead = _LEAD.search(text, 0, spans[0].start) if len(spans) > 2 else None
    cuts = [lead.end() if lead else 0]
    for one, following in pairwise(spans):
        boundary = _BOUNDARY.search(text, one.end, following.start)
        if boundary is None:
            return []
        cuts.append(boundary.end())
    return [*zip(cuts, [*cuts[1:], len(text)], strict=True)]


@dataclass(frozen=True, slots=True)
class FigureClause:
    """A figure or date in a sentence, with all figures of its kind there (`spans`)."""

    text: str
    own: TextSpan
    spans: Sequence[TextSpan]

    def read(self) -> str:
        """Return the words that belong to the figure: its clause, or the sentence if it has no clause."""
        segments = split_segments(self.text, self.spans)
        start, end = 0, len(self.text)
        if self.own in self.spans and segments:
            start, end = segments[self.spans.index(self.own)]
        return _without(self.text, self.own, start, end)


def belongs_to_other(claimed: FigureClause, found: FigureClause) -> bool:
    """Return whether a sentence gives a figure for something else than a claim does.

    The clause of the claim must share words only with the clauses that the sentence has for other figures.
    """
    segments = split_segments(found.text, found.spans)
    if len(segments) < 2 or found.own not in found.spans:
        return False
    clause = claimed.read()
    if _COMPARISON.search(clause):
        return False
    texts = [_without(found.text, one, *span) for one, span in zip(found.spans, segments, strict=True)]
    place = found.spans.index(found.own)
    parts = _without_common([find_names(f"x {one}") | {*_YEAR.findall(one)} for one in texts])
    if not all(parts):
        # A later clause may leave out the subject of the first: "A sold 5 in May, up from 4 in April".
        if place:
            return False
        parts = _without_common([_terms_with_years(one) for one in texts])
    wanted = _terms_with_years(clause)
    others = (part for at, part in enumerate(parts) if at != place)
    return bool(parts[place]) and not parts[place] & wanted and any(part & wanted for part in others)


def read_clause_terms(text: str, spans: Sequence[TextSpan]) -> list[frozenset[str]]:
    """Return the terms and years that only the clause of each span has; empty if they are not separated."""
    segments = split_segments(text, spans)
    texts = [_without(text, one, *span) for one, span in zip(spans, segments, strict=False)]
    return _without_common([_terms_with_years(one) for one in texts])


def split_clauses(text: str) -> list[str]:
    """Return the clauses of a text: at commas, semicolons, and words such as `and`."""
    return [clause for clause in _BOUNDARY.split(text) if clause.strip()]


def find_comparison(text: str) -> re.Match[str] | None:
    """Return the word behind which a text names something to compare with, such as `than`."""
    return _COMPARISON.search(text)


def _without(text: str, figure: TextSpan, start: int, end: int) -> str:
    # A figure that is a year must not be taken for a word that both clauses share.
    return f"{text[start : figure.start]} {text[figure.end : end]}"


def _without_common(sets: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    seen, common = set[str](), set[str]()
    for one in sets:
        common |= seen & one
        seen |= one
    return [one - common for one in sets]


def _terms_with_years(text: str) -> frozenset[str]:
    return find_terms(text) | {*_YEAR.findall(text)}
