"""Reports as files: Markdown, HTML, PDF and Word documents."""

from maniple.report_files.document import Report
from maniple.report_files.forms import MEDIA_TYPES, SUFFIXES, Form
from maniple.report_files.press import NoBrowser, NotPrinted, ReportRenderer
from maniple.report_files.web import policy

__all__ = ["MEDIA_TYPES", "SUFFIXES", "Form", "NoBrowser", "NotPrinted", "Report", "ReportRenderer", "policy"]
