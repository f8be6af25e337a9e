"""The media types of files by their names, the same on every machine: systems' own tables differ.

Also the formats of saved reports, by the suffixes of their names.
"""

import mimetypes
from functools import cache
from pathlib import PurePosixPath
from typing import Literal

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
UNKNOWN = "application/octet-stream"

# What Python's table does not know, or not in every version of Python.
_MORE = {
    ".bz2": "application/x-bzip2",
    ".docx": DOCX,
    ".gz": "application/gzip",
    ".ipynb": "application/x-ipynb+json",
    ".js": "text/javascript",
    ".jsonl": "application/jsonl",
    ".log": "text/plain",
    ".md": "text/markdown",
    ".odp": "application/vnd.oasis.opendocument.presentation",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".parquet": "application/vnd.apache.parquet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".rst": "text/x-rst",
    ".toml": "application/toml",
    ".webp": "image/webp",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".xz": "application/x-xz",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".zst": "application/zstd",
}


def media_type_of(name: str) -> str:
    """Return what a file called `name` is, by its last suffix; `UNKNOWN` for one without a known one."""
    suffix = PurePosixPath(name).suffix.lower()
    return _MORE.get(suffix) or _known().get(suffix, UNKNOWN)


@cache
def _known() -> dict[str, str]:
    # An instance of its own begins with Python's table, and not with the system's.
    return mimetypes.MimeTypes().types_map[True]


ReportFormat = Literal["markdown", "html", "pdf", "docx", "pptx", "zip"]
REPORT_SUFFIXES: dict[str, ReportFormat] = {
    ".md": "markdown",
    ".txt": "markdown",
    ".html": "html",
    ".pdf": "pdf",
    ".docx": "docx",
    ".pptx": "pptx",
    ".zip": "zip",
}
"""The format of a report by the suffix of its file's name. A ZIP file holds the Markdown and its figures."""
