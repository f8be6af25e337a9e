"""What a window asks its page."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright

from maniple.browser.drivers.window import has_evaluated
from maniple.browser.launch import find_executable
from maniple.config import BrowserSettings

pytestmark = pytest.mark.anyio


class LeavingPage:
    """A page that goes to another document while its first script runs."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._is_left = False

    async def evaluate(self, script: str) -> Any:
        if self._is_left:
            return await self._page.evaluate(script)
        self._is_left = True
        pending = asyncio.create_task(self._page.evaluate("window.hasBegun = true; new Promise(() => {})"))
        await self._page.wait_for_function("window.hasBegun")
        await self._page.goto("data:text/html,<p>next")
        return await pending


async def test_a_page_that_navigates_meanwhile_is_read_again() -> None:
    executable = find_executable(BrowserSettings())
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, chromium_sandbox=False)
        page = LeavingPage(await browser.new_page())
        assert [await has_evaluated(page), await has_evaluated(page)] == [False, True]  # type: ignore[arg-type]
        await browser.close()
