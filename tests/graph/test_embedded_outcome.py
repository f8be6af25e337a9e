"""What a graph around the team learns of its end, and which calls are refused before any model is asked."""

import asyncio
import json
import threading

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from maniple.agents.offers import Offer
from maniple.errors import ConfigError
from maniple.graph import TeamRules
from maniple.scope.budget import Budget
from maniple.tools.interaction import ask_tools
from tests.openai_server import SIMPLE, call, reply
from tests.team import plan, scripted_team, step

pytestmark = pytest.mark.anyio
QUESTION = {"messages": [HumanMessage("1+3=?")]}
AWAY = {"status": 500, "error": "the scripted outage"}
RULES = TeamRules(step_retries=0, max_plan_adaptations=0)
THREAD = {"configurable": {"thread_id": "t"}}


def parent_of(team, saver=None):
    return (
        StateGraph(MessagesState).add_node("team", team).add_edge(START, "team").compile(checkpointer=saver)
    )


async def test_the_last_message_says_how_the_run_ended():
    async with scripted_team(SIMPLE, checkpointer=None) as it:
        result = await parent_of(it.team).ainvoke(QUESTION)
    end = result["messages"][-1].response_metadata
    assert (end["status"], end["gaps"], end["error_code"]) == ("completed", [], None)
    assert end["usage"]["model_calls"] == 5
    assert end["usage"]["tool_calls"] == 1
    assert [m.name for m in result["messages"]] == [None, "planner", "coder", "reporter"]


async def test_small_talk_has_an_outcome_too():
    async with scripted_team({"coordinator": [reply("Hello!")]}, checkpointer=None) as it:
        result = await parent_of(it.team).ainvoke({"messages": [HumanMessage("Hi")]})
    assert result["messages"][-1].text == "Hello!"
    assert result["messages"][-1].response_metadata["status"] == "completed"


async def test_gaps_are_in_the_outcome():
    steps = plan(step("coder"), step("researcher"), step("reporter"))
    script = {
        **SIMPLE,
        "planner": [reply(json.dumps(steps))],
        "coder": [reply("4")],
        "researcher": [reply("STEP FAILED: no data")],
    }
    async with scripted_team(script, checkpointer=None, rules=RULES) as it:
        end = (await it.team.ainvoke(QUESTION))["messages"][-1].response_metadata
    assert end["status"] == "completed"
    assert [gap["step"] for gap in end["gaps"]] == ["researcher's step"]
    assert end["gaps"][0]["reason"]


async def test_a_budget_that_is_used_up_is_in_the_outcome():
    async with scripted_team(SIMPLE, checkpointer=None, rules=TeamRules(budget=Budget(model_calls=2))) as it:
        end = (await it.team.ainvoke(QUESTION))["messages"][-1].response_metadata
    assert end["status"] == "budget_exhausted"


@pytest.mark.parametrize("has_result", [True, False])
async def test_a_reporter_without_a_model_leaves_a_message_and_is_done_again_when_resumed(has_result):
    script = {**SIMPLE, "reporter": [AWAY]} if has_result else {**SIMPLE, "coder": [AWAY], "reporter": [AWAY]}
    async with scripted_team(script, rules=RULES) as it:
        result = await it.team.ainvoke(QUESTION, THREAD)
        end = result["messages"][-1].response_metadata
        assert end["status"] == "failed"
        assert end["error_code"] == "model_overloaded"
        assert result["messages"][-1].text
        it.server.reset(SIMPLE)
        again = await it.team.ainvoke(None, THREAD)
        end = again["messages"][-1].response_metadata
        assert (end["status"], end["gaps"]) == ("completed", [])
        assert "4" in again["messages"][-1].text
        assert len(it.prompts("planner")) == 0, "what was done is not done again"
        assert len(it.prompts("coder")) == (0 if has_result else 2)
        same = await it.team.ainvoke(None, THREAD)
        assert len(same["messages"]) == len(again["messages"]), "there is nothing left to do"


async def test_a_graph_around_the_team_goes_on_after_a_run_without_an_answer():
    async with scripted_team({**SIMPLE, "reporter": [AWAY]}, checkpointer=None, rules=RULES) as it:
        result = await parent_of(it.team, InMemorySaver()).ainvoke(QUESTION, THREAD)
    assert result["messages"][-1].response_metadata["status"] == "failed"


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"messages": []},
        {"input": "1+3=?"},
        {"locale": "de"},
        {"messages": [HumanMessage("  ")]},
        {"messages": [HumanMessage([{"type": "text", "text": " \n"}])]},
        {"messages": [HumanMessage([""])]},
        {"messages": None, 5: "x"},
        "1+3=?",
        [HumanMessage("1+3=?")],
    ],
)
async def test_an_input_without_a_question_is_refused_before_any_call(wrong):
    async with scripted_team(SIMPLE) as it:
        with pytest.raises(ConfigError):
            await it.team.ainvoke(wrong, THREAD)
        assert it.server.stats["calls"] == 0


async def test_an_empty_question_is_refused_in_a_thread_that_has_an_answered_one():
    async with scripted_team(SIMPLE) as it:
        await it.team.ainvoke(QUESTION, THREAD)
        calls = it.server.stats["calls"]
        with pytest.raises(ConfigError):
            await it.team.ainvoke({"messages": [HumanMessage(" ")]}, THREAD)
        assert it.server.stats["calls"] == calls


async def test_a_picture_without_words_is_a_question():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    async with scripted_team({"coordinator": [reply("A picture.")]}) as it:
        result = await it.team.ainvoke({"messages": [HumanMessage([picture])]}, THREAD)
    assert result["messages"][-1].text == "A picture."


async def test_a_parent_without_messages_is_told_so():
    async with scripted_team(SIMPLE, checkpointer=None) as it:
        with pytest.raises(ConfigError):
            await parent_of(it.team).ainvoke({"messages": []})
        assert it.server.stats["calls"] == 0


@pytest.mark.parametrize("context", [{"foo": 1}, {"thread_id": "x", "locale": "de", "may_ask": False}])
async def test_a_context_with_keys_of_others_is_read_as_far_as_it_is_known(context):
    async with scripted_team(SIMPLE) as it:
        result = await it.team.ainvoke(QUESTION, THREAD, context=context)
        assert result["messages"][-1].response_metadata["status"] == "completed"


async def test_another_event_loop_is_refused_in_words():
    async with scripted_team(SIMPLE) as it:
        it.team.loop = asyncio.get_running_loop()
        caught = []

        def call_elsewhere() -> None:
            try:
                asyncio.run(it.team.ainvoke(QUESTION, THREAD))
            except ConfigError as error:
                caught.append(error)

        elsewhere = threading.Thread(target=call_elsewhere)
        elsewhere.start()
        await asyncio.to_thread(elsewhere.join)
        assert len(caught) == 1
        assert it.server.stats["calls"] == 0
        assert (await it.team.ainvoke(QUESTION, THREAD))["messages"][-1].text


async def test_a_parent_sees_each_question_of_concurrent_steps_once():
    both = [{**step("researcher"), "needs": []}, {**step("coder"), "needs": []}, step("reporter")]
    script = {
        **SIMPLE,
        "planner": [reply(json.dumps(plan(*both)))],
        "researcher": [call("ask_human", question="Which?"), reply("ok")],
        "coder": [call("ask_human", question="What?"), reply("4")],
    }
    offer = Offer({"researcher": ask_tools(5), "coder": ask_tools(5)})
    async with scripted_team(script, checkpointer=None, toolbox=offer) as it:
        parent = parent_of(it.team, InMemorySaver())
        result = await parent.ainvoke(QUESTION, THREAD)
        asked = [one.value["question"] for one in result["__interrupt__"]]
        assert sorted(asked) == ["What?", "Which?"]
        assert len((await parent.aget_state(THREAD)).interrupts) == 2
        answers = {one.id: "that one" for one in result["__interrupt__"]}
        done = await parent.ainvoke(Command(resume=answers), THREAD)
    assert done["messages"][-1].response_metadata["status"] == "completed"
