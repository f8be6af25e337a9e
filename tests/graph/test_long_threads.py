"""Threads that outgrow a model's window, over an endpoint that refuses what is too long."""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from maniple.config import ModelsSettings
from maniple.graph.state import private_of
from maniple.llms import open_chat_models
from maniple.llms.context_windows import window_of
from maniple.scope.budget import UsageMeter
from tests.agents.endpoints import narrow
from tests.graph.metered import metered
from tests.openai_server import call, reply
from tests.team import data, joined_text, plan, scripted_team, step

pytestmark = pytest.mark.anyio
WORDS = "word " * 400
CHAT = {"coordinator": [reply("I see.")], "other": [reply("The user's cat is called Tom.")]}


async def stored_messages(it, thread_id="t"):
    state = await it.team.aget_state({"configurable": {"thread_id": thread_id}})
    return {"messages": state.values["messages"], **private_of(state.values)}


async def test_a_long_thread_is_summarised_once_and_loses_no_message():
    async with scripted_team(CHAT, models={"context_tokens": 4_000}) as it:
        await metered(it, UsageMeter(), "My cat is called Tom. " + WORDS)
        for turn in range(9):
            frames = await metered(it, UsageMeter(), f"turn {turn} " + WORDS)
        values = await stored_messages(it)
        summaries = [r for r in it.server.requests if "<record>" in str(r["messages"])]
        asked = it.prompts("coordinator")
        assert all(len(prompt) < 16_000 for prompt in asked)
        assert "The user's cat is called Tom." in asked[-1]
        assert "turn 8" in asked[-1]
        assert 1 <= len(summaries) <= 5
    assert len(values["messages"]) == 20
    assert values["messages"][0].text.startswith("My cat is called Tom.")
    assert "Tom" in values["summary"]["text"]
    assert joined_text(frames) == "I see.", "the summary is told to nobody"
    assert len(frames[-1][1]["messages"]) >= 2


async def test_a_short_thread_is_shown_whole():
    async with scripted_team(CHAT) as it:
        for turn in range(30):
            await metered(it, UsageMeter(), f"turn {turn}")
        assert "turn 0" in it.prompts("coordinator")[-1]
        assert (await stored_messages(it)).get("summary") is None


@pytest.mark.parametrize("role", ["coordinator", "planner"])
async def test_an_unexpected_overflow_is_retried_with_a_shorter_prompt(role, monkeypatch):
    # A team, but at an endpoint with a smaller window than anybody knew.
    plans = [reply(json.dumps(plan(step("reporter"))))]
    script = {"planner": plans, "reporter": [reply("# Report")], "other": [reply("Much was said.")]}
    script["coordinator"] = [reply("Hello.")] if role == "coordinator" else [call("handoff_to_planner")]
    monkeypatch.setattr("tests.team.serving", lambda given: narrow(given, characters=12_000))
    async with scripted_team(script) as it:
        history = [HumanMessage("long " * 4_000), AIMessage("Yes."), HumanMessage("And now?")]
        frames = await it.run(messages=history)
        assert it.server.refused >= 1
        assert len(it.prompts(role)) == 2
        assert "And now?" in it.prompts(role)[-1]
    assert data(frames, "run_status")[0]["status"] == "completed"


async def test_an_overflow_teaches_nothing_wrong_of_the_endpoint(monkeypatch):
    words = "Only {window} tokens are supported, the maximum context length; reduce messages or functions."
    monkeypatch.setattr("tests.team.serving", lambda given: narrow(given, 12_000, words))
    script = {"coordinator": [call("handoff_to_planner")], "reporter": [reply("# R")]}
    script["planner"] = [reply(json.dumps(plan(step("reporter"))))]
    async with scripted_team(script) as it:
        await it.run(messages=[HumanMessage("long " * 4_000), AIMessage("Yes."), HumanMessage("And now?")])
        offered = [request for request in it.server.requests if request.get("tools")]
        plans = [request for request in it.server.requests if "response_format" in request]
    assert len(offered) == 2, "the hand-off is offered as a tool again"
    assert len(plans) == len(it.prompts("planner")), "and a schema with every prompt for a plan"


async def test_the_window_of_the_settings_is_the_model_s():
    settings = {"basic": {"model": "gpt-4o", "api_key": "k", "context_tokens": 8_000}}
    async with open_chat_models(ModelsSettings.model_validate(settings)) as models:
        assert window_of(models.get("basic")) == 8_000
