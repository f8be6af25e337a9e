"""What an action costs beside Playwright's own, and the memory of many threads in one Chromium."""

import os
import re
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from maniple.browser import Browser, open_browser
from maniple.browser.launch import find_executable
from maniple.config import BrowserSettings
from tests.browser.processes import children, command_of
from tests.crawler.web import Reply, open_site

HOST = "127.0.0.2"
SETTINGS = BrowserSettings(allow_private=(f"{HOST}/32",), obstacles=False)
ROUNDS = 25
CHARACTERS = 500
AT_ONCE = 20
# As long as an ordinary one: prose, a few dozen links, some controls.
PAGE = (
    "<!doctype html><title>Bench</title>"
    "<button onclick='window.pressed = 1'>Press</button><input aria-label=Name>"
    + "".join(f"<p>{'Some words of a paragraph. ' * 12}<a href=/{n}>Link {n}</a></p>" for n in range(60))
)


async def measure() -> dict[str, float]:
    """Time each thing and its bare counterpart in turn, so that a busy machine slows both alike; medians."""
    async with open_site({"/": Reply(PAGE)}, HOST) as site:
        figures = await _beside_playwright(site.url)
        async with open_browser(SETTINGS) as browser:
            return figures | {"browser_contexts_20_mb": await _together(browser, site.url)}


async def _beside_playwright(url: str) -> dict[str, float]:
    from playwright.async_api import async_playwright

    executable = find_executable(SETTINGS)
    async with AsyncExitStack() as stack:
        playwright = await stack.enter_async_context(async_playwright())
        chromium = await playwright.chromium.launch(
            executable_path=executable, chromium_sandbox=os.geteuid() != 0
        )
        stack.push_async_callback(chromium.close)
        bare = await chromium.new_page()
        await bare.goto(url)
        browser = await stack.enter_async_context(open_browser(SETTINGS))
        page = await browser.page("bench")
        await page.act({"action": "go_to_url", "url": url})
        shown = (await page.observe(screenshot=False)).interactive_elements
        button, field = (
            int(re.search(rf"\[(\d+)\]<[^\[]*{name}", shown)[1])  # type: ignore[index]
            for name in ("Press", "Name")
        )
        text = "x" * CHARACTERS
        ours, theirs = await _in_turn(
            lambda: page.act({"action": "click_element", "index": button}), lambda: bare.click("button")
        )
        typed, filled = await _in_turn(
            lambda: page.act({"action": "input_text", "index": field, "text": text}),
            lambda: bare.fill("input", text),
        )
        return {
            "browser_click_ms": round(1000 * ours, 1),
            "browser_click_ratio": round(ours / theirs, 2),
            "browser_type_ms": round(1000 * typed, 1),
            "browser_type_ratio": round(typed / filled, 2),
        }


async def _in_turn(
    ours: Callable[[], Awaitable[object]], theirs: Callable[[], Awaitable[object]]
) -> tuple[float, float]:
    """Median seconds of both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for work, taken in zip((ours, theirs), times, strict=True):
            began = time.perf_counter()
            await work()
            taken.append(time.perf_counter() - began)
    return statistics.median(times[0]), statistics.median(times[1])


async def _together(browser: Browser, url: str) -> float:
    """Megabytes of Chromium with so many threads, each with the page open; shared ones counted once."""
    for number in range(AT_ONCE):
        page = await browser.page(str(number))
        await page.act({"action": "go_to_url", "url": url})
        await page.observe()
    return round(sum(_own_memory(process) for process in _chromium_below()) / 1024)


def _chromium_below() -> set[int]:
    return {process for process in children() if "chrom" in command_of(process)}


def _own_memory(process: int) -> int:
    """Kilobytes of a process, with its share of what it has in common with others."""
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[1])  # type: ignore[index]
