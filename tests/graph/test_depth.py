"""How far a question is researched: the option `depth` of a run."""

import json

import pytest

from maniple.errors import ConfigError
from maniple.graph import RunOptions, TeamRules
from tests.openai_server import call, reply
from tests.team import agents, data, plan, scripted_team, status, step

pytestmark = pytest.mark.anyio
PLAN = plan(step("researcher", "Find prices"), step("reporter", "Report"))


def script(written=PLAN, **roles):
    return {
        "coordinator": [call("handoff_to_planner")],
        "planner": [reply(json.dumps(written))],
        "researcher": [reply("Tea costs 3 euros.")],
        "reporter": [reply("# Report")],
        **roles,
    }


async def test_a_quick_run_is_planned_with_one_research_step_and_without_a_round():
    async with scripted_team(script()) as it:
        frames = await it.run(depth="quick")
        assert "quick answer" in it.prompts("planner")[0]
        assert it.prompts("supervisor") == []
    assert agents(frames) == ["coordinator", "planner", "researcher", "reporter"]


@pytest.mark.parametrize("options", [{}, {"depth": "standard"}])
async def test_a_standard_run_has_no_further_calls_and_its_prompt_names_no_depth(options):
    async with scripted_team(script()) as it:
        frames = await it.run(**options)
        calls = len(it.server.requests)
        prompt = it.prompts("planner")[0]
    assert calls == 4
    assert "quick answer" not in prompt and "wants depth" not in prompt
    assert data(frames, "gap_review") == []
    assert status(frames) == "completed"


async def test_a_deep_run_is_planned_in_sub_questions():
    async with scripted_team(script(supervisor=[reply('{"gaps": [], "steps": []}')])) as it:
        await it.run(depth="deep")
        assert "independent sub-questions" in it.prompts("planner")[0]


async def test_the_depth_of_the_settings_holds_for_a_run_that_names_none():
    async with scripted_team(script(), rules=TeamRules(depth="quick")) as it:
        await it.run()
        await it.run(depth="standard", thread_id="other")
        first, second = it.prompts("planner")
    assert "quick answer" in first
    assert "quick answer" not in second


async def test_a_deep_run_takes_no_plan_of_the_coordinator():
    handed = {"agent_name": "researcher", "title": "Find", "description": "Find it."}
    lead = [reply('{"gaps": [], "steps": []}')]
    coordinator = [call("handoff_to_planner", step=handed)]
    async with scripted_team(script(coordinator=coordinator, supervisor=lead)) as it:
        await it.run(depth="deep")
        assert len(it.prompts("planner")) == 1


def test_an_unknown_depth_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="quick, standard, deep"):
        RunOptions(depth="abyssal")  # pyright: ignore[reportArgumentType]
