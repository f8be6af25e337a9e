"""Film a run on the page, for the README.

`python -m tests.page.film URL FILE QUESTION MESSAGE` asks the server at URL about a file, accepts the plan,
writes the message to the team while it works, and reads the report. It takes a picture every second (into
`tests/page/film`, not in git), one of the report, and makes the GIF of them. The report alone is its
end: in the conversation the composer covers half of a figure. Without arguments it only makes the GIF of the
pictures that are there.
"""

import shutil
import sys
import time

from PIL import Image, ImageChops, ImageOps
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.page.conftest import CHROMIUM, QUIET
from tests.page.views import settle
from tests.serving import ROOT

TAKES = ROOT / "tests/page/film"
FILM = ROOT / "docs/images/run.gif"
REPORT = ROOT / "docs/images/report.png"
SECONDS = {"ask": 2.0, "plan": 1.5, "work": 5.0, "write": 1.2, "report": 2.5}
"""How long each scene is in the GIF."""
END_SECONDS = 3.0
"""How long the report is shown alone, at the end."""
COLOURS = 64
CHANGED_PIXELS = 4_000
"""A picture of work that differs less from the one before is left out."""
_WIDTH, _HEIGHT, _GIF_WIDTH = 720, 520, 800
_BETWEEN_MS = 1_000
_LONGEST_RUN_SECONDS = 7_200
_LETTERS, _PIXELS = 10, 60
"""Typed and scrolled from one picture to the next."""
_OVER = (".standing.completed", ".standing.failed", ".standing.cancelled", ".standing.budget_exhausted")


def main() -> None:
    if len(sys.argv) == 5:
        with sync_playwright() as it:
            browser = it.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=False, args=QUIET)
            _photograph(browser, _film(browser, *sys.argv[1:]))
            browser.close()
    _cut()


def _film(browser: Browser, url: str, file: str, question: str, message: str) -> str:
    """Follow a run from its question to its report; return the address of its conversation."""
    shutil.rmtree(TAKES, ignore_errors=True)
    TAKES.mkdir()
    size = ViewportSize(width=_WIDTH, height=_HEIGHT)
    page = browser.new_page(locale="en-GB", viewport=size, device_scale_factor=_GIF_WIDTH / _WIDTH)
    page.goto(url)
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Review the plan").click()
    _type(page, "ask", question)
    is_written = False
    until = time.monotonic() + _LONGEST_RUN_SECONDS
    while time.monotonic() < until and not page.locator(", ".join(_OVER)).count():
        page.wait_for_timeout(_BETWEEN_MS)
        accept = page.get_by_role("button", name="Accept the plan")
        if accept.is_visible():
            _take(page, "plan")
            accept.click()
        elif not is_written and page.locator(".call").count():
            _type(page, "write", message)
            is_written = True
        else:
            _take(page, "work")
    _scroll(page)
    return page.url


def _type(page: Page, scene: str, text: str) -> None:
    field = page.locator(".composer textarea")
    for end in range(_LETTERS, len(text) + _LETTERS, _LETTERS):
        field.fill(text[:end])
        _take(page, scene)
    field.press("Enter")


def _scroll(page: Page) -> None:
    """Show the last report from its title to its first picture."""
    answer = page.locator(".answer").last
    answer.evaluate("one => one.scrollIntoView()")
    picture = answer.locator("img").first
    while True:
        _take(page, "report")
        box = picture.bounding_box()
        if box is None or box["y"] < _PIXELS:
            return
        page.locator(".conversation").evaluate(f"one => one.scrollBy(0, {_PIXELS})")
        page.wait_for_timeout(_BETWEEN_MS // 10)


def _take(page: Page, scene: str) -> None:
    page.screenshot(path=TAKES / f"{time.time_ns()}-{scene}.png")


def _photograph(browser: Browser, url: str) -> None:
    page = browser.new_page(locale="en-GB", viewport={"width": 1100, "height": 1000}, device_scale_factor=1.2)
    page.goto(url)
    page.get_by_role("button", name="Read the report").last.click()
    expect(page.locator(".reading img").first).to_have_js_property("complete", True)
    settle(page)
    page.screenshot(path=REPORT)


def _cut() -> None:
    """Write the GIF: each scene has its length, spread over its pictures."""
    scenes: list[str] = []
    pictures: list[Image.Image] = []
    for take in sorted(TAKES.glob("*.png")):
        scene = take.stem.partition("-")[2]
        picture = Image.open(take).convert("RGB")
        if scene != "work" or not pictures or _changed(pictures[-1], picture) > CHANGED_PIXELS:
            scenes.append(scene)
            pictures.append(picture)
    durations = [round(1000 * SECONDS[scene] / scenes.count(scene)) for scene in scenes]
    pictures.append(_fit(Image.open(REPORT).convert("RGB"), pictures[-1].size))
    durations.append(round(1000 * END_SECONDS))
    drawn = [one.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE) for one in pictures]
    # By the median, thin lines among much text lose their colours.
    drawn[-1] = pictures[-1].quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    drawn[0].save(FILM, save_all=True, append_images=drawn[1:], duration=durations, loop=0, optimize=True)
    print(f"{len(drawn)} pictures, {sum(durations) / 1000:.1f} s, {FILM.stat().st_size / 1e6:.2f} MB")


def _fit(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Return the whole picture in that size, on the white of the page."""
    return ImageOps.pad(picture, size, Image.Resampling.LANCZOS, color="white")


def _changed(before: Image.Image, after: Image.Image) -> int:
    """Return the number of pixels that differ visibly."""
    return sum(ImageChops.difference(before, after).convert("L").histogram()[16:])


if __name__ == "__main__":
    main()
