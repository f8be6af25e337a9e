"""A change of the plan is shown when it is taken, before the steps at work have ended."""

import asyncio
import json
import random
from contextlib import suppress
from itertools import pairwise

import pytest

from maniple.runs import InvalidPlanEdit, PlanNotEditable
from maniple.scope.inputs import PlanChange
from tests.openai_server import call, reply
from tests.runs.test_steering import decided, working
from tests.sizes import rest_is_slow
from tests.team import plan, step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
ADD = {"action": "add", "after": 1, "agent_name": "researcher", "title": "Look", "description": "Look."}
SERIAL = step("coder", "Sum"), step("researcher", "Find"), step("reporter", "Report")
PARALLEL = (*({**one, "needs": []} for one in SERIAL[:2]), SERIAL[2])


def script(*steps, **roles):
    return {
        "coordinator": [call("handoff_to_planner", locale="en-US")],
        "planner": [reply(json.dumps(plan(*steps)))],
        "coder": [call("python_repl_tool", code="1"), reply("It is 4.")],
        "researcher": [reply("Found.")],
        "reporter": [reply("# Report")],
        **roles,
    }


async def shown_steps(it, run_id, *titles):
    """Wait until a plan with these titles is shown; return the statuses of its steps."""
    async for page in it.engine.events(run_id):
        for one in page:
            data = json.loads(one.data) if one.type == "plan" else {}
            if not data.get("draft") and [step["title"] for step in data.get("steps", ())] == [*titles]:
                return [step["status"] for step in data["steps"]]
    raise AssertionError("the run ended without the plan")


@pytest.mark.parametrize("steps", [SERIAL, PARALLEL])
async def test_what_the_lead_changed_is_shown_while_the_step_goes_on(tmp_path, steps):
    told = script(*steps, supervisor=[decided("change_plan", changes=[ADD])])
    async with working(tmp_path, told) as it:
        run_id = await it.begin()
        await it.engine.send_message(run_id, "Look it up, too.")
        statuses = await shown_steps(it, run_id, "Sum", "Look", "Find", "Report")
        assert statuses[0] == "in_progress"
        assert not it.gate.is_set()
        events = await it.ended(run_id)
    last = [one for one in events if one.type == "plan"][-1]
    assert {one.status for one in last.steps} == {"completed"}


@pytest.mark.parametrize("steps", [SERIAL, PARALLEL])
async def test_what_the_user_changed_is_shown_while_the_step_goes_on(tmp_path, steps):
    async with working(tmp_path, script(*steps)) as it:
        run_id = await it.begin()
        await it.engine.change_plan(run_id, PlanChange("edit", 3, title="Tell"))
        statuses = await shown_steps(it, run_id, "Sum", "Find", "Tell")
        assert (statuses[0], statuses[2]) == ("in_progress", "not_started")
        await it.ended(run_id)


async def test_a_change_is_shown_while_the_lead_decides_about_a_failure(tmp_path):
    steps = step("coder", "Sum"), step("researcher", "Find"), step("reporter", "Report")
    told = script(*steps, coder=[reply("STEP FAILED: no data")], supervisor=[{"hang": True}])
    async with working(tmp_path, told) as it:
        run = await it.submit("sum")
        await asyncio.to_thread(it.server.wait_for, lambda stats: stats["by_role"].get("supervisor") == 1)
        await it.engine.change_plan(run, PlanChange("edit", 2, title="Search"))
        statuses = await shown_steps(it, run, "Sum", "Search", "Report")
        assert statuses[0] == "failed"
        await it.engine.cancel(run)


async def test_a_change_is_shown_while_the_rest_of_the_plan_is_written_again(tmp_path):
    steps = step("coder", "Sum"), step("researcher", "Find"), step("reporter", "Report")
    replan = reply(json.dumps({"decision": "replan", "hint": "Otherwise.", "step": None}))
    told = script(*steps, coder=[reply("STEP FAILED: no data")], supervisor=[replan])
    told["planner"] += [{"hang": True}]
    async with working(tmp_path, told) as it:
        run = await it.submit("sum")
        await asyncio.to_thread(it.server.wait_for, lambda stats: stats["by_role"].get("planner") == 2)
        await it.engine.change_plan(run, PlanChange("edit", 2, title="Search"))
        await shown_steps(it, run, "Sum", "Search", "Report")
        await it.engine.cancel(run)


async def test_a_plan_that_no_change_concerns_is_shown_as_often_as_before(tmp_path):
    told = script(*SERIAL, supervisor=[decided("answer")])
    async with working(tmp_path, told) as it:
        run_id = await it.begin()
        await it.engine.send_message(run_id, "How far are you?")
        await it.answered(run_id)
        events = await it.ended(run_id)
    plans = [one for one in events if one.type == "plan"]
    assert all(one != other for one, other in pairwise(plans))


async def rename_at_random(it, run_id, chance):
    """Rename steps of a run while it works; return the newest title of each, which is a number."""
    versions = {3: 1}
    await it.engine.change_plan(run_id, PlanChange("edit", 3, title="1"))
    it.gate.set()
    async for _ in it.engine.events(run_id):
        if sum(versions.values()) == 6 or chance.random() < 0.5:
            continue
        number = chance.randint(1, 3)
        title = versions.get(number, 0) + 1
        with suppress(PlanNotEditable, InvalidPlanEdit):
            await it.engine.change_plan(run_id, PlanChange("edit", number, title=f"{title}"))
            versions[number] = title
    return versions


@pytest.mark.parametrize("steps", [SERIAL, PARALLEL])
@pytest.mark.parametrize("seed", rest_is_slow(range(20), 4))
async def test_once_a_change_is_shown_no_plan_shows_the_state_before_it(tmp_path, steps, seed):
    async with working(tmp_path, script(*steps)) as it:
        run_id = await it.begin()
        versions = await rename_at_random(it, run_id, random.Random(seed))
        plans = [one for one in await it.events_of(run_id) if one.type == "plan"]
    for number in (1, 2, 3):
        shown = [one for plan in plans for one in plan.steps if one.id == number]
        titles = [int(one.title) if one.title.isdigit() else 0 for one in shown]
        assert titles == sorted(titles)
        assert titles[-1] == versions.get(number, 0)
        if steps is PARALLEL and number < 3:  # no change of another step concerns it
            for title in titles:
                is_done = [one.status == "completed" for one in shown if one.title == f"{title}"]
                assert is_done == sorted(is_done)
