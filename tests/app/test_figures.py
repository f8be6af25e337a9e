"""What the coder draws, and what pages show, reaches the model that asked for it."""

import pytest
from langchain_core.messages import HumanMessage

from maniple.runs.turn import stream_run
from maniple.workspace import Workspaces
from tests.app.test_workers import script, team
from tests.crawler.web import Reply, open_site
from tests.openai_server import call, reply
from tests.pictures import png
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
    roles = [str(body["messages"][0]["content"]).split(" of a team")[0] for body in shown]
    assert roles == ["You are the coder", "You are the reporter"]


ARTICLE = Reply(
    "<title>Bridges</title><article><h1>Bridges</h1>"
    + "<p>The arch stands on stone, and the deck on the arch, as the picture shows.</p>" * 9
    + "<figure><img src=/arch.png alt='The arch'><figcaption>The arch in winter.</figcaption></figure>"
    "<img src=/icon.png alt='Share'></article>"
)


@pytest.mark.parametrize("images", [True, False])
async def test_the_researcher_sees_the_pictures_of_a_page_that_it_reads_unless_that_is_turned_off(
    images, tmp_path
):
    pictures = {"/arch.png": png(), "/icon.png": png(32, 32)}
    pages = {path: Reply(body, "image/png") for path, body in pictures.items()}
    async with open_site({"/bridges": ARTICLE, **pages}) as site:
        told = script(
            "researcher", call("crawl_tool", url=f"{site.url}/bridges"), reply("It stands on stone.")
        )
        async with team(told, tmp_path, site, images=images) as (runtime, server):
            events = stream_run(runtime.graph, [HumanMessage("What does it stand on?")], thread_id="t")
            frames = checked([event async for event in events])
            requests = list(server.requests)
    assert status(frames) == "completed", frames
    assert f"![The arch]({site.url}/arch.png)" in data(frames, "tool_call_result")[0]["tool_result"]
    assert "base64" not in str(frames)
    shown = [body for body in requests if "data:image/png;base64," in str(body["messages"])]
    assert len(shown) == (1 if images else 0)
    assert sum(str(body["messages"]).count("data:image/png") for body in shown) == len(shown)
