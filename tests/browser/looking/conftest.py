import asyncio
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import BrowserContext, async_playwright

from maniple.browser.drivers.observation import recorder_script, register_indexer
from maniple.browser.launch import find_executable
from maniple.config import BrowserSettings
from tests.browser.looking.site import Site


@pytest.fixture(scope="package")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="package")
async def context(anyio_backend: str) -> AsyncIterator[BrowserContext]:
    executable = await asyncio.to_thread(find_executable, BrowserSettings())
    async with async_playwright() as playwright:
        await register_indexer(playwright)
        browser = await playwright.chromium.launch(executable_path=executable, chromium_sandbox=False)
        context = await browser.new_context(viewport={"width": 1280, "height": 800})
        await context.add_init_script(recorder_script())
        yield context
        await browser.close()


@pytest.fixture(scope="package")
async def site(context: BrowserContext) -> Site:
    """One tab for all: a page that is opened knows nothing of the one before."""
    site = Site(await context.new_page())
    await site.tab.route("**/*", site.answer)
    return site
