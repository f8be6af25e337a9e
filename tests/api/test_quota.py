"""What a key may use in a day, all its runs together."""

import asyncio

import pytest

from maniple.api.requests import UnknownPrices, check_budget
from maniple.config import ModelsSettings
from maniple.scope.budget import Budget
from tests.api.in_process import QUESTION, InProcessService, numbered, open_service
from tests.openai_server import SIMPLE
from tests.team import status

pytestmark = pytest.mark.anyio
# What is asked for again, or by another run, gets the same reply.
STEADY = {**SIMPLE, "by_history": True}
LIMIT = "The key's daily limit of {} model calls is used up"


async def calls_of(it: InProcessService, run_id: str, headers: dict[str, str]) -> int:
    return (await it.get(f"/api/runs/{run_id}", headers))["usage"]["model_calls"]


async def report_of(it: InProcessService, run_id: str, headers: dict[str, str]) -> str:
    response = await it.client.get(f"/api/runs/{run_id}/report", headers=headers)
    assert response.status_code == 200, response.text
    return response.text


async def refused(
    it: InProcessService, headers: dict[str, str], path: str = "/api/chat/stream", **body
) -> str:
    response = await it.client.post(path, json=body or QUESTION, headers=headers)
    assert (response.status_code, response.json()["code"]) == (429, "daily_limit")
    assert response.headers["retry-after"] == "3600"
    return response.json()["detail"]


async def test_a_key_at_its_daily_limit_gets_a_retry_after(it: InProcessService):
    mine, other = await it.key("mine", daily_model_calls=5), await it.key("other")
    run = await it.run(mine)
    await it.events_of(run["run_id"], headers=mine)
    assert await calls_of(it, run["run_id"], mine) == 5
    assert "calls of a day: 5 of 5" in await refused(it, mine)
    assert (await it.client.post("/api/chat/stream", json=QUESTION, headers=other)).status_code == 200


async def test_a_front_end_can_read_what_is_left_of_the_day(it: InProcessService):
    mine, other = await it.key("mine", daily_model_calls=8, max_runs=3), await it.key("other")
    run = await it.run(mine)
    await it.events_of(run["run_id"], headers=mine)
    limit = {"limit": "model_calls", "allowed": 8, "used": 5, "left": 3}
    assert await it.get("/api/quota", mine) == {"max_runs": 3, "daily": [limit]}
    assert await it.get("/api/quota", other) == {"max_runs": None, "daily": []}
    assert (await it.client.get("/api/quota")).status_code == 401


async def test_a_run_gets_no_more_than_what_is_left_of_the_day(it: InProcessService):
    mine = await it.key("mine", daily_model_calls=8)
    first = await it.run(mine)
    await it.events_of(first["run_id"], headers=mine)
    second = await it.client.post("/api/chat/stream", json=QUESTION, headers=mine)
    assert status([frame for _, frame in numbered(second.text)]) == "budget_exhausted"


async def test_what_ended_since_a_run_was_taken_counts_for_it_too(it: InProcessService, model):
    model.reset(STEADY)
    mine = await it.key("mine", daily_model_calls=7)
    first = await it.run(mine)
    second = await it.run(mine, thread_id=first["thread_id"])  # waits for its turn
    statuses = [status(await it.events_of(run["run_id"], headers=mine)) for run in (first, second)]
    assert statuses == ["completed", "budget_exhausted"]


async def test_a_limit_of_cost_that_nothing_could_reach_is_refused(it: InProcessService, tmp_path, model):
    limited = {**QUESTION, "budget": {"cost": 0.5}}
    for path in ("/api/chat/stream", f"/api/threads/{await it.thread()}/runs"):
        response = await it.client.post(path, json=limited)
        assert (response.status_code, response.json()["code"]) == (409, "prices_unknown")
        assert "scripted" in response.json()["detail"]
    priced = {"model": "scripted", "base_url": model.base_url, "price_input": 1_000_000}
    async with open_service(model.base_url, tmp_path / "priced", models={"basic": priced}) as it:
        run = await it.run(budget={"cost": 0.5})
        assert status(await it.events_of(run["run_id"])) == "budget_exhausted"


async def test_deleting_a_conversation_gives_nothing_of_the_day_back(it: InProcessService):
    mine = await it.key("mine", daily_model_calls=5)
    run = await it.run(mine)
    await it.events_of(run["run_id"], headers=mine)
    deleted = await it.client.delete(f"/api/threads/{run['thread_id']}", headers=mine)
    assert deleted.status_code == 200
    assert "5 of 5" in await refused(it, mine)


async def test_ten_runs_at_once_stay_within_the_day_together(it: InProcessService, model, monkeypatch):
    model.reset(STEADY)
    mine, read = await it.key("mine", daily_model_calls=20), []
    used = it.service.store.runs.sum_usage

    async def counted(*which):
        read.append(which)
        return await used(*which)

    monkeypatch.setattr(it.service.store.runs, "sum_usage", counted)
    runs = await asyncio.gather(*(it.run(mine) for _ in range(10)))
    frames = await asyncio.gather(*(it.events_of(run["run_id"], headers=mine) for run in runs))
    assert {status(one) for one in frames} <= {"completed", "budget_exhausted"}
    assert len(read) == len(runs), "the store is read for a run, not for its calls"
    reports = model.stats["by_role"].get("reporter", 0)
    assert model.stats["calls"] - reports <= 20
    assert reports <= len(runs), "each may still write its report"
    assert model.stats["calls"] == sum([await calls_of(it, run["run_id"], mine) for run in runs])
    assert "of 20" in await refused(it, mine)


async def paused_run(it: InProcessService, mine: dict[str, str]) -> str:
    """Let a run come to its plan, with two calls, and another one use five."""
    run = await it.run(mine, auto_accepted_plan=False)
    assert status(await it.events_of(run["run_id"], headers=mine)) == "interrupted"
    other = await it.run(mine)
    await it.events_of(other["run_id"], headers=mine)
    return run["run_id"]


async def test_a_run_that_meets_the_end_of_the_day_ends_with_a_partial_report(it: InProcessService, model):
    model.reset(STEADY)
    mine = await it.key("mine", daily_model_calls=8)
    run_id = await paused_run(it, mine)
    resumed = await it.client.post(f"/api/runs/{run_id}/resume", json={"answer": "accept"}, headers=mine)
    assert resumed.status_code == 202, resumed.text
    follow = await it.client.get(f"/api/runs/{run_id}/events", headers=mine)
    statuses = [data["status"] for _, (name, data) in numbered(follow.text) if name == "run_status"]
    assert statuses == ["interrupted", "budget_exhausted"]
    assert await calls_of(it, run_id, mine) == 4, "plan, one call of the coder, and the report in reserve"
    assert LIMIT.format(8) in str(model.requests[-1]["messages"]), "the reporter is told what is missing"
    assert "What is 1 + 3?" in await report_of(it, run_id, mine)


async def test_what_waits_goes_on_waiting_while_nothing_is_left_of_the_day(it: InProcessService, model):
    model.reset(STEADY)
    mine = await it.key("mine", daily_model_calls=7)
    run_id = await paused_run(it, mine)
    await refused(it, mine, f"/api/runs/{run_id}/resume", answer="accept")
    await refused(it, mine, f"/api/runs/{run_id}/plan", action="skip", step_id=1)
    stands = await it.get(f"/api/runs/{run_id}", mine)
    assert (stands["status"], len(stands["interrupts"])) == ("interrupted", 1)
    assert model.stats["calls"] == 7


async def test_the_cost_of_a_model_that_no_setting_names_cannot_be_limited():
    with pytest.raises(UnknownPrices):
        check_budget(Budget(cost=1.0), ModelsSettings())
    assert check_budget(Budget(tokens=5), ModelsSettings()) == Budget(tokens=5)
