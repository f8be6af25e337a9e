"""The coder is offered the tools for files from when there is a file."""

import json

import pytest
from langchain_core.messages import HumanMessage

from maniple.agents.middleware.tool_availability import HiddenTools
from maniple.tools.files import build_file_check
from maniple.workspace import Workspaces
from tests.agents.endpoints import agent_with, model_at
from tests.api.in_process import open_service
from tests.openai_server import SIMPLE, call, reply, serving
from tests.team import data, plan, step
from tests.tools.built import build_editor, build_file_tools

pytestmark = pytest.mark.anyio


async def test_tools_for_files_are_offered_as_soon_as_there_is_one(tmp_path):
    workspaces = Workspaces(tmp_path)
    create = call("str_replace_editor", command="create", path="a.txt", file_text="x")
    with serving({"other": [create, call("read_file", path="a.txt"), reply("It says x.")]}) as server:
        async with model_at(server) as model:
            middleware = HiddenTools({"read_file", "write_file", "list_files"}, build_file_check(workspaces))
            agent = agent_with(model, [*build_file_tools(workspaces), build_editor(workspaces)], middleware)
            answer = await agent.graph.ainvoke(
                {"messages": [HumanMessage("Note x, and read it.")]}, {"configurable": {"thread_id": "t"}}
            )
    offered = [{tool["function"]["name"] for tool in request["tools"]} for request in server.requests]
    assert offered[0] == {"str_replace_editor"}
    assert offered[1] == offered[2] == {"str_replace_editor", "read_file", "write_file", "list_files"}
    assert [one.content for one in answer["messages"] if one.type == "tool"][1] == "x"


async def test_a_file_that_one_step_writes_can_be_edited_by_the_next_step_of_the_run(tmp_path):
    steps = [step("coder", "Write"), {**step("coder", "Edit"), "needs": [1]}, step("reporter")]
    edit = call("str_replace_editor", command="str_replace", path="a.py", old_str="1", new_str="2")
    script = {
        "coordinator": SIMPLE["coordinator"],
        "planner": [reply(json.dumps(plan(*steps)))],
        "coder": [
            call("write_file", path="a.py", content="print(1)"),
            reply("Written."),
            edit,
            reply("Edited."),
        ],
        "reporter": [reply("# Edited")],
    }
    with serving(script) as server:
        async with open_service(server.base_url, tmp_path, sandbox={"backend": "bubblewrap"}) as it:
            run = await it.run()
            results = [
                one["tool_result"] for one in data(await it.events_of(run["run_id"]), "tool_call_result")
            ]
            found = it.service.workspaces.open(run["thread_id"]).read("a.py", 100).content
        of_coder = [one for one in server.requests if "You are the coder" in str(one["messages"][0])]
    offered = [{tool["function"]["name"] for tool in request["tools"]} for request in of_coder]
    assert [{"write_file", "str_replace_editor"} & names for names in offered] == [
        {"write_file"},
        {"write_file"},
        {"write_file", "str_replace_editor"},
        {"write_file", "str_replace_editor"},
    ]
    assert found == b"print(2)", results
