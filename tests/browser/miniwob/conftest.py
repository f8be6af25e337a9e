from collections.abc import AsyncIterator

import pytest

from maniple.browser import Browser, open_browser
from maniple.config import BrowserSettings
from tests.browser.miniwob.tasks import Tasks, folder, serve_tasks


@pytest.fixture(scope="module")
async def tasks(anyio_backend: str) -> AsyncIterator[Tasks]:
    html = folder()
    if html is None:
        pytest.fail("The tasks are missing: .venv/bin/python -m pip install --no-deps miniwob==1.1.0")
    async with serve_tasks(html) as tasks:
        yield tasks


@pytest.fixture(scope="module")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    async with open_browser(BrowserSettings(allow_private=("127.0.0.1/32",))) as browser:
        yield browser
