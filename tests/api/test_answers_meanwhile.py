"""`POST /api/runs/{run_id}/resume` while other steps of the run go on."""

import asyncio
import json

import pytest

from tests.api.in_process import open_service
from tests.openai_server import SIMPLE, call, reply, serving
from tests.team import plan, step

pytestmark = pytest.mark.anyio
STEPS = [
    {**step("researcher", "Ask"), "needs": []},
    {**step("coder", "Work"), "needs": []},
    step("reporter", "Report"),
]
SCRIPT = {
    **SIMPLE,
    "planner": [reply(json.dumps(plan(*STEPS)))],
    "researcher": [call("ask_human", question="Which year?", options=["2023"]), reply("It was 2023.")],
    "coder": [{**reply("It is 4."), "hang": True}],
    "reporter": [reply("# Report")],
}


async def open_question(it, run_id):
    """Wait until a step asks; return what the run's status says of it."""
    async for page in it.service.engine.events(run_id):
        if any(one.type == "step_interrupt" for one in page):
            break
    status = await it.get(f"/api/runs/{run_id}")
    assert status["status"] == "running"
    [question] = status["interrupts"]
    return question


async def test_the_status_shows_the_question_of_a_step_and_resume_answers_it(tmp_path):
    with serving(SCRIPT) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run_id = (await it.run())["run_id"]
            question = await open_question(it, run_id)
            assert (question["kind"], question["options"]) == ("question", ["2023"])
            path = f"/api/runs/{run_id}/resume"
            wrong = await it.client.post(path, json={"answer": "2023", "interrupt_id": "another"})
            assert (wrong.status_code, wrong.json()["code"]) == (409, "not_waiting")
            body = {"answer": "2023", "interrupt_id": question["interrupt_id"]}
            given = await it.client.post(path, json=body)
            assert (given.status_code, given.json()["status"]) == (202, "running")
            again = await it.client.post(path, json=body)
            assert (again.status_code, again.json()["code"]) == (409, "not_waiting")
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("researcher") == 2)
            assert (await it.get(f"/api/runs/{run_id}"))["interrupts"] == []
            model.release()
            frames = await it.events_of(run_id)
    # The old client reads a stream in which nothing but names that it does not know are new.
    assert [name for name, _ in frames if "interrupt" in name or name == "step_resumed"] == [
        "step_interrupt",
        "step_resumed",
    ]
    assert frames[-1][1]["messages"][-1]["content"].startswith("# Report")
