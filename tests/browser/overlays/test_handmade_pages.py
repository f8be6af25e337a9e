import pytest
from playwright.async_api import Page

from maniple.browser.drivers.tabs import PlaywrightSurface
from maniple.browser.overlays import OverlayClearer
from tests.browser.overlays.pages import HANDMADE
from tests.crawler.web import Site

pytestmark = pytest.mark.anyio

_IS_COVERED = "[...document.querySelectorAll('.o')].some(one => one.checkVisibility())"


@pytest.mark.parametrize("name", HANDMADE)
async def test_an_overlay_of_no_known_make_is_cleared_without_a_model(
    name: str, reused_tab: Page, web: Site
) -> None:
    await reused_tab.goto(f"{web.url}/handmade/{name}")
    assert await reused_tab.evaluate(_IS_COVERED)
    assert len(await OverlayClearer(PlaywrightSurface(reused_tab)).clear()) == 1
    assert not await reused_tab.evaluate(_IS_COVERED)
