"""What is going on, what waits and what was answered is inside the window, on a desktop and a telephone."""

import json

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.page.test_page import ask, standing
from tests.team import plan, step

_SIZES = [
    pytest.param({"width": 1280, "height": 800}, id="desktop"),
    pytest.param({"width": 375, "height": 700}, id="telephone"),
]
_LONG = "# The first line\n\n" + "\n\n".join(f"Paragraph {one} has a sentence or two." for one in range(80))
_MANY_STEPS = plan(*(step("coder", f"Compute part {one}") for one in range(40)), step("reporter"))
_COLUMNS = ["Country", "Population", "Inhabitants per km²", "Gross domestic product", "Founded", "Capital"]
_ROW = ["Netherlands", "17,811,291", "527.14", "1,117,100,000,000", "1815", "Amsterdam"]
_TABLE = "\n".join(f"| {' | '.join(one)} |" for one in (_COLUMNS, ["---"] * len(_COLUMNS), _ROW, _ROW))
_LINES = """cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    const boxes = [...range.getClientRects()].sort((one, other) => one.top - other.top);
    let lines = 0, bottom = -Infinity;
    for (const box of boxes) {
        if (box.top >= bottom - 1) lines += 1;
        bottom = Math.max(bottom, box.bottom);
    }
    return lines;
}"""
"""The lines of a cell; a mark beside a figure is smaller, yet on its line."""


@pytest.fixture(params=_SIZES)
def size(request: pytest.FixtureRequest, page: Page) -> ViewportSize:
    chosen: ViewportSize = request.param
    page.set_viewport_size(chosen)
    return chosen


def expect_inside(one: Locator) -> None:
    """Expect that the whole element is seen without scrolling."""
    expect(one).to_be_in_viewport(ratio=0.99)


@pytest.mark.slow
def test_what_waits_is_inside_the_window_however_long_its_plan_is(
    page: Page, model: OpenAIServer, size: ViewportSize
):
    model.reset({**SIMPLE, "planner": [reply(json.dumps(_MANY_STEPS))]})
    page.get_by_role("button", name="Review the plan").click()
    ask(page)
    accept = page.get_by_role("button", name="Accept the plan")
    expect_inside(accept)
    page.get_by_role("log").evaluate("one => one.scrollTo({ top: 0 })")
    expect_inside(accept)
    expect_inside(page.get_by_label("Your question"))


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 60])
def test_an_approval_can_be_given_and_refused_without_scrolling(page: Page, model: OpenAIServer, lines: int):
    page.set_viewport_size({"width": 375, "height": 667})
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="echo 4\n" * lines), reply("It is 4.")]})
    ask(page)
    expect_inside(page.get_by_role("button", name="Approve"))
    expect_inside(page.get_by_role("button", name="Reject with a reason"))
    expect_inside(page.get_by_role("button", name="Reject", exact=True))
    expect_inside(page.get_by_label("Your question"))


@pytest.mark.slow
def test_plan_and_work_stand_beside_the_conversation_and_move_nothing_of_it(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [{**reply("It is 4."), "hang": True}]})
    ask(page)
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
    parts = (page.get_by_role("log"), page.locator(".question"), page.locator(".composer"))
    before = [one.bounding_box() for one in parts]
    work = page.get_by_role("complementary", name="The team’s work")
    expect_inside(work.get_by_role("region", name="Plan").locator("li.in_progress"))
    expect_inside(work.locator(".turn .member"))
    model.release()
    standing(page, "Done")
    after = [one.bounding_box() for one in parts]
    assert [one["x"] for one in after if one] == [one["x"] for one in before if one]
    assert [one["width"] for one in after if one] == [one["width"] for one in before if one]
    assert before[1] == after[1]


@pytest.mark.slow
def test_the_work_is_a_sheet_on_a_telephone_that_gives_way_to_what_waits(page: Page, model: OpenAIServer):
    page.set_viewport_size({"width": 375, "height": 667})
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="echo 4"), {**reply("It is 4."), "hang": True}]})
    ask(page)
    sheet = page.get_by_role("complementary", name="The team’s work")
    handle, plan_ = (
        sheet.get_by_role("button", expanded=False).first,
        sheet.get_by_role("region", name="Plan"),
    )
    expect_inside(page.get_by_role("button", name="Approve"))
    expect(plan_).to_be_hidden()
    # The field in use is higher; it gives its height back only once no pointer is pressed.
    page.get_by_label("Your question").focus()
    handle.click()
    expect(plan_).to_be_visible()
    expect_inside(page.get_by_role("button", name="Approve"))
    sheet.get_by_role("button", expanded=True).first.click()
    expect(plan_).to_be_hidden()
    page.get_by_role("button", name="Approve").click()
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 2)
    model.release()
    standing(page, "Done")


@pytest.mark.slow
def test_a_step_under_way_shows_what_it_does(page: Page, model: OpenAIServer, size: ViewportSize):
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="echo 4"), {**reply("It is 4."), "hang": True}]})
    ask(page)
    page.get_by_role("button", name="Approve").click()
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 2)
    expect(page.locator(".call")).to_contain_text("echo 4")
    expect_inside(page.locator(".call summary"))
    model.release()
    standing(page, "Done")
    expect(page.locator(".call")).to_have_count(0)


def test_an_answer_is_read_from_its_first_line_and_a_conversation_from_its_newest_question(
    page: Page, model: OpenAIServer, size: ViewportSize
):
    model.reset({**SIMPLE, "reporter": [reply(_LONG)]})
    ask(page)
    standing(page, "Done")
    first = page.get_by_role("log").get_by_role("heading", name="The first line")
    expect_inside(first)
    ask(page, "And again?")
    expect(first).to_have_count(2)
    standing(page, "Done")
    expect_inside(first.last)
    page.reload()
    expect(first).to_have_count(2)
    expect_inside(page.get_by_text("And again?").last)


@pytest.mark.slow
def test_a_table_breaks_no_word_and_scrolls_in_itself(page: Page, model: OpenAIServer, size: ViewportSize):
    model.reset({**SIMPLE, "reporter": [reply(f"Figures:\n\n{_TABLE}")]})
    ask(page)
    standing(page, "Done")
    cells = page.locator(".answer td")
    expect(cells).to_have_count(2 * len(_ROW))
    assert [one.evaluate(_LINES) for one in cells.all()] == [1] * (2 * len(_ROW))
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


@pytest.mark.slow
def test_the_composer_is_low_on_a_telephone_until_it_is_used(page: Page):
    page.set_viewport_size({"width": 375, "height": 667})
    field, composer = page.get_by_label("Your question"), page.locator(".composer")
    field.fill("A question of several lines.\n" * 6)
    page.get_by_role("log").focus()
    box = composer.bounding_box()
    assert box is not None
    assert box["height"] <= 96
    field.focus()
    expect_inside(page.get_by_role("button", name="Review the plan"))
    expect_inside(page.get_by_role("button", name="Send"))


def test_the_choice_to_review_plans_ends_with_its_conversation(page: Page):
    review = page.get_by_role("button", name="Review the plan")
    review.click()
    ask(page)
    page.get_by_role("button", name="Accept the plan").click()
    standing(page, "Done")
    expect(review).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(review).to_have_attribute("aria-pressed", "true")
    page.get_by_role("link", name="New conversation").click()
    expect(review).to_have_attribute("aria-pressed", "false")
    ask(page)
    standing(page, "Done")
    page.go_back()
    expect(review).to_have_attribute("aria-pressed", "true")
