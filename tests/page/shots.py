"""Take pictures of the page.

`python -m tests.page.shots` takes the manual's (into `docs/images`). `python -m tests.page.shots views` takes
those of each view in both schemes and on a phone (into `tests/page/shots`).
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

from tests.page.conftest import CHROMIUM, QUIET
from tests.page.views import VIEWS, seeded_server, settle, shown
from tests.serving import ROOT

PICTURE = ROOT / "docs/images/page.png"
SHOTS = ROOT / "tests/page/shots"
_SHAPES = (("en-GB", 1280, "light"), ("en-GB", 1280, "dark"), ("zh-CN", 375, "dark"), ("en-GB", 375, "light"))
"""Language, width and scheme."""


def main() -> None:
    expect.set_options(timeout=30_000)
    take = _take_views if sys.argv[1:] == ["views"] else _take_report
    with tempfile.TemporaryDirectory() as home, seeded_server(Path(home)) as server, sync_playwright() as it:
        browser = it.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=False, args=QUIET)
        take(browser, server.url)
        browser.close()


def _take_report(browser: Browser, url: str) -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    view = next(one for one in VIEWS if one.name == "report")
    page = browser.new_page(locale="en-GB", viewport={"width": 1200, "height": 820}, device_scale_factor=1.3)
    with shown(page, view, url):
        page.locator(".conversation").evaluate("one => one.scrollTo(0, 0)")
        settle(page)
        page.screenshot(path=PICTURE)


def _take_views(browser: Browser, url: str) -> None:
    SHOTS.mkdir(exist_ok=True)
    for locale, width, scheme in _SHAPES:
        page = browser.new_page(locale=locale, viewport={"width": width, "height": 800})
        for view in VIEWS:
            with shown(page, view, url):
                settle(page, color_scheme=scheme)
                page.screenshot(path=SHOTS / f"{view.name}-{locale[:2]}-{scheme}-{width}.png")
        page.context.close()


if __name__ == "__main__":
    main()
