from collections.abc import Sequence

import pytest
from playwright.async_api import Page

from maniple.browser.drivers.tabs import PlaywrightSurface
from maniple.browser.overlays import OverlayClearer
from tests.browser.overlays.pages import CLEAN
from tests.crawler.web import Site

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", CLEAN)
async def test_a_page_without_an_overlay_is_never_clicked(name: str, reused_tab: Page, web: Site) -> None:
    asked = []

    async def choose(text: str, ways: Sequence[str], picture: bytes | None) -> int | None:
        asked.append(text)
        return 0

    await reused_tab.goto(f"{web.url}/clean/{name}")
    before = await reused_tab.evaluate("document.body.innerHTML")
    assert await OverlayClearer(PlaywrightSurface(reused_tab)).clear(choose) == ()
    assert (await reused_tab.evaluate("clicks"), asked) == (0, [])
    assert await reused_tab.evaluate("document.body.innerHTML") == before
