"""A browser action is declared in one place; its schema, prompt text and validation follow from that."""

import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from maniple.agents.browsing.view import POLICIES
from maniple.browser import ACTIONS, Action, Browser, FoundPage, PagePicture, PageServices, open_browser
from maniple.browser.actions import ActionDefinition, Text, action, parse_action
from maniple.browser.drivers import actions as built_in
from maniple.browser.drivers.sandbox.browser import SandboxBrowser
from maniple.config import BrowserSettings
from maniple.errors import BrowserError
from maniple.tools.browser import browser_use_tool
from maniple.tools.thread_browser import ThreadBrowser
from tests.crawler.web import Reply, open_site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

HOVER = """
from typing import Annotated

from pydantic import Field

from maniple.browser.actions import Action, ActionResult, ElementIndex, action, success_text
from maniple.browser.drivers.window import BrowserWindow
from maniple.browser.page import PageServices


class HoverAction(Action):
    index: ElementIndex
    mouse_pixels: Annotated[int, Field(ge=0, description="To the right, for")] | None = None


@action(
    "hover",
    HoverAction,
    kind="move",
    line="element",
    prompt="hover (index): moves the mouse there",
    done="Hovered over element at index {index}",
)
async def hover(window: BrowserWindow, action: HoverAction, services: PageServices) -> ActionResult:
    start = window.start_action(await window.tabs.current())
    await (await window.find(action.index)).hover()
    return await window.finish_action(start, services, success_text(action))
"""


@pytest.fixture
def hover(tmp_path: Path) -> Iterator[ActionDefinition]:
    """An action in a file of its own, in a folder of the actions' package."""
    (tmp_path / "hovering.py").write_text(HOVER, encoding="utf-8")
    built_in.__path__.append(str(tmp_path))
    try:
        built_in.import_actions([str(tmp_path)])
        yield ACTIONS["hover"]
    finally:
        built_in.__path__.remove(str(tmp_path))
        sys.modules.pop(f"{built_in.__name__}.hovering", None)
        ACTIONS.remove("hover")


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with open_browser(BrowserSettings(allow_private=("127.0.0.2/32",))) as browser:
        yield browser


@pytest.mark.usefixtures("hover")
async def test_an_action_in_a_file_of_its_own_is_offered_described_and_performed(browser: Browser) -> None:
    tool = browser_use_tool(ThreadBrowser(browser), POLICIES["scrape"].actions)
    properties = tool.args_schema["properties"]  # type: ignore[index]
    assert "hover" in properties["action"]["enum"]
    assert (
        properties["index"]["description"]
        == "Of the element, for click_element, hover, scroll_down, scroll_up."
    )
    assert properties["mouse_pixels"] == {"type": "integer", "description": "To the right, for hover."}
    assert "- click_element (index), hover (index): moves" in tool.description
    page = "<button onmouseover=\"this.textContent = 'Touched'\">Untouched</button>"
    async with open_site({"/": Reply(page)}, "127.0.0.2") as site:
        await tool.ainvoke({"action": "go_to_url", "url": f"{site.url}/"})
        found = await browser.page("local")
        state = await found.observe(screenshot=False)
        assert await tool.ainvoke({"action": "hover", "index": f"[{state.elements[0].index}]"}) == (
            f"Hovered over element at index {state.elements[0].index}"
        )
        assert "Touched" in (await found.observe(screenshot=False)).interactive_elements


async def find_nothing(query: str) -> Sequence[FoundPage]:
    return ()


async def store_nothing(picture: PagePicture) -> str:
    return ""


async def everywhere(host: str, port: int) -> str:
    return "192.0.2.1"


@pytest.mark.usefixtures("hover")
async def test_a_driver_that_cannot_perform_an_action_does_not_offer_it() -> None:
    async with aclosing(SandboxBrowser("http://127.0.0.1:9", BrowserSettings(), everywhere)) as browser:
        assert set(ACTIONS.names) - set(browser.actions) == {"hover"}
        for actions in (None, *(policy.actions for policy in POLICIES.values())):
            services = PageServices(search=find_nothing, save_picture=store_nothing)
            tool = browser_use_tool(ThreadBrowser(browser, services), actions)
            offered = tool.args_schema["properties"]["action"]["enum"]  # type: ignore[index]
            assert offered == [name for name in actions or ACTIONS.names if name != "hover"]
            assert "hover" not in tool.description
            with pytest.raises(BrowserError, match="not offered here"):
                await tool.ainvoke({"action": "hover", "index": 1})


@pytest.mark.usefixtures("hover")
@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "Index is required for 'hover' action"),
        ({"index": -1}, "Browser action 'hover' failed: index"),
        ({"index": 1, "mouse_pixels": "far"}, "Browser action 'hover' failed: mouse_pixels"),
    ],
)
def test_its_parameters_are_validated(given: dict[str, object], code: str) -> None:
    with pytest.raises(BrowserError) as caught:
        parse_action({"action": "hover", **given})
    assert str(caught.value).startswith(code)


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="registered already"):
        action("wait", Action, kind="move", line="waiting", prompt="wait")(ACTIONS["wait"].run)


def test_a_parameter_has_the_same_type_in_all_actions() -> None:
    class Typing(Action):
        index: Text

    with pytest.raises(ValueError, match="another type"):
        action("type", Typing, kind="input", line="element", prompt="type")(ACTIONS["wait"].run)
    assert ACTIONS.get("type") is None


def test_an_action_that_is_not_validated_yet_is_parsed_like_a_mapping() -> None:
    parsed = parse_action(Action(action="click_element", index="[3]"))  # type: ignore[call-arg]
    assert parsed == parse_action({"action": "click_element", "index": 3})
    assert parse_action(parsed) is parsed
