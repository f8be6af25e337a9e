"""A report has the same words on the page, in its replay and in every file, and no dead citation."""

import asyncio
import io
import re
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pypdf
import pytest
from lxml import etree, html
from playwright.sync_api import Browser, Page, expect

from tests.openai_server import OpenAIServer
from tests.page.stories import Story, keep
from tests.page.test_everybody import tab
from tests.report_files.samples import drawn_figure
from tests.serving import ServerProcess, environment, server_process

pytestmark = pytest.mark.slow

_COLUMNS, _ROWS = 16, 3
_HEAD = [f"Head{column}" for column in range(_COLUMNS)]
_CELLS = [[f"cell{row}x{column}" for column in range(_COLUMNS)] for row in range(_ROWS)]
_LINES = "\n".join(f"| {' | '.join(one)} |" for one in (_HEAD, ["---"] * _COLUMNS, *_CELLS))
_MARKDOWN = f"""# Everything about 茶 and maths

Opening words with a citation [1], two together [1, 2], and a file of a folder [3]. A footnote follows.[^a]
龙井茶很贵。日本語の文。

## Formulas

Inline $E_q = m c^2$ and money of $5, then alone:

$$\\int_0^1 \\frac{{alpha}}{{beta}} dx$$

## Program

```python
def growing(years):  # remark
    return years * 7
```

Inline `codeword` stays.

## Duties

- [x] finished task
- [ ] open task
  - nested bullet

> [!NOTE]
> callout text

![Caption of the figure](drawn.png)

## Wide

{_LINES}

## Drawing

```mermaid
flowchart LR
    A[Waterbox] --> B[Teabox]
```

## Statement

Somebody claims it [unverified]. See [linked place](https://linked.example/x) and ~~struck~~,
**bold**, *slanted*.

[^a]: Explained below.
"""
_SHOWN = f"""Everything about 茶 and maths
Opening words with a citation 1 two together 1 2 and a file of a folder 3 A footnote follows
龙井茶很贵 日本語の文 Formulas Inline and money of 5 then alone
Program def growing years remark return years 7 Inline codeword stays
Duties finished task open task nested bullet callout text Caption of the figure
Wide {" ".join(_HEAD)} {" ".join(" ".join(row) for row in _CELLS)} Drawing flowchart
Statement Somebody claims it unverified See linked place and struck bold slanted Explained below
Sources Tea history tea example 茶叶统计 stat example Travel notes folder"""
"""What is to be read of it, with the list of its sources, but without formulas."""
_FORMULAS = ("Eq", "mc2", "alpha", "beta", "dx")
_LITERAL = ("[x]", "[ ]", "[^a]", "[!NOTE]", "\\frac", "$$", "~~", "**")
"""Syntax that only Markdown shows."""
_SOURCES = {
    "https://tea.example/a": "Tea history",
    "https://stat.example/茶": "茶叶统计",
    "folder:travel%20notes/2026%20é.md": "Travel notes",
}
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\W_]+")
_TEXTS = """root => {
    const texts = [...root.querySelectorAll("img")].map(one => one.alt);
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) texts.push(walker.currentNode.data);
    return texts.join(" ");
}"""
_DEAD = """root => [...root.querySelectorAll(".citation, .footnote a, .footnotes a")].filter(one => {
    const to = one.dataset.to;
    return !to || !root.querySelector(`[data-id="${CSS.escape(to)}"]`);
}).map(one => one.outerHTML)"""


def words(text: str) -> set[str]:
    """Return the words of a text; each character of Chinese and Japanese is one."""
    return set(_WORD.findall(unicodedata.normalize("NFKC", text.replace("\u200b", ""))))


def check(form: str, text: str) -> None:
    """Compare what a form of the report shows with what is to be read."""
    assert words(_SHOWN) - words(text) == set(), f"{form} lacks words"
    dense = re.sub(r"[\s_^{}\u2061-\u2064]", "", unicodedata.normalize("NFKC", text))
    assert [one for one in _FORMULAS if one not in dense] == [], f"{form} lacks formulas"
    if form != "markdown":
        assert [one for one in _LITERAL if one in text] == [], f"{form} shows syntax"


@pytest.fixture(scope="module")
def server(model: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with the report, whose figure is an artifact of its run."""
    story = Story("About tea")
    story.open()
    story.sources = _SOURCES
    story.files = {"drawn.png": ("image/png", drawn_figure(300, 200).content)}
    step = {
        "id": 0,
        "agent_name": "reporter",
        "title": "Report",
        "description": "Report.",
        "status": "completed",
    }
    story.tell("plan", title=story.title, steps=[step])
    story.begin("reporter")
    story.say(_MARKDOWN)
    story.close(_MARKDOWN)
    home = tmp_path_factory.mktemp("forms")
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, keep(home, story)).result()
    with server_process(environment(model.base_url, home), home) as process:
        yield process


def read(server: ServerProcess, form: str) -> bytes:
    """Return the report as a file of this form."""
    path = f"{server.url}/api/runs/about-tea/report"
    response = httpx.get(path, params={"form": form}, timeout=120)
    assert response.status_code == 200, response.text
    return response.content


def _html(content: bytes) -> str:
    document = html.fromstring(content.decode())
    (main,) = document.xpath("//body")
    ids = {one.get("id") for one in document.xpath("//*[@id]")}
    links = [one.get("href")[1:] for one in main.xpath(".//a[starts-with(@href, '#')]")]
    assert {"source-1", "source-2", "source-3"} <= set(links) <= ids
    return " ".join([*main.itertext(), *main.xpath(".//img/@alt")])


def _pdf(content: bytes) -> str:
    pdf = pypdf.PdfReader(io.BytesIO(content))
    notes = [note.get_object() for page in pdf.pages for note in page.get("/Annots", [])]
    targets = {str(note["/Dest"]).lstrip("/") for note in notes if "/Dest" in note}
    assert (
        {"source-1", "source-2", "source-3"} <= targets <= {one.lstrip("/") for one in pdf.named_destinations}
    )
    assert sum(len(page.images) for page in pdf.pages) == 2, "the figure and the diagram"
    return "\n".join([*(page.extract_text() for page in pdf.pages), *_described(pdf)])


def _described(pdf: pypdf.PdfReader) -> Iterator[str]:
    """Yield what the structure of a PDF says about its pictures."""
    waiting: list[Any] = [pdf.root_object["/StructTreeRoot"]]
    for _ in range(100_000):
        if not waiting:
            return
        one = waiting.pop()
        one = one.get_object() if hasattr(one, "get_object") else one
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            if "/Alt" in one:
                yield str(one["/Alt"])
            if "/K" in one:
                waiting.append(one["/K"])
    raise AssertionError("The structure does not end.")


def _office(content: bytes, parts: str) -> str:
    """Return the paragraphs of the parts of an office file, and the descriptions of its pictures."""
    texts: list[str] = []
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        for name in file.namelist():
            if re.fullmatch(parts, name):
                root = etree.fromstring(file.read(name))
                texts += ("".join(one.text or "" for one in part.iter("{*}t")) for part in root.iter("{*}p"))
                texts += map(str, root.xpath("//@descr"))
                anchors = {str(one) for one in root.xpath("//@*[local-name() = 'anchor']")}
                marks = {one.get(f"{{{one.nsmap['w']}}}name") for one in root.iter("{*}bookmarkStart")}
                assert anchors <= marks, "a link leads nowhere"
    return "\n".join(texts)


FORMS: dict[str, Callable[[bytes], str]] = {
    "html": _html,
    "pdf": _pdf,
    "docx": lambda content: _office(content, r"word/(document|footnotes)\.xml"),
    "pptx": lambda content: _office(content, r"ppt/slides/slide\d+\.xml"),
    "markdown": bytes.decode,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_has_the_words_of_the_report(server: ServerProcess, form: str):
    check(form, FORMS[form](read(server, form)))


def test_the_page_and_the_replay_have_the_words_of_the_report(
    browser: Browser, server: ServerProcess, tmp_path: Path
):
    replay = tmp_path / "replay.html"
    replay.write_bytes(httpx.get(f"{server.url}/api/runs/about-tea/replay", timeout=60).content)
    page = tab(browser, 1280, 800, locale="en-GB")
    for form, address in (
        ("page", f"{server.url}/#about-tea/read/about-tea"),
        ("replay", f"{replay.as_uri()}#/read/about-tea"),
    ):
        page.goto(address)
        view = page.get_by_role("dialog")
        expect(view.locator(".back").first).to_be_attached()
        expect(view.get_by_role("img", name="Caption of the figure")).to_be_visible()
        check(form, view.locator("article").evaluate(_TEXTS))
        assert view.locator("article").evaluate(_DEAD) == []
        expect(view.locator(".citation")).to_have_count(4)
        _show_source(page, view)
    page.context.close()


def _show_source(page: Page, view: Any) -> None:
    """Follow the citation of the file in a folder to its entry."""
    view.get_by_role("link", name="Source 3: Travel notes").click()
    expect(view.get_by_role("listitem").filter(has_text="[3]")).to_be_focused()
