"""What follows in a step repeats the prompt before it, so that endpoints can cache it."""

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, tool

from maniple.agents import ROLES, ReactAgent, StepLimits, Task, build_react_agent
from maniple.agents.middleware.tool_availability import DynamicTools, HiddenTools
from maniple.agents.middleware.tool_results import ResultLengthLimit
from maniple.tools.files import build_file_check
from maniple.tools.items import StoredResults
from maniple.workspace import Workspaces
from tests.agents.endpoints import model_at
from tests.openai_server import Json, call, reply, serving
from tests.team import plan, scripted_team, step
from tests.tools.built import build_editor, build_file_tools

pytestmark = pytest.mark.anyio
TASK = Task("note x", "Note", "Note x.")
PLAN = json.dumps(plan(step("researcher"), step("coder"), step("reporter")))
LIMITS = StepLimits(10, 10, 60)


def assert_each_repeats_the_one_before(requests: list[Json]) -> None:
    for before, after in pairwise(requests):
        assert after.get("tools") == before.get("tools")
        assert after["messages"][: len(before["messages"])] == before["messages"]


async def work(agent: ReactAgent) -> None:
    """Do a step as a node of a graph does, on one thread."""
    token = var_child_runnable_config.set({"configurable": {"thread_id": "t"}})
    try:
        await agent.work(TASK)
    finally:
        var_child_runnable_config.reset(token)


def of_role(requests: list[Json], role: str) -> list[Json]:
    return [one for one in requests if f"You are the {role}" in str(one["messages"][0]["content"])]


async def test_the_calls_of_a_step_share_the_beginning_of_their_prompts():
    code = [call("python_repl_tool", code=f"print({n})") for n in range(3)]
    search = [call("tavily_search", query=f"q{n}") for n in range(3)]
    script: dict[str, Any] = {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply("no plan"), reply(PLAN)],
        "researcher": [*search, reply("found")],
        "coder": [*code, reply("4")],
        "reporter": [reply("# 4")],
    }
    async with scripted_team(script) as it:
        await it.run()
        requests = it.server.requests
    for role, calls in (("planner", 2), ("researcher", 4), ("coder", 4)):
        asked = of_role(requests, role)
        assert len(asked) == calls
        assert_each_repeats_the_one_before(asked)


async def test_a_file_that_a_step_writes_changes_no_tools_of_it_but_of_the_next_step(tmp_path):
    workspaces = Workspaces(tmp_path)
    create = call("str_replace_editor", command="create", path="a.txt", file_text="x")
    tools: list[BaseTool] = [*build_file_tools(workspaces), build_editor(workspaces)]
    hidden = HiddenTools({"read_file", "write_file", "list_files"}, build_file_check(workspaces))
    with serving({"coder": [create, create, reply("Noted.")]}) as server:
        async with model_at(server) as model:
            agent = build_react_agent(ROLES["coder"], model, tools, limits=LIMITS, offered=[hidden])
            await work(agent)
            await work(agent)
        first, second = server.requests[:3], server.requests[3:]
    assert_each_repeats_the_one_before(first)
    assert "read_file" not in str(first[0]["tools"])
    assert "read_file" in str(second[0]["tools"])


async def test_a_call_of_an_unknown_tool_is_answered_with_the_tools_that_are_offered(tmp_path):
    workspaces = Workspaces(tmp_path)
    tools: list[BaseTool] = [*build_file_tools(workspaces), build_editor(workspaces)]
    hidden = HiddenTools({"read_file", "list_files"}, build_file_check(workspaces))
    with serving({"coder": [call("grep", pattern="x"), reply("No.")]}) as server:
        async with model_at(server) as model:
            await work(build_react_agent(ROLES["coder"], model, tools, limits=LIMITS, offered=[hidden]))
        told = server.requests[1]["messages"][-1]
        offered = [one["function"]["name"] for one in server.requests[1]["tools"]]
    assert told["role"] == "tool"
    assert re.findall(r"\w+_\w+", told["content"].partition("[")[2]) == offered


async def test_a_result_that_is_stored_brings_the_tools_to_read_it(tmp_path):
    workspaces = Workspaces(tmp_path)

    @tool
    async def look() -> str:
        """Look."""
        return "much " * 20_000

    hidden = HiddenTools({"read_file", "write_file", "list_files"}, build_file_check(workspaces))
    with serving({"coder": [call("look"), reply("Seen.")]}) as server:
        async with model_at(server) as model:
            tools: list[BaseTool] = [look, *build_file_tools(workspaces)]
            stored = ResultLengthLimit(model, StoredResults(workspaces))
            agent = build_react_agent(
                ROLES["coder"], model, tools, limits=LIMITS, middleware=[stored], offered=[hidden]
            )
            await work(agent)
        before, after = server.requests
    assert ("read_file" in str(before["tools"]), "read_file" in str(after["tools"])) == (False, True)


async def test_tools_of_a_source_stay_for_the_step_and_new_ones_follow_them():
    class Source:
        names = iter([["a", "b"], ["b"], ["c", "b"], ["b"]])

        def list_tools(self) -> list[BaseTool]:
            return [self.find(name) for name in next(self.names)]

        def find(self, name: str) -> BaseTool:
            async def run() -> str:
                """Run."""
                return name

            return tool(name)(run)

    with serving({"coder": [call("a"), call("b"), reply("Done.")]}) as server:
        async with model_at(server) as model:
            agent = build_react_agent(
                ROLES["coder"], model, [], limits=LIMITS, offered=[DynamicTools(Source())]
            )
            await work(agent)
            await work(agent)
    offered = ["".join(one["function"]["name"] for one in request["tools"]) for request in server.requests]
    assert offered == ["ab", "ab", "abc", "b"]
