"""What a request has that has no effect is named in the answer; metadata of a run is stored."""

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.openai_server import OpenAIServer, call, reply
from tests.serving import ServerProcess

pytestmark = pytest.mark.anyio
TALK = {"coordinator": [reply("Hello!")] * 4}
QUESTION = {"messages": [{"role": "user", "content": "Hello"}]}
RUN = {"assistant_id": "maniple", "input": QUESTION}
WITH_UNUSED = {
    **RUN,
    "input": {**QUESTION, "colour": "red"},
    "metadata": {"user": "Ada"},
    "durability": "sync",
    "stream_resumable": True,
    "config": {"tags": ["a"], "configurable": {"depth": "quick", "voice": "low", "thread_id": "x"}},
    "context": {"locale": "en-GB", "Größe": 1},
}
UNUSED = ["durability", "config.tags", "input.colour", "config.configurable.voice", "context.Größe"]


@pytest.fixture
async def http(server: ServerProcess, model: OpenAIServer) -> AsyncIterator[httpx.AsyncClient]:
    model.reset(TALK)
    async with httpx.AsyncClient(base_url=server.url, timeout=100) as it:
        yield it


def named(answer: httpx.Response) -> list[str]:
    """Return the names in the header of an answer."""
    answer.raise_for_status()
    header = answer.headers.get("x-maniple-not-used")
    return [str(httpx.QueryParams(f"n={one}")["n"]) for one in header.split(", ")] if header else []


async def test_a_run_of_the_langgraph_api_names_what_it_does_not_use(http: httpx.AsyncClient):
    assert named(await http.post("/runs/wait", json=RUN)) == []
    assert named(await http.post("/runs/wait", json=WITH_UNUSED)) == UNUSED
    assert named(await http.post("/runs/batch", json=[RUN, WITH_UNUSED])) == UNUSED
    answer = await http.post("/runs/stream", json=WITH_UNUSED)
    assert named(answer) == UNUSED
    assert '"not_used": ["durability", ' in answer.text.partition("\n\n")[0]
    command = {"id": 1, "method": "run.start", "params": WITH_UNUSED}
    started = (await http.post(f"/threads/{uuid4()}/commands", json=command)).json()
    assert started["result"]["maniple"]["not_used"] == UNUSED


async def test_the_metadata_of_a_run_is_stored_and_belongs_to_the_run_that_was_started(
    http: httpx.AsyncClient,
):
    body = json.dumps({**RUN, "metadata": {"user": {"name": "Ada \ud800"}}})
    run = (await http.post("/runs", content=body, headers={"content-type": "application/json"})).json()
    assert run["metadata"] == {"user": {"name": "Ada \ufffd"}}
    path = f"/threads/{run['thread_id']}/runs"
    assert (await http.get(f"{path}/{run['run_id']}")).json()["metadata"] == run["metadata"]
    await http.get(f"{path}/{run['run_id']}/join")
    again = await http.post(path, json={"assistant_id": "maniple", "metadata": {"user": "Bob"}})
    assert again.status_code == 409  # there is nothing to retry
    answer = {"assistant_id": "maniple", "command": {"resume": 1}, "metadata": {"user": "Bob"}}
    assert (await http.post(path, json=answer)).status_code == 409


@pytest.mark.parametrize("metadata", [{"text": "a" * 10_000}, {"n": 2**70}], ids=["long", "number"])
async def test_metadata_that_cannot_be_stored_is_refused(http: httpx.AsyncClient, metadata: Any):
    answer = await http.post("/runs", json={**RUN, "metadata": metadata})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


async def test_a_thread_names_the_metadata_that_it_does_not_store(http: httpx.AsyncClient):
    known = (await http.post("/threads", json={"metadata": {"graph_id": "maniple", "title": "A"}})).json()
    assert "maniple" not in known["metadata"]
    path = f"/threads/{known['thread_id']}"
    changed = (await http.patch(path, json={"metadata": {"graph_id": "other", "title": 1}})).json()
    assert changed["metadata"]["maniple"] == {"not_used": ["graph_id", "title"]}
    assert (await http.get(path)).json()["metadata"] == known["metadata"]


async def test_the_metadata_of_a_thread_is_stored_merged_and_searched(http: httpx.AsyncClient):
    user = str(uuid4())
    body = json.dumps({"metadata": {"user": user, "note": "\ud800"}})
    answer = await http.post("/threads", content=body, headers={"content-type": "application/json"})
    made = answer.raise_for_status().json()
    assert (made["metadata"]["user"], made["metadata"]["note"]) == (user, "\ufffd")
    path = f"/threads/{made['thread_id']}"
    changed = (await http.patch(path, json={"metadata": {"team": {"size": 2}, "title": "B"}})).json()
    assert changed["metadata"] == made["metadata"] | {"team": {"size": 2}, "title": "B"}
    for wanted, number in (({"user": user}, 1), ({"user": user, "team": {"size": 2}}, 1), ({"user": 1}, 0)):
        found = (await http.post("/threads/search", json={"metadata": wanted})).json()
        assert [one["thread_id"] for one in found] == [made["thread_id"]] * number
        assert (await http.post("/threads/count", json={"metadata": wanted})).json() == number
    for one in ("a" * 10_000, "a" * 5_000):
        refused = await http.patch(path, json={"metadata": {"text": one, one: 1}})
        assert refused.status_code == 422
    assert (await http.get(f"{path}/state")).json()["metadata"]["user"] == user


async def test_searches_counts_and_states_name_what_they_do_not_use(http: httpx.AsyncClient):
    run = (await http.post("/runs", json=RUN)).json()
    thread = f"/threads/{run['thread_id']}"
    bodies: dict[str, dict[str, Any]] = {
        "/assistants/search": {},
        "/threads": {},
        "/threads/search": {"limit": 1},
        "/threads/count": {"status": "idle"},
        "/runs/crons/search": {"limit": 1},
        "/runs/crons/count": {},
        "/runs/cancel": {"thread_id": run["thread_id"]},
        f"{thread}/history": {"limit": 1},
        f"{thread}/state/checkpoint": {"checkpoint": {"checkpoint_id": None, "checkpoint_ns": ""}},
    }
    for path, body in bodies.items():
        assert named(await http.post(path, json=body)) == []
        assert named(await http.post(path, json={**body, "colour": "red", "size": None})) == ["colour"]
    assert named(await http.patch(thread, json={"colour": "red"})) == ["colour"]
    assert named(await http.post("/runs/crons/search", json={"select": ["cron_id"]})) == ["select"]
    state = {"checkpoint": {}, "subgraphs": True}
    assert named(await http.post(f"{thread}/state/checkpoint", json=state)) == ["subgraphs"]


async def test_an_unknown_checkpoint_of_a_history_is_no_full_history(http: httpx.AsyncClient):
    run = (await http.post("/runs", json=RUN)).json()
    path = f"/threads/{run['thread_id']}/history"
    assert (await http.post(path, json={"before": "none"})).status_code == 404
    assert len((await http.post(path, json={"before": run["run_id"]})).json()) == 2
    assert (await http.post(path, json={"before": "start"})).json() == []
    assert len((await http.post(path, json={"checkpoint": {"checkpoint_id": run["run_id"]}})).json()) == 3
    assert len((await http.post(path, json={"checkpoint": {"checkpoint_id": "start"}})).json()) == 1


async def test_a_cron_names_what_its_runs_do_not_use_and_refuses_an_answer(http: httpx.AsyncClient):
    cron = {**RUN, "schedule": "0 8 * * 1"}
    made = await http.post("/runs/crons", json={**cron, "context": {"voice": "low"}})
    assert named(made) == ["context.voice"]
    assert (await http.delete(f"/runs/crons/{made.json()['cron_id']}")).status_code == 204
    refused = await http.post("/runs/crons", json={**cron, "command": {"resume": 1}})
    assert (refused.status_code, refused.json()["code"]) == (422, "unsupported")


async def test_an_input_of_ag_ui_names_what_it_does_not_use(http: httpx.AsyncClient, model: OpenAIServer):
    asks = [call("ask_user", question="Which?"), reply("Yes."), reply("Yes.")]
    model.reset({"coordinator": asks})
    thread = {"threadId": str(uuid4()), "forwardedProps": {"depth": "quick"}}
    message = {"id": "m", "role": "user", "content": "Hello"}
    asked = {**thread, "runId": "1", "messages": [message], "colour": "red", "parentRunId": "0"}
    first = events_of(await http.post("/ag-ui", json=asked))
    assert first[0]["metadata"]["maniple"]["notUsed"] == ["colour", "parentRunId"]
    [pause] = first[-1]["outcome"]["interrupts"]
    entry = {"interruptId": pause["id"], "status": "resolved", "payload": "That", "colour": "red"}
    answer = {**thread, "runId": "2", "messages": [message], "resume": [{**entry, "metadata": {"a": 1}}]}
    second = events_of(await http.post("/ag-ui", json=answer))
    unused = ["forwardedProps.depth", "resume.0.colour", "resume.0.metadata"]
    assert second[0]["metadata"]["maniple"]["notUsed"] == unused
    assert second[-1]["outcome"]["type"] == "success"


def events_of(answer: httpx.Response) -> list[Any]:
    """Return the events of AG-UI in an answer."""
    lines = answer.raise_for_status().text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


async def test_the_metadata_of_a_response_is_stored_and_of_a_completion_named(http: httpx.AsyncClient):
    body = {"model": "maniple", "input": "Hello", "metadata": {"user": "Ada", "depth": "quick"}}
    made = (await http.post("/v1/responses", json=body)).json()
    assert (made["metadata"], made["not_used"]) == (body["metadata"], [])
    assert (await http.get(f"/v1/responses/{made['id']}")).json()["metadata"] == body["metadata"]
    asked = {"model": "maniple", **QUESTION, "metadata": {"user": "Ada"}, "a,b": 1}
    answer = await http.post("/v1/chat/completions", json=asked)
    assert named(answer) == answer.json()["not_used"] == ["a,b", "metadata.user"]


async def test_query_parameters_that_a_protocol_does_not_know_are_named(http: httpx.AsyncClient):
    assert named(await http.get("/v1/models")) == []
    assert named(await http.get("/v1/models", params={"colour": "red", "Größe": "1"})) == ["colour", "Größe"]
    wait = await http.post("/runs/wait", json={**RUN, "durability": "sync"}, params={"colour": "red"})
    assert named(wait) == ["durability", "colour"]
    thread_id = wait.headers["content-location"].split("/")[2]
    runs = await http.get(f"/threads/{thread_id}/runs", params={"limit": 1, "colour": "red"})
    assert named(runs) == ["colour"]
    assert named(await http.post("/runs/stream", json=RUN, params={"colour": "red"})) == ["colour"]


async def test_the_command_for_a_state_names_what_it_does_not_use(http: httpx.AsyncClient):
    made = (await http.post("/threads", json={})).json()["thread_id"]
    command = {"id": 1, "method": "state.get", "params": {"keys": ["messages"], "checkpoint": "c"}}
    answer = (await http.post(f"/threads/{made}/commands", json=command)).json()
    assert answer["result"]["maniple"]["not_used"] == ["checkpoint"]
