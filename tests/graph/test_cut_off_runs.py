"""A graph that keeps its own state, without an engine, knows the run before that ended without an answer."""

import asyncio
import json

import pytest
from langchain_core.messages import HumanMessage

from tests.openai_server import call, reply
from tests.team import plan, scripted_team, step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
THREAD = {"configurable": {"thread_id": "t"}}
SCRIPT = {
    "coordinator": [call("handoff_to_planner", locale="en-US")],
    "planner": [reply(json.dumps(plan(step("coder", "Sum"), step("researcher", "Find"), step("reporter"))))],
    "coder": [call("python_repl_tool", code="1"), reply("The sum is 4.")],
    "researcher": [{"hang": True, "times": 1}, call("tavily_search", query="x"), reply("Found.")],
    "reporter": [reply("# Report")],
}


def messages_of(*texts: str):
    return {"messages": [HumanMessage(text) for text in texts]}


async def test_the_results_of_a_run_that_was_cut_off_are_known_to_the_next_one() -> None:
    async with scripted_team(SCRIPT) as it:
        task = asyncio.create_task(it.team.ainvoke(messages_of("Add and find."), THREAD))
        await asyncio.to_thread(it.server.wait_for, lambda stats: stats["by_role"].get("researcher") == 1)
        task.cancel()
        await asyncio.wait({task})
        await it.team.ainvoke(messages_of("Go on where you stopped."), THREAD)
        for role in ("coordinator", "planner", "researcher"):
            shown = json.dumps(it.prompts(role)[-1])
            assert "not answered" in shown
            assert "The sum is 4." in shown
        await it.team.ainvoke(messages_of("And now?"), THREAD)
        shown = json.dumps(it.prompts("planner")[-1])
        assert shown.count("not answered") == 1, "the second request was"
