"""A step asks while others go on: the page shows the question, and what is typed answers it."""

import json

import pytest
from playwright.sync_api import Page, expect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.page.test_page import ask, standing
from tests.team import plan, step

_SOON_MS = 1_000
"""Within this time the page follows an accepted request."""

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_question_that_is_left_open_waits_with_the_run(page: Page, model: OpenAIServer):
    begin(page, model)
    model.release()
    standing(page, "Waiting for you")
    expect(page.get_by_role("region", name="The team asks")).to_have_count(1)
    page.get_by_role("region", name="The team asks").get_by_role("button", name="2023").click()
    assert "2023" in given(model)
    standing(page, "Done")


@pytest.mark.slow
def test_an_answer_that_is_typed_takes_its_form_away_at_once(page: Page, model: OpenAIServer):
    asks = call("ask_human", question="Which region?", options=["Europe", "Asia"])
    model.reset({**SIMPLE, "coder": [asks, {**reply("It is 4."), "hang": True}]})
    ask(page)
    form = page.get_by_role("region", name="The team asks")
    expect(form).to_contain_text("Which region?")
    with page.expect_response("**/resume") as answered:
        ask(page, "Europe")
    assert answered.value.status == 202
    expect(form).to_have_count(0, timeout=_SOON_MS)
    standing(page, "Running")
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 2)
    model.release()
    standing(page, "Done")
    for _ in range(2):
        expect(page.locator(".replied")).to_have_text("Which region?" + "Europe")
        page.reload()


def test_a_wish_that_is_typed_at_a_review_brings_the_new_plan_which_can_be_accepted(
    page: Page, model: OpenAIServer
):
    plans = [plan({**step("coder", title)}, step("reporter")) for title in ("By head", "By machine")]
    model.reset({**SIMPLE, "planner": [reply(json.dumps(one)) for one in plans]})
    page.get_by_role("button", name="Review the plan").click()
    ask(page)
    shown = page.get_by_role("region", name="Plan", exact=True)
    expect(shown).to_contain_text("By head")
    expect(page.get_by_role("button", name="Accept the plan")).to_be_visible()
    ask(page, "By machine, please.")
    expect(shown).to_contain_text("By machine", timeout=_SOON_MS)
    page.get_by_role("button", name="Accept the plan").click()
    standing(page, "Done")
    expect(page.locator(".foot .notice.bad")).to_have_count(0)


def test_a_question_that_is_typed_at_a_review_is_answered_and_the_plan_waits_on(
    page: Page, model: OpenAIServer
):
    question, no = "Is deleting undoable?", "No: step 1 deletes it for good."
    lead = [reply(json.dumps({"is_question": True, "reply": no}))]
    model.reset({**SIMPLE, "supervisor": lead})
    page.get_by_role("button", name="Review the plan").click()
    ask(page)
    expect(page.get_by_role("button", name="Accept the plan")).to_be_visible()
    ask(page, question)
    said = page.locator(".replied")
    expect(said.locator(".question")).to_have_text(question)
    expect(said.get_by_role("status")).to_have_text(no)
    assert model.stats["by_role"]["planner"] == 1
    page.reload()
    expect(said.get_by_role("status")).to_have_text(no)
    page.get_by_role("button", name="Accept the plan").click()
    standing(page, "Done")


@pytest.mark.slow
def test_text_for_the_team_is_kept_while_the_server_is_away_and_answers_no_form(
    page: Page, model: OpenAIServer
):
    model.reset({**SIMPLE, "coder": [{**call("bash_tool", cmd="echo 4"), "hang": True}, reply("It is 4.")]})
    ask(page)
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
    standing(page, "Running")
    page.route("**/messages", lambda route: route.abort())
    ask(page, "In euros, please.")
    field = page.get_by_label("Your question")
    expect(page.locator(".foot .notice.bad")).to_be_visible()
    expect(field).to_have_value("In euros, please.")
    page.unroute("**/messages")
    model.release()
    form = page.get_by_role("region", name="Allow this action?")
    expect(form).to_be_visible()
    expect(page.locator(".composer .target")).to_contain_text("goes to the team")
    field.press("Enter")
    expect(field).to_have_value("")
    expect(page.get_by_role("log")).to_contain_text("In euros, please.")
    expect(form).to_be_visible()
    form.get_by_role("button", name="Approve").click()
    standing(page, "Done")
    assert "In euros" in str(model.requests)


@pytest.mark.slow
def test_a_no_to_an_approval_rejects_nothing(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="echo 4"), reply("It is 4.")]})
    ask(page)
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    field = page.get_by_label("Your question")
    field.fill("no")
    field.press("Enter")
    expect(page.get_by_role("log").get_by_role("status").first).to_contain_text("Received")
    expect(page.get_by_role("button", name="Reject", exact=True)).to_be_enabled()
    field.fill("/reject no, there is no backup of it")
    field.press("Enter")
    standing(page, "Done")
    assert "no, there is no backup of it" in json.dumps(model.requests[-2:])


@pytest.mark.slow
def test_an_approval_takes_words_of_acceptance_and_a_question_leaves_it_open(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="echo 4"), reply("It is 4.")]})
    ask(page)
    form = page.get_by_role("region", name="Allow this action?")
    expect(form).to_be_visible()
    answers: list[str] = []
    page.on("request", lambda request: answers.append(request.url) if "/resume" in request.url else None)
    ask(page, "no backup of it?")
    expect(page.get_by_role("log").get_by_role("status").first).to_contain_text("Received")
    expect(form).to_be_visible()
    assert answers == []
    ask(page, "Approve.")
    expect(form).to_have_count(0, timeout=_SOON_MS)
    standing(page, "Done")


@pytest.mark.slow
def test_a_typed_rejection_reaches_the_model_unchanged(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="rm a"), reply("Then not.")]})
    ask(page)
    expect(page.get_by_role("region", name="Allow this action?")).to_be_visible()
    expect(page.get_by_role("textbox")).to_have_count(1)
    page.get_by_role("button", name="Reject with a reason").click()
    expect(page.get_by_label("Your question")).to_be_focused()
    page.keyboard.type("there is no backup of it")
    page.keyboard.press("Enter")
    standing(page, "Done")
    assert any("rejected this call: there is no backup of it" in str(one) for one in model.requests)


def test_depth_and_style_of_the_report_go_with_the_question_and_are_remembered_by_the_browser(page: Page):
    page.get_by_label("Depth").select_option("quick")
    page.get_by_label("Report", exact=True).select_option("brief")
    with page.expect_request(lambda one: one.method == "POST" and one.url.endswith("/runs")) as sent:
        ask(page)
    body = sent.value.post_data_json
    assert (body["depth"], body["report_style"]) == ("quick", "brief")
    standing(page, "Done")
    other = page.context.new_page()
    other.goto("/")
    expect(other.get_by_label("Depth")).to_have_value("quick")
    expect(other.get_by_label("Report", exact=True)).to_have_value("brief")
    other.close()
