"""With the store's own ledger and checkpoints, through a real SIGKILL in the middle of a tool."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from maniple.scope.run_scope import SCOPE_KEY, RunScope
from maniple.store.configured import open_store
from maniple.store.records import RunRecord, Thread
from tests.agents.restartable_team import FakeTools, TeamProcess, script
from tests.openai_server import call, reply
from tests.team import Offer, scripted_team

pytestmark = pytest.mark.anyio
APPROVAL = frozenset({"bash_tool"})
DONE = reply("done")
ROOT = Path(__file__).parents[2]


async def living(folder: Path, told: dict, machine: FakeTools, work) -> None:
    async with open_store(folder / "store.db", folder / "artifacts", server=False) as store:
        if await store.runs.get("r") is None:
            await store.threads.create(Thread("t", "", "", 1.0, 1.0))
            await store.runs.add(RunRecord("r", "t", "", "chat", store.process, "running", "{}", 1.0))
        scope = RunScope("r", store.ledger, approval=APPROVAL)
        toolbox = Offer({"coder": machine.tools()})
        async with scripted_team(told, checkpointer=store.checkpointer, toolbox=toolbox) as it:
            config = {"configurable": {"thread_id": "t", SCOPE_KEY: scope}, "recursion_limit": 100}
            await work(TeamProcess(it.team, it.server, config))


async def until_killed(folder: Path) -> None:
    """Approve a call, then say so and hang in the middle of it."""
    machine = FakeTools(sticks_at="make")

    async def work(it: TeamProcess) -> None:
        await it.begin()
        going = asyncio.create_task(it.answer("approve"))
        await machine.stuck.acquire()
        print("stuck", flush=True)
        await going

    await living(folder, script(call("look", what="x"), call("bash_tool", cmd="make"), DONE), machine, work)


@pytest.mark.slow
async def test_after_a_kill_a_call_runs_again_only_after_a_question(tmp_path):
    run = f"asyncio.run(until_killed(pathlib.Path({str(tmp_path)!r})))"
    code = f"import asyncio, pathlib; from {__name__} import until_killed; {run}"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        async with asyncio.timeout(60):
            assert await child.stdout.readline() == b"stuck\n"
    finally:
        os.kill(child.pid, signal.SIGKILL)
        await child.wait()
    machine = FakeTools()

    async def recovered(it: TeamProcess) -> None:
        (waiting,) = await it.recover()
        assert (waiting.value["reason"], waiting.value["tool_input"]) == ("unknown_result", {"cmd": "make"})
        assert machine.ran == [], "the first call's result is on record, the second one's is not known"
        assert await it.answer("result: it had worked") == []
        assert [message["content"] for message in it.tool_messages()] == ["did x", "it had worked"]
        assert it.asked() == 1

    await living(tmp_path, script(DONE), machine, recovered)
    assert machine.ran == []
