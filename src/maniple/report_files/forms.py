"""The forms that a report can have as a file."""

from typing import Literal

from maniple.media_types import media_type_of

Form = Literal["markdown", "html", "pdf", "docx", "zip"]
SUFFIXES: dict[str, Form] = {
    ".md": "markdown",
    ".html": "html",
    ".pdf": "pdf",
    ".docx": "docx",
    ".zip": "zip",
}
"""By the end of a file's name; a ZIP file holds the Markdown and its figures."""
MEDIA_TYPES: dict[Form, str] = {form: media_type_of(f"report{suffix}") for suffix, form in SUFFIXES.items()}
