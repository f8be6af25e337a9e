"""What is written in a form of the page and not sent is there again when its conversation is."""

import pytest
from playwright.sync_api import Page, expect

from tests.openai_server import SIMPLE, OpenAIServer
from tests.page.test_page import ask, standing


def _leave_and_return(page: Page) -> None:
    page.get_by_role("link", name="New conversation").click()
    expect(page.get_by_text("What should the team work on?")).to_be_visible()
    page.go_back()


def test_an_edited_plan_and_an_edited_question_outlive_another_conversation(page: Page, model: OpenAIServer):
    page.get_by_role("button", name="Review the plan").click()
    ask(page)
    page.get_by_role("button", name="Edit the plan").click()
    expect(page.get_by_text("What is edited here is not used then.")).to_be_visible()
    page.get_by_label("Title of the step").first.fill("Mine")
    _leave_and_return(page)
    expect(page.get_by_label("Title of the step").first).to_have_value("Mine")
    page.get_by_role("button", name="Approve edited plan").click()
    standing(page, "Done")
    field = page.get_by_role("textbox", name="Edit the question")
    page.get_by_role("button", name="Edit the question").click()
    field.fill("1+4=?")
    _leave_and_return(page)
    expect(field).to_have_value("1+4=?")
    page.get_by_role("button", name="Cancel").click()
    _leave_and_return(page)
    expect(page.get_by_role("button", name="Edit the question")).to_be_visible()
    expect(field).to_have_count(0)


@pytest.mark.slow
def test_an_edited_step_outlives_another_conversation_and_a_change_of_the_plan(
    page: Page, model: OpenAIServer
):
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    ask(page)
    page.get_by_role("button", name="Change this step: Compute").click()
    page.get_by_role("menuitem", name="Edit").click()
    title, what = page.get_by_label("Title of the step"), page.get_by_label("What to do")
    title.fill("Mine")
    _leave_and_return(page)
    expect(title).to_have_value("Mine")
    run_id = str(page.locator(".run").get_attribute("id")).removeprefix("run-")
    elsewhere = {"action": "edit", "step_id": 1, "description": "Changed elsewhere."}
    assert page.request.post(f"/api/runs/{run_id}/plan", data=elsewhere).ok
    expect(what).to_have_value("Changed elsewhere.")
    expect(title).to_have_value("Mine")
    with page.expect_request("**/plan") as saved:
        page.get_by_role("button", name="Save").click()
    assert saved.value.post_data_json == {"action": "edit", "step_id": 1, "title": "Mine"}
    expect(title).to_have_count(0)
    _leave_and_return(page)
    expect(page.locator(".plan li").first).to_contain_text("Mine")
    expect(title).to_have_count(0)
