"""Word documents, by mammoth."""

import io
import zipfile
from xml.parsers.expat import ExpatError

from maniple.reading.html import read_fragment
from maniple.reading.result import Reading, Unreadable

_MAX_BYTES = 50_000_000


def read_docx(body: bytes, url: str) -> Reading:
    """Headings, lists, tables and links; pictures are left out.

    Raises:
        Unreadable: it is damaged, or much larger unpacked than packed.
    """
    import mammoth

    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            # No more is read of a member than it says that it has.
            if sum(member.file_size for member in archive.infolist()) > _MAX_BYTES:
                raise Unreadable(f"is a Word document of more than {_MAX_BYTES:,} bytes when it is unpacked")
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
        raise Unreadable("is a damaged Word document") from error
    return read_fragment(html, "", url)
