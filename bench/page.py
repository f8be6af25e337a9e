"""How long the page keeps its browser busy over a run of 5,000 events, how soon a token stands in it,
and how soon a report of 100 KB.

A task's time is the CPU time of the page's own thread, as Chromium's trace has it: what other programs do
meanwhile does not count.
"""

import json
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from tests.environment import environment
from tests.openai_server import SIMPLE, reply, serving
from tests.page.stories import Story, keep, long_story, report_story
from tests.serving import ServerProcess, server_process

_CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
_CHROMIUM = ("chromium-headless-shell", "chromium")
_QUIET = ("--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync")
_TOKENS = 300
_OPENINGS = 9

_SCROLL = """async () => {
    const place = document.querySelector(".conversation");
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    for (const way of [1, -1]) for (let n = 0; n <= 60; n += 1) {
        place.scrollTop = place.scrollHeight * (way > 0 ? n : 60 - n) / 60;
        await frame();
    }
}"""
# When the newest token of each piece of a stream came, and when the page first had it.
_WATCH = """() => {
    window.came = {}; window.shown = {};
    const newest = (text) => text.match(/word[a-z]+/g)?.at(-1);
    const fetched = window.fetch;
    window.fetch = async (...given) => {
        const response = await fetched(...given);
        if (!String(given[0]).includes("/events")) return response;
        const words = new TextDecoder();
        const note = new TransformStream({ transform(piece, out) {
            const word = newest(words.decode(piece, { stream: true }));
            if (word) window.came[word] ??= performance.now();
            out.enqueue(piece);
        } });
        return new Response(response.body.pipeThrough(note), response);
    };
    const look = () => {
        const word = newest(document.querySelector(".answer .markdown")?.textContent ?? "");
        if (word) window.shown[word] ??= performance.now();
    };
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
}"""

# The milliseconds from a click until the whole report is painted with its contents.
_OPEN = """() => new Promise((resolve) => {
    const begun = performance.now();
    document.querySelector(".read-report").click();
    const frame = () => {
        if (!document.querySelector(".reading .contents")) return requestAnimationFrame(frame);
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begun)));
    };
    requestAnimationFrame(frame);
})"""


async def measure() -> dict[str, float]:
    """Open a prepared run in a real Chromium, then ask a question and watch its answer being written."""
    slow = reply(" ".join(map(_word, range(_TOKENS))), delay_seconds=0.02)
    with serving({**SIMPLE, "reporter": [slow]}) as model, tempfile.TemporaryDirectory() as home:
        story, report = long_story(), report_story()
        await keep(Path(home), story, report)
        with server_process(environment(model.base_url, home), Path(home)) as server:
            async with async_playwright() as playwright:
                path = next(filter(None, map(shutil.which, _CHROMIUM)), None)
                browser = await playwright.chromium.launch(
                    executable_path=path, chromium_sandbox=False, args=_QUIET
                )
                tasks = await _tasks(browser, server, story)
                opened = await _report(browser, server, report)
                tokens = await _tokens(browser, server)
                await browser.close()
    return tasks | opened | tokens


def _word(number: int) -> str:
    """Return a word of its own without figures: a text with figures is shown once these are checked."""
    return "word" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


async def _tasks(browser: Browser, server: ServerProcess, story: Story) -> dict[str, float]:
    page = await browser.new_page(base_url=server.url, locale="en-GB")
    longest: dict[str, float] = {}
    await browser.start_tracing(page=page, categories=_CATEGORIES)
    await page.goto(f"/#{story.name}")
    calls = sum(kind == "tool_call" for kind, *_ in story.events)
    await page.get_by_text(f"{calls} tool calls").wait_for()
    longest["page_load_5000_task_ms"] = _longest(await browser.stop_tracing())
    await browser.start_tracing(page=page, categories=_CATEGORIES)
    await page.locator("#panel-tab-now").click()
    await page.locator(".work > summary").click()
    await page.wait_for_function(f"() => document.querySelectorAll('.call').length === {calls}")
    longest["page_open_5000_task_ms"] = _longest(await browser.stop_tracing())
    await browser.start_tracing(page=page, categories=_CATEGORIES)
    await page.evaluate(_SCROLL)
    longest["page_scroll_5000_task_ms"] = _longest(await browser.stop_tracing())
    await page.close()
    return longest


def _longest(trace: bytes) -> float:
    """Return the CPU time of the longest task of the page's thread, in milliseconds."""
    return round(max(_task_times(trace)) / 1_000)


def _task_times(trace: bytes) -> list[float]:
    """Return the CPU times of the tasks of the page's thread, in microseconds."""
    events: list[dict[str, Any]] = json.loads(trace)["traceEvents"]
    named = (one for one in events if one["name"] == "thread_name")
    main = {(one["pid"], one["tid"]) for one in named if one["args"]["name"] == "CrRendererMain"}
    tasks = (one for one in events if one["name"] == "RunTask" and (one["pid"], one["tid"]) in main)
    return [one.get("tdur", 0) for one in tasks]


async def _report(browser: Browser, server: ServerProcess, story: Story) -> dict[str, float]:
    """Open a report of 100 KB from its conversation, once to load the code and then several times.

    The CPU time is that of the page's thread until the report is painted.
    """
    page = await browser.new_page(base_url=server.url, locale="en-GB")
    await page.goto(f"/#{story.name}")
    await page.locator(".answer .citation").last.wait_for()
    waits: list[float] = []
    work: list[float] = []
    for _ in range(_OPENINGS):
        await page.wait_for_function(
            "() => !document.querySelector('.answer pre > code:not([data-coloured])')"
        )
        await browser.start_tracing(page=page, categories=_CATEGORIES)
        waits.append(await page.evaluate(_OPEN))
        work.append(sum(_task_times(await browser.stop_tracing())) / 1_000)
        await page.get_by_role("button", name="Back", exact=True).click()
        await page.locator(".reading").wait_for(state="detached")
    await page.close()
    return {
        "page_report_first_ms": round(waits[0]),
        "page_report_open_ms": round(statistics.median(waits[1:])),
        "page_report_open_cpu_ms": round(statistics.median(work[1:])),
    }


async def _tokens(browser: Browser, server: ServerProcess) -> dict[str, float]:
    page: Page = await browser.new_page(base_url=server.url, locale="en-GB")
    await page.add_init_script(f"({_WATCH})()")
    await page.goto("/")
    await page.get_by_label("Your question").fill("1+3=?")
    await page.keyboard.press("Enter")
    await page.locator(".standing.completed").wait_for(timeout=60_000)
    came, shown = await page.evaluate("() => [window.came, window.shown]")
    waits = [at - came[word] for word, at in shown.items() if word in came]
    await page.close()
    assert len(waits) > _TOKENS / 10
    return {
        "page_token_ms": round(statistics.median(waits)),
        "page_token_95_ms": round(statistics.quantiles(waits, n=20)[-1]),
    }
