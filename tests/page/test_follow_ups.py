"""Questions that the page suggests after an answer, on request."""

import json

from playwright.sync_api import Page, expect

from tests.openai_server import SIMPLE, OpenAIServer, reply
from tests.page.test_page import ask, standing

_QUESTIONS = ["What is 2+2?", "Why is 1+3 even?", "Who invented the plus sign?"]
_GUIDE = {
    **SIMPLE,
    "guide": [{"status": 500, "error": "down", "times": 1}, reply(json.dumps({"questions": _QUESTIONS}))],
}


def test_a_suggestion_goes_into_the_field_beside_what_is_there(page: Page, model: OpenAIServer):
    model.reset(_GUIDE)
    ask(page)
    standing(page, "Done")
    field = page.get_by_label("Your question")
    field.fill("A thought of mine.")
    suggest = page.get_by_role("button", name="Suggest follow-ups")
    suggest.click()
    expect(page.locator(".answer-acts [role=alert]")).to_contain_text("no suggestions")
    expect(field).to_have_value("A thought of mine.")
    suggest.click()
    offered = page.get_by_role("list", name="Suggested questions").get_by_role("button")
    expect(offered).to_have_text(_QUESTIONS)
    expect(page.locator(".answer-acts [role=alert]")).to_have_count(0)
    offered.nth(1).click()
    expect(field).to_have_value(f"A thought of mine.\n{_QUESTIONS[1]}")
    expect(field).to_be_focused()
    field.fill("")
    offered.nth(0).click()
    offered.nth(2).click()
    expect(field).to_have_value(_QUESTIONS[2])
    expect(page.locator("article.run")).to_have_count(1)
