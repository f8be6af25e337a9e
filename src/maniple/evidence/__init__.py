"""What a run has read: its sources, numbered as the report cites them, and the texts found there."""

from maniple.evidence.addresses import comparable_url
from maniple.evidence.extract import Extract, extract
from maniple.evidence.memory import MemoryEvidence
from maniple.evidence.record import Evidence, Source, SourceKind, find_newest_text
from maniple.evidence.redacted import RedactedEvidence

__all__ = [
    "Evidence",
    "Extract",
    "MemoryEvidence",
    "RedactedEvidence",
    "Source",
    "SourceKind",
    "comparable_url",
    "extract",
    "find_newest_text",
]
