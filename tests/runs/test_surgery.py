"""A plan is changed while the run works through it."""

import asyncio
import json

import pytest
from langchain_core.messages import HumanMessage

from maniple.graph import RunOptions
from maniple.runs import InvalidPlanEdit, PlanNotEditable, RunRequest
from maniple.runs.stored_inputs import read_inputs
from maniple.scope.inputs import PlanChange
from tests.openai_server import SIMPLE, reply, serving
from tests.runs.test_recovery import events_of, process
from tests.team import checked, data, plan, status, step

pytestmark = pytest.mark.anyio
PLAN = plan(step("researcher"), step("coder"), step("reporter"))
SCRIPT = {
    **SIMPLE,
    "planner": [{"text": json.dumps(PLAN)}],
    "researcher": [reply("found"), reply("found again")],
    "coder": [{"hang": True}, reply("computed")],
}


async def at_the_coder(engine, server, **options) -> str:
    request = RunRequest([HumanMessage("do it")], options=RunOptions(**options))
    run_id = (await engine.submit(request)).run.run_id
    await asyncio.to_thread(server.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
    return run_id


async def test_a_change_that_was_taken_up_survives_the_process(tmp_path):
    with serving(SCRIPT) as server:
        async with process(tmp_path, server) as (engine, _):
            run_id = await at_the_coder(engine, server)
            preview = await engine.change_plan(run_id, PlanChange("edit", 2, title="Another title"))
            assert preview["steps"][1]["title"] == "Another title"
            with pytest.raises(InvalidPlanEdit, match="no step 9"):
                await engine.change_plan(run_id, PlanChange("skip", 9))
        async with process(tmp_path, server) as (engine, _):
            frames = checked(await events_of(engine, run_id))
            assert (await engine.status(run_id)).status == "completed"
    assert data(frames, "plan")[-1]["steps"][1]["title"] == "Another title"
    assert status(frames) == "completed"


async def test_a_plan_under_review_is_changed_and_thereby_accepted(tmp_path):
    with serving({**SCRIPT, "coder": [reply("computed")]}) as server:
        async with process(tmp_path, server) as (engine, _):
            request = RunRequest([HumanMessage("do it")], options=RunOptions(auto_accepted_plan=False))
            run_id = (await engine.submit(request)).run.run_id
            await events_of(engine, run_id)
            await engine.change_plan(run_id, PlanChange("skip", 1))
            frames = [(event.type, event.data()) for event in await events_of(engine, run_id)]
    assert [one["agent_name"] for one in data(frames, "plan")[-1]["steps"]] == ["coder", "reporter"]
    assert data(frames, "run_status")[-1] == {"status": "completed"}


async def test_a_plan_that_is_done_with_is_not_changed(tmp_path):
    with serving(SIMPLE) as server:
        async with process(tmp_path, server) as (engine, _):
            run_id = (await engine.submit(RunRequest([HumanMessage("1+3=?")]))).run.run_id
            await events_of(engine, run_id)
            with pytest.raises(PlanNotEditable):
                await engine.change_plan(run_id, PlanChange("redo", 1))


async def test_a_change_that_has_become_impossible_is_refused_with_the_reason(tmp_path):
    rest = plan(step("researcher", "Another way"), step("reporter"))
    script = {
        **SCRIPT,
        "planner": [{"text": json.dumps(PLAN)}, {"hang": True}, {"text": json.dumps(rest)}],
        "researcher": [reply("STEP FAILED: no data"), reply("found")],
        "supervisor": [reply('{"decision": "replan"}')],
    }
    change = PlanChange("move", 2, after=0)
    with serving(script) as server:
        async with process(tmp_path, server) as (engine, store):
            run_id = (await engine.submit(RunRequest([HumanMessage("do it")], "t"))).run.run_id
            await asyncio.to_thread(server.wait_for, lambda stats: stats["by_role"].get("planner") == 2)
            await engine.change_plan(run_id, change)
        # The planner's answer was lost with the process, so it is asked again.
        async with process(tmp_path, server) as (engine, store):
            frames = checked(await events_of(engine, run_id))
            [stored] = await read_inputs(store.inputs, run_id)
            await events_of(engine, (await engine.submit(RunRequest([HumanMessage("why?")], "t"))).run.run_id)
            [asked] = [one for one in server.requests if "why?" in str(one["messages"])][:1]
    assert stored.reply is not None and stored.reply.disposition == "refused"
    [message], [answer] = data(frames, "user_message"), data(frames, "user_message_answer")
    assert message["message_id"] == answer["message_id"] == change.change_id
    assert answer["disposition"] == "refused" and "step 2" in answer["content"]
    assert status(frames) == "completed"
    assert answer["content"] in str(asked["messages"])
