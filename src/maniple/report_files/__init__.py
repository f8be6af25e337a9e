"""Reports as Markdown, HTML, PDF, Word and ZIP files."""

from maniple.report_files.document import Report
from maniple.report_files.file_formats import MEDIA_TYPES
from maniple.report_files.html_page import policy
from maniple.report_files.renderer import PrintBrowserMissing, PrintFailed, ReportRenderer, write_with_figures
from maniple.report_files.stored_reports import find_newest_report, load_report, read_answer

__all__ = [
    "MEDIA_TYPES",
    "PrintBrowserMissing",
    "PrintFailed",
    "Report",
    "ReportRenderer",
    "find_newest_report",
    "load_report",
    "policy",
    "read_answer",
    "write_with_figures",
]
