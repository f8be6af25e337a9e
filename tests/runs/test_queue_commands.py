"""What is sent to a run takes effect once, whichever node is asked and whatever becomes of its worker."""

import asyncio
import json
import time

import httpx
import pytest

from tests.grammar import Client
from tests.openai_server import SIMPLE, reply, serving
from tests.runs.killing import together
from tests.runs.workers import begin, cluster_of, describe_times, open_api, read_events
from tests.team import plan, step

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(240)]
RUNS = 12
HANGING = {"coordinator": [{"hang": True}]}
ADDED = {"action": "add", "after": 1, "agent_name": "coder", "title": "Sum", "description": "Add it up."}
PLANNED = {
    "by_history": True,
    "coordinator": SIMPLE["coordinator"],
    "planner": [reply(json.dumps(plan(step("researcher", "Find"), step("reporter", "Report"))))],
    "researcher": [reply("Tea costs 3 euros.", hang=True)],
    "coder": [reply("It is 3.")],
    "reporter": [reply("# Tea")],
}


async def test_a_run_is_cancelled_while_it_works_and_when_its_worker_has_died(postgres_url, tmp_path):
    took = dict[bool, list[float]]()
    with serving(HANGING) as model:
        async with cluster_of(postgres_url, model.base_url, tmp_path, count=1) as (api, workers):
            async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=60) as client:
                for is_dead in (False, True):
                    run_ids = await together(begin(client, f"r{number}") for number in range(RUNS))
                    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == RUNS)
                    if is_dead:
                        await workers.add()
                        await workers.kill(workers.running[0])

                    async def cancel(run_id: str) -> tuple[str, float]:
                        begun = time.monotonic()
                        run = (await client.post(f"/api/runs/{run_id}/cancel")).json()
                        return run["status"], time.monotonic() - begun

                    ended = (
                        [await cancel(one) for one in run_ids]
                        if not is_dead
                        else await together(cancel(one) for one in run_ids)
                    )
                    took[is_dead] = [seconds for _, seconds in ended]
                    assert {status for status, _ in ended} == {"cancelled"}
                    for run_id in run_ids:
                        assert Client().read(await read_events(client, run_id)).status == "cancelled"
                    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 0)
    print(f"cancelled: {describe_times(took[False])}; its worker dead: {describe_times(took[True])}")


@pytest.mark.parametrize("dies", ["before", "after", "never"])
async def test_a_change_of_the_plan_by_another_node_is_made_once(postgres_url, tmp_path, dies):
    with serving(PLANNED) as model:
        async with cluster_of(postgres_url, model.base_url, tmp_path, count=1) as (api, workers):
            async with (
                open_api(workers) as other,
                httpx.AsyncClient(base_url=api, trust_env=False, timeout=60) as client,
                httpx.AsyncClient(base_url=other, trust_env=False, timeout=60) as elsewhere,
            ):
                run_id = await begin(client, "r")
                await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("researcher") == 1)
                if dies == "before":
                    await workers.kill(workers.running[0])
                begun = time.monotonic()
                answer = await elsewhere.post(f"/api/runs/{run_id}/plan", json=ADDED)
                took = time.monotonic() - begun
                # Whoever was asked in vain says so, and what was sent stays.
                expected = (503, "worker_away") if dies == "before" else (202, None)
                assert (answer.status_code, answer.json().get("code")) == expected
                if dies == "after":
                    await workers.kill(workers.running[0])
                if dies != "never":
                    await workers.add()
                    await asyncio.to_thread(
                        model.wait_for, lambda stats: stats["by_role"].get("researcher") == 2
                    )
                await asyncio.to_thread(model.release)
                frames = await read_events(client, run_id)
    print(f"the plan was changed, or not ({answer.status_code}), after {took * 1000:.0f} ms")
    assert Client().read(frames).status == "completed"
    steps = [content for name, content in frames if name == "plan"][-1]["steps"]
    assert [(one["title"], one["status"]) for one in steps] == [
        ("Find", "completed"),
        ("Sum", "completed"),
        ("Report", "completed"),
    ]
    assert model.stats["by_role"]["coder"] == 1


async def test_of_many_answers_by_two_nodes_one_is_taken(postgres_url, tmp_path):
    script = {**PLANNED, "researcher": [reply("Tea costs 3 euros.")]}
    with serving(script) as model:
        async with cluster_of(postgres_url, model.base_url, tmp_path, count=2) as (api, workers):
            async with (
                open_api(workers) as other,
                httpx.AsyncClient(base_url=api, trust_env=False, timeout=60) as client,
                httpx.AsyncClient(base_url=other, trust_env=False, timeout=60) as elsewhere,
            ):
                body = {"messages": [{"role": "user", "content": "What does tea cost?"}]}
                body["auto_accepted_plan"] = False
                thread = (await client.post("/api/threads", json={})).json()["thread_id"]
                run_id = (await client.post(f"/api/threads/{thread}/runs", json=body)).json()["run_id"]
                assert Client().read(await read_events(client, run_id)).status == "interrupted"
                answers = await together(
                    one.post(f"/api/runs/{run_id}/resume", json={"answer": "accept"})
                    for one in (client, elsewhere) * 4
                )
                await read_events(client, run_id)
                run = (await client.get(f"/api/runs/{run_id}")).json()
    assert sorted(one.status_code for one in answers) == [202] + [409] * 7
    assert run["status"] == "completed"
    assert model.stats["by_role"]["reporter"] == 1
