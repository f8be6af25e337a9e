"""A hand-off that carries the only step of the plan, so that no planner is asked."""

import json

import pytest
from langchain_core.messages import AIMessage

from maniple.agents.task import ANSWER_LINE
from maniple.graph.handoff import find_step
from maniple.scope.budget import Budget, UsageMeter
from tests.graph.metered import metered
from tests.openai_server import SIMPLE, call, reply
from tests.team import agents, data, joined_text, plan, scripted_team, status, step

pytestmark = pytest.mark.anyio
STEP = {"agent_name": "coder", "title": "The sum", "description": "Compute 1 + 3 with Python."}
TEXT = json.dumps(STEP)
CARRIED = {**SIMPLE, "coordinator": [call("handoff_to_planner", locale="en", step=STEP)]}
ARGUMENTS = json.dumps({"locale": "en", "step": STEP})


def handed(step, **arguments):
    return {**SIMPLE, "coordinator": [call("handoff_to_planner", locale="en", step=step, **arguments)]}


def steps(frames):
    return [(one["agent_name"], one["title"]) for one in data(frames, "plan")[-1]["steps"]]


async def test_one_member_does_the_whole_request_without_a_call_of_the_planner():
    async with scripted_team(CARRIED) as it:
        meter = UsageMeter(Budget(model_calls=50))
        frames = await metered(it, meter)
        prompts = it.prompts("coder")
        assert (it.server.stats["calls"], meter.used.model_calls) == (3, 3)
        assert not it.prompts("planner") and not it.prompts("reporter")
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    assert f"Your step: {STEP['title']}\n{STEP['description']}" in prompts[0]
    assert ANSWER_LINE in prompts[0]
    assert steps(frames)[0] == ("coder", "The sum")
    assert [one["status"] for one in data(frames, "plan")[-1]["steps"]] == ["completed", "completed"]
    assert status(frames) == "completed"
    assert frames[-1][1]["messages"][-1]["content"] == "1 + 3 = 4"


@pytest.mark.parametrize(
    "answer",
    [
        call("handoff_to_planner", locale="en", step={**STEP, "agent_name": "Coder "}),
        call("handoff_to_planner", locale="en", step=TEXT),
        call("handoff_to_planner", locale="en", step=f"```json\n{TEXT}\n```"),
        call("handoff_to_planner", locale="en", step=[STEP]),
        call("handoff_to_planner", locale="en", step=f"[{TEXT}]"),
        call("handoff_to_planner", locale="en", **STEP),
        call("handoff_to_planner", locale="en", step={**STEP, "needs": [1], "note": 7} | {"note": None}),
        call("handoff_to_planner", step=STEP),
        {"text": "I hand over.", **call("handoff_to_planner", locale="en", step=STEP)},
        reply(f"handoff_to_planner(step={TEXT})"),
        reply(f"handoff_to_planner(locale='en', step={STEP})"),
        reply(f'<think>The coder: step = "x".</think>`handoff_to_planner(step={TEXT}, locale="en")`'),
        reply(f"handoff_to_planner({ARGUMENTS})"),
        reply(f'{{"name": "handoff_to_planner", "arguments": {ARGUMENTS}}}'),
        reply(f'<tool_call>\n{{"name": "handoff_to_planner", "arguments": {ARGUMENTS}}}\n</tool_call>'),
        reply(f'[{{"function": {{"name": "handoff_to_planner", "arguments": {ARGUMENTS}}}}}]'),
    ],
)
async def test_the_step_is_understood_in_every_form_and_never_shown_by_the_coordinator(answer):
    async with scripted_team({**SIMPLE, "coordinator": [answer]}) as it:
        frames = await it.run()
        assert it.server.stats["calls"] == 3
    assert steps(frames)[0] == ("coder", "The sum")
    before_planner = frames[: [name for name, _ in frames].index("start_of_workflow")]
    assert "handoff" not in joined_text(before_planner) and "sum" not in joined_text(before_planner)


async def test_a_line_with_the_members_name_is_a_step():
    async with scripted_team(handed("coder: Compute 1 + 3")) as it:
        frames = await it.run()
        assert it.server.stats["calls"] == 3
    assert steps(frames)[0] == ("coder", "Compute 1 + 3")


@pytest.mark.parametrize(
    "carried",
    [
        {**STEP, "agent_name": "chef"},
        {**STEP, "agent_name": ""},
        {**STEP, "agent_name": ["coder"]},
        {"agent_name": "coder"},
        {"agent_name": "coder", "title": "", "description": ""},
        [STEP, STEP],
        {"steps": [STEP]},
        "Compute it.",
        "{'agent_name': ",
        TEXT[:-12],
        "",
        [],
        {},
        7,
        True,
        None,
    ],
)
async def test_in_doubt_the_planner_is_asked(carried):
    async with scripted_team(handed(carried)) as it:
        frames = await it.run()
        assert len(it.prompts("planner")) == 1
    assert steps(frames) == [("coder", "Compute"), ("reporter", "Report")]
    assert status(frames) == "completed"


@pytest.mark.parametrize(
    "answer",
    [
        call("handoff_to_planner"),
        reply("handoff_to_planner()"),
        reply(f"handoff_to_planner(step={TEXT[:-12]}"),
        {**call("handoff_to_planner", locale="en", step=STEP), "finish_reason": "length"},
        {"tool_calls": [{"name": "handoff_to_planner", "arguments": {"step": STEP}} for _ in range(2)]},
        call("do_it", step=STEP),
        reply(f"handoff_to_planner(step={TEXT}) or handoff_to_planner(step={TEXT})"),
    ],
)
async def test_a_step_that_is_missing_cut_or_not_the_only_one_is_not_taken(answer):
    async with scripted_team({**SIMPLE, "coordinator": [answer]}) as it:
        frames = await it.run()
        assert len(it.prompts("planner")) == 1
    assert status(frames) == "completed"


@pytest.mark.parametrize(
    "options",
    [{"deep_thinking_mode": True}, {"search_before_planning": True}, {"auto_accepted_plan": False}],
)
async def test_who_wants_more_than_a_hand_off_gets_the_planners_plan(options):
    async with scripted_team(CARRIED) as it:
        await it.run(**options)
        (request,) = [one for one in it.server.requests if "You are the coordinator" in str(one["messages"])]
        assert len(it.prompts("planner")) == 1
        assert "step" not in request["tools"][0]["function"]["parameters"]["properties"]
        assert "`step`" not in it.prompts("coordinator")[0]


async def test_a_hand_off_names_only_members_that_are_at_work():
    async with scripted_team(CARRIED) as it:
        await it.run(team_members=("researcher",))
        coordinator, planner = it.server.requests[:2]
        assert "You are the planner" in str(planner["messages"])
        shown = coordinator["tools"][0]["function"]["parameters"]["properties"]["step"]
        assert shown["properties"]["agent_name"]["enum"] == ["researcher", "reporter"]
        assert "coder" not in it.prompts("coordinator")[0]


def visible(frames):
    """Return the frames with their ids numbered, without usage and drafts, each message in one piece."""
    ids: dict[str, str] = {}
    shown: list[tuple[str, dict]] = []
    for name, content in json.loads(json.dumps(frames)):
        if name == "usage" or content.get("draft"):
            continue
        for key in ("message_id", "agent_id", "tool_call_id", "workflow_id", "run_id", "thread_id"):
            if key in content:
                content[key] = ids.setdefault(content[key], f"{key}{len(ids)}")
        last_name, last = shown[-1] if shown else ("", {})
        if name == last_name == "message" and last["message_id"] == content["message_id"]:
            last["delta"]["content"] += content["delta"]["content"]
        else:
            shown.append((name, content))
    return shown


async def test_the_plan_is_streamed_like_one_of_the_planner():
    written = {**SIMPLE, "planner": [reply(json.dumps({**plan(STEP, title="The sum"), "thought": ""}))]}
    async with scripted_team(written) as it:
        by_planner = await it.run()
    async with scripted_team(CARRIED) as it:
        by_coordinator = await it.run()
    assert visible(by_coordinator) == visible(by_planner)


async def test_the_reporter_alone_changes_the_last_answer():
    change = {"agent_name": "reporter", "title": "Shorter", "description": "Cut the last answer to half."}
    second = [call("handoff_to_planner", locale="en"), call("handoff_to_planner", locale="en", step=change)]
    script = {**SIMPLE, "coordinator": second, "reporter": [reply("# Long answer"), reply("# Short")]}
    async with scripted_team(script) as it:
        await it.run(thread_id="t")
        before = it.server.stats["calls"]
        frames = await it.run("Shorter, please.", thread_id="t")
        assert it.server.stats["calls"] - before == 2
        assert change["description"] in it.prompts("reporter")[1]
        assert "# Long answer" in it.prompts("reporter")[1]
    assert steps(frames) == [("reporter", "Shorter")]
    assert frames[-1][1]["messages"][-1]["content"] == "# Short"


async def test_after_an_unfinished_plan_the_planner_is_asked_as_it_sees_what_is_missing():
    script = {
        **CARRIED,
        "coordinator": [call("handoff_to_planner", locale="en"), *CARRIED["coordinator"]],
        "coder": [reply("STEP FAILED: no data"), reply("It is 4.")],
        "supervisor": [reply('{"decision": "continue_without"}')],
    }
    async with scripted_team(script) as it:
        await it.run(thread_id="t")
        await it.run("Try what is missing again.", thread_id="t")
        assert "STEP FAILED" not in it.prompts("planner")[1] and "(No data" in it.prompts("planner")[1]
        await it.run("1+3=?", thread_id="t")
        assert len(it.prompts("planner")) == 2, "that plan was done"


async def test_a_step_is_taken_once():
    script = {**CARRIED, "coordinator": [*CARRIED["coordinator"], call("handoff_to_planner", locale="en")]}
    async with scripted_team(script) as it:
        await it.run(thread_id="t")
        assert not it.prompts("planner")
        await it.run("Something else.", thread_id="t")
        assert len(it.prompts("planner")) == 1


async def test_a_failed_step_of_a_hand_off_is_planned_again_by_the_planner():
    script = {
        **CARRIED,
        "coder": [reply("STEP FAILED: no Python")],
        "supervisor": [reply('{"decision": "replan", "hint": "Search.", "step": null}')],
        "planner": [reply(json.dumps(plan(step("researcher", "Look it up"))))],
        "researcher": [reply("It is 4.")],
    }
    async with scripted_team(script) as it:
        frames = await it.run()
        assert "1. coder: The sum (failed: no Python)" in it.prompts("planner")[0]
    assert ("researcher", "Look it up") in steps(frames)


def test_halves_of_characters_and_large_numbers_in_a_step_can_be_stored():
    args = {"step": {**STEP, "title": "a\ud83d", "needs": [10**30]}}
    found = find_step(AIMessage("", tool_calls=[{"name": "handoff_to_planner", "args": args, "id": "1"}]))
    assert found["title"] == "a\ufffd"
    assert found["needs"] == [str(10**30)]


async def test_the_report_after_a_failed_lone_step_is_no_other_try_of_that_step():
    failing = {
        "coder": [reply("STEP FAILED: no data")],
        "supervisor": [reply(json.dumps({"decision": "continue_without"}))],
    }
    async with scripted_team({**CARRIED, **failing}) as it:
        await it.run()
        [prompt] = it.prompts("reporter")
    assert f"Your step: {STEP['title']}" not in prompt
    assert "Your step: Write" in prompt and "no data" in prompt


WRITTEN = json.dumps(plan(step("researcher", "The search"), step("reporter")))
INTRODUCTION = "I have written a plan for the whole team, and it follows here in full:"


@pytest.mark.parametrize("chunk", [7, 10_000])
@pytest.mark.parametrize(
    "answer",
    [
        WRITTEN,
        f"```json\n{WRITTEN}\n```",
        f"{INTRODUCTION}\n\n```json\n{WRITTEN}\n```\n\nDo you agree?",
        f"{INTRODUCTION}\n{json.dumps({'plan': json.loads(WRITTEN)})}\nDo you agree?",
        json.dumps([{"agent": "researcher", "task": "The search"}]),
        repr({"steps": [{"role": "researcher", "name": "The search"}]}),
        '<tool_call>{"name": "web_search", "arguments": {"query": "The search"}}</tool_call>',
        'I search for it in the web, which takes long: [TOOL_CALLS]web_search{"query": "The search"}',
    ],
)
async def test_a_plan_or_call_that_the_coordinator_writes_is_a_hand_off(answer, chunk):
    pieces = [answer[at : at + chunk] for at in range(0, len(answer), chunk)]
    async with scripted_team({**SIMPLE, "coordinator": [{"chunks": pieces}]}) as it:
        frames = await it.run()
        assert len(it.prompts("planner")) == 1
    before_planner = joined_text(frames[: [name for name, _ in frames].index("start_of_workflow")])
    assert "The search" not in before_planner and "{" not in before_planner
    assert status(frames) == "completed"
    assert "4" in frames[-1][1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    "answer",
    [
        'Such a recipe is {"steps": [{"name": "Mix", "description": "Mix flour and water."}]} in JSON.',
        'A call looks like this:\n\n```xml\n<tool_call>{"name": "weather", "arguments": {}}</tool_call>\n```',
        '{"role": "user", "content": "Hello"}',
    ],
)
async def test_other_json_is_an_answer(answer):
    async with scripted_team({**SIMPLE, "coordinator": [reply(answer)]}) as it:
        frames = await it.run()
        assert not it.prompts("planner")
    assert joined_text(frames) == answer
