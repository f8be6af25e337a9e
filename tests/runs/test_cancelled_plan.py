"""What a cancelled run leaves undone is named as its plan was at the end, with all changes of the user."""

import asyncio
import json

import pytest
from langchain_core.messages import HumanMessage

from maniple.events import RunStatusChanged
from maniple.runs import RunRequest
from maniple.scope.inputs import PlanChange
from tests.openai_server import call, reply
from tests.runs.test_steering import decided, of, shown_to, working
from tests.team import plan, step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
NOT_DONE = "Not done of the plan"
EDIT = {"action": "edit", "step_id": 2, "title": "Find those of 2024", "description": "Those of 2024."}


def script(*steps, **roles):
    return {
        "coordinator": [call("handoff_to_planner", locale="en-US")],
        "planner": [reply(json.dumps(plan(*(steps or (step("coder", "Sum"), step("reporter"))))))],
        "coder": [call("python_repl_tool", code="1"), reply("It is 4.")],
        "researcher": [reply("Tea is 4 euros.")],
        "reporter": [reply("# Report")],
        **roles,
    }


def independent(*steps):
    return [{**one, "needs": []} for one in steps]


async def gaps_after_cancel(it, run_id):
    await it.engine.cancel(run_id)
    [ended] = of(await it.events_of(run_id), RunStatusChanged)
    assert ended.status == "cancelled"
    return [gap.step for gap in ended.gaps or ()]


async def ask(it, text):
    it.gate.set()
    run = (await it.engine.submit(RunRequest([HumanMessage(text)], "t"))).run
    await it.events_of(run.run_id)


async def test_the_gaps_have_the_titles_that_the_lead_gave_the_steps(tmp_path):
    steps = step("coder", "Sum"), step("researcher", "Find all"), step("reporter", "Report")
    added = {"action": "add", "after": 2, "agent_name": "coder", "title": "Draw", "description": "Draw it."}
    told = script(*steps, supervisor=[decided("change_plan", changes=[EDIT, added])])
    async with working(tmp_path, told) as it:
        run_id = await it.begin("Compare prices")
        await it.engine.send_message(run_id, "Only those of 2024.")
        await it.answered(run_id)
        assert await gaps_after_cancel(it, run_id) == ["Sum", "Find those of 2024", "Draw", "Report"]
        await ask(it, "Go on.")
        shown = shown_to(it.prompts("planner")[-1])
        assert "Find those of 2024" in shown
        assert "Find all" not in shown.split(NOT_DONE)[1]


async def test_a_step_that_was_done_beside_others_is_no_gap_and_one_that_was_removed_is_none(tmp_path):
    steps = independent(step("researcher", "Find"), step("coder", "Sum"), step("coder", "Draw"))
    async with working(tmp_path, script(*steps, step("reporter", "Report"))) as it:
        run_id = await it.begin("Compare prices")
        await it.completed(run_id, "Find")
        await it.engine.change_plan(run_id, PlanChange("skip", 3))
        assert await gaps_after_cancel(it, run_id) == ["Sum", "Report"]


async def test_a_step_that_was_done_as_the_user_changed_it_is_known_in_the_next_turn(tmp_path):
    steps = independent(step("coder", "Sum"), step("researcher", "Find all"))
    researcher = [{"hang": True, "times": 1}, reply("Those of 2024.")]
    async with working(tmp_path, script(*steps, step("reporter", "Report"), researcher=researcher)) as it:
        run_id = await it.begin("Compare prices")
        await asyncio.to_thread(it.server.wait_for, lambda stats: stats["by_role"].get("researcher") == 1)
        change = PlanChange("edit", 2, title="Find those", description="Those of 2024.")
        await it.engine.change_plan(run_id, change)
        await it.completed(run_id, "Find those")
        await it.engine.cancel(run_id)
        await ask(it, "Go on.")
        shown = shown_to(it.prompts("coder")[-1])
        assert "Find those: Those of 2024." in shown


async def test_a_report_that_no_plan_shows_is_no_gap(tmp_path):
    told = script(planner=[reply(json.dumps(plan(step("coder", "Sum"))))])
    async with working(tmp_path, told) as it:
        run_id = await it.begin("Sum it")
        assert await gaps_after_cancel(it, run_id) == ["Sum"]
        await ask(it, "Go on.")
        shown = shown_to(it.prompts("planner")[-1])
        assert "reporter" not in shown.split(NOT_DONE)[1]


@pytest.mark.parametrize("change", [PlanChange("edit", 2, description="Others."), PlanChange("skip", 2)])
async def test_what_was_found_before_the_user_changed_the_step_is_not_lost(tmp_path, change):
    steps = independent(step("coder", "Sum"), step("researcher", "Find all"))
    async with working(tmp_path, script(*steps, step("reporter", "Report"))) as it:
        run_id = await it.begin("Compare prices")
        await it.completed(run_id, "Find all")
        await it.engine.change_plan(run_id, change)
        await it.engine.cancel(run_id)
        await ask(it, "Go on.")
        assert "Tea is 4 euros." in shown_to(it.prompts("coder")[-1])
