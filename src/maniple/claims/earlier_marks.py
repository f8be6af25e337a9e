"""The claims of earlier reports that were marked, for reports that repeat them in another language."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from maniple.claims.claim_text import NumberOf
from maniple.claims.context import ClaimContext
from maniple.claims.dates import DateMention, agree_dates
from maniple.claims.quantities import FigureMention, agree
from maniple.claims.split import Claim, find_claims
from maniple.claims.verdict import Verdict
from maniple.document.nodes import MARK
from maniple.evidence.reasons import ReasonCode, explain
from maniple.evidence.source_list import language_of

MARK_GAP = 3
"""Characters that may stand between a claim and its mark, such as the full stop."""
LEAST_DIGITS = 3
"""Digits that a claim with a single figure needs to be known again by it."""
MAX_CLAIMS = 1_000
"""Claims of the earlier reports that are compared with those of a new one."""
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class _Signature:
    """What a translation keeps of a claim."""

    citations: frozenset[int]
    figures: Sequence[FigureMention]
    dates: Sequence[DateMention]

    @classmethod
    def of(cls, claim: Claim, language: str) -> "_Signature":
        context = ClaimContext.of(claim, (), (), language)
        figures = tuple(one for one in context.figures if one.is_judged)
        return cls(frozenset(claim.citations), figures, context.dates)

    @property
    def is_distinct(self) -> bool:
        """Whether two claims with these figures, dates and citations hardly ever differ."""
        if not self.citations:
            return False
        if len(self.figures) + len(self.dates) != 1:
            return bool(self.figures or self.dates)
        texts = (*(one.text for one in self.figures), *(one.text for one in self.dates))
        return sum(map(str.isdecimal, texts[0])) >= LEAST_DIGITS

    def is_same(self, other: "_Signature") -> bool:
        """Whether both cite a common source and have the same figures and dates."""
        return (
            not self.citations.isdisjoint(other.citations)
            and _are_same(self.figures, other.figures, agree)
            and _are_same(self.dates, other.dates, agree_dates)
        )


class EarlierMarks:
    """The marked claims of the earlier reports of a thread.

    The words of a translation cannot be compared with those of a source in another language, so that the
    rules leave open there what they had marked.
    """

    def __init__(self, reports: Iterable[str], number_of: NumberOf) -> None:
        self._marked, self._unmarked = list[_Signature](), list[_Signature]()
        for report in reports:
            if MARK in report:
                self._read(report, number_of)

    def find(self, claim: Claim, language: str) -> Verdict | None:
        """Return a verdict if `claim` has the figures, dates and citations of a marked claim, and no others.

        There is none if an unmarked claim has the same.
        """
        if not self._marked:
            return None
        own = _Signature.of(claim, language)
        if not own.is_distinct or not any(map(own.is_same, self._marked)):
            return None
        return (
            None
            if any(map(own.is_same, self._unmarked))
            else Verdict("absent", explain(ReasonCode.MARKED_BEFORE))
        )

    def _read(self, report: str, number_of: NumberOf) -> None:
        language = language_of(report)
        for claim, is_marked in _find_marked(report, find_claims(report, number_of)[:MAX_CLAIMS]):
            signature = _Signature.of(claim, language)
            if signature.is_distinct:
                (self._marked if is_marked else self._unmarked).append(signature)


def _find_marked(report: str, claims: Sequence[Claim]) -> Iterator[tuple[Claim, bool]]:
    """Yield the claims of a report, and whether a mark stands in or directly behind each."""
    for claim in claims:
        yield claim, MARK in report[claim.start : claim.end + MARK_GAP + len(MARK)]


def _are_same(own: Sequence[_Item], others: Sequence[_Item], agrees: Callable[[_Item, _Item], bool]) -> bool:
    """Whether each item agrees with one of the others, and the other way round."""
    return len(own) == len(others) and all(
        any(agrees(one, other) or agrees(other, one) for other in there)
        for here, there in ((own, others), (others, own))
        for one in here
    )
