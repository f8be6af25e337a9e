from collections.abc import AsyncIterator

import pytest

from maniple.browser import Browser, Unavailable, open_browser
from maniple.config.settings import BrowserSettings, FetchSettings
from maniple.crawler import AddressGuard
from tests.crawler.web import Canary, Site, open_canary, open_site

# Pages of this address may be read; the canary, on 127.0.0.1 and ::1, may not.
ALLOWED = "127.0.0.2"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """As for all tests, but for a whole module: its tests share a browser."""
    return "asyncio"


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({}, ALLOWED) as site:
        yield site


@pytest.fixture
async def canary(anyio_backend: str) -> AsyncIterator[Canary]:
    async with open_canary() as canary:
        yield canary


@pytest.fixture(scope="module")
def guard() -> AddressGuard:
    return AddressGuard(FetchSettings(allow_private=(f"{ALLOWED}/32",)))


@pytest.fixture(scope="module")
async def browser(anyio_backend: str, guard: AddressGuard) -> AsyncIterator[Browser]:
    async with open_browser(BrowserSettings(timeout_seconds=20), guard.resolve) as browser:
        if isinstance(browser, Unavailable):
            pytest.fail(f"The tests need a browser. {browser}")
        yield browser
