"""A run whose budget ends: it wraps up, and its report names what is missing."""

import json
import re

import pytest

from maniple.scope.budget import Budget, Prices, UsageMeter
from maniple.store import RunUsage
from tests.graph.metered import metered
from tests.openai_server import call, reply
from tests.team import agents, data, joined_text, plan, scripted_team, status, step

pytestmark = pytest.mark.anyio
HANDOFF = call("handoff_to_planner", locale="en-US")
STEPS = [
    step("coder", "Sum"),
    step("researcher", "Search"),
    step("coder", "Draw"),
    step("reporter", "Report"),
]
TEAM = {
    "coordinator": [HANDOFF],
    "planner": [reply(json.dumps(plan(*STEPS)))],
    "coder": [call("python_repl_tool", code="print(1+3)"), reply("It is 4.")],
    "researcher": [call("tavily_search", query="q"), reply("Found.")],
    "reporter": [reply("# Report")],
    "supervisor": [reply('{"next": "coder"}')],
}
ENDLESS = {**TEAM, "coder": [call("python_repl_tool", code="print(1+3)")]}


def statuses(frames):
    return [one["status"] for one in data(frames, "plan")[-1]["steps"]]


async def test_a_run_within_its_budget_is_as_ever():
    async with scripted_team(TEAM) as it:
        meter = UsageMeter(Budget(model_calls=50, tokens=1_000_000, seconds=60, tool_calls=50))
        frames = await metered(it, meter)
        assert meter.used.model_calls == it.server.stats["calls"]
    assert statuses(frames) == ["completed"] * 4
    assert meter.exhausted is None
    assert meter.used.tool_calls == 2


async def test_near_the_limit_no_step_starts_and_the_report_names_what_is_missing():
    async with scripted_team(TEAM) as it:
        meter = UsageMeter(Budget(model_calls=5))
        frames = await metered(it, meter)
        prompt = it.prompts("reporter")[0]
        assert it.server.stats["calls"] == 5
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    assert statuses(frames) == ["completed", "skipped", "skipped", "completed"]
    assert "It is 4." in prompt
    assert "MISSING: the step 'Search' was not completed: it was not begun: 4 of 5 (model calls)" in prompt
    assert "4 of 5" in meter.exhausted
    assert "# Report\n\n**Missing" in joined_text(frames)


@pytest.mark.parametrize(("limit", "allowed"), [("model_calls", 4), ("tool_calls", 2)])
async def test_at_the_limit_a_step_ends_and_the_reporter_has_its_one_call(limit, allowed):
    async with scripted_team(ENDLESS) as it:
        meter = UsageMeter(Budget(**{limit: allowed}))
        frames = await metered(it, meter)
        prompt = it.prompts("reporter")[0]
    budget = f"of {allowed} {limit.replace('_', ' ')}"
    assert status(frames) == "completed", "it is the driver that tells budget_exhausted, from the meter"
    assert budget in meter.exhausted
    assert statuses(frames) == ["failed", "skipped", "skipped", "completed"]
    assert f"MISSING: the step 'Sum' was not completed: The budget {budget} is used up" in prompt
    kept = re.search(r"Until then:\npython_repl_tool: <data (\w+)>\n4\n</data \1>", prompt)
    assert kept, "what it had found is kept, as material"
    assert "# Report\n\n**Missing" in joined_text(frames)
    if limit == "model_calls":
        assert meter.used.model_calls == 5, "the reporter's call is the only one beyond"


@pytest.mark.parametrize("calls", [0, 1])
async def test_without_budget_for_the_planner_the_plan_is_the_report_alone(calls):
    async with scripted_team(TEAM) as it:
        meter = UsageMeter(Budget(model_calls=calls))
        frames = await metered(it, meter, auto_accepted_plan=False)
        assert it.server.stats["calls"] == calls + 1
        assert f"The budget of {calls} model calls is used up" in it.prompts("reporter")[0]
    assert agents(frames) == ["coordinator", "planner", "reporter"]
    assert statuses(frames) == ["completed"]
    assert meter.exhausted


async def test_without_budget_for_the_reporter_the_results_are_the_report():
    async with scripted_team(ENDLESS) as it:
        meter = UsageMeter(Budget(model_calls=4))
        meter._reserve = 0  # as if it had been used up already
        frames = await metered(it, meter)
        assert it.prompts("reporter") == []
    assert "No report could be written: The budget of 4 model calls is used up" in joined_text(frames)
    assert "python_repl_tool: \n\n```\n4\n```\n" in joined_text(frames)
    assert frames[-1][1]["messages"][-1]["content"].startswith("# Report")


async def test_a_step_that_hangs_is_cut_when_the_seconds_are_over():
    async with scripted_team({**TEAM, "coder": [{"hang": True}]}) as it:
        meter = UsageMeter(Budget(seconds=4))
        frames = await metered(it, meter)
        it.server.wait_for(lambda stats: stats["active"] == 0)
        assert it.server.stats["aborted"] == 1
    assert statuses(frames)[0] == "failed"
    assert statuses(frames)[-1] == "completed"
    assert "4 seconds" in meter.exhausted
    assert "# Report\n\n**Missing" in joined_text(frames)


async def test_a_run_that_was_recovered_goes_on_with_what_it_had_used():
    async with scripted_team(TEAM) as it:
        meter = UsageMeter(Budget(model_calls=50), used=RunUsage(model_calls=45))
        frames = await metered(it, meter)
    assert "skipped" in statuses(frames)
    assert meter.exhausted


@pytest.mark.parametrize("limit", [{"tokens": 2_500}, {"cost": 0.0025}])
async def test_tokens_and_money_end_a_run_like_calls_do(limit):
    async with scripted_team(ENDLESS) as it:
        meter = UsageMeter(Budget(**limit), {"m": Prices(1.0, 1.0)})
        frames = await metered(it, meter)
        used = it.server.stats["prompt_tokens"] + it.server.stats["completion_tokens"]
    assert meter.exhausted
    assert statuses(frames)[-1] == "completed"
    assert used < 2_500 + 1_000, "one report beyond the limit"


_WORDS = "word " * 200
_LONG = 100
"""So many pieces of 1,000 bytes are 25,000 tokens."""


@pytest.mark.parametrize(
    "answer",
    [
        reply("", chunks=[_WORDS] * _LONG),
        reply("", reasoning=[_WORDS] * _LONG),
        call("python_repl_tool", code=_WORDS * _LONG),
    ],
    ids=["text", "reasoning", "arguments"],
)
@pytest.mark.parametrize("limit", ["tokens", "cost"])
async def test_an_answer_without_an_end_is_cut_at_the_budget(answer, limit):
    # The script's model writes the words of arguments one by one, so it hangs after as many pieces as it has.
    pieces = _LONG * (200 if "tool_calls" in answer else 1)
    endless = {**answer, "hang_after": pieces}
    async with scripted_team({**TEAM, "coder": [endless], "researcher": [reply("Found.")]}) as it:
        prices = {"m": Prices(output=1_000_000.0)}
        budget = Budget(tokens=16_000) if limit == "tokens" else Budget(cost=16_000)
        meter = UsageMeter(budget, prices)
        frames = await metered(it, meter)
    assert f"{limit[:4]}" in meter.exhausted
    assert statuses(frames) == ["failed", "skipped", "skipped", "completed"]
    assert "# Report\n\n**Missing" in joined_text(frames)
    assert meter.used.output_tokens > 16_000 - 4_000, "what arrived of it is counted"


@pytest.mark.parametrize(("pieces", "is_whole"), [(25, True), (_LONG, False)])
async def test_a_report_may_have_some_length_beyond_the_budget_and_not_any(pieces, is_whole):
    report = reply("", chunks=[_WORDS] * pieces, **({} if is_whole else {"hang_after": pieces}))
    async with scripted_team({**TEAM, "coder": [reply("Four.")], "reporter": [report]}) as it:
        meter = UsageMeter(Budget(tokens=5_000))
        frames = await metered(it, meter)
        assert it.server.stats["by_role"]["reporter"] == 1
    assert (joined_text(frames).count(_WORDS) >= pieces) == is_whole
