"""The reader of Word documents."""

import io
import zipfile
from xml.parsers.expat import ExpatError

from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.containers import open_archive
from maniple.reading.html import read_fragment


def read_docx(body: bytes, url: str) -> MarkdownDocument:
    """Return a Word document as Markdown with headings, lists, tables and links, without pictures.

    Raises:
        UnreadableDocument: it is damaged, or too large when unpacked.
    """
    import mammoth

    try:
        open_archive(body, "a Word document").close()
        pictures = mammoth.images.img_element(lambda _: {})
        html = mammoth.convert_to_html(
            io.BytesIO(body), convert_image=pictures, external_file_access=False
        ).value
    except (
        zipfile.BadZipFile,
        ExpatError,
        KeyError,
        ValueError,
        AttributeError,
        RecursionError,
        OSError,
    ) as error:
        raise UnreadableDocument("is a damaged Word document") from error
    return read_fragment(html, "", url)
