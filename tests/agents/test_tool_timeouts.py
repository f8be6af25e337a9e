"""A tool without a result in time is stopped, and the model continues."""

import asyncio
import threading

import pytest
from langchain_core.tools import BaseTool, StructuredTool

from maniple.agents import Task
from maniple.agents.offers import Offer
from tests.agents.endpoints import coder_with, results_shown
from tests.agents.restartable_team import script
from tests.openai_server import call, reply
from tests.team import data, scripted_team

pytestmark = pytest.mark.anyio
TASK = Task(request="wait", title="Wait", description="wait")
DONE = reply("Done.")
STOPPED = "failed: It gave no result within 0.05 seconds and was stopped."


class Slow:
    """A tool without an end, that notes whether it was cancelled."""

    def __init__(self) -> None:
        self.was_cancelled = False

    async def wait(self, what: str = "") -> str:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return what

    def tool(self, **metadata) -> StructuredTool:
        return StructuredTool.from_function(coroutine=self.wait, name="wait", metadata=metadata)


class Own(BaseTool):
    """A tool of another kind than LangChain's usual one."""

    name: str = "wait"
    description: str = "Wait for ever."

    def _run(self) -> str:
        raise NotImplementedError

    async def _arun(self) -> str:
        await asyncio.Event().wait()
        return ""


async def result_of(tool, **limits) -> str:
    """Return the result of a call of `tool` as the model gets it."""
    async with coder_with([tool], call(tool.name), DONE, **limits) as (coder, server):
        async with asyncio.timeout(60):
            assert await coder.work(TASK) == "Done."
    (words,) = results_shown(server)
    return words


async def test_a_tool_is_cancelled_after_the_timeout_in_its_metadata():
    slow = Slow()
    words = await result_of(slow.tool(timeout_seconds=0.05))
    assert f"wait {STOPPED}" in words
    assert "until then is unknown." in words
    assert slow.was_cancelled


async def test_a_tool_without_a_timeout_has_that_of_the_settings():
    assert STOPPED in await result_of(Slow().tool(), tool_seconds=0.05)


async def test_one_that_bounds_itself_is_left_alone():
    async def late() -> str:
        """Come late."""
        loop, late = asyncio.get_running_loop(), asyncio.Event()
        loop.call_later(0.1, late.set)
        await late.wait()
        return "here I am"

    tool = StructuredTool.from_function(coroutine=late, metadata={"timeout_seconds": None})
    assert "here I am" in await result_of(tool, tool_seconds=0.01)


async def test_one_that_blocks_delays_no_other():
    over = threading.Event()

    def block() -> str:
        """Block a thread."""
        over.wait(20)
        return ""

    try:
        assert STOPPED in await result_of(
            StructuredTool.from_function(block, metadata={"timeout_seconds": 0.05})
        )
    finally:
        over.set()


async def test_a_tool_of_any_kind_is_bounded():
    assert STOPPED in await result_of(Own(metadata={"timeout_seconds": 0.05}))


async def test_a_timeout_of_the_tools_own_is_reported_as_such():
    async def own() -> str:
        """Give up by itself."""
        raise TimeoutError("the printer did not answer")

    words = await result_of(StructuredTool.from_function(coroutine=own))
    assert "own failed: TimeoutError: the printer" in words


async def test_the_client_receives_the_end_of_the_call():
    toolbox = Offer({"coder": [Slow().tool(timeout_seconds=0.05)]})
    async with scripted_team(script(call("wait"), DONE), toolbox=toolbox) as it:
        frames = await it.run("Wait.")
    (result,) = data(frames, "tool_call_result")
    assert "no result within 0.05 seconds" in result["tool_result"]
