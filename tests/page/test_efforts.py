"""The effort of a run in the composer: chosen for the next question, then fixed with its model and limits."""

from playwright.sync_api import Page, expect

from tests.openai_server import SIMPLE, Json, OpenAIServer, reply
from tests.page.test_page import ask, standing


def _refuse_effort(body: Json) -> str:
    return "Unrecognized request argument supplied: reasoning_effort" if "reasoning_effort" in body else ""


def test_the_chosen_effort_goes_with_the_question_and_is_fixed_while_the_run_works(
    page: Page, model: OpenAIServer
):
    model.reset({**SIMPLE, "coder": [reply("It is 4.", hang=True)]})
    page.get_by_label("Effort").select_option("low")
    page.locator("summary", has_text="Limits").click()
    page.get_by_label("tokens").fill("900000")
    page.keyboard.press("Escape")
    ask(page)
    fixed = page.locator(".fixed-options")
    expect(fixed).to_contain_text("Effort low")
    expect(fixed).to_contain_text("at most 900,000 tokens")
    expect(page.get_by_label("Effort")).to_be_hidden()
    model.release()
    standing(page, "Done")
    assert {one.get("reasoning_effort") for one in model.requests} == {"low"}
    expect(fixed).to_have_count(0)
    expect(page.get_by_label("Effort")).to_have_value("low")
    expect(page.locator(".run .notice")).to_have_count(0)


def test_a_run_says_that_its_model_takes_no_effort(page: Page, model: OpenAIServer):
    model.reset(SIMPLE)
    model.refuse = _refuse_effort
    try:
        page.get_by_label("Effort").select_option("high")
        ask(page)
        standing(page, "Done")
    finally:
        del model.refuse
    expect(page.locator(".run .notice")).to_have_count(1)
    expect(page.locator(".run .notice")).to_contain_text("takes no effort")
