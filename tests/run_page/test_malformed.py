"""For any records of a run, its page is rendered and neither runs nor loads anything."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.async_api import Browser, async_playwright

from maniple.browser.launch import find_executable
from maniple.config import BrowserSettings
from maniple.run_page.run_history import _HANDLERS
from maniple.store import Artifact, RunUsage, ToolCallRecord
from tests.run_page.run_records import BROWSED, page, run_record
from tests.run_page.run_records import step as browser_step

EVIL = [
    "</script><script>window.ran = 1</script>",
    "<!--<script>",
    "]]>--></style></title></textarea><img src=x onerror='window.ran=1'>",
    '" onmouseover="window.ran=1" style="background:url(http://127.0.0.1:9/x)',
    "javascript:window.ran=1",
    "data:text/html,<script>window.ran=1</script>",
    "{{ 7*7 }}{% raw %}<svg/onload=window.ran=1>",
    "http://127.0.0.1:9/[",
    "![](http://127.0.0.1:9/a.png) <iframe src=http://127.0.0.1:9/f></iframe>",
    "[x](javascript:window.ran=1) <style>@import 'http://127.0.0.1:9/s'</style>",
    '<meta http-equiv="refresh" content="0;url=http://127.0.0.1:9/m"><base href=//127.0.0.1:9/>',
    '<link rel=preconnect href="http://127.0.0.1:9/"><object data=http://127.0.0.1:9/o></object>',
    "\x00\x1b[2J\u202egnp.exe\ud800\ufffe\U0001f600",
    "```json\n[[[1]]]\n```",
    '{"a": "</script>"}',
]
NAMES = [
    *(
        "agent_name",
        "tool_name",
        "tool_call_id",
        "tool_input",
        "tool_result",
        "input",
        "messages",
        "delta",
        "content",
    ),
    *(
        "reasoning_content",
        "role",
        "text",
        "number",
        "state",
        "phase",
        "thought",
        "action",
        "name",
        "parameters",
    ),
    *(
        "observation",
        "success",
        "started",
        "seconds",
        "url",
        "title",
        "tabs",
        "screenshot",
        "steps",
        "status",
        "reason",
    ),
    *(
        "model",
        "input_tokens",
        "output_tokens",
        "kind",
        "payload",
        "question",
        "message",
        "code",
        "result_content",
    ),
]
WORDS = st.one_of(st.sampled_from(EVIL), st.text(max_size=20))
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), WORDS, st.just(10**400), st.just("user")
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(NAMES), WORDS), inner, max_size=6),
    ),
    max_leaves=20,
)
SHAPED = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, VALUES))
DATA = st.one_of(
    SHAPED, VALUES, WORDS.map(lambda words: f"no JSON {words}"), st.just("[" * 50_000), st.just("9" * 9_999)
)
TYPES = st.one_of(st.sampled_from([*_HANDLERS]), WORDS)
EVENTS = st.lists(st.tuples(TYPES, DATA), max_size=12)
TIMES = st.one_of(st.none(), st.floats(allow_nan=True))
JSON_TEXTS = st.one_of(VALUES.map(lambda value: json.dumps(value)), WORDS)
ROWS = st.builds(
    lambda name, given, result, begun, ended: ToolCallRecord("r1", "t:1", name, given, result, begun, ended),
    *(WORDS, JSON_TEXTS, st.one_of(st.none(), JSON_TEXTS), st.floats(), TIMES),
)
ARTIFACTS = st.builds(
    lambda name, kind: Artifact("shot-1", "r1", "t1", "", name, kind, 1, "", 0.0), WORDS, WORDS
)
RUNS = st.builds(
    lambda words, error, request, begun, ended: run_record(
        thread_id=words,
        status=words,
        error=error,
        request=request,
        created_at=begun,
        ended_at=ended,
        usage=RunUsage(cost=begun),
    ),
    *(WORDS, st.one_of(st.none(), WORDS), JSON_TEXTS, st.floats(allow_nan=True), TIMES),
)
PAGES = st.builds(
    lambda heard, run, rows, artifacts: page(*heard, run=run, rows=rows, artifacts=artifacts),
    *(EVENTS, RUNS, st.lists(ROWS, max_size=3), st.lists(ARTIFACTS, max_size=2)),
)
MANY = settings(deadline=None, suppress_health_check=list(HealthCheck))


class Elements(HTMLParser):
    """What a page holds."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def everywhere(words: str) -> str:
    """Return the page of a run in whose every text these words stand."""

    def changed(value):
        if isinstance(value, str):
            return words
        if isinstance(value, list):
            return [changed(one) for one in value]
        return {key: changed(one) for key, one in value.items()} if isinstance(value, dict) else value

    kept = {"role", "status", "state", "tool_call_id"}
    heard = [(type_, {k: v if k in kept else changed(v) for k, v in data.items()}) for type_, data in BROWSED]
    result = [{"role": "user", "content": words}, {"role": "assistant", "content": words}]
    heard += [browser_step(2, state=words, phase=words), ("final_session_state", {"messages": result})]
    row = ToolCallRecord("r1", words, words, words, words, 0.0)
    artifact = Artifact(words, "r1", "t1", "", words, words, 1, "", 0.0)
    run = run_record(run_id=words, thread_id=words, status=words, error=words, request=words)
    return page(*heard, run=run, rows=[row], artifacts=[artifact])


def assert_harmless(html: str) -> None:
    html.encode()
    elements = Elements(html).found
    scripts = [attributes for tag, attributes in elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "run"}]
    json.loads(html.partition('id="run">')[2].partition("</script>")[0])
    assert not {"iframe", "object", "embed", "link", "base", "form", "svg", "video", "audio"} & {
        t for t, _ in elements
    }
    assert sum(tag == "style" for tag, _ in elements) == 1
    assert sum(tag == "meta" for tag, _ in elements) == 4
    for tag, attributes in elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], attributes
        assert tag != "img" or (attributes["src"] or "").startswith("data:image/")
        assert re.match(r"(https?:|mailto:|[^:]*$|[./#?])", attributes.get("href") or "")


@pytest.mark.slow
@settings(MANY, max_examples=100)
@given(PAGES)
def test_a_page_is_made_of_anything(html):
    assert_harmless(html)


@pytest.mark.parametrize("words", EVIL)
def test_texts_are_escaped_in_every_place(words):
    assert_harmless(everywhere(words))


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """For the whole module, which shares a browser."""
    return "asyncio"


@pytest.fixture(scope="module")
async def chromium(anyio_backend: str) -> AsyncIterator[Browser]:
    path = find_executable(BrowserSettings())
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(path), args=["--no-sandbox"])
        yield browser
        await browser.close()


async def opened(chromium: Browser, htmls: Sequence[str]) -> list[str]:
    """Open each as a file would be; return what ran, was asked for, or left the page."""
    context = await chromium.new_context(viewport={"width": 375, "height": 700})
    wrong: list[str] = []
    tab = await context.new_page()
    tab.on(
        "request",
        lambda request: (
            None if request.url.startswith(("data:image/", "file:")) else wrong.append(request.url)
        ),
    )
    tab.on("dialog", lambda dialog: wrong.append(dialog.message))
    tab.on("popup", lambda popup: wrong.append(popup.url))
    for html in htmls:
        await tab.set_content(html, wait_until="load")
        ran = await tab.evaluate("() => window.ran || (location.href === 'about:blank' ? 0 : location.href)")
        wide = await tab.evaluate("document.documentElement.scrollWidth")
        await tab.evaluate(
            "for (const e of document.querySelectorAll('*')) e.dispatchEvent(new Event('mouseover'))"
        )
        ran = ran or await tab.evaluate("() => window.ran")
        wrong += [f"ran: {ran}"] if ran else []
        wrong += [f"{wide} pixels wide"] if wide > 375 else []
    await context.close()
    return wrong


@pytest.mark.anyio
async def test_nothing_runs_or_loads_when_the_page_is_opened(chromium: Browser):
    htmls = [everywhere(words) for words in (*EVIL, "".join(EVIL), "x" * 4_000)]
    assert await opened(chromium, htmls) == []


@pytest.mark.anyio
async def test_nothing_of_malformed_records_runs_or_loads_either(chromium: Browser):
    htmls: list[str] = []

    @settings(MANY, max_examples=40)
    @given(PAGES)
    def collect(html: str) -> None:
        htmls.append(html)

    await asyncio.to_thread(collect)
    assert await opened(chromium, htmls) == []


@pytest.mark.anyio
async def test_what_got_into_the_page_all_the_same_would_not_run_or_load_either(chromium: Browser):
    asked: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        address = f"http://{host}:{port}"
        elements = f"<script>window.ran = 1</script><img src='{address}/x' onerror='window.ran = 1'>"
        tab = await chromium.new_page()
        await tab.set_content(page(*BROWSED).replace("<footer>", f"{elements}<footer>"), wait_until="load")
        assert await tab.evaluate("() => window.ran") is None
        assert asked == []
        # The same without the page's policy, which is what keeps them from it.
        await tab.close()
        tab = await chromium.new_page()
        await tab.set_content(elements, wait_until="load")
        assert await tab.evaluate("() => window.ran") == 1
        assert asked
        await tab.close()


@pytest.mark.anyio
async def test_the_pages_style_and_pictures_are_let_through_by_its_policy(chromium: Browser):
    tab = await chromium.new_page(color_scheme="dark")
    blocked: list[str] = []
    tab.on("console", lambda message: blocked.append(message.text))
    await tab.set_content(page(*BROWSED), wait_until="load")
    assert await tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    assert blocked == []
    await tab.close()
