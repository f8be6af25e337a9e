"""What waits for a person is inside the window in every state, with its buttons, without scrolling."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.page.fed import FEED, feed, open_run
from tests.page.streams import Event
from tests.page.test_following import expect_inside
from tests.serving import ServerProcess

_SIZES = [
    pytest.param(ViewportSize(width=1280, height=720), id="desktop"),
    pytest.param(ViewportSize(width=375, height=667), id="telephone"),
]
_LONG = "A line of what is asked, which goes on for a while.\n" * 40
_STEPS = [{"agent_name": "coder", "title": f"Part {at}", "description": _LONG} for at in range(30)]
_CALL = {"tool_name": "bash_tool", "tool_input": {"cmd": _LONG}, "tool_call_id": "c"}
_FORMS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "approval": ("tool_approval", {**_CALL, "reason": "approval"}, []),
    "unknown-call": ("tool_approval", {**_CALL, "reason": "unknown_result"}, []),
    "unclear-approval": ("tool_approval", {**_CALL, "unclear": _LONG, "error": _LONG}, []),
    "question": ("question", {"question": _LONG}, []),
    "options": ("question", {"question": _LONG}, [f"{at}. answer of some length" for at in range(4)]),
    "plan": ("plan_review", {"plan": {"title": "The plan", "steps": _STEPS}}, []),
    "plan-again": ("plan_review", {"plan": {"title": "The plan", "steps": _STEPS}, "error": _LONG}, []),
}
_BEGUN: list[Event] = [
    {"type": "run", "run_id": "run-running", "thread_id": "running"},
    {"type": "start_of_workflow", "workflow_id": "w", "input": [{"role": "user", "content": "How much?"}]},
    {"type": "start_of_agent", "agent_name": "browser", "agent_id": "b"},
]
_PICTURE = {"url": "https://e.test/", "title": "A page", "screenshot": "/icon.svg", "agent_id": "b"}
_FILE = {"artifact_id": "a", "name": "bars.svg", "media_type": "image/svg+xml", "size": 9, "url": "/icon.svg"}
_PICTURES: list[Event] = [{"type": "browser_state", **_PICTURE}, {"type": "artifact", **_FILE}]


@pytest.fixture(params=_SIZES)
def opened(request: pytest.FixtureRequest, browser: Browser, seeded: ServerProcess) -> Iterator[Page]:
    context = browser.new_context(base_url=seeded.url, locale="en-GB", viewport=request.param)
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.add_init_script(f"({FEED})()")
    yield page
    context.close()


def _expect_all_inside(page: Page) -> None:
    buttons = page.locator(".interrupt fieldset > .row button")
    expect(buttons.first).to_be_enabled()
    for button in buttons.all():
        expect_inside(button)
    expect_inside(page.get_by_label("Your question"))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize("is_step", [False, True], ids=["run", "step"])
def test_a_form_and_its_buttons_are_inside_the_window_before_and_after_pictures(
    opened: Page, form: str, is_step: bool
):
    kind, payload, options = _FORMS[form]
    asked = {"interrupt_id": "i", "kind": kind, "payload": payload, "options": options}
    if is_step:
        asks = [{"type": "step_interrupt", **asked, "agent_name": "coder", "agent_id": "c", "step_id": 1}]
    else:
        asks = [{"type": "interrupt", **asked}, {"type": "run_status", "status": "interrupted"}]
    open_run(opened, _BEGUN)
    feed(opened, asks, len(_BEGUN) + 1)
    _expect_all_inside(opened)
    feed(opened, _PICTURES, len(_BEGUN) + len(asks) + 1)
    expect(opened.locator("main img").first).to_be_attached()
    _expect_all_inside(opened)
