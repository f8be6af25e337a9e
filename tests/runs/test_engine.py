"""Runs that go on in this process, whoever follows them."""

import asyncio

import pytest
from langchain_core.messages import HumanMessage

from maniple.graph import RunOptions
from maniple.runs import RunRequest, TooManyRuns, open_runs
from tests.openai_server import SIMPLE, reply
from tests.team import Scripted, checked, data, scripted_team, status

pytestmark = pytest.mark.anyio
QUESTION = RunRequest([HumanMessage("1+3=?")])


async def told(run, after: int = 0):
    return [event async for _, event in run.events(after)]


async def calls(it: Scripted, number: int) -> None:
    await asyncio.to_thread(it.server.wait_for, lambda stats: stats["active"] == number)


async def test_a_run_is_told_from_the_beginning_to_everyone_who_follows():
    async with scripted_team(SIMPLE) as it, open_runs(it.team) as runs:
        run = runs.start(QUESTION)
        first, second = await asyncio.gather(told(run), told(run))
        late = await told(run, after=len(first) - 2)
    assert checked(first) == checked(second)
    assert late == first[-2:]


async def test_numbers_begin_at_one_and_have_no_gap():
    async with scripted_team(SIMPLE) as it, open_runs(it.team) as runs:
        numbers = [number async for number, _ in runs.start(QUESTION).events()]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("role", ["coordinator", "planner", "coder", "reporter"])
async def test_cancelling_ends_the_model_call_and_closes_the_stream(role):
    async with scripted_team({**SIMPLE, role: [{"hang": True}]}) as it, open_runs(it.team) as runs:
        run = runs.start(QUESTION)
        await calls(it, 1)
        await asyncio.to_thread(it.server.wait_for, lambda s: s["by_role"].get(role) == 1)
        run.cancel()
        frames = checked(await asyncio.wait_for(told(run), 2))
        await asyncio.to_thread(it.server.wait_for, lambda stats: stats["aborted"] == 1, 2)
    assert status(frames) == "cancelled"
    assert data(frames, "error") == []
    assert frames[-1][1]["messages"][0] == {"role": "user", "content": "1+3=?"}


async def test_cancelling_keeps_what_was_said():
    slow = reply("one two three", delay_seconds=60)
    async with scripted_team({**SIMPLE, "reporter": [slow]}) as it, open_runs(it.team) as runs:
        run = runs.start(QUESTION)
        seen = []
        async for _, event in run.events():
            seen.append(event)
            if event.type == "message" and event.delta.content == "one":
                run.cancel()
    assert status(checked(seen)) == "cancelled"


async def test_no_more_runs_than_allowed_are_started():
    async with scripted_team({"coordinator": [{"hang": True}]}) as it, open_runs(it.team, max_runs=1) as runs:
        run = runs.start(QUESTION)
        with pytest.raises(TooManyRuns, match="Try again in a moment"):
            runs.start(QUESTION)
        run.cancel()
        await told(run)
        runs.start(QUESTION).cancel()


async def test_turns_on_one_thread_follow_one_another():
    async with (
        scripted_team({"coordinator": [reply("first"), reply("second")]}) as it,
        open_runs(it.team) as runs,
    ):
        asked = [RunRequest([HumanMessage(text)], thread_id="t") for text in ("a", "b")]
        told_all = await asyncio.gather(*(told(runs.start(one)) for one in asked))
    assert [m.content for m in told_all[1][-1].messages] == ["b", "second"]
    assert "first" in str(it.server.requests[1]["messages"])


async def test_a_turn_cancelled_before_it_began_still_says_so():
    async with scripted_team({"coordinator": [{"hang": True}]}) as it, open_runs(it.team) as runs:
        first = runs.start(RunRequest([HumanMessage("a")], thread_id="t"))
        second = runs.start(RunRequest([HumanMessage("b")], thread_id="t"))
        await calls(it, 1)
        second.cancel()
        frames = checked(await asyncio.wait_for(told(second), 2))
        first.cancel()
        await told(first)
    assert status(frames) == "cancelled"


async def test_leaving_the_engine_ends_what_is_under_way():
    async with scripted_team({"coordinator": [{"hang": True}]}) as it:
        async with open_runs(it.team) as runs:
            run = runs.start(QUESTION)
            await calls(it, 1)
        await asyncio.to_thread(it.server.wait_for, lambda stats: stats["active"] == 0, 2)
        assert status(checked(await told(run))) == "cancelled"


async def test_a_conversation_without_a_thread_is_forgotten():
    async with scripted_team(SIMPLE) as it, open_runs(it.team) as runs:
        run = runs.start(QUESTION)
        await told(run)
        paused = runs.start(RunRequest([HumanMessage("1+3=?")], options=RunOptions(auto_accepted_plan=False)))
        await told(paused)
        threads = set(it.team.checkpointer.storage)
    assert threads == {paused.thread_id}, "what waits for an answer is kept"


async def test_cancelling_in_the_middle_of_a_fast_stream_is_never_lost():
    fast = {"chunks": ["word "] * 5_000, "delay_seconds": 0.001}
    async with scripted_team({**SIMPLE, "reporter": [fast]}) as it, open_runs(it.team) as runs:
        for number in range(20):
            run = runs.start(QUESTION)
            pieces = 0
            seen = []
            async with asyncio.timeout(10):
                async for _, event in run.events():
                    seen.append(event)
                    pieces += event.type == "message"
                    if pieces == 6 + number:
                        run.cancel()
            assert status(checked(seen)) == "cancelled"
