"""What the Office files of a report have in common: properties, pictures and addresses."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from maniple.report_document.code_colors import CodeKind

if TYPE_CHECKING:
    from maniple.report_files.document import ReportFile
    from maniple.run_files.pictures import Figure

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif"})
_HOST = re.compile(r"(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?")
_MAX_LINK_LENGTH = 2_000
CODE_COLORS: dict[CodeKind, str] = {
    "comment": "59636E",
    "keyword": "A0111F",
    "string": "0A3069",
    "name": "622CBC",
    "number": "023B95",
}
"""The colours of the parts of code, as those of the HTML file."""
_MAX_TITLE = 255
"""Office's limit for a property, in characters."""
_EARLIEST = 315_532_800
"""1980 in Unix seconds, the earliest date that a ZIP file can hold."""


def describe_file(core: Any, report: ReportFile) -> None:
    """Set the core properties of an Office file."""
    ended_at = datetime.fromtimestamp(max(report.ended_at or 0, _EARLIEST), UTC).replace(tzinfo=None)
    core.title, core.language = report.document.title[:_MAX_TITLE], report.document.language
    core.author = core.last_modified_by = "maniple"
    core.comments, core.revision = "", 1
    core.created = core.modified = ended_at


def office_picture(figure: Figure) -> bytes:
    """Return a picture in a format that Office shows. Raises various errors of a damaged one."""
    if figure.info.media_type in _PICTURES:
        return figure.content
    from PIL import Image

    converted = io.BytesIO()
    with Image.open(io.BytesIO(figure.content)) as picture:
        picture.save(converted, "PNG")
    return converted.getvalue()


def is_office_address(href: str) -> bool:
    """Whether Office accepts an address. It rejects a whole file for one address that it does not accept."""
    try:
        parts = urlsplit(href)
        is_place = parts.scheme == "mailto" or _HOST.fullmatch(parts.netloc) is not None
        return len(href) <= _MAX_LINK_LENGTH and is_place
    except ValueError:
        return False
