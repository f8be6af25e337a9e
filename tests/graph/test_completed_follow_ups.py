"""A follow-up to a team of small models: it is completed before anybody works on it."""

import pytest

from tests.agents.test_compact import COMPACT, small, sort
from tests.openai_server import reply
from tests.team import scripted_team, status

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
