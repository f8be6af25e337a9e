"""Reports as Markdown, HTML, PDF, Word, PowerPoint and ZIP files."""

from maniple.report_files.bundle import Bundle, FindEntry, write_bundle, write_with_figures
from maniple.report_files.diagrams import find_diagrams
from maniple.report_files.document import Report
from maniple.report_files.file_formats import MEDIA_TYPES
from maniple.report_files.html_page import policy
from maniple.report_files.renderer import PrintBrowserMissing, PrintFailed, ReportRenderer
from maniple.report_files.stored_reports import find_newest_report, load_report, read_answer, read_claims

__all__ = [
    "MEDIA_TYPES",
    "Bundle",
    "FindEntry",
    "PrintBrowserMissing",
    "PrintFailed",
    "Report",
    "ReportRenderer",
    "find_diagrams",
    "find_newest_report",
    "load_report",
    "policy",
    "read_answer",
    "read_claims",
    "write_bundle",
    "write_with_figures",
]
