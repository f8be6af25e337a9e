from collections.abc import AsyncIterator

import pytest

from maniple.browser import Browser, Unavailable, open_browser_if_any
from maniple.config import BrowserSettings, FetchSettings
from maniple.egress import AddressGuard
from tests.crawler.allowed import ALLOWED, canary, site

__all__ = ["ALLOWED", "canary", "site"]


@pytest.fixture(scope="package")
def anyio_backend() -> str:
    """As for all tests, but for the package: its tests share a browser."""
    return "asyncio"


@pytest.fixture(scope="package")
def guard() -> AddressGuard:
    return AddressGuard(FetchSettings(allow_private=(f"{ALLOWED}/32",)))


@pytest.fixture(scope="package")
async def browser(anyio_backend: str, guard: AddressGuard) -> AsyncIterator[Browser]:
    async with open_browser_if_any(BrowserSettings(timeout_seconds=20), guard.resolve) as browser:
        if isinstance(browser, Unavailable):
            pytest.fail(f"The tests need a browser. {browser}")
        yield browser
