"""The rest of a plan that does not work is written again."""

import json

import pytest

from maniple.graph import TeamRules
from maniple.scope.budget import Budget, UsageMeter
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
        "supervisor": [reply('{"decision": "replan"}')],
        "reporter": [reply("# Report")],
        **roles,
    }


def plan_statuses(frames):
    """Return the last plan: each step's id, who does it and how it went."""
    return [(one["id"], one["agent_name"], one["status"]) for one in data(frames, "plan")[-1]["steps"]]


def decision(kind, **fields):
    return reply(json.dumps({"decision": kind, "hint": None, "step": None} | fields))


@pytest.mark.parametrize("checkpointer", ["memory", None])
async def test_the_lead_has_the_rest_planned_again_and_what_is_done_stays(checkpointer):
    lead = {"supervisor": [decision("replan")]}
    async with scripted_team(script(FIRST, REST, **lead), checkpointer=checkpointer) as it:
        frames = await it.run()
        first, second = it.prompts("planner")
        new_step, report = it.prompts("researcher")[-1], it.prompts("reporter")[-1]
    assert agents(frames) == ["coordinator", "planner", "researcher", "coder", *agents(frames)[4:]]
    assert agents(frames)[4:] == ["planner", "researcher", "reporter"]
    done = [(1, "researcher", "completed"), (2, "coder", "failed"), (5, "researcher", "completed")]
    assert plan_statuses(frames) == [*done, (6, "reporter", "completed")]
    assert data(frames, "plan")[-1]["steps"][1]["reason"] == "no data"
    assert status(frames) == "completed"
    assert "does not work" not in first
    assert "1. researcher: Find (completed)\n2. coder: Compute (failed: no data)" in second
    assert "3. coder: Draw (not done, to be replaced)" in second
    assert "4. reporter: reporter's step (not done, to be replaced)" in second
    assert "Tea costs 3 euros." in second
    assert "Tea costs 3 euros." in new_step and "completed: no data" in new_step
    assert "Tea costs 3 euros." in report and "It is 4." in report


async def test_the_lead_is_shown_the_request_the_plan_and_the_failed_step_whole():
    lead = {"supervisor": [decision("continue_without")]}
    async with scripted_team(script(**lead)) as it:
        await it.run("What does tea cost?")
        prompt = it.prompts("supervisor")[0]
    assert "Request: What does tea cost?" in prompt
    assert "1. researcher: Find (completed)\n2. coder: Compute (failed)\n" in prompt
    assert "(not started, needs 1, 2)" in prompt
    assert "Tea costs 3 euros." in prompt
    assert "STEP FAILED: no data" in prompt
    assert "do coder" in prompt


async def test_a_hint_of_the_lead_reaches_the_second_try():
    coder = [FAILED, reply("It is 4.")]
    lead = {"supervisor": [decision("retry", hint="Use the price of 2020.")]}
    only = plan(step("coder"), step("reporter"))
    async with scripted_team(script(only, coder=coder, **lead)) as it:
        frames = await it.run()
        assert "Use the price of 2020." in it.prompts("coder")[1]
        assert "try failed: no data" in it.prompts("coder")[1]
    assert agents(frames)[2:] == ["coder", "coder", "reporter"]


async def test_the_lead_gives_a_step_to_another_member_who_gets_all_of_it():
    new = {"agent_name": "researcher", "title": "Look it up", "description": "Find the sum on the web."}
    lead = {"supervisor": [decision("reassign", step=new)], "researcher": [reply("It is 4.")]}
    only = plan(step("coder"), step("reporter"))
    async with scripted_team(script(only, **lead)) as it:
        frames = await it.run()
        assert "Your step: Look it up\nFind the sum on the web." in it.prompts("researcher")[0]
    assert plan_statuses(frames) == [
        (1, "coder", "failed"),
        (3, "researcher", "completed"),
        (2, "reporter", "completed"),
    ]


async def test_what_a_step_needs_is_provided_first_and_then_it_is_tried_again():
    new = {"agent_name": "researcher", "title": "The price", "description": "Find the price of tea."}
    coder = [reply("STEP FAILED: no price\nNEEDS: the price"), reply("It is 4.")]
    lead = {"supervisor": [decision("reassign", step=new)], "researcher": [reply("Three euros.")]}
    only = plan(step("coder"), step("reporter"))
    async with scripted_team(script(only, coder=coder, **lead)) as it:
        frames = await it.run()
        again = it.prompts("coder")[1]
        assert "Three euros." in again
        assert "step 1, The price" in again
        assert "step 1 (" in again.rpartition("NEEDS: the price")[2]
        assert "\n2. coder:" in again
    assert agents(frames)[2:] == ["coder", "researcher", "coder", "reporter"]
    titles = [one["title"] for one in data(frames, "plan")[-1]["steps"]]
    assert titles == ["The price", "coder's step", "reporter's step"]


async def test_what_the_reporter_needs_is_provided_too():
    new = {"agent_name": "researcher", "title": "The price", "description": "Find the price of tea."}
    reporter = [reply("STEP FAILED: there is no price\nNEEDS: the price of tea"), reply("# Tea\n\nThree.")]
    lead = {"supervisor": [decision("reassign", step=new)], "researcher": [reply("Three euros.")]}
    only = plan(step("coder"), step("reporter"))
    async with scripted_team(script(only, coder=[reply("Done.")], reporter=reporter, **lead)) as it:
        frames = await it.run()
        assert "Three euros." in it.prompts("reporter")[1]
    assert agents(frames)[2:] == ["coder", "reporter", "researcher", "reporter"]
    assert data(frames, "final_session_state")[0]["messages"][-1]["content"].startswith("# Tea")


async def test_a_decision_of_the_lead_is_an_event_between_the_failure_and_what_follows():
    new = {"agent_name": "researcher", "title": "Look it up", "description": "Find the sum on the web."}
    lead = {"supervisor": [decision("retry", hint="Look again."), decision("reassign", step=new)]}
    only, failing = plan(step("coder"), step("reporter")), [FAILED, FAILED]
    rules = TeamRules(step_retries=2)
    async with scripted_team(script(only, coder=failing, **lead), rules=rules) as it:
        frames = await it.run()
    first, second = data(frames, "lead_decision")
    failed = {"step_id": 1, "title": "coder's step"}
    assert first == {**failed, "decision": "retry", "agent_name": None, "hint": "Look again."}
    assert second == {**failed, "decision": "reassign", "agent_name": "researcher", "hint": None}
    names = [name for name, _ in frames if name in ("plan", "lead_decision")]
    assert names[names.index("lead_decision") - 1 :][:3] == ["plan", "lead_decision", "plan"]


async def test_the_lead_goes_on_without_a_step_and_the_others_are_done():
    lead = {"supervisor": [decision("continue_without")]}
    async with scripted_team(script(coder=[FAILED, reply("Drawn.")], **lead)) as it:
        frames = await it.run()
    assert [one for _, _, one in plan_statuses(frames)] == ["completed", "failed", "completed", "completed"]


async def test_the_lead_ends_the_work_and_the_report_names_what_is_missing():
    lead = {"supervisor": [decision("finish")]}
    async with scripted_team(script(**lead)) as it:
        frames = await it.run()
        assert "completed: no data" in it.prompts("reporter")[0]
    assert [one for _, _, one in plan_statuses(frames)] == ["completed", "failed", "skipped", "completed"]


async def test_a_lead_that_answers_nonsense_twice_is_replaced_by_a_rule():
    lead = {"supervisor": [reply("Oh dear.")]}
    only = plan(step("coder"), step("reporter"))
    async with scripted_team(script(only, REST, **lead)) as it:
        frames = await it.run()
        assert len(it.prompts("supervisor")) == 4, "each decision is asked for twice"
    assert agents(frames)[2:] == ["coder", "coder", "planner", "researcher", "reporter"]


async def test_no_step_is_tried_more_than_twice():
    lead = {"supervisor": [decision("retry")]}
    only = plan(step("coder"), step("reporter"))
    async with scripted_team(script(only, **lead), rules=TeamRules(max_plan_adaptations=0)) as it:
        frames = await it.run()
    assert agents(frames)[2:] == ["coder", "coder", "reporter"]


async def test_the_same_help_is_not_sent_twice():
    new = {"agent_name": "researcher", "title": "The price", "description": "Find the price of tea."}
    lead = {"supervisor": [decision("reassign", step=new)], "researcher": [reply("No price found.")]}
    only = plan(step("coder"), step("reporter"))
    coder = [reply("NEEDS: the price")]
    rules = TeamRules(step_retries=3, max_plan_adaptations=0)
    async with scripted_team(script(only, coder=coder, **lead), rules=rules) as it:
        frames = await it.run()
    assert agents(frames)[2:] == ["coder", "researcher", "coder", "reporter"]


async def test_a_step_whose_tries_are_used_up_is_planned_again():
    lead = {"supervisor": [decision("replan")]}
    async with scripted_team(script(**lead), rules=TeamRules(step_retries=0)) as it:
        frames = await it.run()
        assert "`retry`" not in it.prompts("supervisor")[0]
    assert agents(frames)[2:] == ["researcher", "coder", "planner", "researcher", "reporter"]


@pytest.mark.parametrize("most", [0, 1, 2])
async def test_a_plan_is_rewritten_up_to_a_limit_and_then_reported(most):
    hopeless = plan(step("coder"), step("reporter"))
    rules = TeamRules(step_retries=0, max_plan_adaptations=most)
    async with scripted_team(script(hopeless), rules=rules) as it:
        frames = await it.run()
        assert "completed: no data" in it.prompts("reporter")[0]
    assert agents(frames)[1:] == [*["planner", "coder"] * (most + 1), "reporter"]
    assert status(frames) == "completed"


async def test_without_an_alternative_from_the_planner_the_plan_continues():
    async with scripted_team(script(FIRST, {"steps": []})) as it:
        frames = await it.run()
        assert len(it.prompts("planner")) == 3, "it is shown its mistake once"
    assert plan_statuses(frames) == [
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
    assert plan_statuses(frames) == [(1, "reporter", "completed")]


async def test_a_planner_that_takes_the_rest_of_the_budget_leaves_the_report():
    slow = {**script(), "planner": [reply(json.dumps(FIRST)), {"hang": True}]}
    async with scripted_team(slow, rules=TeamRules(step_retries=0)) as it:
        meter = UsageMeter(Budget(seconds=5))
        frames = await metered(it, meter)
    assert agents(frames)[2:] == ["researcher", "coder", "planner", "reporter"]
    assert "5 seconds" in meter.exhausted


async def test_steps_that_the_new_rest_leaves_out_are_gaps():
    rest = plan(step("reporter", "Report"))
    async with scripted_team(script(FIRST, rest)) as it:
        frames = await it.run()
    gaps = {one["step"]: one["reason"] for one in data(frames, "run_status")[-1]["gaps"]}
    assert list(gaps) == ["Compute", "Draw"] and all(gaps.values())
    assert (3, "coder", "skipped") in plan_statuses(frames)


async def test_a_new_rest_replaces_no_step_that_the_run_went_on_without():
    first = plan(step("coder", "Compute"), step("coder", "Draw"), step("reporter"))
    lead = {"supervisor": [decision("continue_without"), decision("replan")]}
    async with scripted_team(script(first, REST, **lead)) as it:
        frames = await it.run()
    assert [one["step"] for one in data(frames, "run_status")[-1]["gaps"]] == ["Compute"]
