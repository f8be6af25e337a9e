from collections.abc import AsyncIterator

import pytest

from maniple.browser import Browser, open_browser
from maniple.config import BrowserSettings
from tests.browser.driving import Driver
from tests.crawler.web import Site

SETTINGS = BrowserSettings(allow_private=("127.0.0.2/32",), timeout_seconds=20, max_wait_seconds=1)


@pytest.fixture(scope="package")
async def widget_browser(anyio_backend: str) -> AsyncIterator[Browser]:
    async with open_browser(SETTINGS) as browser:
        yield browser


@pytest.fixture
async def driver(widget_browser: Browser, site: Site) -> AsyncIterator[Driver]:
    page = await widget_browser.page("thread")
    yield Driver(page)
    await page.aclose()
