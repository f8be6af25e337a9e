"""The same rules hold for a team in another graph as for one that an engine drives."""

import json
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from maniple.agents.offers import Offer
from maniple.app import open_runtime
from maniple.config import Settings
from maniple.errors import ConfigError
from maniple.graph import RunOptions, TeamRules
from maniple.runs.turn import stream_run
from maniple.scope.budget import Budget
from maniple.tools.interaction import ask_tools
from tests.openai_server import SIMPLE, call, reply, serving
from tests.team import TOOLS, checked, plan, python_repl_tool, scripted_team, status, step

pytestmark = pytest.mark.anyio
SCRIPT = {**SIMPLE, "by_history": True}
QUESTION = {"messages": [HumanMessage("1+3=?")]}
CONFIG = {"configurable": {"thread_id": "t"}}
APPROVAL = TeamRules(approval=frozenset({"python_repl_tool"}))


def parent_of(team: Any, checkpointer: Any = None) -> Any:
    graph = StateGraph(MessagesState).add_node("team", team).add_edge(START, "team")
    return graph.compile(checkpointer=checkpointer)


@pytest.mark.parametrize("wrap", [lambda team, saver: parent_of(team, saver), None])
async def test_a_call_waits_for_its_approval_and_is_run_once(wrap) -> None:
    saver = InMemorySaver()
    async with scripted_team(SCRIPT, checkpointer=None if wrap else saver, rules=APPROVAL) as it:
        graph = wrap(it.team, saver) if wrap else it.team
        paused = await graph.ainvoke(QUESTION, CONFIG)
        question = paused["__interrupt__"][0].value
        assert (question["reason"], question["tool_name"]) == ("approval", "python_repl_tool")
        done = await graph.ainvoke(Command(resume={"type": "reject", "message": "never"}), CONFIG)
        shown = json.dumps([request["messages"] for request in it.server.requests])
    assert "never" in shown
    assert done["messages"][-1].name == "reporter"


@pytest.mark.parametrize("wrap", [parent_of, lambda team: team])
async def test_approval_without_a_checkpointer_is_refused_before_any_model_call(wrap) -> None:
    async with scripted_team(SCRIPT, checkpointer=None, rules=APPROVAL) as it:
        with pytest.raises(ConfigError, match="checkpointer"):
            await wrap(it.team).ainvoke(QUESTION)
        assert it.server.requests == []


async def test_a_review_without_a_checkpointer_is_refused() -> None:
    async with scripted_team(SCRIPT, checkpointer=None) as it:
        with pytest.raises(ConfigError, match="auto_accepted_plan"):
            await it.team.ainvoke(QUESTION, context=RunOptions(auto_accepted_plan=False))


async def test_a_tool_that_needs_approval_is_not_run_if_no_user_can_answer() -> None:
    careful: BaseTool = python_repl_tool.model_copy(update={"metadata": {"approval": True}})
    async with scripted_team(SCRIPT, checkpointer=None, toolbox=Offer({"coder": [careful]})) as it:
        result = await it.team.ainvoke(QUESTION)
        answers = [m for request in it.server.requests for m in request["messages"] if m["role"] == "tool"]
    assert "python_repl_tool was not run" in answers[0]["content"]
    assert result["messages"][-1].name == "reporter"


@pytest.mark.parametrize("saver", [None, InMemorySaver()])
async def test_a_question_is_asked_only_if_a_user_can_answer_it(saver) -> None:
    script = {**SCRIPT, "coder": [call("ask_human", question="Which base?"), reply("4")]}
    toolbox = Offer({"coder": [*TOOLS.tools_by_role["coder"], *ask_tools(2)]})
    rules = TeamRules(max_clarifications=1)
    async with scripted_team(script, checkpointer=None, toolbox=toolbox, rules=rules) as it:
        result = await parent_of(it.team, saver).ainvoke(QUESTION, CONFIG if saver else None)
        offered = [one["function"]["name"] for one in it.server.requests[0]["tools"]]
    assert ("ask_user" in offered) == bool(saver)
    assert ("__interrupt__" in result) == bool(saver)


@pytest.mark.parametrize("embedded", [False, True])
async def test_the_budget_ends_a_run_without_an_engine(embedded) -> None:
    rules = TeamRules(budget=Budget(model_calls=3))
    async with scripted_team(SCRIPT, checkpointer=None, rules=rules) as it:
        if embedded:
            await parent_of(it.team).ainvoke(QUESTION)
        else:
            frames = checked([event async for event in stream_run(it.team, QUESTION["messages"])])
            assert status(frames) == "budget_exhausted"
        assert it.server.stats["calls"] <= 4, "the report may go beyond by one"


async def test_a_resumed_run_has_no_new_budget_after_a_restart() -> None:
    saver, rules = InMemorySaver(), TeamRules(budget=Budget(model_calls=2))
    options = RunOptions(auto_accepted_plan=False)
    async with scripted_team(SCRIPT, checkpointer=saver, rules=rules) as it:
        await it.team.ainvoke(QUESTION, CONFIG, context=options)
    async with scripted_team(SCRIPT, checkpointer=saver, rules=rules) as it:
        events = stream_run(it.team, [HumanMessage("accept")], thread_id="t", options=options)
        assert status(checked([event async for event in events])) == "budget_exhausted"
        assert not it.prompts("coder")


@pytest.mark.parametrize("wrap", [parent_of, lambda team: team])
async def test_a_parents_recursion_limit_does_not_end_a_long_plan(wrap) -> None:
    steps = [step("coder" if number % 2 else "researcher", f"Step {number}") for number in range(11)]
    script = {
        **SCRIPT,
        "planner": [reply(json.dumps(plan(*steps, step("reporter"))))],
        "coder": [reply("done")],
        "researcher": [reply("done")],
    }
    async with scripted_team(script, checkpointer=None) as it:
        result = await wrap(it.team).ainvoke(QUESTION, {"recursion_limit": 25})
    assert [message.name for message in result["messages"]].count("coder") == 5
    assert result["messages"][-1].name == "reporter"


async def test_the_settings_are_those_of_the_team_that_is_opened(tmp_path) -> None:
    with serving(SCRIPT) as server:
        settings = Settings.model_validate(
            {
                "models": {"basic": {"model": "m", "base_url": server.base_url, "max_retries": 0}},
                "runs": {"approval": ["bash_tool"], "budget": {"model_calls": 7}},
                "sandbox": {"backend": "off"},
                "browser": {"enabled": False},
                "data_dir": tmp_path / "data",
                "cache_dir": tmp_path / "cache",
            }
        )
        async with open_runtime(settings) as runtime:
            with pytest.raises(ConfigError, match=r"runs\.approval"):
                await runtime.graph.ainvoke(QUESTION)
            with runtime.graph.scopes.enter("r", "t") as scope:
                assert scope.meter is not None
                assert scope.meter.budget == Budget(model_calls=7)
                assert scope.approval == {"bash_tool"}
