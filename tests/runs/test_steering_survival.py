"""A server that is killed after it has accepted a message answers it once, and once it takes effect."""

import asyncio
import json

import pytest

from tests.api.in_process import numbered
from tests.openai_server import SIMPLE, reply, serving
from tests.runs.killing import Mortal
from tests.serving import environment
from tests.team import plan, step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]
PLAN = json.dumps(plan(step("researcher", "Find"), step("reporter", "Report")))
ADDED = {"action": "add", "after": 1, "agent_name": "coder", "title": "Sum", "description": "Add it up."}
DECISION = {"decision": "change_plan", "reply": "Gladly.", "changes": [ADDED], "steps": []}
WORDS = "Add the numbers up, too."


def script(**roles):
    return {
        "coordinator": SIMPLE["coordinator"],
        "planner": [reply(PLAN)],
        "researcher": [reply("Tea costs 3 euros.")],
        "coder": [reply("It is 3.")],
        "reporter": [reply("# Tea")],
        **roles,
    }


async def begun(client, model):
    """Start a run whose researcher never ends, and write to it."""
    thread = (await client.post("/api/threads", json={})).json()["thread_id"]
    run = (await client.post(f"/api/threads/{thread}/runs", json={"input": "What does tea cost?"})).json()
    await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("researcher") == 1)
    sent = await client.post(f"/api/runs/{run['run_id']}/messages", json={"content": WORDS})
    assert sent.status_code == 202, sent.text
    assert sent.headers["location"].startswith(f"/api/runs/{run['run_id']}/events?after=")
    return thread, run["run_id"], sent.json()["message_id"]


async def answered(client, run_id):
    """Wait until the lead has answered."""
    async with client.stream("GET", f"/api/runs/{run_id}/events") as response:
        async for line in response.aiter_lines():
            if line == "event: user_message_answer":
                return


async def exchanges_of(client, run_id):
    return [frame for _, frame in numbered((await client.get(f"/api/runs/{run_id}/events")).text)]


def named(frames, name):
    return [content for one, content in frames if one == name]


def check_applied_once(frames, message_id):
    assert [one["message_id"] for one in named(frames, "user_message")] == [message_id]
    assert [one["disposition"] for one in named(frames, "user_message_answer")] == ["plan_changed"]
    assert [one["title"] for one in named(frames, "plan")[-1]["steps"]] == ["Find", "Sum", "Report"]
    said = [one["content"] for one in frames[-1][1]["messages"]]
    assert said.count(WORDS) == said.count("Gladly.") == 1
    assert named(frames, "run_status")[-1]["status"] == "completed"


async def exchanges_after_kill(tmp_path, model, rest, *, is_decided=True):
    """Write to a run and kill the server, as a rule once the lead has answered.

    Returns the message's id, and the frames of the run's whole stream after a restart with the script `rest`.
    """
    async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
        async with server.client() as client:
            _, run_id, message_id = await begun(client, model)
            if is_decided:
                await answered(client, run_id)
        await server.kill()
        model.reset(rest)
        await server.start()
        async with server.client() as client:
            return message_id, await exchanges_of(client, run_id)


@pytest.mark.slow
async def test_a_message_is_answered_after_a_kill_before_the_lead_had_decided(tmp_path):
    waiting = script(researcher=[{"hang": True}], supervisor=[{"hang": True}])
    with serving(waiting) as model:
        rest = script(supervisor=[reply(json.dumps(DECISION))])
        message_id, frames = await exchanges_after_kill(tmp_path, model, rest, is_decided=False)
    check_applied_once(frames, message_id)
    assert model.stats["by_role"] == {"researcher": 1, "supervisor": 1, "coder": 1, "reporter": 1}


@pytest.mark.slow
async def test_a_decision_takes_effect_after_a_kill_and_is_not_made_again(tmp_path):
    deciding = script(researcher=[{"hang": True}], supervisor=[reply(json.dumps(DECISION))])
    with serving(deciding) as model:
        message_id, frames = await exchanges_after_kill(tmp_path, model, script())
    check_applied_once(frames, message_id)
    assert model.stats["by_role"] == {"researcher": 1, "coder": 1, "reporter": 1}


@pytest.mark.slow
async def test_what_was_passed_on_is_given_again_to_a_step_that_begins_again(tmp_path):
    passing = {**DECISION, "decision": "pass_on", "changes": [], "steps": [1]}
    deciding = script(researcher=[{"hang": True}], supervisor=[reply(json.dumps(passing))])
    with serving(deciding) as model:
        await exchanges_after_kill(tmp_path, model, script())
    assert model.stats["by_role"] == {"researcher": 1, "reporter": 1}
    assert [str(one["messages"]).count(WORDS) for one in model.requests] == [1, 1]


@pytest.mark.slow
async def test_a_message_that_a_cancellation_dropped_is_decided_once_by_a_retry_that_is_killed(tmp_path):
    waiting = script(researcher=[{"hang": True}], supervisor=[{"hang": True}])
    with serving(waiting) as model:
        async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
            async with server.client() as client:
                _, run_id, message_id = await begun(client, model)
                assert (await client.post(f"/api/runs/{run_id}/cancel")).status_code == 200
                model.reset(waiting)
                assert (await client.post(f"/api/runs/{run_id}/retry")).status_code == 202
                await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("supervisor"))
            await server.kill()
            model.reset(script(supervisor=[reply(json.dumps(DECISION))]))
            await server.start()
            async with server.client() as client:
                frames = await exchanges_of(client, run_id)
    answers = named(frames, "user_message_answer")
    assert [one["disposition"] for one in answers] == ["dropped", "plan_changed"]
    assert named(frames, "user_message")[0]["message_id"] == message_id
    assert named(frames, "run_status")[-1]["status"] == "completed"
    assert [one["content"] for one in frames[-1][1]["messages"]].count(WORDS) == 1
    assert model.stats["by_role"] == {"researcher": 1, "supervisor": 1, "coder": 1, "reporter": 1}


@pytest.mark.slow
async def test_a_message_of_a_run_that_ended_is_one_next_run_in_spite_of_a_kill(tmp_path):
    later = {**DECISION, "decision": "next_run", "changes": []}
    first = script(supervisor=[reply(json.dumps(later))], researcher=[{"hang": True, "times": 1}])
    with serving(first) as model:
        async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
            async with server.client() as client:
                thread, run_id, message_id = await begun(client, model)
                await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("supervisor") == 1)
            await server.kill()
            # The second run does not get beyond its coordinator before the next kill.
            hanging = script(coordinator=[{"hang": True}], supervisor=[reply(json.dumps(later))])
            model.reset(hanging)
            await server.start()
            async with server.client() as client:
                frames = await exchanges_of(client, run_id)
                assert named(frames, "user_message_answer")[0]["run_id"] == message_id
                await asyncio.to_thread(
                    model.wait_for, lambda stats: stats["by_role"].get("coordinator") == 1
                )
            await server.kill()
            model.reset(script())
            await server.start()
            async with server.client() as client:
                again = await exchanges_of(client, message_id)
                runs = (await client.get(f"/api/threads/{thread}")).json()["runs"]
    assert sorted(one["run_id"] for one in runs) == sorted([run_id, message_id])
    assert [one["content"] for one in again[-1][1]["messages"]].count(WORDS) == 1


@pytest.mark.slow
async def test_after_a_kill_the_step_at_work_is_done_and_no_other_of_a_plan_that_is_written_again(tmp_path):
    steps = [
        {**step("researcher", "Find"), "needs": []},
        {**step("coder", "Look"), "needs": []},
        {**step("coder", "Draw"), "needs": [1]},
        step("reporter", "Report"),
    ]
    replanning = {**DECISION, "decision": "replan", "changes": []}
    parallel = {
        "planner": [reply(json.dumps(plan(*steps)))],
        "researcher": [{"hang": True}],
        "coder": [reply("Seen.")],
        "supervisor": [reply(json.dumps(replanning))],
    }
    rest = plan(step("coder", "Sum"), step("reporter", "Report"))
    with serving(script(**parallel)) as model:
        again = script(planner=[reply(json.dumps(rest))])
        _, frames = await exchanges_after_kill(tmp_path, model, again)
    done = [(one["title"], one["status"]) for one in named(frames, "plan")[-1]["steps"]]
    assert ("Find", "completed") in done
    assert [title for title, _ in done[-2:]] == ["Sum", "Report"]
    assert "Draw" not in [title for title, _ in done], "a step that was done stays in the plan"
    assert (model.stats["by_role"]["researcher"], model.stats["by_role"]["planner"]) == (1, 1)
