"""Documents that are made to harm their reader: each ends with a sentence, and the next one is read."""

import io
import re
import zipfile
from collections.abc import AsyncIterator, Callable

import pytest

from maniple.reading import UnreadableDocument
from maniple.reading.fork_server import ForkServer
from maniple.reading.formats import identify_binary, identify_marked_text
from tests.reading.files import archive, docx, workbook

pytestmark = pytest.mark.anyio
_ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 10}">' for n in range(12))
_LAUGHS = f"<!DOCTYPE w [{_ENTITIES}]><w>&e11;</w>"
_OUTSIDE = b'<!DOCTYPE w [<!ENTITY x SYSTEM "file:///etc/passwd">]><w>&x;</w>'
_FAR_CELL = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
_LOOP = b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 99999999>>"
_SPAN = "<w:tc><w:tcPr><w:gridSpan w:val='1000000'/></w:tcPr><w:p/></w:tc>"


def sheet(rows: str) -> bytes:
    """A workbook with these rows (SpreadsheetML)."""
    with zipfile.ZipFile(io.BytesIO(workbook({"S": [["x"]]}))) as source:
        parts: dict[str, bytes | str] = {name: source.read(name) for name in source.namelist()}
    name, data = "xl/worksheets/sheet1.xml", f"<sheetData>{rows}</sheetData>"
    parts[name] = re.sub("<sheetData>.*</sheetData>", data, source_text(parts[name]), flags=re.S)
    return archive(parts)


def source_text(part: bytes | str) -> str:
    return part.decode() if isinstance(part, bytes) else part


def message_in_message() -> bytes:
    parts = (f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(3_000))
    return f"From: a\nMIME-Version: 1.0\nMessage-ID: x\n{''.join(parts)}".encode()


HARMFUL: dict[str, Callable[[], bytes]] = {
    "cell far away": lambda: sheet(_FAR_CELL),
    "file of the machine": lambda: docx("", {"word/document.xml": _OUTSIDE}),
    "entities in a workbook": lambda: archive({"xl/workbook.xml": _LAUGHS}),
    "entities in a presentation": lambda: archive(
        {"ppt/presentation.xml": "", "[Content_Types].xml": _LAUGHS}
    ),
    "entities in a book": lambda: archive({"META-INF/container.xml": _LAUGHS}),
    "entities in a text": lambda: archive({"content.xml": _LAUGHS}),
    "many files": lambda: archive({str(n): "" for n in range(20_001)}),
    "pages in a circle": lambda: (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj" + _LOOP + b"endobj"
    ),
    "message in message": message_in_message,
    "no compound file": lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(range(256)) * 400,
}
LARGE: dict[str, Callable[[], bytes]] = {
    "rows": lambda: sheet("".join(f'<row r="{n}"><c r="A{n}"><v>1</v></c></row>' for n in range(1, 900_000))),
    "sheets": lambda: workbook({f"S{n}": [["x"]] for n in range(10_000)}),
    "spans": lambda: docx(f"<w:tbl>{f'<w:tr>{_SPAN * 50}</w:tr>' * 50}</w:tbl>"),
    "braces": lambda: b"{\\rtf1" + b"{" * 300_000,
    "letters": lambda: b"{\\rtf1 " + b"\\u1234? x " * 1_000_000,
}


@pytest.fixture
async def reader() -> AsyncIterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


async def read(reader: ForkServer, body: bytes) -> str:
    key = identify_binary(body) or identify_marked_text(body[:2_000])
    return (await reader.read(key, body, "file", None)).markdown


async def test_a_harmful_document_ends_with_a_sentence_and_the_next_is_read(reader: ForkServer) -> None:
    for name, make in HARMFUL.items():
        with pytest.raises(UnreadableDocument):
            text = await read(reader, make())
            assert name == text, "it was read"
    assert await read(reader, docx("<w:p><w:r><w:t>Text</w:t></w:r></w:p>")) == "Text"


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
async def test_a_large_document_is_read_in_part_or_ends_with_a_sentence(
    reader: ForkServer, name: str
) -> None:
    try:
        assert len(await read(reader, LARGE[name]())) <= 401_000
    except UnreadableDocument as error:
        assert str(error)
