"""Reports as PDF, printed by a real Chromium and read back by pypdf."""

import asyncio
import io
import subprocess
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pypdf
import pytest
from PIL import Image

from maniple.browser import Browser, open_browser
from maniple.browser.drivers.chromium import Chromium
from maniple.browser.drivers.playwright import PdfPrinter
from maniple.browser.launch import find_executable
from maniple.config import BrowserSettings, FetchSettings
from maniple.egress import AddressGuard
from maniple.errors import BrowserError
from maniple.evidence.record import Source
from maniple.reading.pictures import identify_picture
from maniple.report_files import PrintFailed, Report, ReportRenderer
from maniple.run_files.pictures import Figure
from tests.crawler.web import open_canary
from tests.report_files.samples import EVIL, READ_AT, TEA, drawn_figure, page, report

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """As for all tests, but for a whole module: its tests share a browser."""
    return "asyncio"


@pytest.fixture(scope="module")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    # Whatever keeps it from loopback is not the guard of addresses.
    async with open_browser(BrowserSettings(allow_private=("127.0.0.0/8", "::1/128"))) as browser:
        yield browser


async def printed(browser: Browser, markdown: str) -> pypdf.PdfReader:
    return pypdf.PdfReader(io.BytesIO(await ReportRenderer(browser).render(report(markdown), "pdf")))


def links_of(pdf: pypdf.PdfReader) -> list[str]:
    """Where the links of a PDF lead to: addresses, and names of places within it."""
    notes = [note.get_object() for page in pdf.pages for note in page.get("/Annots", [])]
    return [str(note["/A"]["/URI"] if "/A" in note else note["/Dest"]).lstrip("/") for note in notes]


async def test_a_report_is_printed_on_a4_with_its_text_outline_and_links(browser: Browser):
    pdf = await printed(browser, TEA)
    text = "\n".join(page.extract_text() for page in pdf.pages).replace("\N{NO-BREAK SPACE}", " ")
    assert "Tea is the most consumed drink after water [1]." in text
    assert "[unverified]" in text
    assert f"1 / {len(pdf.pages)}" in text
    assert pdf.metadata is not None
    assert pdf.metadata.title == "Tea in 2025"
    top, below = pdf.outline
    assert getattr(top, "title", "") == "Tea in 2025"
    assert [one.title for one in below if not isinstance(one, list)][1:] == ["Prices", "Outlook", "Sources"]
    links = links_of(pdf)
    assert {"section-1", "source-1", "source-3"} <= set(links)
    assert "https://auction.example/d" in links
    box = pdf.pages[0].mediabox
    assert (round(box.width), round(box.height)) == (595, 842)
    root = pdf.root_object
    assert root["/MarkInfo"]["/Marked"]
    assert root["/Lang"] == "en"


LONG_WORDS = ("Internationalisierungsstrategie", "Rechtsschutzversicherungen", "Wirtschaftlichkeit", "Ton")
WIDE_TABLES = {
    "numbers of 16 columns": [
        "Luxembourg",
        "672,050",
        *["1,234,567.89"] * 12,
        "https://a.example/b/c.html",
        "LAST",
    ],
    "long words of 14 columns": [f"{LONG_WORDS[n % 4]}{n}" for n in range(14)],
    "long words of 40 columns": [f"{LONG_WORDS[n % 3]}{n}" for n in range(40)],
    "100 columns": [f"c{n}" for n in range(100)],
    "a digest in each cell": [f"{n}{'f00d' * 16}" for n in range(6)],
    "an address in each cell": [f"https://a.example/{n}/" + "path/" * 12 for n in range(8)],
}


@pytest.mark.parametrize("rows", [1, 30])
@pytest.mark.parametrize("name", WIDE_TABLES)
async def test_every_cell_of_a_table_that_is_wider_than_the_page_is_on_a_page(
    browser: Browser, name: str, rows: int
):
    cells = WIDE_TABLES[name]
    head = [f"Head{n}" for n in range(len(cells))]
    lines = ["|".join(["", *one, ""]) for one in (head, ["-"] * len(cells), *[cells] * rows)]
    pdf = await printed(browser, "# A wide table\n\n" + "\n".join(lines) + "\n\nThe end.\n")
    text, joined = "", ""
    for one in pdf.pages:
        shown = within(one)
        text += shown
        joined += "".join(shown.split())
    assert "Theend." in joined
    for cell in {*head, *cells}:
        assert joined.count(cell) >= (1 if cell in head else rows)
        if len(cell) <= 34:
            assert cell in text, "a line ends within it"


def within(page: pypdf.PageObject) -> str:
    """Return the text of a page; letters outside of the page or smaller than 7 points fail the test."""
    width = float(page.mediabox.width)

    def check(text: str, matrix: list[float], of_text: list[float], _: Any, size: float) -> None:
        if text.strip():
            assert 0 < matrix[0] * of_text[4] + matrix[4] < width - 20
            assert abs(size * of_text[0] * matrix[0]) > 6.9

    return page.extract_text(visitor_text=check)


async def test_a_long_table_that_fits_on_a_turned_page_gets_one_and_a_short_one_does_not(browser: Browser):
    head = "|" + "Month|" * 14 + "\n|" + "-|" * 14 + "\n"
    for rows, turned in ((30, True), (3, False)):
        pdf = await printed(
            browser, "Before.\n\n" + head + ("|" + "1,234,567|" * 14 + "\n") * rows + "\nAfter.\n"
        )
        assert any(one.mediabox.width > one.mediabox.height for one in pdf.pages) is turned
        assert pdf.pages[0].mediabox.width < pdf.pages[0].mediabox.height


async def test_a_hostile_report_is_printed_as_text(browser: Browser):
    pdf = await printed(browser, EVIL)
    assert "<script>alert(1)</script>" in "".join(page.extract_text() for page in pdf.pages)
    assert {one.partition(":")[0] for one in links_of(pdf)} == {"https"}
    assert "/JavaScript" not in pdf.root_object.get("/Names", {})


async def test_what_is_printed_runs_nothing_and_loads_nothing(browser: Browser):
    async with open_canary() as canary:
        url = f"http://127.0.0.1:{canary.port}/"
        pdf = pypdf.PdfReader(io.BytesIO(await browser.print(loading(url))))
        assert "still" in pdf.pages[0].extract_text()
        assert canary.hits == []
        # It could be reached.
        assert "sings" in (await browser.read(url, thread="a")).text


def loading(url: str) -> str:
    """A page that would load and run what it can, if it were let."""
    return (
        f'<img src="{url}a"><iframe src="{url}b"></iframe><link rel=stylesheet href="{url}c">'
        f"<style>@import '{url}d'; p {{ background: url({url}e) }}</style><p id=p>still</p>"
        f"<script>p.innerText = 'ran'; fetch('{url}f')</script>"
    )


class Told:
    """`Contexts` of a Chromium that tell when one was opened."""

    def __init__(self, chromium: Chromium) -> None:
        self._chromium = chromium
        self.opened = asyncio.Event()

    async def new_context(self, **options: Any) -> Any:
        context = await self._chromium.new_context(**options)
        self.opened.set()
        return context

    async def aclose(self) -> None:
        await self._chromium.aclose()


async def test_a_print_that_is_cancelled_leaves_nothing_behind():
    executable = find_executable(BrowserSettings())
    async with aclosing(
        Told(Chromium(BrowserSettings(), executable, AddressGuard(FetchSettings()).resolve))
    ) as told:
        mine = await told.new_context()
        told.opened.clear()
        printer = PdfPrinter(told, 20)
        begun = asyncio.create_task(printer.print(page(TEA)))
        await told.opened.wait()
        begun.cancel()
        with pytest.raises(asyncio.CancelledError):
            await begun
        await printer.aclose()
        assert mine.browser.contexts == [mine]


async def test_a_browser_that_takes_too_long_is_reported_as_such():
    async with open_browser(BrowserSettings(timeout_seconds=0.001)) as browser:
        with pytest.raises(PrintFailed, match=r"longer than 0\.001 seconds"):
            await ReportRenderer(browser).render(report(TEA), "pdf")


async def test_waiting_for_other_prints_is_not_reported_as_printing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("maniple.browser.drivers.playwright._MAX_PARALLEL_PRINTS", 0)
    async with open_browser(BrowserSettings(timeout_seconds=0.01)) as browser:
        with pytest.raises(PrintFailed, match="Others are being printed"):
            await ReportRenderer(browser).render(report(TEA), "pdf")


async def test_the_browser_of_a_sandbox_cannot_print():
    settings = BrowserSettings(backend="sandbox", sandbox_url="http://127.0.0.1:1")
    async with open_browser(settings) as browser:
        with pytest.raises(BrowserError, match="cannot print"):
            await browser.print("<p>")


async def test_a_figure_is_printed_and_a_missing_one_is_named(browser: Browser):
    content = io.BytesIO()
    Image.new("RGB", (640, 400), "red").save(content, "PNG")
    info = identify_picture(content.getvalue())
    assert info is not None
    figures = {"sales.png": Figure("sales.png", content.getvalue(), info)}
    text = "# Sales\n\nSales grew.\n\n![Sales by year](sales.png)\n\n![Costs](costs.png)\n\nThe end."
    made = await ReportRenderer(browser).render(Report("Sales", text, figures=figures), "pdf")
    pdf = pypdf.PdfReader(io.BytesIO(made))
    (picture,) = [one.image for one in pdf.pages[0].images]
    assert picture is not None
    assert picture.size == (640, 400)
    shown = pdf.pages[0].extract_text()
    assert "Sales by year" in shown
    assert "Costs (figure missing: costs.png)" in shown


def drawn_sizes(page: Any) -> list[tuple[float, float]]:
    """Return width and height of the pictures of a PDF page, in millimetres."""
    found: list[tuple[float, float]] = []

    def visit(operator: bytes, operands: Any, matrix: list[float], _: Any) -> None:
        if operator == b"Do" and page["/Resources"]["/XObject"][operands[0]]["/Subtype"] == "/Image":
            found.append((abs(matrix[0]) / 72 * 25.4, abs(matrix[3]) / 72 * 25.4))

    page.extract_text(visitor_operand_before=visit)
    return found


@pytest.mark.parametrize("line", ["", "\n*Figure 1*"])
async def test_a_tall_and_a_wide_figure_keep_their_shape_and_fit_beside_text(browser: Browser, line: str):
    figures = {"tall.png": drawn_figure(600, 1600), "wide.png": drawn_figure(2400, 500)}
    text = f"# Two\n\nBefore.\n\n![Tall](tall.png){line}\n\n![Wide](wide.png){line}\n\nThe end."
    made = await ReportRenderer(browser).render(Report("Two", text, figures=figures), "pdf")
    pdf = pypdf.PdfReader(io.BytesIO(made))
    assert len(pdf.pages) == 1
    tall, wide = drawn_sizes(pdf.pages[0])
    assert tall[1] / tall[0] == pytest.approx(1600 / 600, rel=0.02) and 100 < tall[1] < 130
    assert wide[0] / wide[1] == pytest.approx(2400 / 500, rel=0.02) and 160 < wide[0] < 175


def has_font(language: str) -> bool:
    command = ("fc-list", f":lang={language}")
    return bool(subprocess.run(command, capture_output=True, check=False).stdout.strip())


@pytest.mark.parametrize(
    ("language", "text"),
    [("zh", "茶是饮品"), ("hi", "चाय एक पेय है"), ("und-zsye", "\N{HOT BEVERAGE}\N{TEACUP WITHOUT HANDLE}")],
)
async def test_a_text_is_printed_with_the_font_of_its_language(browser: Browser, language: str, text: str):
    if not has_font(language):
        pytest.skip(f"no font for {language} is installed; setup.sh installs one")
    pdf = await printed(browser, f"Tea: {text}.")
    shown = "".join(page.extract_text() for page in pdf.pages)
    assert "".join(text.split()) in "".join(shown.split())


async def test_no_page_holds_only_one_or_two_of_several_sources(browser: Browser):
    sources = [
        Source(n, f"https://tea.example/{n}", f"Page {n}", "page", READ_AT, "0" * 64) for n in range(1, 6)
    ]
    text = "Tea [1][2][3][4][5].\n\n"
    counts = set[int]()
    for lines in range(13, 23):
        made = await ReportRenderer(browser).render(
            Report("Tea", text + "Filler.\n\n" * lines, sources), "pdf"
        )
        last = pypdf.PdfReader(io.BytesIO(made)).pages[-1].extract_text()
        counts.add(last.count("https://tea.example/"))
    assert counts >= {3, 5}
    assert not counts & {1, 2}
