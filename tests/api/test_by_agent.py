"""The usage of each member in `GET /api/runs/{run_id}`."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.in_process import InProcessService, open_service
from tests.openai_server import SIMPLE, OpenAIServer, reply
from tests.team import data

pytestmark = pytest.mark.anyio
TEAM = ["coordinator", "planner", "coder", "reporter"]


async def asked(it: InProcessService, **body: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the status of a run at its end, and its `usage` events."""
    run = await it.run(**body)
    frames = await it.events_of(run["run_id"])
    return await it.get(f"/api/runs/{run['run_id']}"), data(frames, "usage")


async def test_the_shares_of_the_members_are_the_usage_of_the_run(model: OpenAIServer, tmp_path: Path):
    model.reset(SIMPLE)
    priced = {"model": "scripted", "base_url": model.base_url, "price_input": 2.0, "price_output": 10.0}
    async with open_service(model.base_url, tmp_path, models={"basic": priced}) as it:
        stands, told = await asked(it)
    shares, used = stands["by_agent"], stands["usage"]
    assert [*stands][-2:] == ["by_agent", "artifacts"]
    assert [one["agent_name"] for one in shares] == TEAM
    for name in ("model_calls", "input_tokens", "output_tokens", "cost"):
        assert sum(one[name] for one in shares) == pytest.approx(used[name]), name
    assert [one["model_calls"] for one in shares] == [1, 1, 2, 1]
    seconds = sum(one["seconds"] for one in told if one["agent_name"] == "coder")
    assert shares[2]["seconds"] == round(seconds, 3)
    assert all(one["cost"] > 0 for one in shares)


async def test_a_run_at_work_shows_what_it_has_used_so_far(model: OpenAIServer, tmp_path: Path):
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    async with open_service(model.base_url, tmp_path) as it:
        run = await it.run()
        await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
        stands = await it.get(f"/api/runs/{run['run_id']}")
        cancelled = (await it.client.post(f"/api/runs/{run['run_id']}/cancel")).json()
    assert (stands["status"], cancelled["status"]) == ("running", "cancelled")
    assert cancelled["usage"]["model_calls"] == 2
    assert stands["usage"]["model_calls"] == sum(one["model_calls"] for one in stands["by_agent"]) == 2
    assert stands["usage"]["input_tokens"] == sum(one["input_tokens"] for one in stands["by_agent"]) > 0


async def test_tokens_that_the_endpoint_had_in_its_cache_are_counted_and_cost_their_own_price(
    model: OpenAIServer, tmp_path: Path
):
    counts = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
    openai = reply("Hello!", usage={**counts, "prompt_tokens_details": {"cached_tokens": 600}})
    deepseek = reply("Hello!", usage={**counts, "prompt_cache_hit_tokens": 600})
    prices = {"price_input": 2_000.0, "price_output": 10_000.0, "price_cached": 500.0}
    priced = {"model": "scripted", "base_url": model.base_url, **prices}
    async with open_service(model.base_url, tmp_path, models={"basic": priced}) as it:
        for said in (openai, deepseek):
            model.reset({"coordinator": [said]})
            stands, told = await asked(it)
            assert told[0]["cached_tokens"] == stands["by_agent"][0]["cached_tokens"] == 600
            assert stands["by_agent"][0]["cost"] == stands["usage"]["cost"] == 0.4 * 2 + 0.6 * 0.5 + 1
        model.reset({"coordinator": [reply("Hello!", usage=counts)]})
        stands, told = await asked(it)
        assert "cached_tokens" not in told[0]
        assert stands["usage"]["cost"] == 2 + 1


async def test_without_prices_no_cost_is_known_and_what_waits_reports_what_it_has_used_so_far(
    it: InProcessService,
):
    stands, _ = await asked(it, auto_accepted_plan=False)
    assert stands["status"] == "interrupted"
    assert [(one["agent_name"], one["cost"]) for one in stands["by_agent"]] == [
        ("coordinator", None),
        ("planner", None),
    ]
    assert stands["usage"]["cost"] == 0.0
    cancelled = await it.client.post(f"/api/runs/{stands['run_id']}/cancel")
    assert cancelled.json()["by_agent"] == stands["by_agent"]


async def test_a_run_without_model_calls_has_no_shares(it: InProcessService, model: OpenAIServer):
    model.reset({"coordinator": [{"hang": True}]})
    run = await it.run()
    assert (await it.get(f"/api/runs/{run['run_id']}"))["by_agent"] == []
    await it.client.post(f"/api/runs/{run['run_id']}/cancel")


@pytest.mark.parametrize("failure", [{"status": 400}, {"status": 500}, reply("one two", cut_after=1)])
async def test_failed_calls_are_in_neither_the_usage_of_a_run_nor_its_shares_also_after_a_retry(
    model: OpenAIServer, tmp_path: Path, failure: dict[str, Any]
):
    basic = {"model": "scripted", "base_url": model.base_url, "max_retries": 0}
    async with open_service(model.base_url, tmp_path, models={"basic": basic}) as it:
        for role in ("coordinator", "planner", "coder", "reporter"):
            model.reset({**SIMPLE, role: [failure]})
            run = await it.run()
            frames = await it.events_of(run["run_id"])
            before = await it.get(f"/api/runs/{run['run_id']}")
            model.reset(SIMPLE)
            retried = await it.client.post(f"/api/runs/{run['run_id']}/retry")
            if retried.status_code != 409:  # nothing is left to be done
                await it.client.get(f"/api/runs/{run['run_id']}/events?after={len(frames)}")
            after = await it.get(f"/api/runs/{run['run_id']}")
            for stands in (before, after):
                assert sum(one["model_calls"] for one in stands["by_agent"]) == stands["usage"]["model_calls"]
