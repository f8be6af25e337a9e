"""A conversation is deleted while a run of it works: each protocol's own way cancels the run, and says so."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from tests.openai_server import SIMPLE, OpenAIServer
from tests.protocols.test_langgraph_streams import start
from tests.serving import ServerProcess

pytestmark = pytest.mark.anyio
QUESTION = {"messages": [{"role": "user", "content": "1+3=?"}]}
HANGING = {**SIMPLE, "coder": [{"hang": True}, *SIMPLE["coder"]]}
FOLLOW_SECONDS = 30


@pytest.fixture
async def http(server: ServerProcess, model: OpenAIServer) -> AsyncIterator[httpx.AsyncClient]:
    model.reset(HANGING)
    async with httpx.AsyncClient(base_url=server.url, timeout=100) as it:
        yield it


async def begin_own(http: httpx.AsyncClient) -> tuple[str, str, str]:
    """Start a run; return the paths that delete it and that follow it, and its id."""
    thread = (await http.post("/api/threads")).json()["thread_id"]
    run = (await http.post(f"/api/threads/{thread}/runs", json=QUESTION)).json()["run_id"]
    return f"/api/threads/{thread}", f"/api/runs/{run}/events", run


async def begin_langgraph(http: httpx.AsyncClient) -> tuple[str, str, str]:
    thread = (await http.post("/threads", json={})).json()["thread_id"]
    body = {"assistant_id": "maniple", "input": QUESTION}
    run = (await http.post(f"/threads/{thread}/runs", json=body)).json()["run_id"]
    return f"/threads/{thread}", f"/threads/{thread}/runs/{run}/stream", run


async def begin_events(http: httpx.AsyncClient) -> tuple[str, str, str]:
    """Start a run by the second protocol, whose streams have no end; it is followed by the first."""
    thread, sent = await start(http)
    run = sent["result"]["run_id"]
    return f"/threads/{thread}", f"/threads/{thread}/runs/{run}/stream", run


async def begin_response(http: httpx.AsyncClient) -> tuple[str, str, str]:
    body = {"model": "maniple", "input": "1+3=?", "background": True}
    name = (await http.post("/v1/responses", json=body)).json()["id"]
    return f"/v1/responses/{name}", f"/v1/responses/{name}?stream=true", name.removeprefix("resp_")


async def read_rest(response: httpx.Response) -> str:
    """Return the text of a stream that has begun."""
    assert response.status_code == 200
    return (await response.aread()).decode()


@pytest.mark.parametrize("begin", [begin_own, begin_langgraph, begin_events, begin_response])
async def test_a_run_at_work_is_cancelled_and_its_followers_are_told(
    http: httpx.AsyncClient, model: OpenAIServer, begin: Any
):
    deletion, stream, run = await begin(http)
    await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
    async with AsyncExitStack() as stack:
        following = [
            asyncio.ensure_future(read_rest(await stack.enter_async_context(http.stream("GET", path))))
            for path in (stream, f"/api/runs/{run}/events")
        ]
        gone = await http.delete(deletion)
        assert gone.status_code in (200, 204), gone.text
        await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 0)
        async with asyncio.timeout(FOLLOW_SECONDS):
            told = [await one for one in following]
    # LangGraph's first protocol has no word for it: the stream ends, and the run is gone.
    said = '"cancelled"' if begin in (begin_own, begin_response) else "event: end"
    assert said in told[0]
    assert '"cancelled"' in told[1]
    for path in (deletion, stream, f"/api/runs/{run}"):
        assert (await http.get(path)).status_code == 404
    assert (await http.delete(deletion)).status_code == 404
