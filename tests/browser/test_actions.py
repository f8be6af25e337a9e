"""Each of the 18 actions in each kind of place, in a real Chromium."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from maniple.browser import ACTIONS, Browser, FoundPage, PageServices, open_browser
from maniple.config import BrowserSettings
from maniple.errors import BrowserError
from tests.browser.driving import Driver, required
from tests.browser.site.places import ODD, PLACES
from tests.crawler.web import Reply, Site, open_site
from tests.sizes import rest_is_slow

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "127.0.0.3", "::1"])]


@pytest.fixture(scope="module")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    settings = BrowserSettings(allow_private=("127.0.0.2/31",), timeout_seconds=20)
    async with open_browser(settings) as browser:
        yield browser


@asynccontextmanager
async def served(pages: Mapping[str, Reply]) -> AsyncIterator[Site]:
    """These pages at one address, and at that of another site."""
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(open_site({}, "127.0.0.2"))
        other = await stack.enter_async_context(open_site({}, "127.0.0.3"))
        for path, page in pages.items():
            body = page.payload.replace(b"{other}", other.url.encode())
            site.pages[path] = other.pages[path] = replace(page, body=body)
        site.pages["/elsewhere"] = Reply("<title>Elsewhere</title><p>Another page")
        yield site


@dataclass
class Searching:
    """Finds one page."""

    url: str

    async def __call__(self, query: str) -> list[FoundPage]:
        return [FoundPage("The page", self.url, "about it")]


async def test_actions_on_pages_and_tabs_have_their_effects(browser: Browser) -> None:
    async with served(PLACES["plain page"]) as site:
        services = PageServices(search=Searching(f"{site.url}/elsewhere"))
        driver = Driver(await browser.page("walk", services))
        try:
            await walk(driver, site)
        finally:
            await driver.page.aclose()


@pytest.mark.parametrize("kind", PLACES)
async def test_every_action_on_controls_has_its_effect(kind: str, browser: Browser) -> None:
    async with served(PLACES[kind]) as site:
        driver = Driver(await browser.page(kind, PageServices()))
        try:
            await driver.act("go_to_url", url=f"{site.url}/")
            await in_controls(driver)
        finally:
            await driver.page.aclose()


async def walk(driver: Driver, site: Site) -> None:
    url = f"{site.url}/"
    assert (await driver.act("go_to_url", url=f"{site.url}/elsewhere")).text.startswith("Navigated to ")
    assert (await driver.act("go_to_url", url=url)).text == f"Navigated to {url}"
    assert "Press me" in await driver.look()
    assert (await driver.act("wait", seconds=0)).text == "Waited for 0 seconds"
    # Where it was is where it comes back to.
    assert (await driver.act("scroll_up", scroll_amount=200_000)).text.endswith("the beginning is reached")
    assert (await driver.act("refresh")).text == "Refreshed current page"
    assert "Press me" in await driver.look()
    assert (await driver.act("go_back")).text == "Navigated back"
    assert "Another page" in await driver.look()
    assert (await driver.act("open_tab", url=url)).text == f"Opened new tab with {url}"
    assert "Press me" in await driver.look()
    assert (await driver.act("switch_tab", tab_id=1)).text == "Switched to tab 1"
    assert "Another page" in await driver.look()
    found = await driver.act("web_search", query="pages")
    assert found.text.startswith("Search results for 'pages':\n1. The page\n")
    assert found.text.endswith(f"Navigated to {site.url}/elsewhere")
    assert (await driver.act("close_tab")).text == "Closed current tab"
    assert "Press me" in await driver.look()


async def in_controls(driver: Driver) -> None:
    index = await driver.index("Press me")
    assert (await driver.act("click_element", index=index)).text == f"Clicked element at index {index}"
    assert "pressed 1" in await driver.look()
    index = await driver.index("Your name")
    named = await driver.act("input_text", index=index, text="Ada 阿达")
    assert named.text == f"Input 'Ada 阿达' into element at index {index}"
    assert "heard Ada 阿达" in await driver.look()
    assert (await driver.act("send_keys", keys="Backspace")).text == "Sent keys: Backspace"
    assert "heard Ada 阿" in (shown := await driver.look()) and "heard Ada 阿达" not in shown
    index = await driver.index("Colour")
    options = (await driver.act("get_dropdown_options", index=index)).text.removeprefix("Dropdown options: ")
    assert json.loads(options)[:2] == [
        {"text": "Red", "value": "r", "index": 0},
        {"text": "Green", "value": "g", "index": 1},
    ]
    chosen = await driver.act("select_dropdown_option", index=index, text="Green")
    assert chosen.text == f"Selected option 'Green' from dropdown at index {index}"
    assert "chose g" in await driver.look()
    assert (await driver.act("scroll_down", scroll_amount=300)).text == "Scrolled down by 300 pixels"
    assert (await driver.act("scroll_up", scroll_amount=300)).text == "Scrolled up by 300 pixels"
    there = await driver.act("scroll_to_text", text="the lighthouse")
    assert there.text == "Scrolled to text: 'the lighthouse'"
    assert "lighthouse" in await driver.look()
    read = await driver.act("extract_content", goal="the text")
    assert read.text.startswith("Extracted from page:\n")
    assert "Far below stands the lighthouse." in read.text


ASKED = {
    "index": 0,
    "text": "x",
    "keys": "x",
    "goal": "anything",
    "query": "x",
    "seconds": 0,
    "tab_id": 1,
}


@pytest.mark.parametrize("kind", rest_is_slow(ODD, 3))
async def test_every_action_answers_in_words_where_it_has_nothing_to_act_on(
    kind: str, browser: Browser
) -> None:
    async with served(ODD[kind]) as site:
        url = "http://127.0.0.2:9" if kind == "dead server" else f"{site.url}/"
        driver = Driver(await browser.page(kind, PageServices()))
        answers: dict[str, str] = {}
        try:
            for action in ("go_to_url", *ACTIONS.names):
                try:
                    answers[action] = (await driver.act(action, **required(action, ASKED, url=url))).text
                except BrowserError as error:
                    answers[action] = str(error)
            await driver.look()
        finally:
            await driver.page.aclose()
    assert list(answers) == list(ACTIONS.names)
    beginnings = ("Browser action", "Element with index 0 not found", "Failed to scroll to text: ")
    unhappy = {action for action, words in answers.items() if words.startswith(beginnings)}
    assert {"click_element", "input_text", "get_dropdown_options", "select_dropdown_option"} <= unhappy
    assert [words for words in answers.values() if len(words) > 300] == []
