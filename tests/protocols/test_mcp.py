"""MCP at `/mcp` of the server: the TypeScript SDK with its Tasks package, and the inspector."""

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.serving import ServerProcess
from tests.team import plan, step

# Put there by `setup.sh dev`.
MODULES = Path(sys.prefix, "mcp-servers/node_modules")
INSPECTOR = MODULES / "@modelcontextprotocol/inspector-cli"
CLIENT = Path(__file__).with_name("mcp_client.mjs")
QUESTION = "1+3=?"
ASKS = {
    **SIMPLE,
    "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
    "researcher": [call("ask_human", question="Which year?"), reply("It is so.")],
}
HANGS = {**SIMPLE, "coder": [{"hang": True}]}
HANGS_ONCE = {**SIMPLE, "coder": [{"hang": True}, *SIMPLE["coder"]]}
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        not ((MODULES / "@modelcontextprotocol/ext-tasks").is_dir() and shutil.which("node")),
        reason="setup.sh dev has not installed the clients",
    ),
]


async def client(server: ServerProcess, action: str, argument: str) -> Any:
    """Return the JSON that the client prints."""
    return await run_node(str(CLIENT), str(MODULES), f"{server.url}/mcp", action, argument)


async def inspect(server: ServerProcess, method: str, *options: str) -> Any:
    """Return the JSON that the inspector prints."""
    program = str(INSPECTOR / "build/index.js")
    return await run_node(program, f"{server.url}/mcp", "--transport", "http", "--method", method, *options)


async def run_node(*arguments: str) -> Any:
    command = ("node", *arguments)
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    try:
        async with asyncio.timeout(120):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, errors.decode()
    return json.loads(output)


async def test_the_typescript_sdk_lists_the_tools_and_polls_a_task_to_its_result(server: ServerProcess):
    found = await client(server, "ask", QUESTION)
    assert {"ask_team", "plan", "get_run", "cancel_run"} <= set(found["tools"])
    assert (found["era"], found["kind"], found["status"]) == ("modern", "task", "completed")
    assert "The answer is **4**." in found["answer"]


@pytest.mark.slow
async def test_a_form_of_a_task_is_filled_in(server: ServerProcess, model: OpenAIServer):
    model.reset(ASKS)
    found = await client(server, "ask", QUESTION)
    assert (found["status"], found["forms"]) == ("completed", ["Which year?"])


@pytest.mark.slow
async def test_a_task_that_was_left_after_five_seconds_is_attached_to_again(
    server: ServerProcess, model: OpenAIServer
):
    model.reset(HANGS_ONCE)
    left = await client(server, "leave", QUESTION)
    assert left["left"] == "left"
    model.release()
    found = await client(server, "attach", left["reference"])
    assert (found["status"], found["run"]) == ("completed", json.loads(left["reference"])["taskId"])
    assert model.stats["by_role"]["planner"] == 1


@pytest.mark.slow
async def test_a_task_is_cancelled(server: ServerProcess, model: OpenAIServer):
    model.reset(HANGS)
    left = await client(server, "leave", QUESTION)
    assert await client(server, "cancel", left["reference"]) == {"status": "cancelled"}


@pytest.mark.skipif(not INSPECTOR.is_dir(), reason="setup.sh dev has not installed the inspector")
async def test_the_inspector_lists_the_tools_and_asks_the_team(server: ServerProcess):
    # It reads its version from a file of the repository that its package lacks.
    INSPECTOR.with_name("package.json").write_text('{"name": "inspector", "version": "1.0.3"}', "utf-8")
    listed = await inspect(server, "tools/list")
    assert "ask_team" in [one["name"] for one in listed["tools"]]
    asked = ("--tool-name", "ask_team", "--tool-arg", f"question={QUESTION}")
    found = await inspect(server, "tools/call", *asked)
    assert (found["structuredContent"]["status"], found["isError"]) == ("completed", False)
    assert "The answer is **4**." in found["content"][0]["text"]
