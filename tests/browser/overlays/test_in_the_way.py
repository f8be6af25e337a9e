from collections.abc import AsyncIterator

import pytest

from maniple.browser import Browser, BrowserState, Page, PageServices, open_browser
from maniple.config import BrowserSettings
from maniple.errors import BrowserError
from tests.browser.overlays.pages import page
from tests.crawler.web import open_site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

NEWSLETTER = """<div class="over" style="position:fixed;inset:0;background:rgba(0,0,0,.5)">
<div style="background:#fff"><h2>Our newsletter</h2><input type="email">
<button onclick="this.closest('.over').remove()">No thanks</button></div></div>"""
LATE = f"""<template id="late">{NEWSLETTER}</template><p id="told">nothing</p>
<button onclick="told.textContent = 'everything'">Work</button>
<button onclick="document.body.append(late.content.cloneNode(true))">News</button>"""
TASK = LATE.replace("Our newsletter", "Your order").replace("No thanks", "Cancel")


@pytest.fixture(scope="module")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    async with open_browser(BrowserSettings(allow_private=("127.0.0.2/32",))) as browser:
        yield browser


async def opened(browser: Browser, body: str) -> Page:
    """A page of that body, in a thread of its own."""
    async with open_site({"/": page(body)}, "127.0.0.2") as site:
        found = await browser.page(body, PageServices())
        await found.act({"action": "go_to_url", "url": f"{site.url}/"})
    return found


def index(state: BrowserState, name: str) -> int:
    return next(element.index for element in state.elements if element.name == name)


async def test_an_overlay_is_gone_before_the_page_is_looked_at(browser: Browser) -> None:
    state = await (await opened(browser, NEWSLETTER)).observe()
    assert "No thanks" not in state.interactive_elements
    assert "Read on" in state.interactive_elements
    assert any("Our newsletter" in notice for notice in state.notices)


async def test_a_click_that_something_intercepts_is_done_again_once_that_is_cleared(browser: Browser) -> None:
    found = await opened(browser, LATE)
    state = await found.observe()
    await found.act({"action": "click_element", "index": index(state, "News")})
    work = index(state, "Work")
    result = await found.act({"action": "click_element", "index": work})
    assert result.text == f"Clicked element at index {work}"
    assert "everything" in (await found.observe()).interactive_elements


async def test_what_its_own_click_opened_is_left_to_the_agent(browser: Browser) -> None:
    found = await opened(browser, f"<p>Another page</p>{LATE}")
    await found.act({"action": "click_element", "index": index(await found.observe(), "News")})
    assert "No thanks" in (await found.observe()).interactive_elements


async def test_a_click_beneath_a_window_of_the_task_fails_and_clicks_nothing(browser: Browser) -> None:
    found = await opened(browser, TASK)
    state = await found.observe()
    await found.act({"action": "click_element", "index": index(state, "News")})
    with pytest.raises(BrowserError):
        await found.act({"action": "click_element", "index": index(state, "Work")})
    shown = (await found.observe()).interactive_elements
    assert "Cancel" in shown
    assert "everything" not in shown


@pytest.mark.slow
async def test_nothing_is_cleared_where_that_is_turned_off() -> None:
    settings = BrowserSettings(allow_private=("127.0.0.2/32",), obstacles=False)
    async with open_browser(settings) as browser:
        state = await (await opened(browser, NEWSLETTER)).observe()
    assert "No thanks" in state.interactive_elements
