"""What the last events of a run on a known thread say of its conversation, however it ended."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from maniple.events import Event
from maniple.graph import RunOptions
from maniple.runs.turn import Turn, drive, remember, stream_run
from tests.openai_server import SIMPLE, reply
from tests.team import Scripted, checked, scripted_team, status

pytestmark = pytest.mark.anyio
TALK = {"coordinator": [reply("Hello!"), {"hang": True}]}


def contents(frames: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [message["content"] for message in frames[-1][1]["messages"]]


async def cancelled(it: Scripted, text: str, until: str, **options: Any) -> list[tuple[str, dict[str, Any]]]:
    """Run on thread `t` and cancel as soon as the event `until` was read."""
    seen: list[Event] = []
    reached = asyncio.Event()

    async def read() -> None:
        async for event in drive(it.team, Turn("r", "t", [HumanMessage(text)], **options)):
            seen.append(event)
            if event.type == until:
                reached.set()

    task = asyncio.create_task(read())
    async with asyncio.timeout(60):
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    return checked(seen)


class BrokenSaver(InMemorySaver):
    """A store that is lost after a while."""

    lost = False

    async def aget_tuple(self, config: Any) -> Any:
        if self.lost:
            raise ConnectionError("the store is gone")
        return await super().aget_tuple(config)


class StumblingSaver(InMemorySaver):
    """A store that loses the first step of a run: its task has written, and no more."""

    stumbles = True

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if self.stumbles and metadata["step"] == 0:
            raise ConnectionError("the store is gone")
        return await super().aput(config, checkpoint, metadata, new_versions)


@asynccontextmanager
async def never_open() -> AsyncIterator[None]:
    await asyncio.Event().wait()
    yield


async def test_a_cancelled_run_reports_the_whole_conversation():
    async with scripted_team(TALK) as it:
        await it.run("hi", thread_id="t")
        frames = await cancelled(it, "and?", "start_of_agent")
    assert status(frames) == "cancelled"
    assert contents(frames) == ["hi", "Hello!", "and?"]


async def test_a_run_cancelled_while_it_waits_for_its_thread_reports_it_too():
    async with scripted_team(TALK) as it:
        await it.run("hi", thread_id="t")
        frames = await cancelled(it, "and?", "run", gate=never_open())
        assert it.server.stats["calls"] == 1
    assert contents(frames) == ["hi", "Hello!", "and?"]


async def test_a_pause_and_its_answer_report_the_whole_conversation():
    async with scripted_team(SIMPLE) as it:
        await it.run("1+1=?", thread_id="t")
        paused = await it.run("1+3=?", thread_id="t", auto_accepted_plan=False)
        gone = await cancelled(it, "accept", "run", gate=never_open())
        done = await it.run("accept", thread_id="t", auto_accepted_plan=False)
    assert status(paused) == "interrupted"
    assert contents(paused)[4] == "1+3=?"
    assert len(contents(paused)) == 6
    assert contents(gone) == contents(paused)
    assert contents(done)[:6] == contents(paused)
    assert len(contents(done)) == 8


async def test_the_question_is_remembered_if_its_first_step_was_not_stored():
    saver = StumblingSaver()
    async with scripted_team(TALK, checkpointer=saver) as it:
        messages = [HumanMessage("hi", id="asked")]
        config: Any = {"configurable": {"thread_id": "t"}}
        with pytest.raises(ConnectionError):
            await it.team.ainvoke({"messages": messages}, config, context=RunOptions(), durability="sync")
        saver.stumbles = False
        await remember(it.team, "t", messages)
        frames = await it.run("and?", thread_id="t")
    assert contents(frames) == ["hi", "and?", "Hello!"]


async def test_a_state_that_cannot_be_read_leaves_what_the_run_was_given():
    saver = BrokenSaver()
    async with scripted_team(TALK, checkpointer=saver) as it:
        await it.run("hi", thread_id="t")
        saver.lost = True
        frames = await it.run("and?", thread_id="t")
    assert status(frames) == "failed"
    assert contents(frames) == ["and?"]


async def test_without_a_store_the_run_reports_its_input_and_its_messages():
    async with scripted_team(TALK, checkpointer=None) as it:
        given = [HumanMessage("a"), HumanMessage("b")]
        events = stream_run(it.team, given, options=RunOptions())
        frames = checked([event async for event in events])
    assert contents(frames) == ["a", "b", "Hello!"]
