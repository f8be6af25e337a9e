"""A report as a document of title, contents, text, sources and footnotes, and its HTML."""

from maniple.report_document.html_writer import BodyView, render_report, write_body
from maniple.report_document.layout import ContentsEntry, ReportDocument, lay_out

__all__ = ["BodyView", "ContentsEntry", "ReportDocument", "lay_out", "render_report", "write_body"]
