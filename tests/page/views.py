"""Every view of the page, each over a conversation that is there already."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from playwright.sync_api import Page, Route, expect

from tests.openai_server import SIMPLE, serving
from tests.page.seeded import seeded
from tests.serving import ServerProcess, environment, server_process


@contextmanager
def seeded_server(home: Path) -> Iterator[ServerProcess]:
    """Start a server whose store has the conversations of `seeded.py`."""
    with serving(SIMPLE) as model, start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(seeded(home)):
            with server_process(environment(model.base_url, home), home) as process:
                yield process


@dataclass(frozen=True)
class View:
    """What is to be seen: at which address, when it is there, and what a person did to see it."""

    name: str
    thread: str
    shows: str
    """A selector of what is visible when the view is there."""
    prepare: Callable[[Page], None] = lambda _: None


def _pull_sheet(page: Page) -> None:
    """Open the sheet with plan and work, where the window has no room for them beside the conversation."""
    handle = page.locator(".panel > .handle[aria-expanded=false]")
    expect(page.locator(".panel")).to_be_attached()
    if handle.is_visible():
        handle.click()


def _open_work(page: Page) -> None:
    _pull_sheet(page)
    page.locator("#panel-tab-now").click()
    page.locator(".work > summary").last.click()
    expect(page.locator(".call > summary").first).to_be_visible()
    for summary in page.locator(".call > summary").all():
        summary.click()


def _open_film(page: Page) -> None:
    expect(page.locator(".standing.completed")).to_be_attached()
    _pull_sheet(page)
    page.locator("#panel-tab-browser").click()
    page.get_by_role("slider").fill("1")


def _edit_plan(page: Page) -> None:
    page.locator(".interrupt .row button").nth(1).click()


def _choose(page: Page) -> None:
    page.locator(".composer textarea").focus()
    page.locator(".composer [aria-pressed]").first.click()
    page.locator("input[type=file]").set_input_files(
        {"name": "sales.csv", "mimeType": "text/csv", "buffer": b"month,sum\n1,4\n"}
    )
    page.locator(".composer textarea").fill("How much was sold?\nAnd when?")
    page.locator(".team > summary").click()


def _open_limits(page: Page) -> None:
    page.locator(".composer textarea").focus()
    page.locator(".limits > summary").click()


def refused(status: int, code: str, detail: str) -> Callable[[Route], None]:
    body = json.dumps({"detail": detail, "code": code})
    return lambda route: route.fulfill(status=status, body=body, content_type="application/json")


def _ask_too_much(page: Page) -> None:
    words = "The key has used up its 10,000 tokens of today. Ask again in 3 hours, or use another key."
    page.route("**/api/threads/*/runs", refused(429, "daily_limit", words))
    page.locator(".composer textarea").fill("And once more?")
    page.keyboard.press("Enter")


def _cut(page: Page) -> None:
    page.route("**/api/runs/*/events*", lambda route: route.abort())
    page.reload()


def _lock(page: Page) -> None:
    page.route("**/api/**", refused(401, "key_needed", "This service requires an API key."))
    page.reload()


def _list(page: Page) -> None:
    if page.locator(".menu").is_visible():
        page.locator(".menu").click()


def _search(page: Page) -> None:
    passage = "Swifts sleep on the wing: they climb to about 2.5 km at dusk and glide."
    hit = {"run_id": "run-report", "thread_id": "report", "title": "How do swifts sleep?", "question": ""}
    found = {"hits": [hit | {"in_answer": True, "passage": passage, "marks": [[0, 6], [17, 24]]}]}
    page.route("**/api/search?*", lambda route: route.fulfill(json=found))
    _list(page)
    page.locator(".threads input").fill("swifts on the wing")


def _connect(page: Page) -> None:
    _list(page)
    page.locator(".threads button.chip").first.click()


def _suggest(page: Page) -> None:
    words = [
        "How do swallows sleep?",
        "Which birds sleep on one leg?",
        "Chart the height by hour of the night.",
    ]
    body = {"questions": words, "effort_not_used": ["guide"]}
    page.route("**/api/runs/*/suggestions", lambda route: route.fulfill(json=body))
    page.locator(".answer-acts button").last.click()


def _edit_question(page: Page) -> None:
    page.locator(".question-acts button").last.click()


def _open_tab(name: str) -> Callable[[Page], None]:
    def open_tab(page: Page) -> None:
        _pull_sheet(page)
        page.locator(f"#panel-tab-{name}").click()

    return open_tab


VIEWS = (
    View("hello", "", ".hello"),
    View("list", "", ".threads li", _list),
    View("choices", "", ".chosen", _choose),
    View("limits", "", ".limits input", _open_limits),
    View("running", "running", ".now"),
    View("report", "report", ".answer math"),
    View("reading", "report/read/run-report", ".reading"),
    View("work", "report", ".call pre", _open_work),
    View("browser", "browser", ".stage img", _open_film),
    View("browser-work", "browser", ".call", _open_work),
    View("files", "files", ".files button"),
    View("files-tab", "files", "#panel-files button", _open_tab("files")),
    View("sources-tab", "report", "#panel-sources a", _open_tab("sources")),
    View("report-tab", "report", "#panel-report math", _open_tab("report")),
    View("branch", "branch", ".beside"),
    View("question-editor", "report", ".editing textarea", _edit_question),
    View("suggestions", "report", ".follow-ups button", _suggest),
    View("search", "", ".found mark", _search),
    View("connect", "", "dialog.connect", _connect),
    View("failed", "failed", ".notice.bad"),
    View("cancelled", "cancelled", ".standing.cancelled"),
    View("plan-review", "review", ".interrupt"),
    View("plan-editor", "review", ".steps", _edit_plan),
    View("approval", "approval", ".interrupt .action"),
    View("question", "question", ".interrupt .row"),
    View("refused", "report", ".foot .notice.bad", _ask_too_much),
    View("offline", "running", ".foot .notice", _cut),
    View("key", "", ".door", _lock),
)


@contextmanager
def shown(page: Page, view: View, url: str) -> Iterator[None]:
    """Bring a view about, and take back what was done for it."""
    page.goto("about:blank")
    page.goto(f"{url}/#{view.thread}" if view.thread else url)
    expect(page.locator(".threads li, .hello").first).to_be_attached()
    if view.thread:
        expect(page.locator(".standing")).to_be_attached()
    view.prepare(page)
    expect(page.locator(view.shows).first).to_be_visible()
    yield
    page.unroute_all()


def settle(page: Page, **media: Any) -> None:
    """Wait until what was laid out is painted."""
    page.emulate_media(**media)
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
