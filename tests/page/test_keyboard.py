"""Each task of the page with the keyboard alone: the focus is seen, and never lost after an action."""

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.page.test_page import ask, standing

_MOST_KEYS = 150
_IS_FOCUSED = "one => one === document.activeElement"
_IS_SEEN = """one => one.matches(":focus-visible")
    && (getComputedStyle(one).outlineStyle !== "none" || one.closest(".composer") !== null)"""
"""The field of the next question has its mark on the frame around it."""
_HAS_FOCUS = """() => {
    const one = document.activeElement;
    return one !== document.body && one.checkVisibility({ visibilityProperty: true });
}"""


def reach(page: Page, target: Locator, key: str = "Tab") -> None:
    """Press a key until an element has the focus, and expect that this is seen."""
    expect(target).to_be_enabled()
    for _ in range(_MOST_KEYS):
        if target.evaluate(_IS_FOCUSED):
            break
        page.keyboard.press(key)
    expect(target).to_be_focused()
    assert target.evaluate(_IS_SEEN)


def use(page: Page, target: Locator, key: str = "Enter", way: str = "Tab") -> None:
    """Go to a button or link, press a key on it, and expect that the focus is not lost."""
    reach(page, target, way)
    page.keyboard.press(key)
    keeps_focus(page)


def keeps_focus(page: Page) -> None:
    page.wait_for_function(_HAS_FOCUS)


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def write(page: Page, text: str) -> None:
    expect(page.get_by_label("Your question")).to_be_focused()
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def test_asking_following_up_and_editing(page: Page, model: OpenAIServer):
    texts = ("First answer.", "Second answer.", "Third answer.")
    model.reset({"coordinator": [reply(one) for one in texts]})
    write(page, "1+3=?")
    standing(page, "Done")
    write(page, "And 1+4?")
    expect(page.get_by_text("Second answer.")).to_be_visible()
    standing(page, "Done")
    use(page, button(page, "Edit the question").last, way="Shift+Tab")
    expect(page.get_by_role("textbox", name="Edit the question")).to_be_focused()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("And 1+5?")
    use(page, button(page, "Send again"))
    expect(page.get_by_text("Third answer.")).to_be_visible()
    standing(page, "Done")
    keeps_focus(page)
    for name, text in (("Previous version", "Second answer."), ("Next version", "Third answer.")):
        use(page, page.get_by_role("link", name=name), way="Shift+Tab")
        expect(page.get_by_text(text)).to_be_visible()
        standing(page, "Done")
        keeps_focus(page)


@pytest.mark.slow
def test_searching_and_opening_a_hit(page: Page, model: OpenAIServer):
    model.reset({"coordinator": [reply("Photovoltaics grew by 24 percent.")], "by_history": True})
    write(page, "How much?")
    standing(page, "Done")
    use(page, page.get_by_role("link", name="New conversation"), way="Shift+Tab")
    expect(page.get_by_text("What should the team work on?")).to_be_visible()
    reach(page, page.get_by_role("searchbox"), "Shift+Tab")
    page.keyboard.type("photovolt")
    hits = page.get_by_role("region", name="In questions and answers")
    use(page, hits.get_by_role("link"))
    expect(page.locator(".answer").get_by_text("Photovoltaics grew")).to_be_visible()
    keeps_focus(page)


@pytest.mark.slow
def test_a_plan_is_changed_in_words_edited_and_accepted(page: Page):
    use(page, button(page, "Review the plan"), "Space")
    reach(page, page.get_by_label("Your question"), "Shift+Tab")
    write(page, "1+3=?")
    standing(page, "Waiting for you")
    use(page, button(page, "Ask for changes"), way="Shift+Tab")
    write(page, "Ask nobody else.")
    expect(page.locator(".replied .question")).to_have_text("Ask nobody else.")
    standing(page, "Waiting for you")
    keeps_focus(page)
    use(page, button(page, "Edit the plan"), way="Shift+Tab")
    expect(page.get_by_label("Title of the step").first).to_be_focused()
    use(page, button(page, "Discard changes"))
    expect(button(page, "Edit the plan")).to_be_focused()
    use(page, button(page, "Accept the plan"), way="Shift+Tab")
    standing(page, "Done")
    keeps_focus(page)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Approve", "Always allow here", "Reject"])
def test_deciding_on_a_call(page: Page, model: OpenAIServer, name: str):
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="echo 4"), reply("4")]})
    write(page, "1+3=?")
    use(page, button(page, name), way="Shift+Tab")
    standing(page, "Done")
    keeps_focus(page)


@pytest.mark.slow
def test_editing_a_call(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="echo 4"), reply("4")]})
    write(page, "1+3=?")
    use(page, page.locator(".interrupt").get_by_role("button", name="Edit", exact=True), way="Shift+Tab")
    expect(page.get_by_label("Arguments")).to_be_focused()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type('{"cmd": "echo 5"}')
    use(page, button(page, "Approve as edited"))
    standing(page, "Done")
    keeps_focus(page)


@pytest.mark.slow
def test_answering_with_an_option(page: Page, model: OpenAIServer):
    asks = call("ask_human", question="Which year?", options=["2020", "2021"])
    model.reset({**SIMPLE, "coder": [asks, reply("4")]})
    write(page, "1+3=?")
    use(page, button(page, "2021"), way="Shift+Tab")
    expect(page.locator(".replied .question")).to_have_text("2021")
    standing(page, "Done")
    keeps_focus(page)


@pytest.mark.slow
def test_choosing_effort_and_limits(page: Page):
    effort, limits = page.get_by_label("Effort"), page.locator("summary", has_text="Limits")
    reach(page, effort)
    page.keyboard.press("ArrowDown")
    expect(effort).not_to_have_value("")
    use(page, limits)
    reach(page, page.get_by_label("tokens"))
    page.keyboard.type("5000")
    page.keyboard.press("Escape")
    expect(page.get_by_label("tokens")).to_be_hidden()
    expect(limits).to_be_focused()
    reach(page, page.get_by_label("Your question"), "Shift+Tab")
    with page.expect_request(lambda one: one.method == "POST" and one.url.endswith("/runs")) as sent:
        write(page, "1+3=?")
    assert sent.value.post_data_json["budget"]["tokens"] == 5000
    assert sent.value.post_data_json["effort"]
    standing(page, "Done")


@pytest.mark.slow
def test_opening_the_form_for_another_model_and_leaving_it(page: Page):
    named = page.get_by_role("button", name=re.compile("^Model: ")).first
    use(page, named, way="Shift+Tab")
    expect(page.get_by_label("Address of the endpoint")).to_be_visible()
    assert page.evaluate("document.activeElement.closest('dialog, form') !== null")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Address of the endpoint")).to_have_count(0)
    expect(named).to_be_focused()


@pytest.mark.slow
def test_going_through_the_tabs_of_the_panel(page: Page):
    ask(page)
    standing(page, "Done")
    reach(page, page.get_by_role("tab", selected=True))
    for name in ("Now", "Browser", "Files", "Sources", "Report"):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name=name)).to_be_focused()
        expect(page.get_by_role("tabpanel", name=name)).to_be_visible()
        page.keyboard.press("Tab")
        keeps_focus(page)
        reach(page, page.get_by_role("tab", name=name), "Shift+Tab")


@pytest.mark.slow
def test_stopping_a_run_and_going_on_with_it(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [{"hang": True}, reply("4")]})
    write(page, "1+3=?")
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
    use(page, button(page, "Cancel"))
    standing(page, "Cancelled")
    keeps_focus(page)
    use(page, button(page, "Retry"), way="Shift+Tab")
    standing(page, "Done")
    keeps_focus(page)


@pytest.mark.slow
def test_a_step_that_asks_while_others_work_is_answered(page: Page, model: OpenAIServer):
    steps = [
        {"agent_name": name, "title": name, "description": name, "needs": []}
        for name in ("coder", "researcher")
    ]
    steps.append({"agent_name": "reporter", "title": "Report", "description": "Report."})
    planned = {"thought": "", "title": "Two at once", "steps": steps}
    asks = call("ask_human", question="Which year?", options=["2020", "2021"])
    held = {**reply("It is 4."), "hang": True}
    model.reset(
        {**SIMPLE, "planner": [reply(json.dumps(planned))], "coder": [asks, reply("4")], "researcher": [held]}
    )
    write(page, "1+3=?")
    waits = page.locator(".plan li", has_text="coder")
    expect(waits.locator("summary").first).to_contain_text("Waiting for you")
    use(page, button(page, "2020"), way="Shift+Tab")
    expect(waits.locator("summary").first).not_to_contain_text("Waiting for you")
    model.release()
    standing(page, "Done")
    keeps_focus(page)
