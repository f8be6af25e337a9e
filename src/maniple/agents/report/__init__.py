"""The final report: checked on what was read, mended once, and ended with its sources."""

from maniple.agents.report.draft import Draft
from maniple.agents.report.middleware import CheckedReport
from maniple.agents.report.model import CheckedModel
from maniple.agents.report.uncited import UncitedDraft
from maniple.agents.report.unmended import checked, checked_addition, unmended

__all__ = [
    "CheckedModel",
    "CheckedReport",
    "Draft",
    "UncitedDraft",
    "checked",
    "checked_addition",
    "unmended",
]
