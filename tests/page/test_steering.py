"""A person writes to the team while it works."""

import json

import pytest
from playwright.sync_api import Page, expect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.page.test_page import ask, standing

HANGING = {"hang": True}
_WATCH_THE_TEXT = """(text) => {
    window.frames_without = 0;
    const look = () => {
        if (!document.querySelector(".conversation").textContent.includes(text)) window.frames_without += 1;
        requestAnimationFrame(look);
    };
    look();
}"""
"""Count the frames in which the conversation does not have a text."""


def lead(decision: str) -> dict[str, object]:
    return reply(json.dumps({"decision": decision, "reply": "Gladly, in euros.", "changes": [], "steps": []}))


def test_what_is_written_while_the_team_works_is_answered_at_once(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [HANGING], "supervisor": [lead("answer")]})
    options = page.get_by_text("Deep thinking")
    expect(options).to_be_visible()
    ask(page)
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
    expect(options).to_be_hidden()
    field = page.get_by_label("Your question")
    expect(field).to_have_attribute("placeholder", "Write to the team while it works…")
    ask(page, "In euros, please.")
    expect(page.locator(".run")).to_have_count(1)
    expect(page.locator(".written .question")).to_have_text("In euros, please.")
    expect(page.locator(".written .reply")).to_have_text("Gladly, in euros.")
    page.reload()
    expect(page.locator(".written .reply")).to_have_text("Gladly, in euros.")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(1)
    page.get_by_role("button", name="Cancel").click()
    standing(page, "Cancelled")
    expect(options).to_be_visible()


def test_a_question_about_an_approval_is_answered_while_the_approval_stays_open(
    page: Page, model: OpenAIServer
):
    answer = reply(json.dumps({"is_question": True, "reply": "It prints a 4, and changes nothing."}))
    script = {**SIMPLE, "coder": [call("bash_tool", cmd="echo 4"), reply("4")], "supervisor": [answer]}
    model.reset(script)
    ask(page)
    approve = page.get_by_role("button", name="Approve")
    expect(approve).to_be_visible()
    ask(page, "What does it do?")
    expect(page.locator(".written .question")).to_have_text("What does it do?")
    expect(page.locator(".written .reply")).to_have_text("It prints a 4, and changes nothing.")
    expect(approve).to_be_visible()
    standing(page, "Waiting for you")
    approve.click()
    standing(page, "Done")


@pytest.mark.slow
def test_what_becomes_a_request_of_its_own_is_the_next_on_the_page(page: Page, model: OpenAIServer):
    held = reply("1 + 3 = 4", hang=True)
    model.reset({**SIMPLE, "coder": [held, reply("2 + 2 = 4")], "supervisor": [lead("next_run")]})
    ask(page)
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
    ask(page, "And now 2+2?")
    expect(page.locator(".written .reply")).to_have_text("Gladly, in euros.")
    page.evaluate(_WATCH_THE_TEXT, "And now 2+2?")
    model.release()
    expect(page.locator(".run")).to_have_count(2)
    expect(page.locator(".run").last.locator(".question").first).to_have_text("And now 2+2?")
    standing(page, "Done")
    expect(page.locator(".conversation .question", has_text="And now 2+2?")).to_have_count(1)
    assert page.evaluate("window.frames_without") == 0
