"""How many calls of one answer work at once."""

import asyncio
import gc
import json
import warnings

import pytest
from langchain_core.tools import StructuredTool

from maniple.agents.middleware.call_order import MAX_CONCURRENT_CALLS
from maniple.agents.offers import Offer
from tests.openai_server import call, reply
from tests.team import plan, scripted_team, status, step

pytestmark = pytest.mark.anyio
CALLS = [{"name": "crawl_tool", "arguments": {"url": f"https://e.test/{n}"}} for n in range(12)]
SCRIPT = {
    "coordinator": [call("handoff_to_planner", locale="en")],
    "planner": [reply(json.dumps(plan(step("researcher", "Find"), step("reporter"))))],
    "researcher": [{"tool_calls": CALLS}, reply("Read.")],
    "reporter": [reply("# Report")],
}


async def test_calls_of_one_answer_run_together_but_only_so_many():
    working, most, enough = set(), 0, asyncio.Event()

    async def read(url: str) -> str:
        """Read a page."""
        nonlocal most
        working.add(url)
        most = max(most, len(working))
        if len(working) == MAX_CONCURRENT_CALLS:
            enough.set()
        async with asyncio.timeout(60):
            await enough.wait()
        for _ in range(20):
            await asyncio.sleep(0)  # whoever may begin beside this one has the time to
        working.discard(url)
        return url

    async with scripted_team(SCRIPT, toolbox=_reading(read)) as it:
        frames = await it.run("Compare shops.")
        body = [one for one in it.server.requests if one["messages"][-1]["role"] == "tool"][-1]
    results = [one["content"] for one in body["messages"] if one["role"] == "tool"]
    assert len(results) == len(CALLS)
    assert all(one["arguments"]["url"] in result for one, result in zip(CALLS, results, strict=True))
    assert status(frames) == "completed"
    assert most == MAX_CONCURRENT_CALLS


async def test_a_cancel_leaves_no_coroutine_of_the_calls_that_wait():
    begun = asyncio.Event()

    async def read(url: str) -> str:
        """Read a page, without end."""
        begun.set()
        await asyncio.Event().wait()
        return url

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        async with scripted_team(SCRIPT, toolbox=_reading(read)) as it:
            running = asyncio.create_task(it.run("Compare shops."))
            async with asyncio.timeout(60):
                await begun.wait()
            running.cancel()
            await asyncio.wait({running})
            gc.collect()
    assert [str(one.message) for one in told if "never awaited" in str(one.message)] == []


def _reading(read) -> Offer:
    return Offer(
        {
            "researcher": [
                StructuredTool.from_function(coroutine=read, name="crawl_tool", metadata={"idempotent": True})
            ]
        }
    )
