"""What the coder draws reaches the model that asked for it."""

import pytest
from langchain_core.messages import HumanMessage

from maniple.runtime import stream_run
from maniple.sandbox import Workspaces
from tests.crawler.web import open_site
from tests.openai_server import call, reply
from tests.runtime.test_workers import script, team
from tests.sandbox.figures import DRAW_ONE, plant_fake_matplotlib
from tests.team import checked, data, status

pytestmark = pytest.mark.anyio


async def test_the_coder_sees_the_figure_that_its_code_drew_and_clients_read_where_it_is(tmp_path):
    told = script("coder", call("python_repl_tool", code=DRAW_ONE), reply("It rises."))
    plant_fake_matplotlib(Workspaces(tmp_path / "data" / "workspaces").open("t"))
    async with open_site({}) as site, team(told, tmp_path, site) as (runtime, server):
        events = stream_run(runtime.graph, [HumanMessage("Draw a line.")], thread_id="t")
        frames = checked([event async for event in events])
        requests = list(server.requests)
    assert status(frames) == "completed", frames
    result = data(frames, "tool_call_result")[0]["tool_result"]
    assert "[figures drawn: figures/figure-1.png]" in result
    assert "base64" not in str(frames)
    shown = [body for body in requests if "data:image/png;base64," in str(body["messages"])]
    assert len(shown) == 1
    assert str(shown[0]["messages"][0]["content"]).startswith("You are the coder")
