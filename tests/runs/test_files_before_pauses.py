"""The files of a step are those that it wrote before its pauses, too."""

import json

import pytest
from langchain_core.messages import HumanMessage

from maniple.agents.offers import Offer
from maniple.graph.state import progress_of
from maniple.runs import EngineConfig, RunRequest, open_engine
from maniple.runs.turn import thread_state
from maniple.store import open_store
from maniple.tools.items import ThreadItems
from maniple.workspace import Workspaces
from tests.openai_server import call, reply
from tests.team import plan, scripted_team, step
from tests.tools.built import build_file_tools

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
SCRIPT = {
    "coordinator": [call("handoff_to_planner", locale="en-US")],
    "planner": [reply(json.dumps(plan(step("coder"), step("reporter"))))],
    "coder": [
        call("write_file", path="a.md", content="a"),
        call("write_file", path="b.md", content="b"),
        reply("I wrote a.md and b.md."),
    ],
    "reporter": [reply("# Report")],
}


async def test_files_written_before_a_second_approval_are_those_of_the_step(tmp_path):
    workspaces = Workspaces(tmp_path / "files")
    workspaces.open("t").write("old.md", b"the user's")
    tools = Offer({"coder": build_file_tools(workspaces)})
    async with (
        open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        scripted_team(
            SCRIPT, checkpointer=store.checkpointer, toolbox=tools, items=ThreadItems(workspaces)
        ) as it,
        open_engine(it.team, store, kind="server", config=EngineConfig(approval=["write_file"])) as engine,
    ):
        run_id = (await engine.submit(RunRequest([HumanMessage("write")], "t"))).run.run_id
        for _ in range(3):
            async for _page in engine.events(run_id):
                pass
            if (await engine.status(run_id)).status == "interrupted":
                await engine.resume(run_id, "yes")
        progress = progress_of((await thread_state(it.team, "t")).values)
        assert (await engine.status(run_id)).status == "completed"
    assert progress is not None
    assert progress.steps[0].outcome.files == ["a.md", "b.md"]
