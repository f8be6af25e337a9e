import time

import pytest
from playwright.async_api import Browser, Page

from maniple.browser.drivers.tabs import PlaywrightSurface
from maniple.browser.overlays import OverlayClearer
from tests.browser.overlays.pages import COVERED, PACKAGES, overlay_selector
from tests.crawler.web import Site
from tests.sizes import sizes

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not PACKAGES.is_dir(), reason="the packages are not here: bash setup.sh dev"),
]

_CENTRE = """selector => {
    const shown = [...document.querySelectorAll(selector)].find(one => one.checkVisibility());
    const box = shown.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
}"""
_IS_FREE = "([selector, [x, y]]) => !document.elementFromPoint(x, y)?.closest(selector)"
_STANDS_STILL = "Promise.all(document.getAnimations().map(one => one.finished.catch(() => {})))"


async def is_cleared(page: Page, overlay: str) -> tuple[bool, int]:
    """Whether what stood there has gone, and after how many milliseconds."""
    await page.wait_for_selector(overlay, state="visible")
    await page.evaluate(_STANDS_STILL)
    centre = await page.evaluate(_CENTRE, overlay)
    started = time.perf_counter()
    notices = await OverlayClearer(PlaywrightSurface(page)).clear()
    milliseconds = round(1000 * (time.perf_counter() - started))
    return bool(notices) and await page.evaluate(_IS_FREE, [overlay, centre]), milliseconds


@pytest.mark.parametrize("every", sizes(4, 1))
async def test_nine_of_ten_real_overlays_are_cleared_without_a_model(
    chromium: Browser, web: Site, every: int
) -> None:
    """Open each page in `every`."""
    missed, chosen = [], list(COVERED)[::every]
    for name in chosen:
        context = await chromium.new_context(viewport={"width": 1280, "height": 800})
        page = await context.new_page()
        await page.goto(f"{web.url}/covered/{name}")
        cleared, milliseconds = await is_cleared(page, overlay_selector(name))
        print(f"{name:34} {'cleared' if cleared else 'missed':8} {milliseconds:5} ms")
        missed += [] if cleared else [name]
        await context.close()
    assert len(missed) <= len(chosen) // 10, missed
