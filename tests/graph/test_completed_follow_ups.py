"""A follow-up to a team of small models: it is completed before anybody works on it."""

import json

import pytest

from tests.agents.test_compact import COMPACT, PLAN, small, sort
from tests.openai_server import reply
from tests.team import data, joined_text, scripted_team, status

pytestmark = pytest.mark.anyio
PROGRAM = reply("```python\nprint(4)\n```")


def follow_up(*completed):
    """A first turn about 1+3, and a second one whose follow-up the model completes as given."""
    answers = [sort("coder"), PROGRAM, reply("It is 4."), *map(reply, completed)]
    script = small(*answers, sort("coder"), PROGRAM, reply("It is 14."))
    return {**script, "planner": script["planner"] * 2}


async def second_turn(completed, asked):
    """Return what the planner was asked in the second turn, and all that was sent in it."""
    async with scripted_team(follow_up(completed), models=COMPACT) as it:
        await it.run("1+3=?", thread_id="t")
        first = len(it.server.requests)
        frames = await it.run(asked, thread_id="t")
        sent = [[one["content"] for one in request["messages"]] for request in it.server.requests[first:]]
    assert status(frames) == "completed"
    planner = next(one for one in sent if one[0].startswith("You are the planner"))
    return planner[-1], sent


async def test_a_follow_up_reaches_planner_and_coder_with_what_it_refers_to():
    planned, sent = await second_turn("What is 4 plus 10?", "and plus 10?")
    assert planned == "What is 4 plus 10?"
    assert "1+3=?" in sent[0][-1]
    assert "It is 4." in sent[0][-1]
    assert sent[3][-1] == "What is 4 plus 10?"


@pytest.mark.parametrize(
    "completed",
    [
        "What is 4 plus 11?",
        "What is 108 minus 6?",
        "What is it?",
        "4 plus 10\n\nSure!",
        " ",
        "4加10等于多少？",
    ],
)
async def test_a_completion_that_loses_or_invents_numbers_is_not_used(completed):
    planned, _ = await second_turn(completed, "and plus 10?")
    assert planned == "and plus 10?"


async def test_the_turn_after_a_follow_up_refers_to_the_completed_request():
    script = follow_up("What is 4 plus 10?")
    more = [reply("What is 14 plus 2?"), sort("coder"), PROGRAM, reply("It is 16.")]
    script = {**script, "other": script["other"] + more, "planner": script["planner"] * 2}
    async with scripted_team(script, models=COMPACT) as it:
        await it.run("1+3=?", thread_id="t")
        await it.run("and plus 10?", thread_id="t")
        first = len(it.server.requests)
        await it.run("and plus 2?", thread_id="t")
        shown = it.server.requests[first]["messages"][-1]["content"]
    assert "What is 4 plus 10?" in shown
    assert "and plus 2?" in shown


async def test_a_long_request_is_complete():
    async with scripted_team(follow_up(), models=COMPACT) as it:
        await it.run("1+3=?", thread_id="t")
        first = len(it.server.requests)
        await it.run("x" * 121, thread_id="t")
        assert "grammar" in it.server.requests[first], "the first call sorts the request"


def program(code):
    return reply(f"```python\n{code}\n```")


async def after_a_failed_turn(asked, *programs, title="P"):
    """Return the frames of a second turn after one without an answer, and the programs that it ran."""
    failed = [sort("coder"), program("print(12*9)"), program("print(12*9)")]
    script = small(*failed, sort("coder"), *map(program, programs), reply("It is so."))
    script["planner"] = [*script["planner"], reply(json.dumps(PLAN | {"title": title})), *script["planner"]]
    async with scripted_team(script, models=COMPACT) as it:
        await it.run("1+3=?", thread_id="t")
        frames = await it.run(asked, thread_id="t")
        assert not any("Answer:" in one["messages"][-1]["content"] for one in it.server.requests)
    return frames, [call["tool_input"]["code"] for call in data(frames, "tool_call")]


@pytest.mark.parametrize(
    "code", ["print(7*9)", "x = 7\nprint(x)", "a = 7\nb = 9\nprint(f'{a} mal {b}: {a * b}')"]
)
async def test_after_a_failed_turn_a_number_that_is_made_up_is_missing(code):
    frames, ran = await after_a_failed_turn("Und das mal 7?", code, code)
    assert ran == []
    assert "A number is missing" in joined_text(frames)
    assert "63" not in joined_text(frames)


async def test_after_a_failed_turn_a_plan_with_a_number_that_is_made_up_is_written_again():
    frames, _ = await after_a_failed_turn("Und das mal 7?", "print(7*2)", title="7*9 berechnen")
    titles = [plan["title"] for plan in data(frames, "plan")]
    assert titles[-1:] == ["P"]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("12 mal 9?", "print(12*9)"),
        ("How many minutes are 3 days?", "print(3*24*60)"),
        ("What is 5% of 1,200?", "print(1200*0.05)"),
        ("and seven times nine?", "print(7*9)"),
        ("Write 14 as a Roman numeral", "n = 14\nfor v, s in [(10,'X'),(4,'IV')]:\n    print(s, end='')"),
    ],
)
async def test_after_a_failed_turn_a_complete_request_is_computed(asked, code):
    frames, ran = await after_a_failed_turn(asked, code)
    assert ran == [code]
    assert "number is missing" not in joined_text(frames)


async def test_a_follow_up_is_not_computed_with_a_number_that_neither_turn_has():
    invented = program("print(4+11)")
    answers = [sort("coder"), PROGRAM, reply("It is 4."), reply("What is 4 plus 10?")]
    script = small(*answers, sort("coder"), invented, program("print(4+10)"), reply("It is 14."))
    async with scripted_team({**script, "planner": script["planner"] * 2}, models=COMPACT) as it:
        await it.run("1+3=?", thread_id="t")
        frames = await it.run("and plus 10?", thread_id="t")
    assert [call["tool_input"]["code"] for call in data(frames, "tool_call")] == ["print(4+10)"]
