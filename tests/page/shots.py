"""Take the README's picture of the page: `python -m tests.page.shots` (into `docs/images`)."""

import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from tests.page.conftest import CHROMIUM, QUIET
from tests.page.views import VIEWS, seeded_server, settle, shown
from tests.serving import ROOT

PICTURE = ROOT / "docs/images/page.png"


def main() -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    expect.set_options(timeout=30_000)
    view = next(one for one in VIEWS if one.name == "report")
    with tempfile.TemporaryDirectory() as home, seeded_server(Path(home)) as server, sync_playwright() as it:
        browser = it.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=False, args=QUIET)
        page = browser.new_page(
            locale="en-GB", viewport={"width": 1200, "height": 820}, device_scale_factor=1.3
        )
        with shown(page, view, server.url):
            page.locator(".conversation").evaluate("one => one.scrollTo(0, 0)")
            settle(page)
            page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
