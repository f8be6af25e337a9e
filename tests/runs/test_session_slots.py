"""Runs give the places of the sandbox on as they end."""

import asyncio
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from maniple.agents.offers import Offer
from maniple.runs import ExecutionEnvironment, RunRequest, open_engine
from maniple.sandbox.sessions import EvictionPolicy
from maniple.store import open_store
from maniple.workspace import Workspaces
from tests.openai_server import SIMPLE, call, reply
from tests.runs.test_recovery import events_of
from tests.sandbox.opened import opened_sandbox
from tests.team import scripted_team
from tests.tools.built import build_code_tools

pytestmark = pytest.mark.anyio
SCRIPT = {
    **SIMPLE,
    "coder": [call("python_repl_tool", code="x = globals().get('x', 0) + 1; x"), reply("Counted.")],
    "by_history": True,
}


async def test_a_finished_run_holds_its_slot_until_another_thread_needs_it(
    tmp_path: Path,
) -> None:
    workspaces = Workspaces(tmp_path / "workspaces")
    async with (
        opened_sandbox(EvictionPolicy(rest_seconds=300, patience_seconds=300), concurrent=1) as sandbox,
        open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        scripted_team(
            SCRIPT,
            checkpointer=store.checkpointer,
            toolbox=Offer({"coder": build_code_tools(sandbox, workspaces)}),
        ) as it,
        open_engine(
            it.team, store, kind="server", environment=ExecutionEnvironment(workspaces, sandbox)
        ) as engine,
    ):
        results = []
        for thread_id in ("a", "a", "b", "a"):
            request = RunRequest([HumanMessage("Count.")], thread_id)
            async with asyncio.timeout(60):
                run_id = (await engine.submit(request)).run.run_id
                events = await events_of(engine, run_id)
            results += [one.tool_result for one in events if one.type == "tool_call_result"]
    assert ["others needed the place" in result for result in results] == [False, False, False, True]
    assert [result[0] for result in results] == ["1", "2", "1", "1"]
