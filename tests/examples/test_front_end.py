"""examples/front-end.html in a real Chromium, from an origin of its own."""

import functools
import http.server
import json
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.examples.programs import EXAMPLES, LIGHT
from tests.openai_server import SIMPLE, OpenAIServer, call, reply, serving
from tests.page.conftest import CHROMIUM, QUIET
from tests.serving import ServerProcess, environment, server_process

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
PATIENCE_MS = 60_000
RESEARCH = {"agent_name": "researcher", "title": "Ask", "description": "Ask for the year."}
REPORT = {"agent_name": "reporter", "title": "Report", "description": "Report it."}
ASKING = {
    **SIMPLE,
    "planner": [reply(json.dumps({"thought": "Ask.", "title": "A year", "steps": [RESEARCH, REPORT]}))],
    "researcher": [call("ask_human", question="Which year?", options=["2023", "2024"]), reply("Of 2024.")],
    "reporter": [reply("# A year\n\n<b id=injected>2024</b>\n")],
}


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port on which the folder of examples is served."""
    handler = functools.partial(QuietHandler, directory=str(EXAMPLES))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as files:
        thread = threading.Thread(target=files.serve_forever, args=(0.05,))
        thread.start()
        yield files.server_port
        files.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIServer]:
    with serving(ASKING) as server:
        yield server


@pytest.fixture(scope="module")
def server(
    model: OpenAIServer, port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("home")
    origins = {"MANIPLE_SERVER__CORS_ORIGINS": json.dumps([f"http://localhost:{port}"])}
    with server_process(environment(model.base_url, home, **LIGHT, **origins), home) as process:
        yield process


@pytest.fixture(scope="module")
def page(server: ServerProcess) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=False, args=QUIET)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        yield page
        browser.close()


def send(page: Page, text: str) -> None:
    page.get_by_role("textbox").fill(text)
    page.get_by_role("button").click()


def test_a_question_comes_to_its_report_with_an_answer_in_between(
    page: Page, model: OpenAIServer, server: ServerProcess, port: int
):
    page.goto(f"http://localhost:{port}/front-end.html?server={server.url}")
    send(page, "How was the year?")
    expect(page.locator("#waits")).to_have_text("Which year?")
    send(page, "2024")
    expect(page.get_by_role("status")).to_contain_text("completed")
    expect(page.get_by_role("listitem")).to_contain_text(["completed", "completed"])
    report = page.frame_locator("#report")
    expect(report.get_by_role("heading", name="A year").first).to_be_visible()
    expect(page.locator("#stream")).to_contain_text("<b id=injected>")
    expect(page.locator("#injected")).to_have_count(0)
    expect(page.locator("#waits")).to_be_hidden()


def test_a_further_question_continues_the_conversation(
    page: Page, model: OpenAIServer, server: ServerProcess, port: int
):
    page.goto(f"http://localhost:{port}/front-end.html?server={server.url}")
    model.reset(SIMPLE)
    for question in ("1+3=?", "1+3=? Really?"):
        send(page, question)
        expect(page.get_by_role("status")).to_contain_text("completed")
        expect(page.frame_locator("#report").get_by_text("The answer is")).to_be_visible()
        page.evaluate("document.querySelector('#status').textContent = ''")
    planner = [str(body) for body in model.requests if "You are the planner" in str(body)]
    assert "1+3=?" in planner[-1] and "Really?" in planner[-1]


def test_an_origin_that_is_not_named_is_told_the_setting(page: Page, server: ServerProcess, port: int):
    page.goto(f"http://127.0.0.1:{port}/front-end.html?server={server.url}")
    send(page, "1+3=?")
    expect(page.get_by_role("status")).to_contain_text("server.cors_origins")
