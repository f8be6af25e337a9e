"""A server that is killed while a step asks loses no answer, asks for none again and does no step twice."""

import asyncio
import json

import pytest

from tests.api.in_process import numbered
from tests.openai_server import SIMPLE, call, reply, serving
from tests.runs.killing import Mortal
from tests.serving import environment
from tests.team import plan, step

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(180)]
STEPS = [
    {**step("researcher", "Ask"), "needs": []},
    {**step("coder", "Work"), "needs": []},
    step("reporter", "Report"),
]
QUESTION = call("ask_human", question="Which year?")
FOUND = reply("It was 2024.")
WORK = {**reply("It is 4."), "hang": True}


def script(**roles):
    return {
        "by_history": True,
        "coordinator": SIMPLE["coordinator"],
        "planner": [reply(json.dumps(plan(*STEPS)))],
        "researcher": [QUESTION, FOUND],
        "coder": [reply("It is 4.")],
        "reporter": [reply("# Report")],
        **roles,
    }


async def begun(client, model):
    """Start a run whose coder does not end; return its id and the question of its researcher."""
    thread = (await client.post("/api/threads", json={})).json()["thread_id"]
    run = (await client.post(f"/api/threads/{thread}/runs", json={"input": "Do it."})).json()
    await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
    return run["run_id"], await followed(client, run["run_id"], "step_interrupt")


async def followed(client, run_id, name, after=0):
    """Follow the run until an event of this name; return its data."""
    path = f"/api/runs/{run_id}/events?view=live&after={after}"
    async with client.stream("GET", path) as response:
        found = False
        async for line in response.aiter_lines():
            if found:
                return json.loads(line.removeprefix("data: "))
            found = line == f"event: {name}"
    raise AssertionError(f"the run ended without {name}")


async def answered(client, run_id, question):
    body = {"answer": "2024", "interrupt_id": question["interrupt_id"]}
    given = await client.post(f"/api/runs/{run_id}/resume", json=body)
    assert given.status_code == 202, given.text
    return given


async def frames_of(client, run_id):
    path = f"/api/runs/{run_id}/events?view=live"
    return [frame for _, frame in numbered((await client.get(path)).text)]


def named(frames, name):
    return [content for one, content in frames if one == name]


def check_end(frames, model, **calls):
    assert named(frames, "run_status")[-1]["status"] == "completed"
    assert {one["status"] for one in named(frames, "plan")[-1]["steps"]} == {"completed"}
    assert model.stats["by_role"] == calls
    given = [
        str(one["messages"]) for one in model.requests if "You are the researcher" in str(one["messages"][0])
    ]
    assert [text.count("2024") for text in given] == [1] * calls.get("researcher", 0)


async def test_an_unanswered_question_is_repeated_with_its_id(tmp_path):
    with serving(script(coder=[WORK])) as model:
        async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
            async with server.client() as client:
                run_id, question = await begun(client, model)
                last = (await frames_until_now(client, run_id))[-1]
            await server.kill()
            model.reset(script(coder=[WORK]))
            await server.start()
            async with server.client() as client:
                again = await followed(client, run_id, "step_interrupt", after=last)
                assert again["interrupt_id"] == question["interrupt_id"]
                given = await answered(client, run_id, again)
                assert given.json()["status"] == "running"
                await followed(client, run_id, "step_resumed")
                await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("researcher") == 1)
                model.release()
                check_end(await frames_of(client, run_id), model, researcher=1, coder=1, reporter=1)


async def test_an_unprocessed_answer_is_used_after_a_kill(tmp_path):
    # With both members in a call of the model, the answer is stored and its step cannot have ended.
    with serving(script(coder=[WORK], researcher=[QUESTION, {**FOUND, "hang": True}])) as model:
        async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
            async with server.client() as client:
                run_id, question = await begun(client, model)
                last = (await frames_until_now(client, run_id))[-1]
                await answered(client, run_id, question)
            await server.kill()
            model.reset(script())
            await server.start()
            async with server.client() as client:
                frames = await frames_of(client, run_id)
                asked_later = [
                    one for one in await numbers_of(client, run_id, "step_interrupt") if one > last
                ]
                assert asked_later == []
                check_end(frames, model, researcher=1, coder=1, reporter=1)
                assert named(frames, "interrupt") == []


async def test_a_step_that_was_answered_and_done_does_not_run_again(tmp_path):
    with serving(script(coder=[WORK])) as model:
        async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
            async with server.client() as client:
                run_id, question = await begun(client, model)
                await answered(client, run_id, question)
                await done(client, run_id, "Ask")
            await server.kill()
            model.reset(script())
            await server.start()
            async with server.client() as client:
                check_end(await frames_of(client, run_id), model, coder=1, reporter=1)


async def test_a_run_that_waits_with_its_question_is_answered_after_a_kill(tmp_path):
    with serving(script(coder=[WORK])) as model:
        async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
            async with server.client() as client:
                run_id, question = await begun(client, model)
                model.release()
                waits = await followed(client, run_id, "interrupt")
                assert waits["interrupt_id"] == question["interrupt_id"]
                await ended(client, run_id)
            await server.kill()
            model.reset(script())
            await server.start()
            async with server.client() as client:
                assert (await client.get(f"/api/runs/{run_id}")).json()["status"] == "interrupted"
                await answered(client, run_id, waits)
                check_end(await frames_of(client, run_id), model, researcher=1, reporter=1)


async def frames_until_now(client, run_id):
    """Return the numbers of the events up to the newest question."""
    return await numbers_of(client, run_id, "step_interrupt", is_first=True)


async def numbers_of(client, run_id, name, *, is_first=False):
    numbers, number = [], 0
    async with client.stream("GET", f"/api/runs/{run_id}/events?view=live") as response:
        async for line in response.aiter_lines():
            if line.startswith("id: "):
                number = int(line[4:])
            elif line == f"event: {name}":
                numbers.append(number)
                if is_first:
                    break
    return numbers


async def done(client, run_id, title):
    """Wait until a step is completed."""
    async with client.stream("GET", f"/api/runs/{run_id}/events?view=live") as response:
        async for line in response.aiter_lines():
            if line.startswith("data: ") and '"steps"' in line and "draft" not in line:
                steps = json.loads(line.removeprefix("data: "))["steps"]
                if any((one["title"], one["status"]) == (title, "completed") for one in steps):
                    return


async def ended(client, run_id):
    await (await client.get(f"/api/runs/{run_id}/events")).aread()
