"""A server that starts before its model waits for it, also through a kill, and answers meanwhile."""

import asyncio

import httpx
import pytest

from tests.openai_server import SIMPLE
from tests.runs.killing import Mortal
from tests.runs.leaving_endpoint import LeavingEndpoint
from tests.serving import environment

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(200)]


@pytest.mark.slow
async def test_runs_wait_through_a_kill_for_a_model_that_starts_later(tmp_path):
    async with LeavingEndpoint(SIMPLE) as endpoint:
        async with Mortal(environment(endpoint.base_url, tmp_path), tmp_path) as server:
            async with server.client() as client:
                runs = [await _begin(client) for _ in range(3)]
                before = [await _until(client, run_id, "queued", "model") for run_id in runs]
                listed = (await client.get("/api/runs")).json()["runs"]
                assert [one["waiting_for"] for one in listed] == ["model"] * 3
                assert (await client.get("/healthz")).status_code == 200
                assert (await client.get("/readyz")).status_code == 503
                assert (await client.post(f"/api/runs/{runs[2]}/cancel")).json()["status"] == "cancelled"
            await server.kill()
            await server.start()
            async with server.client() as client:
                after = [await _until(client, run_id, "queued", "model") for run_id in runs[:2]]
                assert [one["waiting_until"] for one in after] == [one["waiting_until"] for one in before[:2]]
                await endpoint.start()
                for run_id in runs[:2]:
                    ended = await _until(client, run_id, "completed", None)
                    assert ended["waiting_since"] is ended["waiting_until"] is None
                text = (await client.get(f"/api/runs/{runs[0]}/events")).text
    assert text.count("event: run_waiting") == 2, "once in each process"
    assert text.count("event: run_continued") == 1


async def _begin(client: httpx.AsyncClient) -> str:
    thread = (await client.post("/api/threads", json={})).json()["thread_id"]
    response = await client.post(f"/api/threads/{thread}/runs", json={"input": "1+3=?"})
    assert response.status_code == 202, response.text
    return response.json()["run_id"]


async def _until(client: httpx.AsyncClient, run_id: str, status: str, waiting_for: str | None) -> dict:
    """Return the view of a run once it has this status and waits for this."""
    for _ in range(600):
        view = (await client.get(f"/api/runs/{run_id}")).json()
        if (view["status"], view["waiting_for"]) == (status, waiting_for):
            return view
        await asyncio.sleep(0.1)
    raise AssertionError(f"the run is never {status} and waiting for {waiting_for}")
