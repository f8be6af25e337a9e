"""A report is read as a document: contents, sources, what is not verified, diagrams, files."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.page.test_page import ask, standing
from tests.serving import ServerProcess, environment, server_process
from tests.team import plan, step

PAGES = {
    "/tea": "<title>The price of tea</title><h1>Tea</h1><p>Tea costs 3 euros, and nobody has complained.</p>",
    "/cup": "<title>Cups</title><h1>Cups</h1><p>A cup holds two hundred millilitres and is made of clay.</p>",
}
REPORT = """# Tea in the office

## Summary

Tea costs 3 euros [1], whatever `[1]` in code means. They say “nobody has ever complained about it” [1].

## Key points

| Kind | Price |
|:-----|------:|
| Green | 3 |

```python
def price(cups: int) -> float:
    return 3.0 * cups  # euros
```

## Analysis

```mermaid
flowchart LR
    accTitle: From water to tea
    A[Water] --> B{Hot?} -->|yes| C[Tea]
```

### Why it is so

Cups are made of clay [2], see https://made.test/up for more [9].

## Conclusion

Energy is $E = mc^2$ [1, 2].
"""
HOSTILE = """# Diagrams

```mermaid
%%{init: {"themeCSS": "@import url(http://evil.test/a.css); * {background: url(http://evil.test/b.png)}"}}%%
flowchart LR
    accTitle: Hostile
    A["<img src=x onerror=parent.evil=1><script>parent.evil=2</script>"] --> B[Home]
    click B "javascript:parent.evil=3"
    click A href "http://evil.test/" _self
    style A fill:#fff,background:http://evil.test/d.png
```

```mermaid
flowchart LR
    C@{ img: "http://evil.test/c.png", label: "pixel" }
```

```mermaid
flowchart LR
    A -->
```

```mermaid
flowchart LR
LONG```
""".replace("LONG", "".join(f"    a{n} --> a{n + 1}\n" for n in range(100)))


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = PAGES.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def server(model: OpenAIServer, home: Path) -> Iterator[ServerProcess]:
    env = environment(model.base_url, home, MANIPLE_FETCH__ALLOW_PRIVATE="127.0.0.0/8")
    with server_process(env, home) as process:
        yield process


def reported(page: Page, model: OpenAIServer, site: str, text: str = REPORT) -> None:
    """Let the team read both pages of the site, and report."""
    crawls = [call("crawl_tool", url=f"{site}{path}") for path in PAGES]
    model.reset(
        {
            **SIMPLE,
            "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
            "researcher": [*crawls, reply("Tea costs 3 euros [1], cups are of clay [2].")],
            "reporter": [{"chunks": [text]}, reply("Nothing to mend.")],
        }
    )
    ask(page, "What does tea cost?")
    standing(page, "Done")


def opened(page: Page) -> Any:
    page.get_by_role("button", name="Read the report").click()
    view = page.get_by_role("dialog")
    expect(view.locator(".markdown h1")).to_be_visible()
    return view


@pytest.mark.slow
def test_a_report_is_read_with_its_contents_and_sources_by_keyboard(
    page: Page, model: OpenAIServer, site: str
):
    reported(page, model, site)
    chat = page.url
    view = opened(page)
    expect(view).to_be_focused()
    expect(view.get_by_text("3 statements lack support in the sources.")).to_be_visible()

    contents = view.get_by_role("navigation", name="Contents")
    expect(contents.get_by_role("button")).to_have_text(
        ["Summary", "Key points", "Analysis", "Why it is so", "Conclusion", "Sources"]
    )
    contents.get_by_role("button", name="Analysis").press("Enter")
    expect(view.get_by_role("heading", name="Analysis")).to_be_focused()
    expect(contents.get_by_role("button", name="Analysis")).to_have_attribute("aria-current", "location")

    citation = view.get_by_role("link", name="Source 2: Cups").first
    citation.focus()
    expect(page.get_by_role("tooltip")).to_have_text(re.compile(r"^Cups127\.0\.0\.1 · opened "))
    page.keyboard.press("Escape")
    expect(page.get_by_role("tooltip")).to_be_hidden()
    page.keyboard.press("Enter")
    entry = view.get_by_role("listitem").filter(has_text="[2]")
    expect(entry).to_be_focused()
    expect(entry.get_by_role("link")).to_have_attribute("href", f"{site}/cup")
    entry.get_by_role("button", name="Back to the text: 2").press("Enter")
    expect(citation).to_be_focused()

    marks = view.locator(".unverified")
    expect(marks).to_have_count(3)
    view.get_by_role("button", name="Show the next").press("Enter")
    expect(marks.first).to_be_focused()
    expect(view.locator("code", has_text="[1]")).to_have_text("[1]")
    expect(view.locator(".hljs-keyword").first).to_have_text("def")

    # The address is the report's: a reload and the ways back and forth know it.
    page.reload()
    expect(view.get_by_role("heading", name="Tea in the office")).to_be_visible()
    page.keyboard.press("Escape")
    expect(view).to_be_hidden()
    assert page.url == chat
    page.go_forward()
    expect(view).to_be_visible()
    page.go_back()
    expect(view).to_be_hidden()
    expect(page.get_by_label("Your question")).to_be_editable()


def test_a_mark_has_reason_and_passage_and_leads_to_its_claim_in_the_list(
    page: Page, model: OpenAIServer, site: str
):
    claims = "Tea costs 3 euros [1].\n\nTea costs 812 euros [1].\n"
    text = f"# Tea\n\nIn `[unverified]` code it is no mark.\n\n{claims}"
    reported(page, model, site, text)
    view = opened(page)
    mark = view.get_by_role("button", name=re.compile("^unverified: "))
    mark.focus()
    expect(page.get_by_role("tooltip")).to_contain_text(re.compile("Without support|Contradicted"))
    claims = view.locator("details.claims")
    expect(claims.locator("summary")).to_contain_text(re.compile(r"of \d claims"))
    expect(view.get_by_text(re.compile(r"of \d claims")).locator("visible=true")).to_have_count(1)
    expect(claims.get_by_text("Tea costs 812 euros.")).to_be_hidden()
    mark.press("Enter")
    chosen = claims.get_by_role("listitem").filter(has_text="812")
    expect(chosen).to_be_focused()
    expect(chosen.get_by_role("link", name="The price of tea")).to_have_attribute("href", f"{site}/tea")


@pytest.mark.slow
def test_a_report_is_saved_in_each_format_and_a_refusal_names_the_remedy(
    page: Page, model: OpenAIServer, site: str
):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    reported(page, model, site)
    view = opened(page)

    def take(form: str) -> None:
        view.locator("summary", has_text="Download").click()
        view.get_by_role("button", name=form, exact=True).click()

    files: dict[str, bytes] = {}
    for form, ending in {
        "Markdown": ".md",
        "HTML": ".html",
        "PDF": ".pdf",
        "Word (DOCX)": ".docx",
        "Slides (PPTX)": ".pptx",
    }.items():
        with page.expect_download() as saving:
            take(form)
        assert saving.value.suggested_filename.endswith(ending)
        files[form] = saving.value.path().read_bytes()
    markdown = files["Markdown"].decode()
    assert markdown.startswith("# Tea in the office\n")
    assert "[unverified]" in markdown
    assert b"<h1" in files["HTML"]
    assert files["PDF"].startswith(b"%PDF-")
    assert files["Word (DOCX)"].startswith(b"PK")
    assert files["Slides (PPTX)"].startswith(b"PK")
    sentence = "There is no browser here. Install Chromium, or take another form."
    refusal = json.dumps({"detail": sentence, "code": "no_browser"})
    page.route("**/report?form=pdf*", lambda one: one.fulfill(status=503, body=refusal))
    take("PDF")
    expect(view.get_by_role("alert")).to_have_text(f"PDF: {sentence}")
    take("Copy as Markdown")
    expect(view.get_by_role("status")).to_have_text("Copied")
    # A file ends with the claims that are not supported.
    assert markdown.startswith(page.evaluate("navigator.clipboard.readText()").strip())
    view.locator("summary", has_text="Download").press("Enter")
    page.keyboard.press("Escape")
    expect(view.get_by_role("button", name="HTML", exact=True)).to_be_hidden()
    expect(view).to_be_visible()


@pytest.mark.slow
def test_a_long_report_is_laid_out_to_its_end_and_its_diagram_drawn_for_the_light_and_for_the_dark(
    page: Page, model: OpenAIServer, site: str
):
    reported(page, model, site, REPORT + "\n\n".join(["Many words. " * 40] * 150) + "\n\n## The very end\n")
    expect(page.locator(".answer").get_by_role("heading", name="The very end")).to_be_attached()
    expect(page.get_by_role("link", name="Source 1: The price of tea").first).to_be_attached()
    picture = page.locator(".answer").get_by_role("img", name="Diagram: From water to tea")
    expect(picture).to_be_visible()
    assert picture.evaluate("one => one.decode().then(() => one.naturalWidth > one.naturalHeight)")
    light = picture.get_attribute("src")
    assert light is not None
    page.emulate_media(color_scheme="dark")
    expect(picture).not_to_have_attribute("src", light)
    assert picture.evaluate("one => one.decode().then(() => true)")
    page.locator(".answer .diagram summary").click()
    expect(page.locator(".answer .diagram pre")).to_contain_text("A[Water]")


def test_a_hostile_diagram_is_inert(browser: Browser, server: ServerProcess, model: OpenAIServer):
    model.reset({**SIMPLE, "reporter": [{"chunks": [HOSTILE]}]})
    # Not the usual tab: here the policy of the frame has something to forbid, and the console says so.
    context = browser.new_context(base_url=server.url, locale="en-GB")
    page = context.new_page()
    page.goto("/")
    reached: list[str] = []
    page.on("requestfinished", lambda request: reached.append(request.url))
    page.on("dialog", lambda dialog: reached.append(dialog.message))
    ask(page)
    standing(page, "Done")
    reasons = page.locator(".answer .block > .who")
    expect(reasons).to_contain_text(
        ["cannot be drawn. The source image", "cannot be drawn. Parse error", "too long to be drawn"]
    )
    picture = page.locator(".answer").get_by_role("img", name="Diagram: Hostile")
    expect(picture).to_be_visible()
    picture.click()
    assert page.evaluate("window.evil") is None
    assert not any("evil.test" in url for url in reached)
    frame = page.locator("iframe")
    assert frame.get_attribute("sandbox") == "allow-scripts"
    assert page.url.startswith(server.url)
    context.close()


@pytest.mark.slow
def test_a_report_without_a_title_has_that_of_its_plan(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "reporter": [reply("## In short\n\nIt is **4**.")]})
    ask(page)
    standing(page, "Done")
    page.get_by_role("button", name="Read the report").click()
    expect(page.get_by_role("dialog").get_by_role("heading", level=1)).to_have_text("1 + 3")


def test_what_is_read_stays_in_its_place_when_the_finished_report_replaces_it(
    page: Page, model: OpenAIServer
):
    part = "Words of [1] a paragraph with $x$ in it.\n\n- [x] task\n- one<br>two\n\n```python\nx = 1\n```\n\n"
    text = "".join(f"## Part {number}\n\n{part}" for number in range(30))
    model.reset({**SIMPLE, "reporter": [{"chunks": [text]}]})
    held: list[Route] = []
    page.route("**/report/body", lambda route: held.append(route))
    ask(page)
    standing(page, "Done")
    heading = page.locator(".answer").get_by_role("heading", name="Part 20", exact=True)
    expect(heading).to_be_attached()
    page.mouse.move(300, 300)
    page.mouse.wheel(0, 50)
    top = heading.evaluate("one => (one.scrollIntoView(), one.getBoundingClientRect().top)")
    for one in held:
        one.continue_()
    expect(page.locator(".answer .box").first).to_be_attached()
    top_of = "one => new Promise(requestAnimationFrame).then(() => one.getBoundingClientRect().top)"
    assert abs(heading.evaluate(top_of) - top) <= 60


def test_a_long_report_leads_to_a_section_far_below_and_prints_whole(
    page: Page, model: OpenAIServer, site: str
):
    part = "The price of tea rose again.\n\n| Year | Price |\n|---|---|\n| 2026 | 3 |\n\n- It is green.\n\n"
    text = "# Tea\n\n" + "".join(f"## Part {number}\n\n{part}" for number in range(1, 61))
    reported(page, model, site, text)
    page.reload()
    standing(page, "Done")
    view = opened(page)
    skipped = "one => !one.checkVisibility({contentVisibilityAuto: true})"
    last = view.get_by_role("heading", name="Part 60", exact=True)
    assert view.locator("article td").last.evaluate(skipped)

    view.get_by_role("navigation").get_by_role("button", name="Part 50", exact=True).click()
    heading = view.get_by_role("heading", name="Part 50", exact=True)
    expect(heading).to_be_in_viewport()
    top = "one => new Promise(requestAnimationFrame).then(() => one.getBoundingClientRect().top)"
    expect(view.get_by_role("navigation").locator("[aria-current]")).to_have_text("Part 50")
    assert 0 < heading.evaluate(top) < 150

    page.emulate_media(media="print")
    expect(last).to_be_attached()
    assert not view.locator("article td").last.evaluate(skipped)
