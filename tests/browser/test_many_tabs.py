"""As many tabs as there may be: the next one is refused, and none of those that are open suffers."""

import os
import signal

import pytest

from maniple.browser import Browser
from maniple.errors import BrowserError
from tests.browser.driving import Driver
from tests.browser.processes import children, command_of, until
from tests.crawler.web import Reply, Site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]


@pytest.mark.slow
async def test_the_tab_after_the_last_is_refused_and_a_crashed_one_is_replaced(
    browser: Browser, site: Site
) -> None:
    site.pages["/tab"] = Reply("<button>Hi</button>")
    page = await browser.page("many tabs")
    driver = Driver(page)
    try:
        for _ in range(20):
            await driver.act("open_tab", url=f"{site.url}/tab")
        with pytest.raises(BrowserError, match="'open_tab' failed: 20 tabs"):
            await driver.act("open_tab", url=f"{site.url}/tab")
        before = {process for process in children() if "--type=renderer" in command_of(process)}
        for process in before:
            os.kill(process, signal.SIGKILL)
        await until(lambda: not before & children())
        await driver.act("go_to_url", url=f"{site.url}/tab")
        assert "Hi" in await driver.look()
        assert driver.state is not None
        assert len(driver.state.tabs) == 20
    finally:
        await page.aclose()
