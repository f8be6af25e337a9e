"""`read_file` on documents: what the user uploads is read as the same document of the web is."""

import io
import zipfile
from pathlib import Path

import pytest
from langchain_core.tools import BaseTool

from maniple.errors import FileError
from maniple.workspace import Workspaces
from tests.reading.files import docx, paragraph, pdf
from tests.tools.built import build_editor, build_file_search, build_file_tools

pytestmark = pytest.mark.anyio

PAGE = (
    "<!doctype html><html><head><title>Tolls</title><script>x()</script></head><body><h1>Tolls</h1><p>"
    + "A lorry pays nine crowns. " * 10
    + "</p></body></html>"
)
FEED = (
    "<?xml version='1.0'?><rss version='2.0'><channel><title>News</title><item><title>Bridge opens</title>"
    "<link>https://e.test/1</link><description>At noon.</description></item></channel></rss>"
)


def archive(*parts: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as target:
        for part in parts:
            target.writestr(part, "<x/>")
    return content.getvalue()


class Desk:
    """A workspace with uploads and the tools on it."""

    def __init__(self, folder: Path) -> None:
        self.workspaces = Workspaces(folder)
        self.workspaces.open("local")
        self.tools: dict[str, BaseTool] = {tool.name: tool for tool in build_file_tools(self.workspaces)}

    def upload(self, name: str, content: bytes) -> None:
        self.workspaces.uploads("local").add([(name, io.BytesIO(content))])

    def write(self, name: str, content: bytes) -> None:
        self.workspaces.open("local").write(name, content)

    async def read(self, path: str, **arguments: object) -> str:
        return await self.tools["read_file"].ainvoke({"path": path, **arguments})


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("letter.pdf", pdf("Dear Anna, the rent is 940 euros."), "the rent is 940 euros"),
        ("letter.PDF", b"\n" + pdf("The rent is 940."), "The rent is 940"),
        ("no-ending", pdf("The rent is 940."), "The rent is 940"),
        ("contract.docx", docx(paragraph("The rent is 940.")), "The rent is 940"),
        ("tolls.html", PAGE.encode(), "A lorry pays nine crowns."),
        ("news.xml", FEED.encode(), "Bridge opens"),
        ("bom.html", PAGE.encode("utf-8-sig"), "A lorry pays nine crowns."),
        ("saved.htm", PAGE.encode("utf-16"), "A lorry pays nine crowns."),
        ("x.xhtml", f"<?xml version='1.0'?>\n{PAGE}".encode(), "A lorry pays nine crowns."),
        ("bom.rss", FEED.encode("utf-8-sig"), "Bridge opens"),
        ("files.zip", archive("a.txt"), "a.txt"),
        ("text.txt", ("Мост длиной два километра. " * 9).encode("koi8-r"), "Мост длиной"),
    ],
)
async def test_an_uploaded_document_is_read_as_its_text(
    desk: Desk, name: str, content: bytes, text: str
) -> None:
    desk.upload(name, content)
    shown = await desk.read(name)
    assert text in shown
    assert name in shown.splitlines()[0]
    assert "%PDF" not in shown
    assert "<p>" not in shown
    assert "script" not in shown


async def test_a_long_document_is_read_on_by_lines(desk: Desk) -> None:
    desk.upload("long.pdf", pdf(*(f"This is page number {page}." for page in range(1, 40))))
    first = await desk.read("long.pdf", end_line=4)
    rest = await desk.read("long.pdf", start_line=5)
    assert "page number 1." in first
    assert "page number 39." not in first
    assert "page number 39." in rest
    with pytest.raises(FileError):
        await desk.read("long.pdf", start_line=9_999)


async def test_a_page_that_the_team_writes_is_shown_as_its_markup(desk: Desk) -> None:
    desk.write("index.html", PAGE.encode())
    assert (await desk.read("index.html")).startswith("<!doctype html>")
    desk.upload("tolls.html", PAGE.encode())
    assert (await desk.read("tolls.html", source=True)).startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("secret.pdf", pdf("x", password="key"), "password"),
        ("broken.pdf", b"%PDF-1.7 cut off", "damaged PDF"),
        ("report.xlsx", archive("xl/workbook.xml"), "damaged workbook"),
        ("slides.pptx", archive("ppt/presentation.xml"), "damaged presentation"),
        ("files.docx", b"PK\x03\x04 cut off", "damaged"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "old format"),
        (
            "locked.xlsx",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le"),
            "password",
        ),
        ("chart.png", b"\x89PNG\r\n\x1a\n" + bytes(100), "picture"),
        ("chart.webp", b"RIFF\x9a\x01\0\0WEBPVP8 " + bytes(100), "picture"),
        ("photo.heic", b"\0\0\0\x18ftypheic" + bytes(100), "picture"),
        ("scan.tiff", b"II*\0\x08\0\0\0" + bytes(100), "picture"),
        ("clip.mp4", b"\0\0\0\x18ftypisom" + bytes(100), "video"),
        ("data.sqlite", b"SQLite format 3\0" + bytes(100), "SQLite"),
    ],
)
async def test_what_cannot_be_read_is_named(desk: Desk, name: str, content: bytes, named: str) -> None:
    desk.upload(name, content)
    with pytest.raises(FileError, match=named):
        await desk.read(name)


@pytest.mark.parametrize("text", ["MZ is how it begins", "Rar! he cried", "ID3 is a tag", "RIFF-raff"])
async def test_a_text_that_begins_like_another_format_is_text(desk: Desk, text: str) -> None:
    desk.upload("note.txt", text.encode())
    assert await desk.read("note.txt") == text


async def test_no_tool_takes_a_pdf_for_text(desk: Desk) -> None:
    ascii_pdf = b"%PDF-1.3\n1 0 obj\n<< /Title (rent) >>\nendobj\n"
    desk.upload("ascii.pdf", ascii_pdf)
    found = await build_file_search(desk.workspaces).ainvoke({"pattern": "endobj"})
    assert "endobj\n" not in found
    assert "1 0 obj" not in found
    view = build_editor(desk.workspaces)
    try:
        shown = await view.ainvoke({"command": "view", "path": "/workspace/ascii.pdf"})
    except FileError as error:
        shown = str(error)
    assert "1 0 obj" not in shown
