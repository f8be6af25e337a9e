"""The file formats of reports."""

from typing import Literal

from maniple.media_types import media_type_of

ReportFormat = Literal["markdown", "html", "pdf", "docx", "zip"]
SUFFIXES: dict[str, ReportFormat] = {
    ".md": "markdown",
    ".html": "html",
    ".pdf": "pdf",
    ".docx": "docx",
    ".zip": "zip",
}
"""The format by the suffix of a file's name. A ZIP file holds the Markdown and its figures."""
MEDIA_TYPES: dict[ReportFormat, str] = {
    format_: media_type_of(f"report{suffix}") for suffix, format_ in SUFFIXES.items()
}
