"""The models of the service, and which of them a run uses."""

import pytest

from tests.api.in_process import open_service
from tests.openai_server import SIMPLE, OpenAIServer, serving

pytestmark = pytest.mark.anyio
_PRICES = {"price_input": 1.0, "price_output": 2.0}


def _models(first: OpenAIServer, second: OpenAIServer) -> dict[str, object]:
    common = {"max_retries": 0, "timeout_seconds": 60}
    other = {"model": "other", "base_url": second.base_url, **common, **_PRICES}
    return {"basic": {"model": "first", "base_url": first.base_url, **common, "fallbacks": [other]}}


@pytest.fixture
async def two(model: OpenAIServer, tmp_path):
    model.reset(SIMPLE)
    with serving(SIMPLE) as second:
        async with open_service(model.base_url, tmp_path, models=_models(model, second)) as it:
            yield it, second


async def test_the_models_are_listed_with_their_work_and_whether_their_cost_is_known(two):
    it, _ = two
    listed = await it.get("/api/models")
    assert listed.pop("fixed") != "", "these settings have no file"
    assert listed == {
        "trusts": "",
        "answering": "first",
        "embedded": False,
        "models": [
            {"name": "first", "types": ["basic"], "has_price": False},
            {"name": "other", "types": [], "has_price": True},
        ],
    }


async def test_a_run_uses_the_model_that_it_names_and_its_usage_says_so(two, model):
    it, second = two
    accepted = await it.run(model="other")
    frames = await it.events_of(accepted["run_id"])
    assert {body["model"] for name, body in frames if name == "usage"} == {"other"}
    assert (model.stats["calls"] == 0, second.stats["calls"] > 0) == (True, True)


async def test_a_run_that_is_resumed_keeps_its_model(two, model):
    it, _ = two
    accepted = await it.run(model="other", auto_accepted_plan=False)
    asked = await it.events_of(accepted["run_id"])
    assert (await it.get(f"/api/runs/{accepted['run_id']}"))["status"] == "interrupted"
    response = await it.client.post(f"/api/runs/{accepted['run_id']}/resume", json={"answer": "accept"})
    assert response.status_code == 202
    await it.events_of(accepted["run_id"], after=len(asked))
    assert (await it.get(f"/api/runs/{accepted['run_id']}"))["status"] == "completed"
    assert model.stats["calls"] == 0


async def test_an_unknown_model_is_refused_everywhere_with_those_that_are_configured(two):
    it, _ = two
    question = {"messages": [{"role": "user", "content": "1+3=?"}], "model": "nope"}
    thread = await it.thread()
    bodies = {
        "/api/chat/stream": question,
        f"/api/threads/{thread}/runs": question,
        "/api/batches": {"items": ["1+3=?"], "run": {"model": "nope"}},
        "/api/schedules": {"name": "daily", "cron": "0 7 * * *", "run": question},
    }
    for path, body in bodies.items():
        response = await it.client.post(path, json=body)
        assert (response.status_code, response.json()["code"]) == (409, "unknown_model"), (
            path,
            response.text,
        )
        assert "first, other" in response.json()["detail"]
    response = await it.client.post("/api/chat/stream", json={**question, "model": "x" * 201})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")
