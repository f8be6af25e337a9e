"""Nothing that opens the team or runs it keeps the event loop waiting for a disk or a socket."""

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from maniple.app import open_runtime
from maniple.config import ModelSettings, ModelsSettings, Settings
from maniple.runs.turn import stream_run
from tests.openai_server import SIMPLE, serving
from tests.team import checked, data, status

pytestmark = pytest.mark.anyio


async def test_opening_and_running_the_team_never_blocks_the_loop(tmp_path):
    with serving(SIMPLE) as server, blockbuster_ctx("maniple") as watch:
        # Starting a process waits until it has begun; asyncio's own way does the same.
        watch.functions["os.read"].can_block_in("subprocess.py", {"_execute_child"})
        models = ModelsSettings(basic=ModelSettings(model="m", base_url=server.base_url))
        settings = Settings(models=models, data_dir=tmp_path / "data", cache_dir=tmp_path / "cache")
        async with open_runtime(settings, checkpointer=InMemorySaver()) as runtime:
            events = stream_run(runtime.graph, [HumanMessage("1+3=?")])
            frames = checked([event async for event in events])
    assert status(frames) == "completed"
    assert data(frames, "tool_call_result")[0]["tool_result"] == "4"
