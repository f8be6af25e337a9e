"""`useStream` of LangGraph's client for React in a real Chromium, on a page of another origin."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.protocols.conftest import SETTINGS
from tests.protocols.react_page import CHROMIUM, NEEDED, build_page, serve_page
from tests.serving import ServerProcess, environment, server_process

HERE = Path(__file__).parent / "react"
PATIENCE_MS = 60_000
ASKS = {**SIMPLE, "coordinator": [call("ask_user", question="Which numbers?"), *SIMPLE["coordinator"]]}
APPROVAL = {**SIMPLE, "coder": [call("bash_tool", cmd="echo 5"), reply("It is 4.")]}
pytestmark = NEEDED


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The origin of the page."""
    folder = tmp_path_factory.mktemp("page")
    build_page(HERE / "chat.js", folder)
    with serve_page(folder) as address:
        yield address


@pytest.fixture(scope="module")
def server(
    model: OpenAIServer, origin: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("home")
    (home / "conf.yaml").write_text(f"{SETTINGS}server: {{cors_origins: ['{origin}']}}\n", encoding="utf-8")
    with server_process(environment(model.base_url, home), home) as process:
        yield process


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=False)
        yield browser
        browser.close()


class Chat:
    """The page as its user sees it."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.open(address)

    def open(self, address: str) -> None:
        self.page.goto(address)
        self.reaches("idle")

    def ask(self, text: str, button: str = "Send") -> None:
        self.page.locator("input").fill(text)
        self.press(button)

    def press(self, button: str) -> None:
        self.page.get_by_role("button", name=button).click()

    def reaches(self, state: str) -> None:
        expect(self.page.locator("main")).to_have_attribute("data-state", state, timeout=PATIENCE_MS)

    @property
    def messages(self) -> Locator:
        return self.page.locator("ol li")

    def says(self, *texts: str) -> None:
        """Wait until the conversation is these texts, each once."""
        patterns = [re.compile(re.escape(text)) for text in texts]
        expect(self.messages).to_have_text(patterns, timeout=PATIENCE_MS)

    @property
    def asked(self) -> Any:
        return json.loads(self.page.locator("pre").inner_text(timeout=PATIENCE_MS))

    @property
    def thread_id(self) -> str:
        return str(httpx.URL(self.page.url).params["thread"])


@pytest.fixture
def chat(browser: Browser, server: ServerProcess, origin: str) -> Iterator[Chat]:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    yield Chat(page, f"{origin}/?{urlencode({'api': server.url})}")
    context.close()
    assert wrong == []


@pytest.fixture
def history_chat(chat: Chat, server: ServerProcess, origin: str) -> Chat:
    """The page with the client that agent-chat-ui has."""
    chat.open(f"{origin}/?{urlencode({'api': server.url, 'history': ''})}")
    return chat


def test_a_task_is_worked_on_and_stays_after_a_reload(chat: Chat) -> None:
    chat.ask("1+3=?")
    chat.says("1+3=?", "The answer is")
    chat.reaches("idle")
    statuses = chat.page.locator("ul li[data-status=completed]")
    expect(statuses).to_have_count(2, timeout=PATIENCE_MS)
    chat.page.reload()
    chat.says("1+3=?", "The answer is")
    chat.reaches("idle")


def test_a_page_can_read_which_fields_have_no_effect(chat: Chat, server: ServerProcess) -> None:
    script = """async (address) => {
        const run = { assistant_id: "maniple", input: { messages: "Hi" }, durability: "sync" };
        const body = JSON.stringify(run);
        const headers = { "content-type": "application/json" };
        const answer = await fetch(address, { method: "POST", body, headers });
        return answer.headers.get("x-maniple-not-used");
    }"""
    assert chat.page.evaluate(script, f"{server.url}/runs") == "durability"


@pytest.mark.slow
def test_small_talk_goes_on_in_the_same_conversation(chat: Chat, model: OpenAIServer) -> None:
    model.reset({"coordinator": [reply("Hello!"), reply("Fine.")]})
    chat.ask("Hi")
    chat.says("Hi", "Hello!")
    chat.reaches("idle")
    chat.ask("How are you?")
    chat.says("Hi", "Hello!", "How are you?", "Fine.")


@pytest.mark.slow
def test_a_question_is_an_interrupt_and_is_answered(chat: Chat, model: OpenAIServer) -> None:
    model.reset(ASKS)
    chat.ask("A sum?")
    chat.reaches("waiting")
    assert chat.asked["question"] == "Which numbers?"
    chat.page.reload()
    chat.reaches("waiting")
    chat.ask("1 and 3", "Answer")
    chat.says("A sum?", "Which numbers?", "1 and 3", "The answer is")
    chat.reaches("idle")


@pytest.mark.slow
def test_an_approval_is_an_interrupt_and_is_given(chat: Chat, model: OpenAIServer) -> None:
    model.reset(APPROVAL)
    chat.ask("1+3=?")
    chat.reaches("waiting")
    assert chat.asked["action_requests"][0]["name"] == "bash_tool"
    chat.press("Approve")
    chat.says("1+3=?", "The answer is")


@pytest.mark.slow
def test_an_approval_is_given_with_other_arguments(chat: Chat, model: OpenAIServer) -> None:
    model.reset(APPROVAL)
    chat.ask("1+3=?")
    chat.reaches("waiting")
    chat.ask("echo edited", "Edit")
    chat.says("1+3=?", "The answer is")
    assert "edited" in json.dumps(model.requests)


@pytest.mark.slow
def test_a_run_that_fails_is_shown_with_its_reason(chat: Chat, model: OpenAIServer) -> None:
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}]})
    chat.ask("1+3=?")
    expect(chat.page.get_by_role("alert")).to_contain_text("no such thing", timeout=PATIENCE_MS)
    chat.says("1+3=?")


@pytest.mark.slow
def test_a_plan_is_reviewed_before_the_work(chat: Chat, server: ServerProcess, origin: str) -> None:
    query = urlencode({"api": server.url, "set_auto_accepted_plan": "false"})
    chat.open(f"{origin}/?{query}")
    chat.ask("1+3=?")
    chat.reaches("waiting")
    assert chat.asked["kind"] == "plan_review"
    chat.press("Approve")
    chat.says("1+3=?", "The plan:", "accept", "The answer is")


@pytest.mark.slow
def test_stop_ends_the_run(chat: Chat, server: ServerProcess, model: OpenAIServer) -> None:
    model.reset({"coordinator": [{"hang": True}]})
    chat.ask("Hi")
    model.wait_for(lambda stats: stats["active"] == 1)
    chat.press("Stop")
    chat.reaches("idle")
    model.wait_for(lambda stats: stats["active"] == 0)
    [run] = httpx.get(f"{server.url}/threads/{chat.thread_id}/runs").json()
    assert run["status"] == "interrupted"


@pytest.mark.slow
def test_a_reload_in_mid_run_loses_and_doubles_nothing(chat: Chat, model: OpenAIServer) -> None:
    model.reset({"coordinator": [reply("Hello there, my friend!", hang=True)]})
    chat.ask("Hi")
    model.wait_for(lambda stats: stats["active"] == 1)
    expect(chat.page).to_have_url(re.compile("thread="), timeout=PATIENCE_MS)
    chat.page.reload()
    chat.reaches("working")
    model.release()
    chat.says("Hi", "Hello there, my friend!")
    chat.reaches("idle")


@pytest.mark.slow
def test_a_page_whose_server_was_killed_shows_the_answer_once(
    browser: Browser, model: OpenAIServer, origin: str, tmp_path: Path
) -> None:
    (tmp_path / "conf.yaml").write_text(
        f"{SETTINGS}server: {{cors_origins: ['{origin}']}}\n", encoding="utf-8"
    )
    env = environment(model.base_url, tmp_path)
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    with server_process(env, tmp_path) as process:
        chat = Chat(context.new_page(), f"{origin}/?{urlencode({'api': process.url})}")
        chat.ask("1+3=?")
        model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
        process.process.kill()
        process.process.wait()
    port = httpx.URL(process.url).port
    model.reset(SIMPLE)
    with server_process(env, tmp_path, port=port or 0):
        chat.page.reload()
        chat.says("1+3=?", "The answer is")
        chat.reaches("idle")
    assert "planner" not in model.stats["by_role"]
    context.close()


def test_a_reload_in_mid_run_is_no_breakpoint_to_a_page_with_all_states(
    history_chat: Chat, model: OpenAIServer
) -> None:
    model.reset({"coordinator": [reply("Hello there!", hang=True), reply("Fine.")]})
    history_chat.ask("Hi")
    model.wait_for(lambda stats: stats["active"] == 1)
    expect(history_chat.page).to_have_url(re.compile("thread="), timeout=PATIENCE_MS)
    history_chat.page.reload()
    history_chat.says("Hi")
    history_chat.reaches("idle")
    expect(history_chat.page.locator("pre")).to_have_count(0)
    model.release()
    history_chat.ask("And now?")
    history_chat.says("Hi", "Hello there!", "And now?", "Fine.")


@pytest.mark.slow
def test_a_question_that_is_marked_as_resolved_ends_its_run(
    history_chat: Chat, server: ServerProcess, model: OpenAIServer
) -> None:
    model.reset(APPROVAL)
    history_chat.ask("1+3=?")
    history_chat.reaches("waiting")
    history_chat.press("Resolve")
    history_chat.reaches("idle")
    expect(history_chat.page.get_by_role("alert")).to_have_count(0)
    [run] = httpx.get(f"{server.url}/threads/{history_chat.thread_id}/runs").json()
    assert httpx.get(f"{server.url}/api/runs/{run['run_id']}").json()["status"] == "cancelled"


@pytest.mark.slow
def test_a_question_is_edited_and_its_answer_made_again_with_the_older_ones_beside_it(
    history_chat: Chat, model: OpenAIServer
) -> None:
    model.reset({"coordinator": [reply(f"Answer {number}.") for number in range(1, 6)]})
    history_chat.ask("Hi")
    history_chat.says("Hi", "Answer 1.")
    history_chat.reaches("idle")
    history_chat.ask("Hello", "Edit")
    history_chat.says("Hello", "Answer 2.")
    history_chat.reaches("idle")
    history_chat.press("Refresh")
    history_chat.says("Hello", "Answer 3.")
    history_chat.reaches("idle")
    history_chat.ask("And now?")
    history_chat.says("Hello", "Answer 3.", "And now?", "Answer 4.")
    history_chat.reaches("idle")
    history_chat.ask("And then?", "Edit")
    history_chat.says("Hello", "Answer 3.", "And then?", "Answer 5.")
    history_chat.reaches("idle")
    history_chat.press("Older")
    history_chat.says("Hello", "Answer 3.", "And now?", "Answer 4.")
    history_chat.page.reload()
    history_chat.says("Hello", "Answer 3.", "And then?", "Answer 5.")
    history_chat.reaches("idle")
    expect(history_chat.page.get_by_role("alert")).to_have_count(0)
