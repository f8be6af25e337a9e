"""A step asks while others go on: the page shows the question, and what is typed answers it."""

import json

from playwright.sync_api import Page, expect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.page.test_page import ask, standing
from tests.team import plan, step

STEPS = [
    {**step("researcher", "Ask"), "needs": []},
    {**step("coder", "Work"), "needs": []},
    step("reporter", "Report"),
]
ANSWER = {"decision": "answer", "reply": "Gladly, in euros.", "changes": [], "steps": []}
SCRIPT = {
    **SIMPLE,
    "by_history": True,
    "planner": [reply(json.dumps(plan(*STEPS)))],
    "researcher": [call("ask_human", question="Which year?", options=["2023", "2024"]), reply("Of 2024.")],
    "coder": [{**reply("It is 4."), "hang": True}],
    "supervisor": [reply(json.dumps(ANSWER))],
}


def begin(page: Page, model: OpenAIServer) -> None:
    model.reset(SCRIPT)
    ask(page)
    expect(page.get_by_role("region", name="The team asks")).to_contain_text("Which year?")
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
    standing(page, "Running")


def given(model: OpenAIServer) -> str:
    model.wait_for(lambda stats: stats["by_role"].get("researcher") == 2)
    prompts = [
        one["messages"] for one in model.requests if "You are the researcher" in str(one["messages"][0])
    ]
    return str(prompts[-1][-1]["content"])


def test_the_question_of_a_step_is_answered_in_its_form_while_the_others_go_on(
    page: Page, model: OpenAIServer
):
    begin(page, model)
    page.get_by_role("region", name="The team asks").get_by_role("button", name="2024").click()
    assert "2024" in given(model)
    expect(page.get_by_role("region", name="The team asks")).to_have_count(0)
    standing(page, "Running")
    model.release()
    standing(page, "Done")


def test_what_is_typed_answers_the_question_unless_it_is_meant_for_the_team(page: Page, model: OpenAIServer):
    begin(page, model)
    expect(page.locator(".composer .target")).to_contain_text("Which year?")
    page.locator(".composer .target").get_by_role("button").click()
    ask(page, "In euros, please.")
    expect(page.locator(".written .reply")).to_have_text("Gladly, in euros.")
    ask(page, "in 2024")
    assert "in 2024" in given(model)
    expect(page.locator(".written")).to_have_count(1)
    model.release()
    standing(page, "Done")


def test_what_was_begun_before_a_question_appeared_goes_to_the_team(page: Page, model: OpenAIServer):
    asks = {**call("ask_human", question="Which year?", options=["2023", "2024"]), "hang": True}
    writes = {**call("write_file", path="a.txt", content="4"), "hang": True}
    works = [writes, {**reply("It is 4."), "hang": True}]
    model.reset({**SCRIPT, "researcher": [asks, reply("Of 2024.")], "coder": works})
    ask(page)
    model.wait_for(lambda stats: {"researcher", "coder"} <= stats["by_role"].keys())
    standing(page, "Running")
    field = page.get_by_label("Your question")
    field.fill("In euros,")
    model.release()
    expect(page.get_by_role("region", name="The team asks")).to_contain_text("Which year?")
    field.press("End")
    field.press_sequentially(" please.")
    field.press("Enter")
    expect(page.locator(".written .reply")).to_have_text("Gladly, in euros.")
    expect(page.get_by_role("region", name="The team asks")).to_have_count(1)
    ask(page, "in 2024")
    assert "in 2024" in given(model)
    expect(page.locator(".written")).to_have_count(1)
    model.release()
    standing(page, "Done")


def test_a_question_that_is_left_open_waits_with_the_run(page: Page, model: OpenAIServer):
    begin(page, model)
    model.release()
    standing(page, "Waiting for you")
    expect(page.get_by_role("region", name="The team asks")).to_have_count(1)
    page.get_by_role("region", name="The team asks").get_by_role("button", name="2023").click()
    assert "2023" in given(model)
    standing(page, "Done")
