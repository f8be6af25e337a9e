"""What the prompts say about the team is what happens."""

import json
from typing import Any

import pytest

from maniple.agents.task import ANSWER_LINE, MISSING
from maniple.graph import TeamRules
from maniple.prompts import render
from tests.openai_server import SIMPLE, call, reply
from tests.team import agents, data, plan, scripted_team, status, step

pytestmark = pytest.mark.anyio
FAILED = reply("STEP FAILED: the table is empty")
FOUND = [call("tavily_search", query="tea"), reply("Tea costs 3 euros.")]
NEW = {"agent_name": "researcher", "title": "Look it up", "description": "Find the sum."}

ASKED = "What do two teas cost?"
TWO = plan(step("researcher", "Prices"), step("coder"))


def script(*plans, lead=(), **roles):
    return {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(one)) for one in plans],
        "supervisor": [reply(json.dumps({"hint": None, "step": None} | one)) for one in lead],
        "reporter": [reply("# Report")],
        **roles,
    }


def needs(agent, *numbers, title="") -> Any:
    return step(agent, title) | {"needs": list(numbers)}


def answer(frames):
    return frames[-1][1]["messages"][-1]["content"]


def statuses(frames):
    return [(one["agent_name"], one["status"]) for one in data(frames, "plan")[-1]["steps"]]


async def test_a_reassigned_step_gets_what_the_lead_is_told_that_it_gets():
    steps = [needs("researcher", title="Tea"), needs("coder", 1, title="Sum"), step("reporter")]
    work = {"researcher": [*FOUND, reply("It is 4.")], "coder": [FAILED]}
    async with scripted_team(
        script(plan(*steps), lead=[{"decision": "reassign", "step": NEW}], **work)
    ) as it:
        await it.run(ASKED)
        lead, shown = it.prompts("supervisor")[0], it.prompts("researcher")[-1]
    assert "that step's answer" in lead
    assert f"Request: {ASKED}" in shown
    assert "Tea costs 3 euros." in shown
    assert "the table is empty" in shown


async def test_a_step_that_provides_what_is_needed_sees_nothing_of_the_failed_one():
    steps = [needs("researcher", title="Tea"), needs("coder", title="Sum"), step("reporter")]
    coder = [reply("STEP FAILED: the table is empty\nNEEDS: the price"), reply("It is 6.")]
    work = {"researcher": [*FOUND, reply("It is 4.")], "coder": coder}
    rules = TeamRules(parallel_steps=1)
    lead = [{"decision": "reassign", "step": NEW}]
    async with scripted_team(script(plan(*steps), lead=lead, **work), rules=rules) as it:
        await it.run()
        assert "nothing of the failed step" in it.prompts("supervisor")[0]
        shown = it.prompts("researcher")[-1]
    assert "Tea costs 3 euros." in shown
    assert "the table is empty" not in shown


async def test_an_answer_after_a_failed_step_is_not_written_again_and_names_what_is_missing():
    lead = [{"decision": "continue_without"}]
    work = {"researcher": [FAILED], "coder": [reply("It is 4.")]}
    async with scripted_team(script(TWO, lead=lead, **work)) as it:
        frames = await it.run()
        assert it.prompts("reporter") == []
        shown = it.prompts("coder")[0]
    assert "the table is empty" in shown and ANSWER_LINE in shown
    assert statuses(frames) == [("researcher", "failed"), ("coder", "completed"), ("reporter", "completed")]
    assert answer(frames).startswith("It is 4.")
    named = [line for line in answer(frames).splitlines() if line.startswith(MISSING)]
    assert len(named) == 1 and "'Prices'" in named[0]
    assert status(frames) == "completed"


async def test_an_answer_that_names_the_missing_step_itself_is_left_as_it_is():
    words = "It is 4.\n\nMISSING: the step 'Prices' was not completed. No table."
    work = {"researcher": [FAILED], "coder": [reply(words)]}
    lead = [{"decision": "continue_without"}]
    async with scripted_team(script(TWO, lead=lead, **work)) as it:
        frames = await it.run()
    assert answer(frames) == words


async def test_the_answer_of_a_plan_that_was_written_again_is_not_written_once_more():
    lead = [{"decision": "replan"}]
    work = {"researcher": [FAILED], "coder": [reply("It is 4.")]}
    plans = TWO, plan(step("coder", "Another way"))
    async with scripted_team(script(*plans, lead=lead, **work)) as it:
        frames = await it.run()
        assert it.prompts("reporter") == []
    assert agents(frames)[-3:] == ["planner", "coder", "reporter"]
    assert answer(frames) == "It is 4.", "what another way replaced is not missing"


async def test_a_tried_again_step_is_the_answer_without_a_report():
    lead = [{"decision": "retry"}]
    async with scripted_team(script(plan(step("coder")), lead=lead, coder=[FAILED, reply("It is 4.")])) as it:
        frames = await it.run()
        assert it.prompts("reporter") == []
    assert answer(frames) == "It is 4."


@pytest.mark.parametrize("numbers", [[[], []], [[], [], [1]]])
async def test_where_the_last_step_builds_not_on_all_others_the_reporter_writes(numbers):
    steps = [needs("coder", *one, title=f"S{at}") for at, one in enumerate(numbers)]
    work = {"coder": [FAILED, reply("It is 4.")]}
    lead = [{"decision": "continue_without"}]
    async with scripted_team(script(plan(*steps), lead=lead, **work)) as it:
        frames = await it.run()
        assert len(it.prompts("reporter")) == 1
    assert answer(frames).startswith("# Report\n\n**Missing")


def test_the_general_agent_is_told_how_sources_and_figures_are_written():
    values = {"tools": True, "team": (), "locale": "", "language": "", "names": {"cite"}, "abilities": {}}
    prompt = render("manus", **values)
    assert "`[3]`" in prompt
    assert "(its path)`" in prompt


async def test_a_text_without_research_is_the_reporters_alone():
    steps = [step("reporter", "The poem", "Write a haiku about tea.")]
    async with scripted_team(script(plan(*steps), reporter=[reply("Steam rises")])) as it:
        frames = await it.run("A haiku about tea, please.")
        assert "needs no research" in it.prompts("planner")[0]
        assert "needs no research" in it.prompts("reporter")[0]
        assert it.server.stats["calls"] == 3
    assert answer(frames) == "Steam rises"


async def test_the_planner_gives_a_named_file_format_to_a_step():
    async with scripted_team(SIMPLE) as it:
        await it.run("Make trip.docx")
        (prompt,) = it.prompts("planner")
    assert "file format" in prompt
