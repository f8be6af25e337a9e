"""A server that is killed in concurrent turns shows afterwards what clients saw before, in each view."""

import asyncio
import json
from contextlib import suppress

import httpx
import pytest

from maniple.events import VIEW_NAMES
from tests.api.in_process import numbered
from tests.grammar import Client
from tests.openai_server import SIMPLE, reply, serving
from tests.runs.killing import EventCounter, Mortal
from tests.serving import environment
from tests.team import data, plan, status, step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]
STEPS = [{**step("researcher", title), "needs": []} for title in ("A", "B", "C")]


def script(researcher):
    planned = [reply(json.dumps(plan(*STEPS, step("reporter"))))]
    return {**SIMPLE, "planner": planned, "researcher": [researcher]}


async def listen(client, run_id, view, seen, counter):
    """Add each whole frame of a view to `seen`, until the server is killed or the stream ends."""
    frame = ""
    with suppress(httpx.RemoteProtocolError, httpx.ReadError):
        async with client.stream("GET", f"/api/runs/{run_id}/events?view={view}") as response:
            async for line in response.aiter_lines():
                frame += f"{line}\n"
                if not line:
                    seen += numbered(frame)
                    frame = ""
                    await counter.increment()


def turns_with_text(seen):
    """Return the researchers' turns of which a part of the text was shown; the live view names them."""
    texts = [content for _, (name, content) in seen if name == "message"]
    return {one["agent_id"] for one in texts if "researcher" in one.get("agent_id", "")}


@pytest.mark.slow
async def test_each_view_begins_as_before_a_kill_in_concurrent_turns_and_can_be_resumed(tmp_path):
    before = {view: [] for view in VIEW_NAMES}
    counter = EventCounter()
    with serving(script(reply("one two three four five six", hang_after=5))) as model:
        async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
            async with server.client() as client:
                thread = (await client.post("/api/threads", json={})).json()["thread_id"]
                asked = await client.post(f"/api/threads/{thread}/runs", json={"input": "Look it up."})
                run_id = asked.json()["run_id"]
                listening = [
                    asyncio.create_task(listen(client, run_id, view, seen, counter))
                    for view, seen in before.items()
                ]
                await counter.wait_until(lambda: len(turns_with_text(before["live"])) == len(STEPS))
                await counter.wait_until(
                    lambda: len(data([one for _, one in before["langmanus"]], "message")) > 1
                )
                await server.kill()
                await asyncio.gather(*listening)
            model.reset(script(reply("found")))
            await server.start()
            async with server.client() as client:
                for view, seen in before.items():
                    path = f"/api/runs/{run_id}/events?view={view}"
                    whole = numbered((await client.get(path)).text)
                    assert whole[: len(seen)] == seen
                    for after in range(0, len(whole) + 1, 3):
                        header = {"last-event-id": str(after)}
                        assert numbered((await client.get(path, headers=header)).text) == whole[after:]
                    frames = [frame for _, frame in whole]
                    assert status(frames) == "completed"
                    opened = [one["agent_id"] for one in data(frames, "start_of_agent")]
                    assert len(set(opened)) == len(opened), "two turns have one id"
                    assert sorted(opened) == sorted(one["agent_id"] for one in data(frames, "end_of_agent"))
                    assert sum("researcher" in one for one in opened) == 2 * len(STEPS)
                    if view == "langmanus":
                        Client().read(frames)
