"""Diagrams of reports, drawn by a real Chromium."""

import io
import zipfile
from collections.abc import AsyncIterator

import pypdf
import pytest
from bs4 import BeautifulSoup

from maniple.browser import Browser, open_browser
from maniple.config import BrowserSettings
from maniple.reading.pictures import identify_picture
from maniple.report_files import Report, ReportRenderer, find_diagrams
from maniple.report_files.diagrams import MAX_DIAGRAMS, draw_diagrams

pytestmark = pytest.mark.anyio

CHART = "flowchart LR\n  A[Field] --> B[Factory]\n"
REPORT = f"# Tea\n\nText.\n\n```mermaid\n{CHART}```\n\n```mermaid\nno diagram at all\n```\n"
FORMS = ("html", "pdf", "docx", "pptx")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """As for all tests, but for a whole module: its tests share a browser."""
    return "asyncio"


@pytest.fixture(scope="module")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    async with open_browser(BrowserSettings()) as browser:
        yield browser


def pictures(content: bytes, folder: str) -> int:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return sum(name.startswith(f"{folder}/media/") for name in file.namelist())


async def test_a_diagram_is_a_picture_and_one_that_cannot_be_drawn_is_its_source(browser: Browser):
    files = {form: await ReportRenderer(browser).render(Report("Tea", REPORT), form) for form in FORMS}
    found = BeautifulSoup(files["html"], "lxml")
    (image,) = found.select("main img")
    assert str(image["src"]).startswith("data:image/png;base64,")
    assert 50 < int(str(image["width"])) < 700
    assert image["alt"] == "flowchart LR A[Field] --> B[Factory]", "the words of the picture"
    assert [one.text for one in found.select("pre")] == ["no diagram at all\n"]
    assert "could not be drawn" in found.select("main em")[0].text
    pdf = pypdf.PdfReader(io.BytesIO(files["pdf"]))
    assert sum(len(page.images) for page in pdf.pages) == 1
    assert "no diagram at all" in "".join(page.extract_text() for page in pdf.pages)
    assert (pictures(files["docx"], "word"), pictures(files["pptx"], "ppt")) == (1, 1)


async def test_a_picture_has_twice_the_pixels_of_its_size(browser: Browser):
    (figure,) = (await draw_diagrams(browser, REPORT)).values()
    drawn = identify_picture(figure.content)
    assert drawn is not None
    assert (drawn.width // 2, drawn.height // 2) == (figure.info.width, figure.info.height)


async def test_a_hostile_diagram_loads_and_runs_nothing(browser: Browser):
    evil = (
        'flowchart LR\n  A["<img src=https://evil.test/a.png onerror=document.body.replaceChildren()>"]\n'
        '  click A "javascript:alert(1)"\n'
    )
    drawn = await draw_diagrams(browser, f"```mermaid\n{evil}```\n\n```mermaid\n{CHART}```\n")
    assert CHART in drawn


async def test_without_a_browser_a_diagram_is_its_source_with_a_remark():
    html = await ReportRenderer(None).render(Report("Tea", REPORT), "html")
    found = BeautifulSoup(html, "lxml")
    assert [one.text for one in found.select("pre")] == [CHART, "no diagram at all\n"]
    assert len(found.select("main em")) == 2


def test_diagrams_that_are_too_long_too_costly_or_too_many_are_not_drawn():
    def fence(source: str) -> str:
        return f"```mermaid\n{source}\n```\n\n"

    few = find_diagrams(
        fence(CHART) + fence("gantt\n  excludes weekends") + fence("graph LR\n" + "A-->B;" * 90)
    )
    assert [one.strip() for one in few] == [CHART.strip()]
    many = "".join(fence(f"graph LR\n  A --> B{number}") for number in range(MAX_DIAGRAMS + 5))
    assert len(find_diagrams(many)) == MAX_DIAGRAMS
    assert find_diagrams("Text about mermaids.") == []
