"""Take a picture of every view: `python -m tests.page.shots [FOLDER]`, into `tests/page/shots` as a rule.

`python -m tests.page.shots --readme` takes the one of the README instead.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

from tests.page.conftest import CHROMIUM, QUIET
from tests.page.views import VIEWS, View, seeded_server, settle, shown
from tests.serving import ROOT

FOLDER = ROOT / "tests/page/shots"
SHAPES = (("light", 1280, 800), ("dark", 375, 800))
_LARGE = ("hello", "report", "work")


def main() -> None:
    folder = Path(next((word for word in sys.argv[1:] if not word.startswith("-")), FOLDER))
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=30_000)
    with tempfile.TemporaryDirectory() as home, seeded_server(Path(home)) as server, sync_playwright() as it:
        browser = it.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=False, args=QUIET)
        for view in VIEWS:
            for scheme, width, height in (
                *SHAPES,
                *((("light", 3840, 2160),) if view.name in _LARGE else ()),
            ):
                path = folder / f"{view.name}-{scheme}-{width}.png"
                _take(browser, server.url, view, (scheme, width, height), path)
        browser.close()


def _take(browser: Browser, url: str, view: View, shape: tuple[str, int, int], path: Path) -> None:
    scheme, width, height = shape
    context = browser.new_context(locale="en-GB", viewport={"width": width, "height": height})
    page = context.new_page()
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    with shown(page, view, url):
        settle(page)
        page.screenshot(path=path)
    context.close()


if __name__ == "__main__":
    main()
