from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Page, async_playwright

from maniple.browser.launch import find_executable
from maniple.config import BrowserSettings
from tests.browser.overlays.pages import PACKAGES, covered_pages, written_pages
from tests.crawler.web import Site, open_site


@pytest.fixture(scope="package")
def anyio_backend() -> str:
    """As for all tests, but for the package: its tests share a browser."""
    return "asyncio"


@pytest.fixture(scope="package")
async def chromium(anyio_backend: str) -> AsyncIterator[Browser]:
    executable = find_executable(BrowserSettings())
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, chromium_sandbox=False)
        yield browser
        await browser.close()


@pytest.fixture(scope="package")
async def web(anyio_backend: str) -> AsyncIterator[Site]:
    pages = written_pages() | (covered_pages() if PACKAGES.is_dir() else {})
    async with open_site(pages, "127.0.0.1") as site:
        yield site


@pytest.fixture
async def tab(chromium: Browser) -> AsyncIterator[Page]:
    context = await chromium.new_context(viewport={"width": 1280, "height": 800})
    yield await context.new_page()
    await context.close()


@pytest.fixture(scope="package")
async def reused_tab(chromium: Browser) -> AsyncIterator[Page]:
    """One tab for pages that store nothing: each is opened in the place of the one before."""
    context = await chromium.new_context(viewport={"width": 1280, "height": 800})
    yield await context.new_page()
    await context.close()
