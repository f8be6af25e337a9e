"""The coordinator asks back: bounded, with and without a thread, and never twice the same."""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command

from maniple.graph import RunOptions, TeamRules
from maniple.graph.clarification import find_question, merge_clarifications
from tests.openai_server import call, reply
from tests.team import agents, data, joined_text, names, plan, scripted_team, status, step

pytestmark = pytest.mark.anyio
ASK = call("ask_user", question="Which city?")
HANDOFF = call("handoff_to_planner", locale="en")
ONCE = TeamRules(max_clarifications=1)
ASKING = {
    "coordinator": [ASK, HANDOFF],
    "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
    "researcher": [reply("found")],
    "reporter": [reply("# Report")],
}
WHOLE = "Find a hotel\n\nAsked: Which city?\nThe user's answer: Paris"


def offered(request):
    return [tool["function"]["name"] for tool in request.get("tools", [])]


async def test_the_run_pauses_with_the_question_and_the_answer_makes_the_request_whole():
    async with scripted_team(ASKING, rules=ONCE) as it:
        first = await it.run("Find a hotel", thread_id="t")
        assert status(first) == "interrupted"
        (pause,) = data(first, "interrupt")
        assert (pause["kind"], pause["payload"]) == ("question", {"question": "Which city?", "options": []})
        assert joined_text(first) == "Which city?", "clients that know no interrupts see it, too"
        assert data(first, "end_of_workflow")[0]["messages"] == [
            {"role": "user", "content": "Find a hotel"},
            {"role": "assistant", "content": "Which city?"},
        ]
        then = await it.run("Paris", thread_id="t")
        assert status(then) == "completed"
        assert agents(then) == ["coordinator", "planner", "researcher", "reporter"]
        assert f"Request: {WHOLE}" in it.prompts("researcher")[0]
        assert f"Request: {WHOLE}" in it.prompts("reporter")[0]
        assert len(it.prompts("coordinator")) == 2


@pytest.mark.parametrize("answer", ["Paris", {"answer": "Paris"}, {"type": "answer", "message": " Paris\n"}])
async def test_an_answer_may_be_a_text_or_an_object_that_holds_one(answer):
    async with scripted_team(ASKING, rules=ONCE) as it:
        await it.run("Find a hotel", thread_id="t")
        config = {"configurable": {"thread_id": "t"}}
        await it.team.ainvoke(Command(resume=answer), config, context=RunOptions())
        assert it.prompts("coordinator")[1].endswith("\nWhich city?\nParis")
        assert f"Request: {WHOLE}" in it.prompts("researcher")[0]


async def test_there_is_a_bound_for_each_request():
    """Asked a second time, the model is not offered the tool, and calling it all the same hands over."""
    async with scripted_team(ASKING | {"coordinator": [ASK]}, rules=ONCE) as it:
        await it.run("Find a hotel", thread_id="t")
        assert status(await it.run("Paris", thread_id="t")) == "completed"
        requests = [r for r in it.server.requests if "the coordinator" in str(r["messages"][0])]
        assert [offered(r) for r in requests] == [["handoff_to_planner", "ask_user"], ["handoff_to_planner"]]
        assert "ask_user" not in str(requests[1]["messages"][0])
        again = await it.run("And a train", thread_id="t")
        assert status(again) == "interrupted", "a new request may be asked about anew"


@pytest.mark.parametrize(("rules", "options"), [(TeamRules(), {}), (ONCE, {"may_ask": False})])
async def test_it_can_be_turned_off(rules, options):
    async with scripted_team(ASKING, rules=rules) as it:
        frames = await it.run("Find a hotel", **options)
        assert "interrupt" not in names(frames)
        assert offered(it.server.requests[0]) == ["handoff_to_planner"]
    assert status(frames) == "completed"


async def test_a_client_without_a_thread_sends_question_and_answer_as_history():
    messages = [HumanMessage("Find a hotel"), AIMessage("Which city?"), HumanMessage("Paris")]
    async with scripted_team(ASKING | {"coordinator": [HANDOFF]}, rules=ONCE) as it:
        assert status(await it.run(messages=messages)) == "completed"
        assert offered(it.server.requests[0]) == ["handoff_to_planner"]
        assert f"Request: {WHOLE}" in it.prompts("researcher")[0]


async def test_an_endpoint_without_tools_asks_in_plain_text():
    script = ASKING | {"coordinator": [reply('ask_user("Which city?")'), reply("handoff_to_planner()")]}
    async with scripted_team(script, rules=ONCE, models={"capabilities": {"tools": False}}) as it:
        first = await it.run("Find a hotel", thread_id="t")
        assert data(first, "interrupt")[0]["payload"]["question"] == "Which city?"
        assert status(await it.run("Paris", thread_id="t")) == "completed"


async def test_after_a_pause_the_question_is_not_made_up_again():
    async with scripted_team(ASKING, rules=ONCE) as it:
        await it.run("Find a hotel", thread_id="t")
        await it.run("Paris", thread_id="t")
        roles = it.server.stats["by_role"]
    assert roles["coordinator"] == 2, "once for the question and once for its answer"


def test_small_talk_is_no_question_about_a_request():
    hello = [HumanMessage("Hi"), AIMessage("How can I help?", name="coordinator"), HumanMessage("1+3")]
    assert merge_clarifications(hello, 1) == ("", 0)


def test_a_question_beside_a_handoff_is_dropped():
    both = [{"name": n, "args": {"question": "?"}, "id": n} for n in ("ask_user", "handoff_to_planner")]
    assert find_question(AIMessage("", tool_calls=both)) == ""
