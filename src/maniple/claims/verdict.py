"""What the check of a claim decides, and the record of all verdicts of a report."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from maniple.evidence.reasons import Reasons, join_sentences

VerdictKind = Literal["supported", "contradicted", "absent", "suspect", "open", "exempt"]
"""What is known about a claim.

- supported: what can be checked in it stands in a source that it cites, or follows from one by calculation.
- contradicted: a source says something else, or the claim's own arithmetic is wrong.
- absent: a figure, date or quotation stands nowhere, and no calculation explains it.
- suspect: its words differ from the passage that it seems to rest on. Nobody is shown this.
- open: no rule decides it.
- exempt: nothing in it has to be in a source, for example because the user said it.
"""
MARKED: frozenset[VerdictKind] = frozenset({"contradicted", "absent"})
"""The verdicts that lead to a repair and, if that fails, to a mark in the report."""
_SEVERITY: tuple[VerdictKind, ...] = ("contradicted", "absent", "suspect", "open", "supported", "exempt")


@dataclass(frozen=True, slots=True)
class SourcePassage:
    """A sentence or table row of a source.

    `source` is the number of the source; 0 is what the user said or what a program of the run has printed.
    `start` is its offset in the text with the index `text_index` among the source's texts.
    """

    source: int
    text: str
    start: int
    text_index: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about a claim, the reasons, and the passage that shows it."""

    kind: VerdictKind
    reasons: Reasons = ()
    passage: SourcePassage | None = None
    decided_by: Literal["rule", "judge"] = "rule"
    """Whether a rule or a model has decided."""
    is_proved: bool = False
    """Whether code has proved it, so that no judge changes it: the page was not read, or a sum is wrong."""
    is_precise: bool = False
    """Whether a rule that suspects is right in more than half of the cases that were measured.

    A judge is told of no other doubt, because one without a ground leads to wrong marks.
    """

    @property
    def reason(self) -> str:
        """The reasons as one English sentence."""
        return join_sentences(self.reasons)

    @property
    def is_marked(self) -> bool:
        """Whether the claim has to be repaired or marked."""
        return self.kind in MARKED


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim of a report with its verdict. `text` has no citations and no markup."""

    text: str
    citations: tuple[int, ...]
    verdict: Verdict
    row: str = ""
    column: str = ""
    block: int = 0
    """The index of its block in the report."""
    start: int = 0
    end: int = 0
    """Its offsets in the Markdown of the block."""


@dataclass(frozen=True, slots=True)
class ClaimReport:
    """The claims of a report in order."""

    claims: tuple[JudgedClaim, ...] = ()
    left_out: int = 0
    """The number of claims behind the limit, which were not checked."""
    unsearched: tuple[int, ...] = ()
    """The numbers of sources that no claim cites and that were too long to be searched."""
    sources: frozenset[int] = frozenset()
    """The numbers of all sources of the run."""

    @property
    def counts(self) -> dict[VerdictKind, int]:
        """The number of claims by verdict; kinds without claims are left out."""
        return dict(Counter(claim.verdict.kind for claim in self.claims))


def most_severe(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the first of the worst verdicts; `exempt` if there are none."""
    return min(verdicts, key=lambda one: _SEVERITY.index(one.kind), default=Verdict("exempt"))


def join_reasons(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the worst verdict, with the reasons of all verdicts that lead to a mark."""
    worst = most_severe(verdicts)
    marked = [one for one in verdicts if one.is_marked]
    if len({one.reasons for one in marked}) < 2:
        return worst
    reasons = dict.fromkeys(reason for one in marked for reason in one.reasons)
    is_proved = any(one.is_proved for one in marked)
    return Verdict(worst.kind, tuple(reasons), worst.passage, is_proved=is_proved)
