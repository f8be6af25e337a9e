"""`browser_use`: the 18 actions as one tool."""

import json
import re

import pytest
from langchain_core.utils.function_calling import convert_to_openai_function

from maniple.agents.browsing.view import POLICIES
from maniple.browser import ACTIONS, FoundPage, PagePicture, PageServices
from maniple.errors import BrowserError
from maniple.tools.browser import browser_use_tool
from maniple.tools.thread_browser import MAX_THREADS, ThreadBrowser, page_fingerprint
from tests.agents.browsing.shop import HOME, Shop

pytestmark = pytest.mark.anyio


def window() -> tuple[ThreadBrowser, Shop]:
    shop = Shop()
    services = PageServices(search=find_pages, save_picture=save_picture)
    return ThreadBrowser(shop, services), shop  # type: ignore[arg-type]


async def save_picture(picture: PagePicture) -> str:
    return "pictures/shop.jpeg"


async def find_pages(query: str) -> list[FoundPage]:
    return []


def test_without_a_web_search_no_action_searches():
    tool = browser_use_tool(ThreadBrowser(Shop()))  # type: ignore[arg-type]
    schema = convert_to_openai_function(tool)["parameters"]
    assert "go_to_url" in schema["properties"]["action"]["enum"]
    assert "query" not in schema["properties"]
    assert "web_search" not in json.dumps(schema) + tool.description


def test_without_a_workspace_no_action_stores_a_picture():
    tool = browser_use_tool(ThreadBrowser(Shop(), PageServices(search=find_pages)))  # type: ignore[arg-type]
    assert "take_screenshot" not in json.dumps(convert_to_openai_function(tool))


async def run(tool, **arguments):
    return await tool.ainvoke({"name": tool.name, "args": arguments, "id": "1", "type": "tool_call"})


def test_the_schema_is_that_of_openmanus():
    function = convert_to_openai_function(browser_use_tool(window()[0]))
    assert function["name"] == "browser_use"
    assert function["parameters"]["required"] == ["action"]
    properties = function["parameters"]["properties"]
    assert properties["action"]["enum"] == list(ACTIONS.names)
    assert set(properties) == {
        *("action", "url", "index", "text", "scroll_amount", "tab_id", "query", "goal", "keys", "seconds")
    }
    assert properties["index"]["type"] == "integer"
    for action in ACTIONS.names:
        assert action in function["description"]


async def test_a_result_names_the_actions_and_the_page():
    it, _ = window()
    tool = browser_use_tool(it)
    first = await run(tool, action="go_to_url", url=HOME)
    assert (first.content, first.artifact) == (f"Navigated to {HOME}", {"changed": True, "page": ""})
    seen = await it.observe(screenshot=False)
    second = await run(tool, action="wait", seconds=0)
    assert second.artifact == {"changed": False, "page": page_fingerprint(seen)}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"action": "fly"}, "Unknown action: fly"),
        ({}, "Unknown action: None"),
        ({"action": "go_to_url"}, "URL is required for 'go_to_url' action"),
        ({"action": "input_text", "index": 1}, "Index and text are required for 'input_text' action"),
        ({"action": "send_keys"}, "Keys are required for 'send_keys' action"),
        ({"action": "click_element", "index": 7}, "Element with index 7 not found"),
    ],
)
async def test_an_impossible_action_is_an_error_with_the_usual_text(given, words):
    with pytest.raises(BrowserError, match=words):
        await run(browser_use_tool(window()[0]), **given)


@pytest.mark.parametrize("mode", POLICIES)
def test_the_prompt_of_a_mode_names_only_its_actions(mode):
    offered = POLICIES[mode].actions
    function = convert_to_openai_function(browser_use_tool(window()[0], offered))
    said = set(re.findall(r"\w+", json.dumps(function)))
    assert said & set(ACTIONS.names) == set(offered)
    assert ("goal" in function["parameters"]["properties"]) is ("extract_content" in offered)


async def test_an_action_that_is_not_offered_is_refused():
    it, shop = window()
    with pytest.raises(BrowserError, match=r"'go_back' .*go_to_url, wait\."):
        await run(browser_use_tool(it, ("go_to_url", "wait")), action="go_back")
    assert shop.pages == {}


async def test_looks_are_distinguished_by_what_they_show():
    it, shop = window()
    await run(browser_use_tool(it), action="go_to_url", url=HOME)
    first, second = await it.observe(screenshot=False), await it.observe(screenshot=False)
    assert first.snapshot_id != second.snapshot_id
    assert page_fingerprint(first) == page_fingerprint(second)
    shop.words = "\nsold out"
    assert page_fingerprint(await it.observe(screenshot=False)) != page_fingerprint(first)


async def test_looks_of_so_many_threads_are_remembered(monkeypatch):
    it, _ = window()
    threads = iter([str(n) for n in range(MAX_THREADS + 1) for _ in range(3)])
    monkeypatch.setattr("maniple.tools.thread_browser.thread_key", lambda: next(threads))
    for _ in range(MAX_THREADS + 1):
        await it.observe(screenshot=False)
    monkeypatch.setattr("maniple.tools.thread_browser.thread_key", lambda: "0")
    assert it.last_state() is None
    monkeypatch.setattr("maniple.tools.thread_browser.thread_key", lambda: "1")
    assert it.last_state() is not None
