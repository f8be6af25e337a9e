"""`POST /api/runs/{run_id}/messages`, and the strategy `steer`."""

import asyncio
import json

import pytest

from maniple.events import VIEW_NAMES
from tests.api.in_process import numbered, open_service
from tests.grammar import Client
from tests.openai_server import SIMPLE, reply, serving

pytestmark = pytest.mark.anyio
ANSWER = {"decision": "answer", "reply": "Four, I think.", "changes": [], "steps": []}
SCRIPT = {**SIMPLE, "supervisor": [reply(json.dumps(ANSWER))], "coder": [{"hang": True}]}


def named(frames, name):
    return [content for one, content in frames if one == name]


async def test_a_run_that_has_ended_refuses_a_message_with_what_to_do(tmp_path):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run()
            await it.events_of(run["run_id"])
            path = f"/api/runs/{run['run_id']}/messages"
            refused = await it.client.post(path, json={"content": "and 2+2?"})
            unknown = await it.client.post("/api/runs/none/messages", json={"content": "hello"})
            empty = await it.client.post(path, json={"content": "  "})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_working")
    assert "completed" in refused.json()["detail"]
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    assert empty.status_code == 422


async def test_a_run_that_waits_refuses_a_message_and_names_the_way_to_answer(tmp_path):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run(auto_accepted_plan=False)
            await it.events_of(run["run_id"])
            path = f"/api/runs/{run['run_id']}/messages"
            refused = await it.client.post(path, json={"content": "accept"})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_working")
    assert "/resume" in refused.json()["detail"]


async def test_a_request_that_steers_is_answered_with_the_run_that_works(tmp_path):
    with serving(SCRIPT) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run()
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
            body = {"input": "Are you sure?", "multitask_strategy": "steer"}
            path = f"/api/threads/{run['thread_id']}/runs"
            steered = await it.client.post(path, json=body)
            assert (steered.status_code, steered.json()["run_id"]) == (202, run["run_id"])
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("supervisor") == 1)
            # Without a strategy it waits, as it always did.
            queued = await it.client.post(path, json={"input": "second"})
            assert queued.json()["run_id"] != run["run_id"]
            assert queued.json()["status"] == "queued"
            async with it.client.stream("GET", f"/api/runs/{run['run_id']}/page") as page:
                assert page.status_code == 200
            for one in (queued, steered):
                await it.client.post(f"/api/runs/{one.json()['run_id']}/cancel")
            frames = await it.events_of(run["run_id"])
    assert [one["content"] for one in named(frames, "user_message")] == ["Are you sure?"]


async def test_a_picture_cannot_steer_and_waits(tmp_path):
    picture = {"type": "image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    content = [{"type": "text", "text": "Like this one."}, picture]
    with serving(SCRIPT) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run()
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
            body = {"messages": [{"role": "user", "content": content}], "multitask_strategy": "steer"}
            queued = await it.client.post(f"/api/threads/{run['thread_id']}/runs", json=body)
            assert queued.json()["run_id"] != run["run_id"]
            for one in (queued.json(), run):
                await it.client.post(f"/api/runs/{one['run_id']}/cancel")


async def test_a_stream_that_only_wrote_to_a_run_does_not_end_it_when_it_leaves(tmp_path):
    with serving(SCRIPT) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run()
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
            asked = {"role": "user", "content": "Are you sure?"}
            body = {"messages": [asked], "thread_id": run["thread_id"], "multitask_strategy": "steer"}
            streaming = asyncio.create_task(it.client.post("/api/chat/stream", json=body))
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("supervisor") == 1)
            streaming.cancel()
            await asyncio.wait([streaming])
            assert (await it.get(f"/api/runs/{run['run_id']}"))["status"] == "running"
            await it.client.post(f"/api/runs/{run['run_id']}/cancel")


@pytest.mark.parametrize("view", VIEW_NAMES)
@pytest.mark.parametrize("is_reviewed", [False, True], ids=["first segment", "after an answer"])
async def test_a_stream_that_a_message_joins_in_the_middle_of_a_turn_begins_with_the_run(
    tmp_path, view, is_reviewed
):
    with serving({**SCRIPT, "coder": [reply("so far so good", hang_after=3)]}) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run(auto_accepted_plan=not is_reviewed)
            first = 0
            if is_reviewed:
                first = len(await it.events_of(run["run_id"]))
                await it.client.post(f"/api/runs/{run['run_id']}/resume", json={"answer": "accept"})
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
            asked = {"role": "user", "content": "Are you sure?"}
            body = {"messages": [asked], "thread_id": run["thread_id"], "multitask_strategy": "steer"}
            joining = asyncio.create_task(it.client.post(f"/api/chat/stream?view={view}", json=body))
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("supervisor") == 1)
            await it.client.post(f"/api/runs/{run['run_id']}/cancel")
            joined = numbered((await joining).text)
            again = numbered((await it.client.get(f"/api/runs/{run['run_id']}/events?view={view}")).text)
    frames = [frame for _, frame in joined]
    assert joined == again[first:]
    assert frames[0][0] == "run"
    assert named(frames, "user_message")[0]["content"] == "Are you sure?"
    Client().read(frames)
