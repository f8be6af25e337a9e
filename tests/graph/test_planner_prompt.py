"""The planner knows what a plan can cost and what the members cannot do."""

import json

import pytest

from maniple.agents.roles import ROLES
from maniple.browser import ACTIONS
from maniple.scope.budget import Budget, UsageMeter
from maniple.store import RunUsage
from tests.graph.metered import metered
from tests.openai_server import SIMPLE, reply
from tests.team import plan, scripted_team, step

pytestmark = pytest.mark.anyio


def last_message(it, role="planner", call=0):
    requests = [one for one in it.server.requests if f"You are the {role}" in str(one["messages"][0])]
    return requests[call]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("limits", "used", "shown"),
    [
        ({"model_calls": 20}, {}, ["19 model calls"]),
        ({"model_calls": 20}, {"model_calls": 15}, ["4 model calls"]),
        ({"tool_calls": 7}, {}, ["7 tool calls"]),
        ({"tokens": 100_000}, {"input_tokens": 40_000, "output_tokens": 9_000}, ["50,", " tokens"]),
        ({"seconds": 1000}, {"seconds": 100.0}, [" seconds"]),
        ({"cost": 2.5}, {"cost": 1.25}, ["1.25 (cost)"]),
        ({"model_calls": 20, "tool_calls": 3}, {}, ["19 model calls", "3 tool calls"]),
    ],
)
async def test_the_planner_is_told_last_what_is_left_of_each_limit(limits, used, shown):
    async with scripted_team(SIMPLE) as it:
        await metered(it, UsageMeter(Budget(**limits), used=RunUsage(**used)))
        told = last_message(it)
    assert all(one in told for one in shown)
    assert len(told.splitlines()) == 1
    names = {"model_calls", "tool_calls", "tokens", "seconds", "cost"} - set(limits)
    assert not any(name.replace("_", " ") in told for name in names)


async def test_without_limits_nothing_is_said_of_a_budget():
    async with scripted_team(SIMPLE) as it:
        await it.run("1+3=?")
        assert last_message(it) == "1+3=?"


async def test_when_the_rest_is_planned_again_the_budget_is_that_of_then():
    script = {
        **SIMPLE,
        "coder": [reply("STEP FAILED: no data")],
        "supervisor": [reply('{"decision": "replan", "hint": null, "step": null}')],
        "researcher": [reply("It is 4.")],
    }
    script["planner"] = [*SIMPLE["planner"], reply(json.dumps(plan(step("researcher"))))]
    async with scripted_team(script) as it:
        await metered(it, UsageMeter(Budget(model_calls=30)))
        assert "29 model calls" in last_message(it)
        assert "26 model calls" in last_message(it, call=1)


@pytest.mark.parametrize("sees", [True, False, None])
async def test_the_planner_is_told_which_members_see_no_pictures(sees):
    models = {} if sees is None else {"capabilities": {"vision": sees}}
    async with scripted_team(SIMPLE, models=models) as it:
        await it.run()
        (prompt,) = it.prompts("planner")
    assert ("pictures: researcher, coder, reporter" in prompt) is (sees is False)


def test_what_the_browser_is_said_to_be_unable_to_do_is_no_action_of_it():
    brief, names = ROLES["browser"].brief, " ".join(ACTIONS.names)
    assert "click_element" in names
    unable, _, able = brief.partition("It can take")
    for word, action in (("hover", "hover"), ("drag", "drag"), ("code", "code")):
        assert word in unable
        assert action not in names
    assert ("pictures" in able, "take_screenshot" in names) == (True, True)
