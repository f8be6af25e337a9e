"""Reports, which a model wrote after reading strangers' pages."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from maniple.api.reports import NotAcceptable, preferred
from maniple.run_page.markup import as_page, harmless
from tests.api.inside import Inside
from tests.openai_server import SIMPLE, reply

EVIL = """# Report <script>alert(1)</script>

![pixel](https://evil.test/a.png) !![twice](https://evil.test/b.png) [![in a link](https://evil.test/c.png)](x)
<img src=https://evil.test/d.png onerror=alert(1)> <iframe src="https://evil.test/e"></iframe>
[click](javascript:alert(1)) [data](data:text/html,<script>1</script>) <javascript:alert(1)>
![ref][r] \\` <img src=https://evil.test/f.png> ` | ` | <style>@import "https://evil.test/g"</style> | ` |

[r]: https://evil.test/h.png "t\\" onmouseover=alert(1)"

<div style="background:url(https://evil.test/i.png)" onclick="x()">x</div>

| a | b |
|:-:|---|
| [ok](https://ok.test/?a=1&b=2) | `code <b> stays` |

```html
<b>![stays](as it is)</b>
```
"""
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
        assert attributes.keys() <= {"href", "title", "rel", "start"}, page
        if href := attributes.get("href"):
            assert re.match(r"(https?:|mailto:|[^:]*$|[./#?])", href), href


def assert_harmless_markdown(markdown: str) -> None:
    """Read it as the most permissive of readers would, with HTML."""
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown):
        for one in (token, *(token.children or ())):
            assert one.type not in ("image", "html_inline", "html_block"), markdown


def test_a_page_holds_nothing_that_runs_or_loads_by_itself():
    page = as_page(EVIL, "<script>")
    assert "<title>&lt;script&gt;</title>" in page
    assert_harmless_page(page)
    assert '<a href="https://evil.test/a.png" rel="noopener noreferrer nofollow">pixel</a>' in page
    assert 'href="https://ok.test/?a=1&amp;b=2"' in page
    assert "javascript:alert(1)&quot;" not in page
    assert "<code>code &lt;b&gt; stays</code>" in page
    assert "&lt;b&gt;![stays](as it is)&lt;/b&gt;" in page


def test_markdown_shows_images_as_links_and_html_as_text_and_leaves_code_alone():
    text = harmless(EVIL)
    assert_harmless_markdown(text)
    assert "[pixel](https://evil.test/a.png)" in text
    assert "&lt;img src" in text
    assert "`code <b> stays`" in text
    assert "<b>![stays](as it is)</b>" in text


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
    assert_harmless_markdown(harmless(text))
    assert_harmless_page(as_page(text, text))


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
    ],
)
def test_the_form_that_is_wanted_most_is_given(accept, form):
    assert preferred(accept) == form


def test_a_form_that_there_is_not_is_refused():
    with pytest.raises(NotAcceptable, match="text/html"):
        preferred("image/png, text/html;q=0")


@pytest.mark.anyio
async def test_a_report_is_given_in_each_form_under_a_strict_policy(it: Inside, model):
    model.reset({**SIMPLE, "reporter": [reply(EVIL)]})
    run = await it.run()
    await it.told(run["run_id"])
    path = f"/api/runs/{run['run_id']}/report"
    for accept in ("text/markdown", "text/html", "application/json"):
        response = await it.client.get(path, headers={"accept": accept})
        assert response.headers["content-type"].startswith(accept)
        assert response.headers["content-security-policy"].startswith("default-src 'none'")
        assert response.headers["x-content-type-options"] == "nosniff"
        if accept == "text/html":
            assert_harmless_page(response.text)
        else:
            assert_harmless_markdown(response.json()["markdown"] if "json" in accept else response.text)
    refused = await it.client.get(path, headers={"accept": "image/png"})
    assert (refused.status_code, refused.json()["code"]) == (406, "not_acceptable")


@pytest.mark.anyio
async def test_a_run_without_an_answer_has_no_report_and_one_that_waits_has_none_yet(it: Inside, model):
    waiting = await it.run(auto_accepted_plan=False)
    await it.told(waiting["run_id"])
    path = f"/api/runs/{waiting['run_id']}/report"
    response = await it.client.get(path)
    assert (response.status_code, response.json()["code"]) == (409, "not_finished")
    await it.client.post(f"/api/runs/{waiting['run_id']}/cancel")
    response = await it.client.get(path)
    assert (response.status_code, response.json()["code"]) == (404, "no_report")
