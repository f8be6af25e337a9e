"""A run that continues after its server was killed can undo an edit."""

import asyncio
import json

import pytest

from tests.api.in_process import numbered
from tests.openai_server import SIMPLE, call, reply, serving
from tests.runs.killing import Mortal
from tests.serving import environment
from tests.team import data, plan, status, step

pytestmark = [pytest.mark.anyio]
QUICK = {"MANIPLE_SANDBOX__BACKEND": "off", "MANIPLE_BROWSER__ENABLED": "false"}
POEM = "roses are red\nviolets are blue\n"


def script(*last):
    made = call("str_replace_editor", command="create", path="poem.txt", file_text=POEM)
    edit = {"old_str": "red", "new_str": "white"}
    edited = call("str_replace_editor", command="str_replace", path="poem.txt", **edit)
    return {
        **SIMPLE,
        "by_history": True,
        "planner": [reply(json.dumps(plan(step("file_manager"), step("reporter"))))],
        "file_manager": [made, edited, *last],
    }


async def wait_for_results(client, events_path, count):
    """Read the run's events until so many tool results are stored: only stored events are sent."""
    async with client.stream("GET", events_path) as response:
        async for line in response.aiter_lines():
            count -= line == "event: tool_call_result"
            if not count:
                return


async def test_undo_works_after_a_kill_and_a_restart(tmp_path):
    undo = call("str_replace_editor", command="undo_edit", path="poem.txt")
    with serving(script({"hang": True})) as model:
        env = environment(model.base_url, tmp_path, **QUICK)
        async with Mortal(env, tmp_path) as server:
            async with server.client() as client:
                thread = (await client.post("/api/threads")).json()["thread_id"]
                place = tmp_path / "data" / "workspaces" / thread / "poem.txt"
                started = await client.post(f"/api/threads/{thread}/runs", json={"input": "Write."})
                events_path = f"/api/runs/{started.json()['run_id']}/events"
                await wait_for_results(client, events_path, 2)
                await asyncio.to_thread(
                    model.wait_for, lambda s: s["by_role"].get("file_manager") == 3 and s["active"] == 1, 100
                )
            assert place.read_text() == POEM.replace("red", "white")
            await server.kill()
            model.reset(script(undo, reply("As it was.")))
            await server.start()
            async with server.client() as client:
                events = await client.get(events_path)
    frames = [frame for _, frame in numbered(events.text)]
    assert status(frames) == "completed"
    results = [one["tool_result"] for one in data(frames, "tool_call_result")]
    assert [result.partition("\n")[0] for result in results] == [
        "Created poem.txt (2 lines).",
        "Changed poem.txt:",
        "Undone. poem.txt is as it was:",
    ]
    assert place.read_text() == POEM
    assert [one["name"] for one in data(frames, "artifact")] == ["poem.txt"]
