"""A browser of every backend, one after the other, each for a whole module."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from maniple.browser import Browser
from maniple.browser.launch import find_executable, open_browser
from maniple.config import BrowserSettings
from maniple.egress import AddressGuard
from tests.browser.contract.automation_server import open_automation_server
from tests.browser.contract.browser_use_environment import ENVIRONMENT
from tests.browser.contract.elsewhere import open_elsewhere
from tests.browser.contract.pages import PAGES
from tests.crawler.allowed import ALLOWED
from tests.crawler.web import Site, open_site

# `make browser-use` makes the environment of browser-use and names it; the others need no second run then.
# `cdp` drives as `local` does; how it connects is in `test_remote.py`.
_OWN = ("local", "sandbox", pytest.param("cdp", marks=pytest.mark.slow))
BACKENDS = ("browser-use",) if ENVIRONMENT else _OWN


@pytest.fixture(scope="module")
def chromium() -> Path:
    executable = find_executable(BrowserSettings())
    return executable


@pytest.fixture(scope="module")
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site(dict(PAGES), ALLOWED) as site:
        yield site


@pytest.fixture(scope="module", params=BACKENDS)
async def browser(
    request: pytest.FixtureRequest, anyio_backend: str, guard: AddressGuard, chromium: Path
) -> AsyncIterator[Browser]:
    async with AsyncExitStack() as stack:
        address: dict[str, Any] = {}
        if request.param == "cdp":
            address["cdp_url"] = (await stack.enter_async_context(open_elsewhere(chromium))).url
        elif request.param == "sandbox":
            server = await stack.enter_async_context(open_automation_server(chromium))
            address["sandbox_url"] = server.url
        # Nothing here waits for an action to time out: a busy machine has time for each of them.
        limits = {"timeout_seconds": 60, "action_seconds": 60, "max_wait_seconds": 0.2}
        settings = BrowserSettings(backend=request.param, browser_use_dir=ENVIRONMENT, **limits, **address)
        yield await stack.enter_async_context(open_browser(settings, guard.resolve))
