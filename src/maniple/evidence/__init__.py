"""The sources that a run has read, with the numbers by which its report cites them, and their texts."""

from maniple.evidence.addresses import comparable_url
from maniple.evidence.extract import Extract, extract
from maniple.evidence.memory import MemoryEvidence
from maniple.evidence.noted_findings import NotedFinding
from maniple.evidence.record import Evidence, PageAttempt, Source, SourceKind, UnreadPage, find_newest_text
from maniple.evidence.redacted import RedactedEvidence

__all__ = [
    "Evidence",
    "Extract",
    "MemoryEvidence",
    "NotedFinding",
    "PageAttempt",
    "RedactedEvidence",
    "Source",
    "SourceKind",
    "UnreadPage",
    "comparable_url",
    "extract",
    "find_newest_text",
]
