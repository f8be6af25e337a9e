"""What a run has read: its sources, numbered as the report cites them, and the texts found there."""

from maniple.evidence.addresses import comparable_url, same_url
from maniple.evidence.record import Evidence, Source, SourceKind

__all__ = ["Evidence", "Source", "SourceKind", "comparable_url", "same_url"]
