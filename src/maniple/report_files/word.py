"""A report as a Word document."""

import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from maniple.report_files.document import Document
from maniple.report_files.word_body import Body
from maniple.report_files.word_styles import prepare

if TYPE_CHECKING:
    from docx.opc.coreprops import CoreProperties

_MOST_TITLE = 255
"""Characters that a property may have."""
_EARLIEST = 315_532_800
"""1980, in Unix seconds: nothing in a ZIP file is older."""


def as_docx(document: Document) -> bytes:
    """Return the document as an Office Open XML file. Blocks: some seconds for the longest of reports."""
    from docx import Document as new_document

    word = new_document()
    prepare(word, document.language)
    _describe(word.core_properties, document)
    body = word.element.body
    page = body[-1]
    body.remove(page)
    body.extend(Body(word.part, document.figures).of(document))
    body.append(page)
    file = io.BytesIO()
    word.save(file)
    return file.getvalue()


def _describe(core: "CoreProperties", document: Document) -> None:
    ended_at = datetime.fromtimestamp(max(document.ended_at or 0, _EARLIEST), UTC).replace(tzinfo=None)
    core.title, core.language = document.title[:_MOST_TITLE], document.language
    core.author = core.last_modified_by = "maniple"
    core.comments, core.revision = "", 1
    core.created = core.modified = ended_at
