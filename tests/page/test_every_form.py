"""One report, with the same text in every form in which it is read."""

import io
import json
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pypdf
import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Page, expect
from pptx import Presentation
from rich.console import Console

from maniple.cli.render.document_text import SafeMarkdown
from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.page import test_report
from tests.page.test_page import ask, standing
from tests.serving import ServerProcess, environment, server_process
from tests.team import plan, step

_PLOT = """
import base64
png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
open("bars.png", "wb").write(base64.b64decode(png))
"""
_COLUMNS = range(16)
_ROW = " | ".join(f"internationalization-{one}" for one in _COLUMNS)
REPORT = rf"""# Tea in the office

Tea costs 3 euros [1]. Inline $q+r$ and \(u+v\), with a note[^a], first line<br>second line.

$$
s+t
$$

\[
w+z
\]

```python
price = [1][0] + [2][0]
```

- [x] finished
- [ ] waiting
  1. numbered
     - deepest

> [!WARNING]
> Take care.

| {_ROW} |
|{"---|" * len(_COLUMNS)}
| {_ROW.replace("nat", "fin")} |

![Bars by year](bars.png)

茶是仅次于水的饮品[1]。

[^a]: What the note says.

## Sources

- \[1\] The price of tea: <SITE/tea>
"""
_SHOWN = [
    "Teacosts3euros[1].",
    *("q+r", "u+v", "s+t", "w+z"),
    "price=[1][0]+[2][0]",
    *("☑finished", "☐waiting", "numbered", "deepest"),
    *("Warning", "Takecare."),
    *(f"internationalization-{one}" for one in _COLUMNS),
    *(f"interfinionalization-{one}" for one in _COLUMNS),
    "Barsbyyear",
    "茶是仅次于水的饮品[1]。",
    "Whatthenotesays.",
    "Thepriceoftea",
]
_NOT_SHOWN = ["<br>", "[x]", "[!", "$", "\\", "figuremissing"]
_ONCE = ["Whatthenotesays.", "Takecare.", "Thepriceoftea", "Barsbyyear"]


@pytest.fixture(scope="module")
def server(model: OpenAIServer, home: Path) -> Iterator[ServerProcess]:
    env = environment(model.base_url, home, MANIPLE_FETCH__ALLOW_PRIVATE="127.0.0.0/8")
    with server_process(env, home) as process:
        yield process


site = test_report.site


def report(page: Page, model: OpenAIServer, site: str) -> str:
    """Let the team read a page, draw a figure and report; return the address of the run."""
    model.reset(
        {
            **SIMPLE,
            "planner": [reply(json.dumps(plan(step("researcher"), step("coder"), step("reporter"))))],
            "researcher": [call("crawl_tool", url=f"{site}/tea"), reply("Tea costs 3 euros [1].")],
            "coder": [call("python_repl_tool", code=_PLOT), reply("Drawn.")],
            "reporter": [{"chunks": [REPORT.replace("SITE", site)]}, reply("Nothing to repair.")],
        }
    )
    ask(page, "What does tea cost?")
    standing(page, "Done")
    run = page.request.get("/api/runs").json()["runs"][0]
    return f"/api/runs/{run['run_id']}"


def read(page: Page, address: str) -> bytes:
    response = page.request.get(address)
    assert response.status == 200
    return response.body()


def in_html(content: bytes) -> str:
    found = BeautifulSoup(content, "lxml").select_one("main")
    assert found is not None
    return found.get_text()


def on_the_page(page: Page) -> str:
    page.get_by_role("button", name="Read the report").click()
    text = page.get_by_role("dialog").locator(".markdown")
    expect(text.locator("li.source")).to_be_visible()
    expect(text.get_by_role("img", name="Bars by year")).to_have_js_property("naturalWidth", 1)
    return text.text_content() or ""


def in_the_terminal(markdown: str) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(SafeMarkdown(markdown))
    return console.file.getvalue()  # type: ignore[attr-defined]


def in_word(content: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        roots = [ElementTree.fromstring(file.read(f"word/{name}.xml")) for name in ("document", "footnotes")]
    return "".join(one.text or "" for root in roots for one in root.iter() if one.tag.endswith("}t"))


def in_slides(content: bytes) -> str:
    return "".join(
        one.text or ""
        for slide in Presentation(io.BytesIO(content)).slides
        for one in slide.element.iter("{http://schemas.openxmlformats.org/drawingml/2006/main}t")
    )


def in_pdf(content: bytes) -> str:
    return "".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(content)).pages)


def faults(text: str) -> list[str]:
    """Return what a form lacks of the report, shows as markup, or shows twice."""
    plain = "".join(unicodedata.normalize("NFKC", text.replace("：", ":")).split()).replace("\u200b", "")
    plain = plain.replace("\N{INVISIBLE TIMES}", "")
    shown = [unicodedata.normalize("NFKC", one) for one in _SHOWN]
    return [
        *(f"lacks {one}" for one in shown if one not in plain),
        *(f"shows {one}" for one in _NOT_SHOWN if one in plain),
        *(f"repeats {one}" for one in _ONCE if plain.count(one) > 1),
    ]


def test_a_report_reads_the_same_on_the_page_in_its_files_and_in_the_terminal(
    page: Page, model: OpenAIServer, site: str
):
    run = report(page, model, site)
    run_page = page.context.new_page()
    run_page.goto(f"{run}/page")
    forms = {
        "page": on_the_page(page),
        "run page": on_the_page(run_page),
        "HTML": in_html(read(page, f"{run}/report?form=html")),
        "terminal": in_the_terminal(REPORT.replace("SITE", site)),
    }
    assert {name: found for name, text in forms.items() if (found := faults(text))} == {}


@pytest.mark.slow
def test_a_report_reads_the_same_in_word_on_slides_in_pdf_and_in_a_replay(
    page: Page, browser: Browser, model: OpenAIServer, site: str, tmp_path: Path
):
    run = report(page, model, site)
    path = tmp_path / "replay.html"
    path.write_bytes(read(page, f"{run}/replay"))
    context = browser.new_context(offline=True, locale="en-GB")
    replay = context.new_page()
    replay.goto(path.as_uri())
    forms = {
        "replay": on_the_page(replay),
        "Word": in_word(read(page, f"{run}/report?form=docx")),
        "slides": in_slides(read(page, f"{run}/report?form=pptx")),
        "PDF": in_pdf(read(page, f"{run}/report?form=pdf")),
    }
    context.close()
    assert {name: found for name, text in forms.items() if (found := faults(text))} == {}
