"""A report as a document of title, contents, text, sources and footnotes, and its HTML."""

from maniple.report_document.html_writer import BodyView, write_body
from maniple.report_document.layout import ContentsEntry, ReportDocument, lay_out

__all__ = ["BodyView", "ContentsEntry", "ReportDocument", "lay_out", "write_body"]
