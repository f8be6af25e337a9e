"""A run as a file: saved by the page, opened from disk, played without any server."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.page.test_everybody import _CUT, _FAULTS, AXE
from tests.page.test_page import HOSTILE, ask, standing
from tests.page.views import settle

_SEPARATORS = "before\u2028between\u2029after"
_DIAGRAM = "```mermaid\nflowchart LR\n  A --> B\n```\n"
_PLOT = """
import base64
png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
open("figure.png", "wb").write(base64.b64decode(png))
"""
PLOTTING = {
    **SIMPLE,
    "coder": [call("python_repl_tool", code=_PLOT), reply("Drawn.")],
    "reporter": [reply("# Report\n\nIt is **4**, see the figure.")],
}


@dataclass
class Opened:
    """A file that was opened from disk, in a browser that reaches nothing."""

    page: Page
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def moment(self) -> Locator:
        return self.page.get_by_role("slider", name="Position")


Opener = Callable[[Path], Opened]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opener]:
    """Opens files; what one asks for beyond itself, or complains about, fails the test."""
    tabs: list[Opened] = []

    def open_file(path: Path) -> Opened:
        context = browser.new_context(offline=True, locale="en-GB")
        tab = Opened(context.new_page())
        tabs.append(tab)
        tab.page.on("request", lambda request: tab.asked.append(request.url))
        tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.page.on("console", lambda said: tab.complaints.append(said.text))
        tab.page.goto(path.as_uri())
        return tab

    yield open_file
    for tab in tabs:
        tab.page.context.close()
        beyond = [url for url in tab.asked if not url.startswith(("file:", "data:", "blob:"))]
        assert (beyond, tab.complaints) == ([], [])


def shared(page: Page, folder: Path) -> Path:
    """Share the newest run by the page's button; return the file."""
    with page.expect_download() as saving:
        page.get_by_role("button", name="Share as a file").last.click()
    path = folder / saving.value.suggested_filename
    saving.value.save_as(path)
    return path


def test_a_shared_run_plays_without_a_server(page: Page, model: OpenAIServer, opened: Opener, tmp_path: Path):
    model.reset(PLOTTING)
    ask(page, "Draw 1+3 for me")
    standing(page, "Done")
    file = shared(page, tmp_path)
    assert file.name == "Draw 1+3 for me.html"
    replay = opened(file)
    tab = replay.page
    expect(tab).to_have_title("Draw 1+3 for me")
    standing(tab, "Done")
    expect(tab.locator(".run > .answer")).to_contain_text("It is 4")
    picture = tab.get_by_role("img", name="figure.png")
    expect(picture).to_be_visible()
    assert picture.evaluate("one => one.decode().then(() => one.naturalWidth)") == 1
    tab.get_by_role("button", name="Read the report").click()
    report = tab.get_by_role("dialog")
    expect(report.locator(".markdown")).to_contain_text("It is 4")
    tab.keyboard.press("Escape")
    expect(report).to_have_count(0)
    expect(tab.get_by_role("button", name="Ask again")).to_have_count(0)
    expect(tab.get_by_role("button", name="Share as a file")).to_have_count(0)

    replay.moment.press("Home")
    expect(tab.locator(".run > .answer")).to_have_count(0)
    tab.get_by_role("button", name="16×").click()
    tab.get_by_role("button", name="Play").click()
    expect(tab.get_by_role("button", name="Play")).to_be_visible()
    standing(tab, "Done")
    expect(tab.get_by_role("heading", name="coder")).to_be_visible()
    expect(tab.locator(".run > .answer")).to_contain_text("It is 4")


def run_page(page: Page) -> Page:
    """Open the page of the newest run in another tab of the same person."""
    name = page.locator(".run").last.get_attribute("id")
    tab = page.context.new_page()
    tab.goto(f"/api/runs/{str(name).removeprefix('run-')}/page")
    return tab


def test_the_page_of_a_run_opens_at_the_moment_that_its_address_names(page: Page, model: OpenAIServer):
    model.reset(PLOTTING)
    ask(page, "Draw 1+3 for me")
    standing(page, "Done")
    tab = run_page(page)
    standing(tab, "Done")
    expect(tab.get_by_role("img", name="figure.png")).to_be_visible()
    moment = tab.get_by_role("slider", name="Position")
    moment.press("Home")
    expect(tab).to_have_url(re.compile(r"#event=[1-9]\d*$"))
    begun, event = str(moment.get_attribute("aria-valuetext")), tab.url.partition("#")[2]
    tab.get_by_role("button", name="Skip to the end").click()
    assert "#" not in tab.url
    standing(tab, "Done")
    tab.evaluate("event => { location.hash = event }", event)
    expect(moment).to_have_attribute("aria-valuetext", begun)
    expect(tab.locator(".run > .answer")).to_have_count(0)
    tab.reload()
    expect(moment).to_have_attribute("aria-valuetext", begun)
    tab.close()


def test_the_page_of_a_run_that_failed_opens_at_its_newest_step(page: Page, model: OpenAIServer):
    broken = {"status": 400, "error": "no such model"}
    model.reset({**PLOTTING, "reporter": [broken], "supervisor": [broken]})
    ask(page, "Draw 1+3 for me")
    expect(page.locator(".standing:not(.running, .queued)")).to_be_visible()
    tab = run_page(page)
    expect(tab.locator(".standing")).to_be_in_viewport()
    expect(tab.get_by_role("heading", name="coder")).to_be_attached()
    tab.close()


@pytest.mark.slow
def test_the_title_of_a_report_is_as_large_in_the_file_as_on_the_page(
    page: Page, model: OpenAIServer, opened: Opener, tmp_path: Path
):
    model.reset(PLOTTING)
    ask(page, "Draw 1+3 for me")
    standing(page, "Done")
    tab = opened(shared(page, tmp_path))
    sizes = [
        at.get_by_role("heading", name="Report", exact=True).first.evaluate(
            "one => [getComputedStyle(one).fontSize, getComputedStyle(one).fontWeight]"
        )
        for at in (page, tab.page)
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.slow
def test_a_play_that_ends_in_one_frame_shows_the_work(page: Page, opened: Opener, tmp_path: Path):
    ask(page)
    standing(page, "Done")
    replay = opened(shared(page, tmp_path))
    tab = replay.page
    # Later than any play of this run: the second frame shows its end.
    tab.evaluate("""() => {
        let drawn = 0;
        window.requestAnimationFrame = one => setTimeout(() => one(performance.now() + 1e6 * drawn++));
    }""")
    replay.moment.press("Home")
    tab.get_by_role("button", name="Play").click()
    expect(tab.get_by_role("heading", name="coder")).to_be_visible()
    standing(tab, "Done")


@pytest.mark.slow
def test_a_replay_is_gone_through_by_keyboard(page: Page, opened: Opener, tmp_path: Path):
    ask(page)
    standing(page, "Done")
    replay = opened(shared(page, tmp_path))
    tab = replay.page
    replay.moment.focus()
    tab.keyboard.press("Home")
    standing(tab, "Waiting for its turn")
    expect(tab.get_by_role("region", name="Plan")).to_have_count(0)
    tab.keyboard.press("ArrowRight")
    expect(replay.moment).to_have_value("500")
    tab.keyboard.press("End")
    expect(tab.locator(".plan li.completed")).to_have_count(2)
    skip = tab.get_by_role("button", name="Skip to the end")
    expect(skip).to_be_disabled()
    tab.keyboard.press("ArrowLeft")
    expect(skip).to_be_enabled()
    skip.focus()
    tab.keyboard.press("Enter")
    expect(skip).to_be_disabled()
    standing(tab, "Done")
    tab.locator(".work > summary").focus()
    tab.keyboard.press("Enter")
    tab.locator(".call > summary").focus()
    tab.keyboard.press("Enter")
    expect(tab.locator(".call")).to_contain_text("print(1+3)")


@pytest.mark.slow
def test_what_a_stranger_wrote_does_nothing_in_the_file(
    page: Page, model: OpenAIServer, opened: Opener, tmp_path: Path
):
    words = f"{HOSTILE}\n</script><script>window.evil = 6</script>\n<!-- {_SEPARATORS}\n\n{_DIAGRAM}"
    model.reset({**SIMPLE, "reporter": [reply(words)]})
    ask(page, "</title></script><script>window.evil = 7</script>")
    standing(page, "Done")
    replay = opened(shared(page, tmp_path))
    tab = replay.page
    answer = tab.locator(".run > .answer")
    expect(answer.locator("math")).not_to_have_count(0)
    expect(answer).to_contain_text(_SEPARATORS)
    assert (
        answer.locator("script, img, iframe, [onerror], a[href^='javascript'], a[href^='data']").count() == 0
    )
    assert tab.evaluate("window.evil") is None
    # KaTeX and the player.
    assert tab.locator("script:not([type])").count() == 2
    expect(answer).to_contain_text("Diagrams are drawn on the page of the service.")


@pytest.mark.slow
@pytest.mark.skipif(not AXE.is_file(), reason="bash setup.sh dev installs axe-core")
def test_a_replay_has_no_serious_fault(page: Page, opened: Opener, tmp_path: Path):
    ask(page)
    standing(page, "Done")
    tab = opened(shared(page, tmp_path)).page
    # What the file's own policy forbids, a browser's extension may.
    tab.context.new_cdp_session(tab).send("Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")})
    for width, scheme in ((1280, "light"), (375, "dark"), (320, "light")):
        tab.set_viewport_size({"width": width, "height": 800})
        settle(tab, color_scheme=scheme)
        assert (tab.evaluate(_FAULTS, [True, False]), tab.evaluate(_CUT)) == ([], [])


_DRAW = """
import struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = b"".join(b"\\0" + bytes((200, 60, 60)) * 300 for _ in range(200))
head = chunk(b"IHDR", struct.pack(">IIBBBBB", 300, 200, 8, 2, 0, 0, 0))
body = chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
open("sales.png", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n" + head + body)
"""
_FIGURES = "# Sales\n\n![Sales by year](sales.png)\n\n![Costs](costs.png)\n\nSales grew.\n"


def expect_figures(place: Locator) -> None:
    """Expect that the chart that was drawn is shown, and that the other is missing."""
    picture = place.locator("img")
    expect(picture).to_have_count(1)
    expect(picture).to_have_attribute("alt", "Sales by year")
    expect(picture).to_have_js_property("naturalWidth", 300)
    expect(place.get_by_text("Costs (figure missing: costs.png)")).to_be_visible()


@pytest.mark.slow
def test_the_figures_of_a_report_are_shown_on_the_page_and_in_its_file(
    page: Page, model: OpenAIServer, opened: Opener, tmp_path: Path
):
    model.reset(
        {
            **SIMPLE,
            "coder": [call("python_repl_tool", code=_DRAW), reply("Drawn.")],
            "reporter": [{"chunks": [_FIGURES[at : at + 9] for at in range(0, len(_FIGURES), 9)]}],
        }
    )
    ask(page)
    standing(page, "Done")
    expect_figures(page.locator("article.run > .answer").last)
    page.reload()
    expect_figures(page.locator("article.run > .answer").last)
    page.get_by_role("button", name="Read the report").click()
    expect_figures(page.get_by_role("dialog").locator(".markdown"))
    page.get_by_role("dialog").locator("summary", has_text="Download").click()
    with page.expect_download() as saving:
        page.get_by_role("button", name="Markdown with figures (ZIP)").click()
    assert saving.value.suggested_filename.endswith(".zip")
    page.keyboard.press("Escape")
    tab = opened(shared(page, tmp_path))
    tab.moment.press("End")
    expect_figures(tab.page.locator("article.run > .answer").last)
