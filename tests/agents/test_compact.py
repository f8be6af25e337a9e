"""The team with a small model: grammars, one program, one call, a short report."""

import json

import pytest

from maniple.config import SandboxSettings
from maniple.runtime.workers import Toolbox
from maniple.sandbox import Unavailable, Workspaces, open_sandbox
from maniple.tools.code import code_tools
from tests.openai_server import reply
from tests.team import TOOLS, agents, data, said, scripted_team, status

pytestmark = pytest.mark.anyio
COMPACT = {"profile": "compact", "capabilities": {"grammar": True, "tools": False, "json_schema": False}}
PLAN = {"thought": "t", "title": "P", "steps": [{"agent_name": "coder", "title": "c", "description": "d"}]}


def small(*replies):
    """All of a small model's prompts but the planner's and the reply's name no role."""
    return {"other": list(replies), "planner": [reply(json.dumps(PLAN))], "coordinator": [reply("你好！")]}


def sort(kind):
    return reply(json.dumps({"kind": kind}))


@pytest.fixture
async def sandboxed(tmp_path):
    async with open_sandbox(SandboxSettings()) as sandbox:
        assert not isinstance(sandbox, Unavailable)
        yield Toolbox({"coder": code_tools(sandbox, Workspaces(tmp_path))})


async def test_a_sum_is_computed_by_one_program_in_the_sandbox(sandboxed):
    script = small(sort("coder"), reply("```python\nprint(1+3)\n```"), reply("Summary: 4"))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run()
        requests = it.server.requests
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    assert data(frames, "tool_call_result")[0]["tool_result"] == "4"
    assert said(frames).endswith("Summary: 4")
    assert "Code run:\nprint(1+3)\nOutput: 4" in requests[3]["messages"][-1]["content"]
    assert all("grammar" in request for request in requests[:2])
    assert all("tools" not in request for request in requests)


async def test_a_program_that_fails_is_repaired_once_with_its_traceback(sandboxed):
    script = small(sort("coder"), reply("print(1/0)"), reply("```py\nprint(4)\n```"), reply("4"))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run()
        assert "ZeroDivisionError" in it.server.requests[3]["messages"][-1]["content"]
    assert [d["tool_result"] for d in data(frames, "tool_call_result")][1] == "4"
    assert status(frames) == "completed"


async def test_a_program_that_prints_nothing_is_told_so(sandboxed):
    script = small(sort("coder"), reply("x = 4"), reply("print(4)"), reply("4"))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        await it.run()
        assert "print" in it.server.requests[3]["messages"][-1]["content"]


async def test_two_failures_reach_the_report_without_asking_the_small_supervisor(sandboxed):
    script = small(sort("coder"), reply("print(1/0)"), reply("print(1/0)"), reply("It failed."))
    async with scripted_team(script, models=COMPACT, toolbox=sandboxed) as it:
        frames = await it.run()
        assert it.server.stats["calls"] == 4, "no model is asked to report what nobody found"
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]


async def test_small_talk_is_answered_in_the_users_language():
    async with scripted_team(small(sort("chat")), models=COMPACT) as it:
        frames = await it.run("你好")
    assert said(frames) == "你好！"
    assert agents(frames) == ["coordinator"]


async def test_the_coordinators_sorting_decides_who_may_be_planned_with():
    plan = {**PLAN, "steps": [{"agent_name": "researcher", "title": "r", "description": "d"}]}
    script = {**small(sort("researcher"), reply("A report.")), "planner": [reply(json.dumps(plan))]}
    async with scripted_team(script, models=COMPACT, toolbox=TOOLS) as it:
        frames = await it.run("latest news")
        grammar = it.server.requests[1]["grammar"]
    assert '"researcher", "reporter"' in grammar
    assert "coder" not in grammar
    assert data(frames, "tool_call")[0] | {"tool_call_id": ""} == {
        "tool_call_id": "",
        "tool_name": "tavily_search",
        "tool_input": {"query": "latest news"},
    }


async def test_without_a_search_the_report_says_what_is_missing():
    toolbox = Toolbox({}, {"researcher": "There is no TAVILY_API_KEY."})
    plan = {**PLAN, "steps": [{"agent_name": "researcher", "title": "r", "description": "d"}]}
    script = {**small(sort("researcher"), reply("Nothing found.")), "planner": [reply(json.dumps(plan))]}
    async with scripted_team(script, models=COMPACT, toolbox=toolbox) as it:
        frames = await it.run("latest news")
        assert it.server.stats["calls"] == 2, "no model is asked to report what nobody found"
    assert "There is no TAVILY_API_KEY." in said(frames)
    assert status(frames) == "completed"
