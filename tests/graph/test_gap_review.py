"""Rounds on open questions before the report of a deep run."""

import json

import pytest
from langchain_core.tools import tool

from maniple.agents.offers import Offer
from maniple.graph.gap_review import MAX_NEW_STEPS
from maniple.graph.plan import Plan, PlanProgress
from maniple.graph.plan_edits import retry
from maniple.scope.budget import Budget, UsageMeter
from maniple.tools.evidence import cited, source_line
from tests.graph.metered import metered
from tests.openai_server import call, reply
from tests.team import TOOLS, agents, data, plan, scripted_team, status, step

pytestmark = pytest.mark.anyio
PLAN = plan(step("researcher", "Find prices"), step("reporter", "Report"))
NO_GAPS = {"gaps": [], "steps": []}


@tool
async def tavily_search(query: str) -> str:
    """Search."""
    return str(await cited([{"title": query, "url": f"https://e.test/{query}", "content": query}]))


SEARCHING = Offer({"coder": TOOLS.tools_of("coder"), "researcher": [tavily_search]})


def new(title: str, agent: str = "researcher", **fields):
    return {"agent_name": agent, "title": title, "description": f"Find {title} out.", "needs": [], **fields}


def open_question(question: str, **fields):
    return {"question": question, "why": "It is asked for.", "open": False, **fields}


def gaps(*titles: str, **fields):
    return {"gaps": [open_question(f"What about {one}?") for one in titles], "steps": [*map(new, titles)]}


def found(word: str):
    return [call("tavily_search", query=word), reply(f"{word} is found.")]


def script(*answers, words=("tea", "milk", "sugar"), written=PLAN, **roles):
    return {
        "coordinator": [call("handoff_to_planner")],
        "planner": [reply(json.dumps(written))],
        "researcher": [part for word in words for part in found(word)],
        "supervisor": [reply(one if isinstance(one, str) else json.dumps(one)) for one in answers],
        "reporter": [reply("# Report")],
        **roles,
    }


def deep_team(*answers, **options):
    rules = options.pop("rules", None)
    checkpointer = options.pop("checkpointer", "memory")
    return scripted_team(
        script(*answers, **options), toolbox=SEARCHING, rules=rules, checkpointer=checkpointer
    )


def titles(frames):
    return [one["title"] for one in data(frames, "plan")[-1]["steps"]]


async def test_two_rounds_add_steps_before_the_report():
    async with deep_team(gaps("milk"), gaps("sugar"), gaps("salt")) as it:
        frames = await it.run(depth="deep")
        first, second = it.prompts("supervisor")
        report = it.prompts("reporter")[0]
    assert titles(frames) == ["Find prices", "milk", "sugar", "Report"]
    assert {one["status"] for one in data(frames, "plan")[-1]["steps"]} == {"completed"}
    assert agents(frames)[2:] == ["researcher", "researcher", "researcher", "reporter"]
    assert [(one["round"], one["steps"]) for one in data(frames, "gap_review")] == [
        (1, ["milk"]),
        (2, ["sugar"]),
        (2, []),
    ]
    assert "tea is found." in first and "What about milk?" in second
    assert "What about sugar?" in report
    assert status(frames) == "completed"
    assert "gaps" not in data(frames, "run_status")[0]


async def test_the_plan_with_the_new_steps_is_sent_before_they_begin():
    async with deep_team(gaps("milk"), NO_GAPS) as it:
        frames = await it.run(depth="deep")
    at = [name for name, _ in frames].index("gap_review")
    name, sent = next((name, one) for name, one in frames[at + 1 :] if name in ("plan", "start_of_agent"))
    assert name == "plan"
    assert [one["title"] for one in sent["steps"]] == ["Find prices", "milk", "Report"]


async def test_without_a_gap_the_report_follows_after_one_call():
    async with deep_team(NO_GAPS) as it:
        frames = await it.run(depth="deep")
        assert len(it.prompts("supervisor")) == 1
    assert titles(frames) == ["Find prices", "Report"]
    assert data(frames, "gap_review")[0]["notice"]


async def test_the_steps_of_a_round_run_concurrently():
    async with deep_team(gaps("milk", "sugar"), NO_GAPS) as it:
        frames = await it.run(depth="deep")
    sent = data(frames, "plan")
    assert any([one["status"] for one in each["steps"]][1:3] == ["in_progress"] * 2 for each in sent)


@pytest.mark.parametrize(
    "repeated", [new("FIND  prices!"), new("Prices", description="Do: researcher"), new("Report")]
)
async def test_a_step_that_repeats_one_of_the_plan_is_refused(repeated):
    written = plan(step("researcher", "Find prices", "do researcher"), step("reporter", "Report"))
    answer = {"gaps": [open_question("What is open?")], "steps": [repeated]}
    async with deep_team(answer, written=written) as it:
        frames = await it.run(depth="deep")
        assert "What is open?" in it.prompts("reporter")[0]
    assert titles(frames) == ["Find prices", "Report"]
    [review] = data(frames, "gap_review")
    assert [one["title"] for one in review["refused"]] == [repeated["title"]]
    assert "gaps" not in data(frames, "run_status")[0]


async def test_a_round_adds_a_few_steps_at_most_and_says_which_it_leaves_out():
    many = [f"thing {number}" for number in range(MAX_NEW_STEPS + 1)]
    async with deep_team(gaps(*many), NO_GAPS, words=["tea", *many]) as it:
        frames = await it.run(depth="deep")
    assert titles(frames) == ["Find prices", *many[:-1], "Report"]
    assert [one["title"] for one in data(frames, "gap_review")[0]["refused"]] == many[-1:]


async def test_a_round_that_brings_no_new_source_is_the_last():
    async with deep_team(gaps("milk"), gaps("sugar"), words=["tea", "tea"]) as it:
        frames = await it.run(depth="deep")
        assert len(it.prompts("supervisor")) == 1
    assert titles(frames) == ["Find prices", "milk", "Report"]
    assert "no new source" in data(frames, "gap_review")[-1]["notice"]


async def test_what_the_lead_calls_unanswerable_is_a_gap_of_the_run():
    answer = {"gaps": [open_question("What will it cost?", open=True)], "steps": []}
    async with deep_team(answer) as it:
        frames = await it.run(depth="deep")
        assert "What will it cost?" in it.prompts("reporter")[0]
    [gap] = data(frames, "run_status")[0]["gaps"]
    assert gap["step"] == "What will it cost?"
    assert gap["reason"].startswith("Not answered:")


async def test_a_bad_answer_is_repaired_once():
    async with deep_team("no json", NO_GAPS) as it:
        frames = await it.run(depth="deep")
    assert [one["notice"] for one in data(frames, "gap_review")] == ["Nothing is open."]


async def test_after_two_bad_answers_the_report_follows_and_the_reason_is_sent():
    async with deep_team("no json", {"gaps": ["x"], "steps": [new("milk", "nobody")]}) as it:
        frames = await it.run(depth="deep")
        assert len(it.prompts("supervisor")) == 2
    assert titles(frames) == ["Find prices", "Report"]
    assert "no usable answer" in data(frames, "gap_review")[0]["notice"]
    assert status(frames) == "completed"


async def test_a_short_budget_is_kept_for_the_report():
    async with deep_team(gaps("milk"), NO_GAPS) as it:
        meter = UsageMeter(Budget(model_calls=6))
        frames = await metered(it, meter, depth="deep")
        assert it.prompts("supervisor") == []
    assert titles(frames) == ["Find prices", "Report"]
    assert "4 of 6" in data(frames, "gap_review")[0]["notice"]
    assert meter.exhausted is None


async def test_a_small_model_has_no_round_and_it_is_said_once():
    written = plan(step("coder", "Compute"), step("reporter", "Report"))
    answers = [reply('{"kind": "coder"}'), reply("```python\nprint(1+3)\n```"), reply("Summary: 4")]
    small = {"other": answers, "planner": [reply(json.dumps(written))]}
    features = {"grammar": True, "tools": False, "json_schema": False}
    async with scripted_team(small, models={"profile": "compact", "capabilities": features}) as it:
        frames = await it.run(depth="deep")
    [review] = data(frames, "gap_review")
    assert "too small" in review["notice"]
    assert status(frames) == "completed"


async def test_a_plan_in_which_nothing_was_read_has_no_round():
    written = plan(step("coder", "Compute"), step("reporter", "Report"))
    coder = [call("python_repl_tool", code="1+3"), reply("4")]
    async with deep_team(gaps("milk"), written=written, coder=coder) as it:
        frames = await it.run(depth="deep")
        assert it.prompts("supervisor") == []
    assert "Nothing was read" in data(frames, "gap_review")[0]["notice"]


async def test_a_report_that_repeated_a_result_is_written_after_a_round():
    alone = plan(step("researcher", "Find prices"))
    async with deep_team(gaps("milk"), NO_GAPS, written=alone) as it:
        frames = await it.run(depth="deep")
        assert len(it.prompts("reporter")) == 1
    assert agents(frames)[-1] == "reporter"


def test_a_retry_may_have_rounds_again():
    progress = PlanProgress.of(Plan.model_validate(PLAN)).with_gap_rounds(rounds=2, is_over=True)
    again = retry(progress).gap_rounds
    assert (again.rounds, again.is_over) == (0, False)


@tool
async def crawl_tool(url: str) -> str:
    """Read a page."""
    return await source_line(url, "Press release", "The works make 4,000 kettles a day. " * 10)


async def test_copies_of_a_text_are_named_to_the_lead_and_the_reporter_and_are_no_new_source():
    tools = Offer({"researcher": [crawl_tool]})
    urls = ["https://a.test/1", "https://b.test/2"]
    researcher = [part for url in urls for part in (call("crawl_tool", url=url), reply(f"Read {url}."))]
    written = plan(step("researcher", "One"), step("researcher", "Two"), step("reporter", "Report"))
    answers = script(NO_GAPS, written=written, researcher=researcher)
    async with scripted_team(answers, toolbox=tools) as it:
        await it.run(depth="deep")
        assert "same text as [1]" in it.prompts("supervisor")[0]
        assert "same text as [1]" in it.prompts("reporter")[0]
    again = script(gaps("milk"), gaps("sugar"), researcher=researcher)
    async with scripted_team(again, toolbox=tools) as it:
        frames = await it.run(depth="deep")
    assert "no new source" in data(frames, "gap_review")[-1]["notice"]
