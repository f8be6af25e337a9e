"""Runs whose code does not want to end, cancelled at moments of chance."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from maniple.agents.offers import Offer
from maniple.config.sandbox_settings import SandboxSettings
from maniple.runs import ExecutionEnvironment, InProcessEngine, RunRequest, open_engine
from maniple.sandbox import open_sandbox
from maniple.store import open_store
from maniple.workspace import Workspaces
from maniple.workspace.mirrors import MIRROR_FOLDERS
from tests.openai_server import BRIEF
from tests.sandbox.host import as_process_one, new_marker, watched
from tests.sizes import sizes
from tests.team import scripted_team
from tests.tools.built import build_code_tools

pytestmark = pytest.mark.anyio

_AT_ONCE = 4
_MARKER = new_marker()
# `{run}` is the number of the run. Every other command ends and leaves a process behind; then Python follows.
_COMMAND = f"""
echo {{run}} > command-{{run}}
setsid bash -c 'trap "" TERM HUP INT; sleep 60; true' {_MARKER} &
[ $(({{run}} % 2)) = 0 ] || sleep 60
"""
_CODE = f"""
import os, signal, subprocess, sys
kind = {{run}} // 2 % 4
signal.signal(signal.SIGINT, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", {_MARKER!r}], start_new_session=True)
if kind == 1 and os.fork():
    os.setsid()
while kind:  # else the model is waited for, while the processes work on
    if kind == 2:
        print("x" * 1000)
    elif kind == 3:
        with open("code-{{run}}", "w") as file:
            file.write("{{run}}")
"""
_CALLS = [
    {"name": "bash_tool", "arguments": {"cmd": _COMMAND}},
    {"name": "python_repl_tool", "arguments": {"code": _CODE}},
]


async def _cancelled(engine: InProcessEngine, number: int, chance: random.Random) -> str:
    """Begin a run, cancel it sooner or later, mostly while it works; return how it ended."""
    messages = [HumanMessage(f"1+3=? #run={number}")]
    request = RunRequest(messages, thread_id=f"thread-{number % _AT_ONCE}")
    run_id = (await engine.submit(request)).run.run_id
    called = asyncio.Event()
    following = asyncio.create_task(_follow(engine, run_id, called))
    if chance.random() < 0.8:
        await called.wait()
    await asyncio.wait({following}, timeout=chance.random() * 0.4)
    await engine.cancel(run_id)
    await following
    return (await engine.status(run_id)).status


async def _follow(engine: InProcessEngine, run_id: str, called: asyncio.Event) -> None:
    """Read a run to its end; note when it has called its tools."""
    async for page in engine.events(run_id):
        if any(record.type == "tool_call" for record in page):
            called.set()


def _strays(folder: Path) -> set[str]:
    """Files beside the workspaces and artifacts, and in them what is not of a run of that thread."""
    strays = {path.name for path in folder.iterdir()} - {"workspaces", "artifacts"}
    strays = {name for name in strays if not name.startswith("maniple.db")}  # the store's own
    for path in (folder / "workspaces").glob("*/*"):
        thread, name = path.parts[-2:]
        if thread == ".beside" or name in MIRROR_FOLDERS:  # what the server itself keeps of a thread
            continue
        kind, _, number = name.partition("-")
        if kind not in ("command", "code") or thread != f"thread-{int(number) % _AT_ONCE}":
            strays.add(str(path))
    return strays


@pytest.mark.slow
@pytest.mark.parametrize("runs", sizes(24, 200))
async def test_runs_cancelled_at_random_leave_no_process_and_no_file(tmp_path: Path, runs: int) -> None:
    workspaces = Workspaces(tmp_path / "workspaces")
    ends: list[str] = []
    script: dict[str, Any] = {**BRIEF, "coder": [{"tool_calls": _CALLS}, {"hang": True}]}
    with as_process_one() as children:
        async with (
            open_sandbox(SandboxSettings(timeout_seconds=60)) as sandbox,
            open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        ):
            toolbox = Offer({"coder": build_code_tools(sandbox, workspaces)})
            workplace = ExecutionEnvironment(workspaces, sandbox)
            async with (
                scripted_team(script, checkpointer=store.checkpointer, toolbox=toolbox) as it,
                open_engine(it.team, store, kind="server", environment=workplace) as engine,
            ):

                async def one_after_another(first: int) -> None:
                    chance = random.Random(first)
                    for number in range(first, runs, _AT_ONCE):
                        ends.append(await _cancelled(engine, number, chance))

                await asyncio.gather(*map(one_after_another, range(_AT_ONCE)))
                # Before anything is closed: the cancelled runs themselves have left nothing.
                assert children() == []
                with watched(_MARKER) as processes:
                    assert processes == []
    assert ends == ["cancelled"] * runs
    assert await asyncio.to_thread(_strays, tmp_path) == set()
    commands = await asyncio.to_thread(lambda: [*tmp_path.rglob("command-*")])
    assert len(commands) > runs / 5, "most are cancelled while their code runs"
