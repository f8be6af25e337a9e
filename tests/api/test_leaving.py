"""Clients that go away, and a server that does: what each leaves to the other."""

import asyncio
import json
import re
import signal
from typing import Any

import httpx
import pytest

from maniple.api import sse
from maniple.service import callers
from tests.api.in_process import QUESTION, InProcessService, numbered
from tests.grammar import Client
from tests.openai_server import SIMPLE, serving, words
from tests.serving import environment, server_process

pytestmark = pytest.mark.anyio
HANGING = {**SIMPLE, "coder": [{"hang": True}]}
# Long enough to leave in the middle.
SLOW = {**SIMPLE, "reporter": [{"chunks": words(40), "delay_seconds": 0.05}]}
QUICK = {"MANIPLE_SANDBOX__BACKEND": "off", "MANIPLE_BROWSER__ENABLED": "false"}


async def left_at(client: httpx.AsyncClient, event: str, **body) -> str:
    """Ask, go away when the stream comes to `event`, and return the run's id."""
    run_id = ""
    async with client.stream("POST", "/api/chat/stream", json={**QUESTION, **body}) as response:
        async for line in response.aiter_lines():
            if '"run_id"' in line and not run_id:
                run_id = line.partition('"run_id": "')[2].partition('"')[0]
            if line == f"event: {event}":
                break
    return run_id


async def end_of(client: httpx.AsyncClient, run_id: str) -> dict:
    await client.get(f"/api/runs/{run_id}/events")  # ends when the run has ended
    return (await client.get(f"/api/runs/{run_id}")).json()


@pytest.mark.parametrize(("on_disconnect", "status"), [("cancel", "cancelled"), ("continue", "completed")])
async def test_the_run_of_a_client_that_left_ends_as_the_client_wished(client, model, on_disconnect, status):
    model.reset(SLOW)
    run_id = await left_at(client, "start_of_workflow", on_disconnect=on_disconnect)
    run = await end_of(client, run_id)
    assert run["status"] == status
    told = numbered((await client.get(f"/api/runs/{run_id}/events")).text)
    assert Client().read([frame for _, frame in told]).status == status
    report = await client.get(f"/api/runs/{run_id}/report")
    assert report.status_code == (200 if status == "completed" else 404)


async def test_a_client_that_leaves_a_replay_ends_nothing(client, model):
    model.reset(SLOW)
    thread = (await client.post("/api/threads")).json()["thread_id"]
    run_id = (await client.post(f"/api/threads/{thread}/runs", json=QUESTION)).json()["run_id"]
    async with client.stream("GET", f"/api/runs/{run_id}/events") as response:
        async for line in response.aiter_lines():
            if line == "event: start_of_workflow":
                break
    assert (await end_of(client, run_id))["status"] == "completed"


@pytest.mark.parametrize("stuck_at", ["http.response.start", "http.response.body"])
async def test_a_client_that_reads_nothing_is_let_go_as_one_that_left(
    it: InProcessService, monkeypatch, stuck_at
):
    monkeypatch.setattr(sse, "SEND_SECONDS", 0.05)
    run = await it.run()
    await it.events_of(run["run_id"])
    left = []

    async def on_leaving() -> None:
        left.append(run["run_id"])

    async def never(message: Any = None) -> Any:
        if message is None or message["type"] == stuck_at:
            await asyncio.Event().wait()

    record = await it.service.engine.status(run["run_id"])
    response = sse.event_stream(it.service, record, sse.StreamStart(), on_leaving=on_leaving)
    async with asyncio.timeout(60):
        await response({"type": "http", "method": "GET"}, never, never)
    assert left == [run["run_id"]]


@pytest.mark.parametrize("script", [HANGING, SLOW], ids=["silent", "talking"])
async def test_streams_of_a_revoked_key_end_and_its_run_goes_on(
    it: InProcessService, model, monkeypatch, script
):
    monkeypatch.setattr(callers, "CHECK_SECONDS", 0.05)
    model.reset(script)
    role = "coder" if script is HANGING else "reporter"
    key = await it.key("somebody")
    [kept] = await it.service.store.keys.list()
    run = await it.run(key)
    path = f"/api/runs/{run['run_id']}/events?timed=true"
    asked = (it.client.post("/api/chat/stream", json=QUESTION, headers=key), it.client.get(path, headers=key))
    answering, following = (asyncio.create_task(one) for one in asked)
    await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get(role) == 2)
    await it.service.store.keys.revoke(kept.key_id)
    async with asyncio.timeout(60):
        told, followed = (await answering).text, (await following).text
    for text in (told, followed):
        assert '"code": "key_revoked"' in text
        names = [line[7:] for line in text.splitlines() if line.startswith("event: ")]
        assert names[-3:] == ["error", "end_of_workflow", "final_session_state"]
        assert SLOW["reporter"][0]["chunks"][-1] not in text
    assert '"at": ' not in told
    said = [line for line in followed.splitlines() if line.startswith("data: ")]
    assert all(re.search(r', "at": [\d.]+}$', line) for line in said), "also of what closes the stream"
    engine = it.service.engine
    assert (await engine.status(run["run_id"], kept.key_id)).status == "running"
    if script is SLOW:
        async with asyncio.timeout(60):
            newest = [page[-1] async for page in engine.events(run["run_id"])][-1]
        assert newest.type == "final_session_state"
        assert (await engine.status(run["run_id"], kept.key_id)).status == "completed"


def returned_history(text: str) -> list[dict[str, Any]]:
    """Return the conversation with which a stream ends; the frames that close it early have no number."""
    return json.loads(text.rpartition("event: final_session_state\ndata: ")[2])["messages"]


@pytest.mark.parametrize("role", ["coordinator", "coder"])
async def test_a_client_of_a_server_that_stops_keeps_its_conversation_and_the_run_goes_on(tmp_path, role):
    with serving({**SIMPLE, role: [{"hang": True}]}) as model:
        env = environment(model.base_url, tmp_path, **QUICK, MANIPLE_RUNS__DRAIN_SECONDS="0.2")
        with server_process(env, tmp_path) as server:
            async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
                asking = asyncio.create_task(client.post("/api/chat/stream", json=QUESTION))
                await asyncio.to_thread(model.wait_for, lambda s: s["by_role"].get(role) == 1)
                server.process.send_signal(signal.SIGTERM)
                told = (await asking).text
            await asyncio.to_thread(server.process.wait, 15)
        names = [line[7:] for line in told.splitlines() if line.startswith("event: ")]
        ends = ["end_of_workflow"] if "start_of_workflow" in names else []
        assert names[-2 - len(ends) :] == ["error", *ends, "final_session_state"]
        assert '"code": "stopping"' in told
        history = returned_history(told)
        assert history == QUESTION["messages"]
        [run] = [content for _, (name, content) in numbered(told) if name == "run"]
        model.reset(SIMPLE)
        with server_process(env, tmp_path) as server:
            async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
                assert (await end_of(client, run["run_id"]))["status"] == "completed"
                next_question = {"messages": [*history, {"role": "user", "content": "Now double it."}]}
                text = (await client.post("/api/chat/stream", json=next_question)).text
    assert f'"thread_id": "{run["thread_id"]}"' in text
    assert len(returned_history(text)) > len(history) + 2, "the answer to the first question is part of it"


async def test_the_preflight_lets_keys_replays_and_deletions_through(client):
    headers = {
        "origin": "http://localhost:3000",
        "access-control-request-method": "DELETE",
        "access-control-request-headers": "authorization,x-api-key,last-event-id",
    }
    response = await client.options("/api/threads/x", headers=headers)
    assert response.status_code == 200
    allowed = response.headers["access-control-allow-headers"].lower()
    assert {"authorization", "x-api-key", "last-event-id"} <= {one.strip() for one in allowed.split(",")}
    assert "DELETE" in response.headers["access-control-allow-methods"]
