"""Findings: statements that members note while they read, each with the words of the source behind it."""

import time
from dataclasses import dataclass, replace

from maniple.text import fix_surrogates

MAX_FINDINGS = 500
"""Findings of a run; further ones are refused. A run inherits at most as many from the thread."""
STATEMENT_CHARACTERS = 600
QUOTE_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class NotedFinding:
    """A statement that was checked against the words of a source when it was noted."""

    source: int
    """The number of the source."""
    statement: str
    quote: str
    """The words of the source, as they stand in its text from `start` to `end`."""
    sha256: str
    """The hex digest of that text (UTF-8)."""
    start: int
    """Where the quote begins in the text, in characters."""
    end: int
    noted_at: float = 0.0
    """Unix time in seconds; 0 before it is recorded."""
    inherited: bool = False
    """Whether an earlier run of the thread has noted it."""


def prepare_finding(finding: NotedFinding) -> NotedFinding:
    """Return a finding as it is recorded: noted now, its statement in one line.

    Raises `ValueError` for a statement or quote beyond the limits of the record, or an empty one.
    """
    statement = " ".join(fix_surrogates(finding.statement).split())
    if not 0 < len(statement) <= STATEMENT_CHARACTERS or not 0 < len(finding.quote) <= QUOTE_CHARACTERS:
        raise ValueError("the statement or the quote of a finding is empty or too long")
    return replace(finding, statement=statement, noted_at=time.time(), inherited=False)
