"""A server that is killed while a plan is changed, or its rest is written again, continues there."""

import asyncio
import json

import httpx
import pytest

from tests.api.in_process import numbered
from tests.openai_server import SIMPLE, reply, serving
from tests.runs.killing import Mortal
from tests.serving import environment
from tests.team import plan, step

pytestmark = [pytest.mark.anyio]
FIRST = json.dumps(plan(step("researcher", "Find"), step("coder", "Compute"), step("reporter")))
REST = json.dumps(plan(step("researcher", "Look it up"), step("reporter"), title="Another way"))


def script(*plans):
    return {
        "coordinator": SIMPLE["coordinator"],
        "planner": list(plans),
        "researcher": [reply("Tea costs 3 euros.")],
        "coder": [reply("STEP FAILED: no data")],
        "supervisor": [reply('{"next": "coder"}')],
        "reporter": [reply("# Tea")],
    }


async def begun(client: httpx.AsyncClient) -> str:
    thread = (await client.post("/api/threads", json={})).json()["thread_id"]
    response = await client.post(f"/api/threads/{thread}/runs", json={"input": "What does tea cost?"})
    return response.json()["run_id"]


async def test_finished_steps_stay_finished_and_the_planner_is_called_again(tmp_path):
    with serving(script(reply(FIRST), {"hang": True})) as model:
        async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
            async with server.client() as client:
                run_id = await begun(client)
                await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"]["planner"] == 2)
            await server.kill()
            model.reset(script(reply(REST)))
            await server.start()
            async with server.client() as client:
                events = numbered((await client.get(f"/api/runs/{run_id}/events")).text)
        assert model.stats["by_role"] == {"planner": 1, "researcher": 1, "reporter": 1}
    told = [content for _, (name, content) in events if name == "plan"][-1]["steps"]
    assert [(one["id"], one["agent_name"], one["status"]) for one in told] == [
        (1, "researcher", "completed"),
        (2, "coder", "failed"),
        (4, "researcher", "completed"),
        (5, "reporter", "completed"),
    ]
    assert events[-1][1][1]["messages"][-1]["content"].startswith("# Tea\n")


@pytest.mark.slow
async def test_a_step_that_was_added_and_one_that_was_moved_are_still_so(tmp_path):
    steps = [
        step("researcher", "Find"),
        step("coder", "Compute"),
        step("researcher", "Check"),
        step("reporter", "Report"),
    ]
    work = {**script(reply(json.dumps(plan(*steps)))), "coder": [reply("done")]}
    more = {"title": "Look", "description": "Look it up.", "agent_name": "coder"}
    with serving({**work, "researcher": [{"hang": True}]}) as model:
        async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
            async with server.client() as client:
                run_id = await begun(client)
                await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("researcher") == 1)
                path = f"/api/runs/{run_id}/plan"
                preview = await client.post(path, json={"action": "add", "after": 1, **more})
                assert [one["id"] for one in preview.json()["steps"]] == [1, 5, 2, 3, 4]
                preview = await client.post(path, json={"action": "move", "step_id": 3, "after": 1})
                assert preview.status_code == 202
            await server.kill()
            model.reset({**work, "researcher": [reply("found")]})
            await server.start()
            async with server.client() as client:
                events = numbered((await client.get(f"/api/runs/{run_id}/events")).text)
    told = [content for _, (name, content) in events if name == "plan"][-1]["steps"]
    assert [one["title"] for one in told] == ["Find", "Check", "Look", "Compute", "Report"]
    assert {one["status"] for one in told} == {"completed"}


@pytest.mark.slow
async def test_of_concurrent_steps_only_the_one_under_way_begins_again_and_nothing_is_decided_twice(tmp_path):
    steps = [
        {**step("researcher", "Find"), "needs": []},
        {**step("coder", "Explain"), "needs": []},
        {**step("researcher", "Check"), "needs": [1]},
        step("reporter", "Report"),
    ]
    work = {
        **script(reply(json.dumps(plan(*steps)))),
        "researcher": [reply("STEP FAILED: not yet"), {"hang": True}],
        "coder": [reply("It is so.")],
        "supervisor": [reply('{"decision": "retry", "hint": "Look again.", "step": null}')],
    }
    more = {"title": "Look", "description": "Look it up.", "agent_name": "coder", "needs": []}
    with serving(work) as model:
        async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
            async with server.client() as client:
                run_id = await begun(client)
                # The second try of Find is under way: Explain is done, and the lead has decided.
                await asyncio.to_thread(
                    model.wait_for,
                    lambda stats: stats["by_role"].get("researcher") == 2 and stats["active"] == 1,
                )
                edit = {"action": "add", "after": 1, **more}
                preview = await client.post(f"/api/runs/{run_id}/plan", json=edit)
                shown = [(one["title"], one["status"]) for one in preview.json()["steps"]][:3]
                assert shown == [("Find", "in_progress"), ("Look", "not_started"), ("Explain", "completed")]
                added = preview.json()["steps"][1]["id"]
                edit = {"action": "edit", "step_id": added, "title": "Look well"}
                assert (await client.post(f"/api/runs/{run_id}/plan", json=edit)).status_code == 202
            await server.kill()
            model.reset({**work, "researcher": [reply("found")]})
            await server.start()
            async with server.client() as client:
                events = numbered((await client.get(f"/api/runs/{run_id}/events")).text)
        # Find again, then Check; the step that was added; the report.
        assert model.stats["by_role"] == {"researcher": 2, "coder": 1, "reporter": 1}
        second = next(one for one in model.requests if "You are the researcher" in str(one["messages"]))
        assert "Look again." in str(second["messages"])
    told = [content for _, (name, content) in events if name == "plan"][-1]["steps"]
    assert [(one["title"], one["status"]) for one in told] == [
        ("Find", "completed"),
        ("Look well", "completed"),
        ("Explain", "completed"),
        ("Check", "completed"),
        ("Report", "completed"),
    ]
