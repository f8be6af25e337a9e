"""A plan that does not work is written anew from where it stands."""

import json

import pytest

from maniple.agents.budget import Budget, UsageMeter
from maniple.graph import TeamRules
from tests.graph.metered import metered
from tests.openai_server import call, reply
from tests.team import agents, data, plan, scripted_team, status, step

pytestmark = pytest.mark.anyio
FAILED = reply("STEP FAILED: no data")
FOUND = [call("tavily_search", query="tea"), reply("Tea costs 3 euros.")]
FIRST = plan(step("researcher", "Find"), step("coder", "Compute"), step("coder", "Draw"), step("reporter"))
REST = plan(step("researcher", "Look it up"), step("reporter", "Report"), title="Another way")


def script(*plans, **roles):
    plans = [json.dumps(one) for one in plans or (FIRST, REST)]
    return {
        "coordinator": [call("handoff_to_planner")],
        "planner": [reply(text) for text in plans],
        "researcher": [*FOUND, reply("It is 4.")],
        "coder": [FAILED],
        "supervisor": [reply('{"next": "coder"}')],
        "reporter": [reply("# Report")],
        **roles,
    }


def stands(frames):
    """Return the last plan: each step's id, who does it and how it went."""
    return [(one["id"], one["agent_name"], one["status"]) for one in data(frames, "plan")[-1]["steps"]]


@pytest.mark.parametrize("checkpointer", ["memory", None])
async def test_after_three_failures_in_a_row_the_rest_is_planned_anew_and_what_is_done_stays(checkpointer):
    async with scripted_team(script(), checkpointer=checkpointer) as it:
        frames = await it.run()
        first, second = it.prompts("planner")
        new_step, report = it.prompts("researcher")[-1], it.prompts("reporter")[-1]
    assert agents(frames) == ["coordinator", "planner", "researcher", *["coder"] * 3, *agents(frames)[6:]]
    assert agents(frames)[6:] == ["planner", "researcher", "reporter"]
    done = [(1, "researcher", "completed"), (2, "coder", "failed"), (5, "researcher", "completed")]
    assert stands(frames) == [*done, (6, "reporter", "completed")]
    assert data(frames, "plan")[-1]["steps"][1]["reason"] == "no data"
    assert status(frames) == "completed"
    assert "does not work" not in first
    assert "1. researcher: Find (completed)\n2. coder: Compute (failed: no data)" in second
    assert "3. coder: Draw (not done, to be replaced)" in second
    assert "4. reporter: reporter's step (not done, to be replaced)" in second
    assert "Tea costs 3 euros." in second
    assert "Tea costs 3 euros." in new_step and "was not completed: no data" in new_step
    assert "Tea costs 3 euros." in report and "It is 4." in report


async def test_failures_of_different_members_count_together():
    helps = {"supervisor": [reply('{"next": "researcher"}')], "researcher": [FAILED, FAILED, reply("Found.")]}
    async with scripted_team(script(plan(step("coder"), step("reporter")), REST, **helps)) as it:
        frames = await it.run()
    assert agents(frames)[2:] == ["coder", "researcher", "researcher", "planner", "researcher", "reporter"]
    assert stands(frames) == [
        (3, "researcher", "failed"),
        (1, "coder", "failed"),
        (4, "researcher", "completed"),
        (5, "reporter", "completed"),
    ]


async def test_a_step_that_works_in_between_begins_the_count_anew():
    helps = {"supervisor": [reply('{"next": "researcher"}')], "researcher": [reply("Found.")]}
    coder = [{**FAILED, "times": 4}, reply("It is 4.")]
    begun = plan(step("coder"), step("reporter"))
    async with scripted_team(script(begun, **helps, coder=coder), rules=TeamRules(step_retries=5)) as it:
        frames = await it.run()
        assert len(it.prompts("planner")) == 1
    assert agents(frames)[2:] == [*["coder", "researcher"] * 4, "coder", "reporter"]


async def test_a_step_whose_tries_are_used_up_is_enough():
    async with scripted_team(script(), rules=TeamRules(step_retries=0)) as it:
        frames = await it.run()
        assert it.prompts("supervisor") == []
    assert agents(frames)[2:] == ["researcher", "coder", "planner", "researcher", "reporter"]


@pytest.mark.parametrize("most", [0, 1, 2])
async def test_a_plan_is_written_anew_so_often_and_then_reported(most):
    hopeless = plan(step("coder"), step("reporter"))
    rules = TeamRules(step_retries=0, max_plan_adaptations=most)
    async with scripted_team(script(hopeless), rules=rules) as it:
        frames = await it.run()
        assert "was not completed: no data" in it.prompts("reporter")[0]
    assert agents(frames)[1:] == [*["planner", "coder"] * (most + 1), "reporter"]
    assert status(frames) == "completed"


async def test_where_the_planner_knows_no_other_way_the_plan_goes_on():
    async with scripted_team(script(FIRST, {"steps": []})) as it:
        frames = await it.run()
        assert len(it.prompts("planner")) == 3, "it is shown its mistake once"
    assert stands(frames) == [
        (1, "researcher", "completed"),
        (2, "coder", "failed"),
        (3, "coder", "failed"),
        (4, "reporter", "completed"),
    ]
    assert status(frames) == "completed"


async def test_the_next_request_begins_with_a_plan_of_its_own():
    async with scripted_team(script(FIRST, REST, plan(step("reporter")))) as it:
        await it.run(thread_id="t")
        frames = await it.run("And milk?", thread_id="t")
        assert "does not work" not in it.prompts("planner")[-1]
    assert stands(frames) == [(1, "reporter", "completed")]


async def test_a_planner_that_takes_the_rest_of_the_budget_leaves_the_report():
    slow = {**script(), "planner": [reply(json.dumps(FIRST)), {"hang": True}]}
    async with scripted_team(slow, rules=TeamRules(step_retries=0)) as it:
        meter = UsageMeter(Budget(seconds=5))
        frames = await metered(it, meter)
    assert agents(frames)[2:] == ["researcher", "coder", "planner", "reporter"]
    assert "5 seconds" in meter.exhausted
