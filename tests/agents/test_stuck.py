"""An agent that repeats itself is warned; then its step ends with what was found."""

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from maniple.agents import StepFailed, Task
from maniple.agents.offers import Offer
from tests.agents.endpoints import coder_with, results_shown, shown
from tests.agents.restartable_team import calls, script
from tests.openai_server import call, reply
from tests.team import data, scripted_team, status

pytestmark = pytest.mark.anyio
TASK = Task(request="read", title="Read", description="read on")
AGAIN = call("read", page=1)
DONE = reply("It is 42.")


@tool
async def read(page: int) -> str:
    """Read a page."""
    return f"page {page} says 42"


def nudges(server) -> list[bool]:
    """Whether each model call was warned that it is stuck."""
    return ["going round in circles" in shown(body) for body in server.requests]


async def test_the_third_of_the_same_calls_is_answered_with_a_nudge_in_our_words():
    async with coder_with([read], AGAIN, AGAIN, AGAIN, DONE) as (coder, server):
        assert await coder.work(TASK) == "It is 42."
    assert nudges(server) == [False, False, False, True]
    told = server.requests[-1]["messages"][-1]
    assert told["role"] == "user"
    assert told["content"].startswith("[From maniple, not from")
    assert "read was made 3 times" in told["content"]


async def test_the_nudge_is_gone_as_soon_as_something_new_is_found():
    replies = AGAIN, AGAIN, AGAIN, call("read", page=2), DONE, AGAIN, DONE
    async with coder_with([read], *replies) as (coder, server):
        answer = await coder.graph.ainvoke({"messages": [HumanMessage("You are the coder")]})
        assert "circles" not in str(answer["messages"])
        await coder.work(TASK)
    assert nudges(server)[:5] == [False, False, False, True, False]


async def test_who_does_not_listen_ends_its_step_with_what_was_found():
    async with coder_with([read], AGAIN) as (coder, server):
        with pytest.raises(StepFailed, match=r"stuck: .* read was made 5 times"):
            await coder.work(TASK)
        with pytest.raises(StepFailed, match=r"Until then:\n(read: <data \w+>\npage 1 says 42\n)"):
            await coder.work(TASK)
    assert nudges(server) == [False, False, False, True, True] * 2, "each step begins anew"


async def test_calls_beside_each_other_are_judged_together():
    both = calls(("read", {"page": 1}), ("read", {"page": 2}))
    async with coder_with([read], both) as (coder, server):
        with pytest.raises(StepFailed, match="stuck"):
            await coder.work(TASK)
    assert len(server.requests) == 5


async def test_forty_pages_that_only_look_alike_are_read_to_the_end():
    pages = iter(range(1, 41))

    @tool
    async def click(text: str) -> str:
        """Click."""
        return f"Page {next(pages)} of 40"

    following = [call("click", text="Next")] * 40
    async with coder_with([click], *following, DONE, model_calls=50) as (coder, server):
        assert await coder.work(TASK) == "It is 42."
    assert not any(nudges(server))
    assert "Page 40 of 40" in results_shown(server)[-1]


async def test_the_reporter_gets_what_a_stuck_step_had_found():
    again = {"supervisor": [reply('{"next": "coder"}')]}
    async with scripted_team(script(AGAIN, **again), toolbox=Offer({"coder": [read]})) as it:
        frames = await it.run("Read it.")
        (told,) = it.prompts("reporter")
    assert "the agent was stuck" in told
    assert "page 1 says 42" in told
    assert status(frames) == "completed"
    assert data(frames, "plan")[-1]["steps"][0]["status"] == "failed"
