"""Reports, which a model wrote after reading strangers' pages."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from maniple.api.downloads import MEDIA_TYPES, FormNotAcceptable, negotiate_form, render_report
from maniple.report_document import lay_out, write_body
from maniple.run_files.markup import sanitize_markdown
from maniple.run_files.pictures import FigureFinder
from maniple.service.reports import read_report_view
from tests.api.in_process import InProcessService
from tests.openai_server import SIMPLE, reply
from tests.report_files.samples import EVIL, page

LOADING = {
    "img",
    "script",
    "iframe",
    "object",
    "embed",
    "link",
    "style",
    "video",
    "audio",
    "svg",
    "form",
    "base",
    "meta",
}
ALLOWED = {
    "href",
    "title",
    "rel",
    "start",
    "id",
    "class",
    "tabindex",
    "display",
    "stretchy",
    "aria-labelledby",
}
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


class Elements(HTMLParser):
    """What an HTML page holds."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page.partition("<body>")[2])
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def assert_harmless_page(page: str) -> None:
    for tag, attributes in Elements(page).found:
        assert tag not in LOADING, page
        assert attributes.keys() <= ALLOWED, page
        if href := attributes.get("href"):
            assert re.match(r"https?:|mailto:|#(section|source|footnote|reference)-\d+$", href), href


BREAKS = re.compile(r"(?:<br ?/?>|\s)+", re.IGNORECASE)


def assert_harmless_markdown(markdown: str) -> None:
    """Read it as the most permissive of readers would, with HTML, of which only line breaks may be left."""
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown):
        for one in (token, *(token.children or ())):
            is_break = bool(BREAKS.fullmatch(one.content))
            assert one.type != "image", markdown
            assert one.type not in ("html_inline", "html_block") or is_break, markdown


def test_a_page_holds_nothing_that_runs_or_loads_by_itself():
    text = page(EVIL, "a title")
    assert "<title>Report &lt;script&gt;alert(1)&lt;/script&gt;</title>" in text
    assert_harmless_page(text)
    assert '<a href="https://evil.test/a.png" rel="noopener noreferrer nofollow">pixel</a>' in text
    assert 'href="https://ok.test/?a=1&amp;b=2"' in text
    assert "<code>code &lt;b&gt; stays</code>" in text
    assert '&gt;![stays](as it is)&lt;/<span class="code-name">b</span>&gt;' in text


def test_markdown_shows_images_as_links_and_html_as_text_and_leaves_code_alone():
    text = sanitize_markdown(EVIL)
    assert_harmless_markdown(text)
    assert "[pixel](https://evil.test/a.png)" in text
    assert "&lt;img src" in text
    assert "`code <b> stays`" in text
    assert "<b>![stays](as it is)</b>" in text


@pytest.mark.parametrize("text", ["a<br>b<BR />c", "| a |\n|-|\n| x<br/>y |", "<br>\n\nx"])
def test_a_line_break_of_html_stays_in_markdown(text: str):
    assert sanitize_markdown(text) == text


@pytest.mark.parametrize("text", ["<br onclick=x>", "<br>\n<script>", "<br <b>>", "a<broken>"])
def test_what_only_begins_like_a_line_break_is_text(text: str):
    shown = sanitize_markdown(text)
    assert_harmless_markdown(shown)
    assert "&lt;" in shown


@pytest.mark.parametrize(
    "much", ["x" * 300_000, "x" * 20_001, "[" * 20_001, "([\n" * 20_001, "a\n" * 20_001, "!" * 250_000]
)
def test_what_takes_too_long_to_read_is_all_text(much: str):
    text = sanitize_markdown(f"```\n<b>\n```\n![a](https://e.test/x)\n{much}")
    assert text.startswith("```\n&lt;b>\n```\n[a](https://e.test/x)\n")
    shown = write_body(lay_out("", f"*a* {much} <b>"))
    assert shown.startswith("<pre><code>*a* ")
    assert shown.endswith(" &lt;b&gt;</code></pre>\n")


WIDE = "a|" * 1000 + "\n" + "-|" * 1000 + "\n" + "![i](https://e.test/x)<b>|\n" * 20


def test_of_very_large_tables_those_beyond_the_budget_are_code():
    small = "|a|b|\n|-|-|\n|1|2|\n"
    text = f"{small}\n{WIDE}\n{small}\n"
    shown = page(text)
    assert shown.count("<td") == 2
    assert shown.count("<pre><code>") == 2
    assert "![i](https://e.test/x)&lt;b" in shown
    again = sanitize_markdown(f"`<i>`\n\n{text}")
    assert "![i]" not in again
    assert "<b>" not in again


PIECES = [
    *[
        "![",
        "]",
        "(https://e.test/x)",
        "<img src=https://e.test>",
        "`",
        "``",
        "```\n",
        "\n",
        "\n\n",
        "\\",
        "|",
        "!",
        "[",
    ],
    *[
        "<br>",
        "<BR />",
        "[r]: https://e.test\n",
        "<!--",
        "-->",
        "> ",
        "- ",
        "    ",
        "a",
        "<a href='",
        "'>",
        "<https://e.test/`>",
        "&#33;",
    ],
]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_no_arrangement_of_signs_gets_an_image_or_html_through(text):
    assert_harmless_markdown(sanitize_markdown(text))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from([*PIECES, "$", "[1]", "[unverified]"]), max_size=14).map("".join))
def test_hostile_text_puts_nothing_harmful_onto_a_page(text):
    assert_harmless_page(page(text, text))


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "text/markdown"),
        ("*/*", "text/markdown"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
        ("application/json", "application/json"),
        ("text/*;q=0.5, application/json;q=0.4", "text/markdown"),
        ("text/markdown;q=0, */*", "text/html"),
        ("TEXT/HTML;charset=utf-8;q=1", "text/html"),
        ("application/json;q=x, text/html;q=0.1", "text/html"),
        ("application/pdf", "application/pdf"),
        (f"{DOCX}, */*;q=0.1", DOCX),
    ],
)
def test_the_preferred_format_is_returned(accept, form):
    assert MEDIA_TYPES[negotiate_form(accept)] == form


def test_a_form_that_there_is_not_is_refused():
    with pytest.raises(FormNotAcceptable, match="text/html"):
        negotiate_form("image/png, text/html;q=0")


@pytest.mark.anyio
async def test_a_report_is_given_in_each_form_under_a_strict_policy(it: InProcessService, model):
    model.reset({**SIMPLE, "reporter": [reply(EVIL)]})
    run = await it.run()
    await it.events_of(run["run_id"])
    path = f"/api/runs/{run['run_id']}/report"
    refused = await it.client.get(path, params={"format": "zip"})
    assert refused.status_code == 422 and "format" in refused.text
    for accept in ("text/markdown", "text/html", "application/json"):
        response = await it.client.get(path, headers={"accept": accept})
        assert response.headers["content-type"].startswith(accept)
        assert response.headers["content-security-policy"].startswith("default-src 'none'")
        assert response.headers["x-content-type-options"] == "nosniff"
        if accept == "text/html":
            assert_harmless_page(response.text)
        else:
            assert_harmless_markdown(response.json()["markdown"] if "json" in accept else response.text)
    response = await it.client.get(f"{path}/body")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert_harmless_page(response.text)
    refused = await it.client.get(path, headers={"accept": "image/png"})
    assert (refused.status_code, refused.json()["code"]) == (406, "not_acceptable")


@pytest.mark.anyio
async def test_a_run_without_an_answer_has_no_report_and_one_that_waits_has_none_yet(
    it: InProcessService, model
):
    waiting = await it.run(auto_accepted_plan=False)
    await it.events_of(waiting["run_id"])
    path = f"/api/runs/{waiting['run_id']}/report"
    for one in (path, f"{path}/body"):
        response = await it.client.get(one)
        assert (response.status_code, response.json()["code"]) == (409, "not_finished")
    await it.client.post(f"/api/runs/{waiting['run_id']}/cancel")
    for one in (path, f"{path}/body"):
        response = await it.client.get(one)
        assert (response.status_code, response.json()["code"]) == (404, "no_report")


async def finished(it: InProcessService, model, report: str) -> str:
    """The address of the report of a run that has ended."""
    model.reset({**SIMPLE, "reporter": [reply(report)]})
    run = await it.run()
    await it.events_of(run["run_id"])
    return f"/api/runs/{run['run_id']}/report"


@pytest.mark.anyio
async def test_a_report_is_downloaded_under_the_name_of_its_conversation(it: InProcessService, model):
    path = await finished(it, model, "It is 4.")
    for form, ending in (
        ("markdown", "md"),
        ("html", "html"),
        ("json", "json"),
        ("docx", "docx"),
        ("pptx", "pptx"),
    ):
        response = await it.client.get(f"{path}?form={form}&download=true", headers={"accept": "image/png"})
        assert response.status_code == 200
        assert response.headers["content-disposition"] == f"attachment; filename*=utf-8''1%2B3%3D.{ending}"
        assert response.headers["content-type"].startswith(MEDIA_TYPES[form])
    assert "content-disposition" not in (await it.client.get(path)).headers
    refused = await it.client.get(f"{path}?form=odt")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")


@pytest.mark.anyio
async def test_no_title_makes_a_bad_name(it: InProcessService, model):
    path = await finished(it, model, "It is 4.")
    run = await it.service.engine.status(path.split("/")[3], None)
    view = await read_report_view(it.service.store, run)
    finder = FigureFinder(it.service.store, it.service.workspaces, run)
    for title, name in (
        ("../../etc/passwd\r\nX-Evil: 1", "etc passwd X-Evil 1"),
        ("", "report"),
        ("茶 “叶”?", "茶 叶"),
        ("CON.", "CON"),
        ("a" * 500, "a" * 80),
    ):
        named = view.model_copy(update={"title": title})
        response = await render_report(it.service.report_renderer, named, "markdown", finder, as_file=True)
        assert unquote(response.headers["content-disposition"]) == f"attachment; filename*=utf-8''{name}.md"


@pytest.mark.anyio
async def test_a_page_lists_the_sources_that_the_run_has_read(it: InProcessService, model):
    path = await finished(it, model, "It is 4.")
    evidence = it.service.store.evidence(path.split("/")[3])
    await evidence.add("https://e.test/", "Arithmetic", "page", "1 + 3 = 4")
    run = await it.service.engine.status(path.split("/")[3], None)
    view = (await read_report_view(it.service.store, run)).model_copy(update={"markdown": "It is 4 [1]."})
    finder = FigureFinder(it.service.store, it.service.workspaces, run)
    response = await render_report(it.service.report_renderer, view, "html", finder, as_file=False)
    assert '<li id="source-1" class="source">' in bytes(response.body).decode()


@pytest.mark.anyio
async def test_without_a_browser_a_pdf_is_refused_with_the_remedy(it: InProcessService, model):
    path = await finished(it, model, "It is 4.")
    response = await it.client.get(path, headers={"accept": "application/pdf"})
    assert (response.status_code, response.json()["code"]) == (503, "no_browser")
    assert response.json()["detail"] == (
        "A PDF is printed by a browser. The browser is turned off. To fix it: set `browser.enabled: true`. "
        "Or take the report as HTML, Word document or Markdown."
    )
