"""What clients are told about the claims of a report: one event, with bounded data."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.callbacks import adispatch_custom_event

from maniple.agents.report_score import format_score
from maniple.claims.verdict import ClaimReport, JudgedClaim, SourcePassage, Verdict, VerdictKind
from maniple.document.nodes import MARK
from maniple.evidence.check import UnverifiedCitation, place_marks
from maniple.evidence.reasons import Reasons, join_sentences
from maniple.text import shorten
from maniple.types import CLAIMS_CHECKED

MAX_LISTED_CLAIMS = 500
"""Claims, and marked citations, that one event lists."""
TEXT_CHARACTERS = 300
"""Characters of a claim, a reason or a passage that an event has."""
MAX_REASONS = 4
VALUE_CHARACTERS = 200
"""Characters of a value of a reason."""
HEAD_CHARACTERS = 80
"""Characters of the head of a row or column."""
LEAST_DECIDED = 3
"""Claims that are decided in a report without citations from which it ends with its score."""
OPAQUE = "\ufffc"
"""What stands for code and formulas in the text of a claim."""
_SHOWN: Mapping[VerdictKind, str] = {
    "supported": "supported",
    "contradicted": "contradicted",
    "absent": "absent",
    "suspect": "open",
    "open": "open",
}
"""What clients are told of a verdict; of a suspicion nothing."""


@dataclass(frozen=True, slots=True)
class ReportMark:
    """A finding that is marked in a report. `number` counts the marks of the report from 1."""

    number: int
    block: int
    finding: UnverifiedCitation


class ReleasedBlocks:
    """The blocks of a report as they were released, and the marks in them."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        """The blocks without marks."""
        self.marks: list[ReportMark] = []
        self._marks_before = 0

    def add(self, block: str, findings: Sequence[UnverifiedCitation] = ()) -> str:
        """Record the next block; return it with its marks."""
        marked = place_marks(block, findings)
        self.marks += [
            ReportMark(self._marks_before + number, len(self.texts), one) for number, one in marked.marks
        ]
        self._marks_before += marked.text.count(MARK)
        self.texts.append(block)
        return marked.text


async def report_claims(
    checked: ClaimReport, marks: Sequence[ReportMark], report: str, locale: str = ""
) -> str:
    """Send an event about the claims of a complete `report`; none if nothing in it had to be checked.

    Returns what belongs behind the report: its score, with the line breaks before it.
    """
    event = describe_claims(checked, marks)
    if not event:
        return ""
    score = format_score(event, report, locale) if _has_score(event) else ""
    with suppress(RuntimeError):  # outside of a run there is no stream of events
        await adispatch_custom_event(CLAIMS_CHECKED, {"score": score, **event})
    missing_breaks = 2 - (len(report) - len(report.rstrip("\n")))
    return "\n" * max(missing_breaks, 0) + score if score else ""


def describe_claims(report: ClaimReport, marks: Sequence[ReportMark] = ()) -> dict[str, Any]:
    """Return the fields of the event `ClaimsChecked` but the score; {} if nothing had to be checked.

    A claim in which a citation is marked is absent, whatever the rest of it is.
    """
    judged = [*_with_marks(report.claims, marks)]
    checked = [one for one in judged if one.claim.verdict.kind in _SHOWN]
    if not checked and not report.left_out and not marks:
        return {}
    counts = Counter(_SHOWN[one.claim.verdict.kind] for one in checked)
    listed = [*map(_describe_claim, _choose_listed(checked))]
    return {
        **{kind: counts[kind] for kind in ("supported", "contradicted", "absent", "open")},
        "not_checked": report.left_out,
        "exempt": len(judged) - len(checked),
        "citations": sum(len(report.sources.intersection(one.claim.citations)) for one in checked),
        "supporting_citations": sum(_is_supported_by_citation(one.claim) for one in checked),
        "claims": listed,
        "unlisted": len(checked) - len(listed),
        "marked_citations": [*_describe_citations(marks)][:MAX_LISTED_CLAIMS],
        "unsearched": [*report.unsearched],
    }


@dataclass(frozen=True, slots=True)
class _MarkedClaim:
    """A claim, and the number of its mark; None without one."""

    claim: JudgedClaim
    mark: int | None


def _with_marks(claims: Sequence[JudgedClaim], marks: Sequence[ReportMark]) -> Iterator[_MarkedClaim]:
    """Yield the claims with their marks: those about a claim, or about a citation in it."""
    own = dict[tuple[int, int, int], int]()
    inner = dict[int, list[ReportMark]]()
    for one in sorted(marks, key=lambda mark: mark.finding.citation.start):
        citation = one.finding.citation
        if citation.kind == "claim":
            own[one.block, citation.start, citation.end] = one.number
        else:
            inner.setdefault(one.block, []).append(one)
    starts = {block: [one.finding.citation.start for one in some] for block, some in inner.items()}
    for claim in claims:
        first = bisect_left(starts.get(claim.block, ()), claim.start)
        following = inner.get(claim.block, [])[first : first + 1]
        within = [one for one in following if one.finding.citation.end <= claim.end]
        if (number := own.get((claim.block, claim.start, claim.end))) is not None:
            yield _MarkedClaim(claim, number)
        elif within:
            absent = Verdict("absent", within[0].finding.reasons, claim.verdict.passage)
            yield _MarkedClaim(replace(claim, verdict=absent), within[0].number)
        else:
            yield _MarkedClaim(claim, None)


def _has_score(event: Mapping[str, Any]) -> bool:
    """Return whether a score tells something: not below "1 + 3 = 4", nor below words without sources."""
    decided = event["supported"] + event["contradicted"] + event["absent"]
    return bool(event["citations"]) or decided >= LEAST_DECIDED


def _is_supported_by_citation(claim: JudgedClaim) -> bool:
    passage = claim.verdict.passage
    return claim.verdict.kind == "supported" and passage is not None and passage.source in claim.citations


def _choose_listed(claims: Sequence[_MarkedClaim]) -> list[_MarkedClaim]:
    """Return the claims to list, in order: if they are too many, those with a mark first."""
    if len(claims) <= MAX_LISTED_CLAIMS:
        return [*claims]
    by_need = sorted(range(len(claims)), key=lambda index: not claims[index].claim.verdict.is_marked)
    return [claims[index] for index in sorted(by_need[:MAX_LISTED_CLAIMS])]


def _describe_claim(one: _MarkedClaim) -> dict[str, Any]:
    claim = one.claim
    return {
        "text": shorten(claim.text.replace(OPAQUE, "…"), TEXT_CHARACTERS),
        "row": shorten(claim.row, HEAD_CHARACTERS),
        "column": shorten(claim.column, HEAD_CHARACTERS),
        "verdict": _SHOWN[claim.verdict.kind],
        # A suspicion is for a judge only.
        **_describe_reasons(() if claim.verdict.kind == "suspect" else claim.verdict.reasons),
        "citations": [*claim.citations],
        "passage": _describe_passage(claim.verdict.passage),
        "mark": one.mark,
    }


def _describe_reasons(reasons: Reasons) -> dict[str, Any]:
    return {
        "reason": shorten(join_sentences(reasons), TEXT_CHARACTERS),
        "reasons": [
            {
                "code": one.code.value,
                "values": {name: shorten(text, VALUE_CHARACTERS) for name, text in one.values},
            }
            for one in reasons[:MAX_REASONS]
        ],
    }


def _describe_passage(passage: SourcePassage | None) -> dict[str, Any] | None:
    if passage is None:
        return None
    return {
        "source": passage.source,
        "text": shorten(passage.text, TEXT_CHARACTERS),
        "text_index": passage.text_index,
        "start": passage.start,
    }


def _describe_citations(marks: Sequence[ReportMark]) -> Iterator[dict[str, Any]]:
    for one in marks:
        citation = one.finding.citation
        if citation.kind != "claim":
            yield {
                "kind": citation.kind,
                "text": shorten(citation.text, TEXT_CHARACTERS),
                **_describe_reasons(one.finding.reasons),
                "mark": one.number,
            }
