"""What an agent has found when the budget ends is not lost with its step."""

import re

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from maniple.agents import Task
from maniple.agents.middleware.limits import PARTIAL_WORK_CHARACTERS, PartialWork, collect_partial_work
from maniple.scope.budget import Budget, UsageMeter
from tests.agents.endpoints import agent_with, model_at, run_events
from tests.openai_server import call, serving

pytestmark = pytest.mark.anyio
TASK = Task(request="read", title="Read", description="read on")


@tool
async def read(page: int) -> str:
    """Read a page."""
    return f"page {page} says so"


@pytest.mark.parametrize("limit", [{"model_calls": 3}, {"tool_calls": 2}])
async def test_the_refusal_carries_what_was_found_until_then(limit):
    meter = UsageMeter(Budget(**limit))
    with serving({"coder": [call("read", page=n) for n in range(9)]}) as server:
        async with model_at(server) as model:
            agent = agent_with(model, [read], PartialWork())
            given = {"messages": agent._messages(TASK)}
            _, error = await run_events(agent.graph, given, {"callbacks": meter.callbacks})
    found = re.findall(r"read: <data (\w+)>\n(.*)\n</data \1>", error.done_before)
    assert [text for _, text in found][:2] == ["page 0 says so", "page 1 says so"]
    assert error.with_what_was_done().startswith("The budget of")
    assert "Until then:\nread: <data" in error.with_what_was_done()


def test_much_that_was_found_is_cut_to_what_a_report_can_take():
    asked = [{"name": "read", "args": {}, "id": "1", "type": "tool_call"}]
    found = collect_partial_work(
        [
            HumanMessage("the task is no finding"),
            AIMessage("I look.", tool_calls=asked),
            ToolMessage("x" * 100_000, tool_call_id="1", name="read"),
        ]
    )
    assert re.match(r"I look\.\nread: <data \w+>\nx", found)
    assert "the task" not in found
    assert len(found) < 1.1 * PARTIAL_WORK_CHARACTERS
