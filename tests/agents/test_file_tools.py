"""The coder is offered the tools for files from when there is a file."""

import pytest
from langchain_core.messages import HumanMessage

from maniple.agents.middleware.tool_availability import HiddenTools
from maniple.sandbox import Workspaces
from maniple.tools.files import build_file_check
from tests.agents.endpoints import agent_with, model_at
from tests.openai_server import call, reply, serving
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
