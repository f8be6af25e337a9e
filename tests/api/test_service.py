"""How the service says how it is, and what it says of itself."""

import asyncio
import contextlib

import httpx
import pytest

from maniple.api import readiness
from tests.api.inside import Inside, inside
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio


async def test_readiness_names_each_part_and_why_it_is_not_there(it: Inside):
    ready = await it.get("/readyz")
    assert (ready["ready"], ready["model"], ready["store"]) == (True, *[{"ready": True, "why": ""}] * 2)
    assert ready["sandbox"]["ready"] is False
    assert "sandbox" in ready["sandbox"]["why"]
    assert "TAVILY_API_KEY" in ready["search"]["why"]
    assert ready["browser"]["ready"] is False
    assert ready["files"]["ready"] is True


async def test_a_service_whose_model_is_gone_is_not_ready(tmp_path, monkeypatch):
    monkeypatch.setattr(readiness, "ASK_AGAIN_SECONDS", -1.0)
    with contextlib.ExitStack() as stack:
        model = stack.enter_context(serving(SIMPLE))
        async with inside(model.base_url, tmp_path) as it:
            assert (await it.client.get("/readyz")).status_code == 200
            await asyncio.to_thread(stack.close)
            response = await it.client.get("/readyz")
            assert response.status_code == 503
            assert "unreachable" in response.json()["model"]["why"]
            assert response.json()["store"]["ready"] is True


async def test_figures_are_counted_from_runs(it: Inside):
    run = await it.run()
    await it.told(run["run_id"])
    response = await it.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    assert 'maniple_runs_ended_total{status="completed"} 1.0' in response.text
    assert "maniple_stream_clients 0.0" in response.text


async def test_every_route_is_described_with_its_answers_and_refusals(it: Inside):
    document = it.app.openapi()
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            assert route["summary"], (method, path)
            assert route["description"], (method, path)
            answers = route["responses"]
            good = [status for status in answers if status in ("200", "201", "202", "204")]
            assert good, (method, path)
            assert all(status == "204" or answers[status].get("content") for status in good), (method, path)
            for status in ("401", "413", "422"):
                schema = answers[status]["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Problem"}, (method, path, status)
            if "{" in path:
                assert "404" in answers, (method, path)


async def test_a_fault_of_ours_is_an_answer_without_its_innards(tmp_path, model, monkeypatch):
    async with inside(model.base_url, tmp_path) as it:

        async def broken(*_: object) -> None:
            raise RuntimeError("secret innards")

        monkeypatch.setattr(type(it.service.store.threads), "list", broken)
        transport = httpx.ASGITransport(it.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            response = await client.get("/api/threads")
        assert (response.status_code, response.json()["code"]) == (500, "internal")
        assert "innards" not in response.text
