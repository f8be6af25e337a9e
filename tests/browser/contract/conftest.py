"""A browser of every backend that is installed, one after the other, each for a whole module."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing

import pytest

from maniple.browser import Browser
from maniple.browser.drivers.sandbox import SandboxBrowser
from maniple.browser.executable import find_executable
from maniple.config import BrowserSettings
from maniple.egress import AddressGuard
from maniple.types import Unavailable
from tests.browser.contract.automation_server import open_automation_server
from tests.browser.contract.pages import PAGES
from tests.crawler.allowed import ALLOWED
from tests.crawler.web import Site, open_site

BACKENDS = ("sandbox",)


@pytest.fixture(scope="module")
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site(dict(PAGES), ALLOWED) as site:
        yield site


@pytest.fixture(scope="module", params=BACKENDS)
async def browser(
    request: pytest.FixtureRequest, anyio_backend: str, guard: AddressGuard
) -> AsyncIterator[Browser]:
    settings = BrowserSettings(timeout_seconds=20, max_wait_seconds=0.2)
    executable = find_executable(settings)
    assert not isinstance(executable, Unavailable), executable
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(open_automation_server(str(executable)))
        yield await stack.enter_async_context(aclosing(SandboxBrowser(server.url, settings, guard.resolve)))
