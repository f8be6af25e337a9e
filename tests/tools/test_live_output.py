"""Output is emitted while the code runs: code and test wait for each other through a pipe."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from maniple.agents.offers import Offer
from maniple.config.sandbox_settings import SandboxSettings
from maniple.runs.turn import stream_run
from maniple.sandbox import Sandbox, open_sandbox
from maniple.workspace import Workspaces
from maniple.workspace.account import give_away
from tests.openai_server import SIMPLE, call, reply
from tests.team import checked, data, names, scripted_team
from tests.tools.built import build_code_tools

pytestmark = pytest.mark.anyio
_WAIT = "open('go').read()\n"


@pytest.fixture
async def sandbox(anyio_backend: str) -> AsyncIterator[Sandbox]:
    async with open_sandbox(SandboxSettings(output_bytes=4096)) as sandbox:
        yield sandbox


async def _events(sandbox: Sandbox, folder: Path, replies: Sequence[Any], go_on_after: int) -> list[Any]:
    """Run the team; the code may continue after so many `tool_output` events."""
    workspaces = Workspaces(folder)
    pipe = workspaces.open("t").path / "go"
    os.mkfifo(pipe)
    give_away(pipe)
    toolbox = Offer({"coder": build_code_tools(sandbox, workspaces)})
    told: list[Any] = []
    async with scripted_team({**SIMPLE, "coder": replies}, toolbox=toolbox) as it, asyncio.timeout(60):
        async for event in stream_run(it.team, [HumanMessage("1+3=?")], thread_id="t"):
            told.append(event)
            if event.type == "tool_output" and _count(told) == go_on_after:
                await asyncio.to_thread(pipe.write_text, "on")
    return checked(told)


def _count(told: Sequence[Any]) -> int:
    return sum(event.type == "tool_output" for event in told)


async def test_what_is_printed_comes_before_the_call_has_ended(sandbox: Sandbox, tmp_path: Path) -> None:
    code = f"import sys\nprint('first', flush=True)\nprint('wrong', file=sys.stderr)\n{_WAIT}print('last')"
    frames = await _events(sandbox, tmp_path, [call("python_repl_tool", code=code), reply("4")], 2)
    printed = data(frames, "tool_output")
    assert {(one["stream"], one["text"]) for one in printed} == {("stdout", "first\n"), ("stderr", "wrong\n")}
    [called], [result] = data(frames, "tool_call"), data(frames, "tool_call_result")
    assert {one["tool_call_id"] for one in printed} == {called["tool_call_id"]} == {result["tool_call_id"]}
    assert {one["tool_name"] for one in printed} == {"python_repl_tool"}
    assert result["tool_result"].startswith("first\nlast\n[stderr]\nwrong")


async def test_a_short_call_is_reported_by_its_result_alone(sandbox: Sandbox, tmp_path: Path) -> None:
    frames = await _events(sandbox, tmp_path, [call("bash_tool", cmd="echo 4"), reply("4")], 0)
    assert data(frames, "tool_call_result")[0]["tool_result"] == "4"
    assert "tool_output" not in names(frames)


async def test_streamed_output_has_the_limit_of_results(sandbox: Sandbox, tmp_path: Path) -> None:
    code = f"print('x' * 1_000_000, flush=True)\n{_WAIT}print('y' * 1_000_000)"
    frames = await _events(sandbox, tmp_path, [call("python_repl_tool", code=code), reply("4")], 1)
    assert sum(len(one["text"]) for one in data(frames, "tool_output")) == 4096


async def test_outside_of_a_run_nothing_is_reported(sandbox: Sandbox, tmp_path: Path) -> None:
    _, bash = build_code_tools(sandbox, Workspaces(tmp_path))
    assert (await bash.ainvoke({"cmd": "echo 4; sleep 0.4; echo 5"})).startswith("4\n5")
