"""The media types of the file formats of reports."""

from maniple.media_types import REPORT_SUFFIXES, ReportFormat, media_type_of

MEDIA_TYPES: dict[ReportFormat, str] = {
    format_: media_type_of(f"report{suffix}") for suffix, format_ in reversed(REPORT_SUFFIXES.items())
}
"""The media type of each format, by the first suffix that names it."""
