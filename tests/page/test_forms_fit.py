"""What waits for a person is inside the window in every state, with its buttons, without scrolling."""

import io
from collections.abc import Iterator
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from tests.page.fed import FEED, feed, open_run
from tests.page.streams import Event
from tests.page.test_following import expect_inside
from tests.serving import ServerProcess

_SIZES = [
    pytest.param(ViewportSize(width=1280, height=720), id="desktop"),
    pytest.param(ViewportSize(width=375, height=667), id="telephone"),
]
_LONG = "A line of what is asked, which goes on for a while.\n" * 40
_OPTION = "An answer that says at some length what would be done, and why it may be the best of all of them."
_STEPS = [{"agent_name": "coder", "title": f"Part {at}", "description": _LONG} for at in range(30)]
_CALL = {"tool_name": "bash_tool", "tool_input": {"cmd": _LONG}, "tool_call_id": "c"}
_FORMS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "approval": ("tool_approval", {**_CALL, "reason": "approval"}, []),
    "unknown-call": ("tool_approval", {**_CALL, "reason": "unknown_result"}, []),
    "unclear-approval": ("tool_approval", {**_CALL, "unclear": _LONG, "error": _LONG}, []),
    "question": ("question", {"question": _LONG}, []),
    "options": ("question", {"question": _LONG}, [f"{at}. answer of some length" for at in range(4)]),
    "many-options": ("question", {"question": _LONG}, [f"{at}. {_OPTION}" for at in range(12)]),
    "plan": ("plan_review", {"plan": {"title": "The plan", "steps": _STEPS}}, []),
    "plan-again": ("plan_review", {"plan": {"title": "The plan", "steps": _STEPS}, "error": _LONG}, []),
}
_GAPS = [{"step": f"Part {at}", "reason": "It was not reached."} for at in range(3)]
_ENDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "failed": ({"status": "failed"}, ["Retry", "Ask again"]),
    "cancelled": ({"status": "cancelled", "gaps": _GAPS}, ["Retry", "Ask again"]),
    "budget": ({"status": "budget_exhausted", "gaps": _GAPS}, ["Retry", "Ask again"]),
    "incomplete": ({"status": "completed", "gaps": _GAPS}, ["Retry"]),
}
"""How a run ends that can go on, and the buttons for that."""
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
    buttons = page.locator(".interrupt fieldset > .row > button, .answers > :first-child")
    expect(buttons.first).to_be_enabled()
    for button in buttons.all():
        expect_inside(button)
    expect_inside(page.get_by_label("Your question"))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def _shaded_edges(scroller: Locator) -> list[bool]:
    """Return whether the upper and the lower edge of an element have a shadow."""
    picture = Image.open(io.BytesIO(scroller.screenshot())).convert("L")
    upper, middle, lower = (picture.getpixel((1, y)) for y in (1, picture.height // 2, picture.height - 2))
    return [upper != middle, lower != middle]


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


def test_answers_that_need_more_room_scroll_and_show_it(opened: Page):
    kind, payload, options = _FORMS["many-options"]
    asked = {"interrupt_id": "i", "kind": kind, "payload": payload, "options": options}
    open_run(opened, _BEGUN)
    ends = [{"type": "interrupt", **asked}, {"type": "run_status", "status": "interrupted"}]
    feed(opened, ends, len(_BEGUN) + 1)
    answers = opened.get_by_role("group", name="12 answers to choose from")
    buttons = answers.get_by_role("button")
    expect(buttons.first).to_be_enabled()
    assert answers.evaluate(
        "one => one.scrollHeight > one.clientHeight && one.scrollWidth <= one.clientWidth"
    )
    expect(buttons.last).not_to_be_in_viewport()
    assert _shaded_edges(answers) == [False, True]
    buttons.last.focus()
    expect_inside(buttons.last)
    answers.evaluate("one => one.scrollTo(0, one.scrollHeight)")
    assert _shaded_edges(answers) == [True, False]


@pytest.mark.parametrize("end", _ENDS)
def test_what_goes_on_with_a_run_that_ended_is_inside_the_window(opened: Page, end: str):
    status, names = _ENDS[end]
    open_run(opened, _BEGUN)
    ends: list[Event] = [
        *_PICTURES,
        {"type": "error", "code": "model_error", "message": _LONG[:200]},
        {"type": "run_status", **status},
        {"type": "final_session_state", "messages": []},
    ]
    feed(opened, ends, len(_BEGUN) + 1)
    for name in names:
        expect_inside(opened.get_by_role("button", name=name, exact=True))
    expect_inside(opened.get_by_label("Your question"))
