from collections.abc import AsyncIterator

import pytest

from maniple.browser import Browser, open_browser
from maniple.config import BrowserSettings, FetchSettings
from maniple.config.sandbox_settings import SandboxSettings
from maniple.egress import AddressGuard
from maniple.sandbox import find_chromium_isolation
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
    isolation = find_chromium_isolation(SandboxSettings())  # as the service does
    opening = open_browser(BrowserSettings(timeout_seconds=20), guard.resolve, isolation=isolation)
    async with opening as browser:
        yield browser
