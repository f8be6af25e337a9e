"""A terminal tool ends its agent's step with its result."""

import pytest
from langchain_core.tools import StructuredTool

from maniple.agents import Task
from maniple.agents.step_outcome import parse_answer
from maniple.tools.interaction import terminate_tool
from tests.agents.endpoints import coder_with, results_shown
from tests.agents.restartable_team import calls
from tests.openai_server import call, reply

pytestmark = pytest.mark.anyio
TASK = Task(request="read", title="Read", description="read on")
MORE = reply("I go on.")


async def finish(summary: str) -> str:
    """End the step."""
    if summary == "too early":
        raise ValueError("there is more to do")
    return f"Summary: {summary}"


async def look(what: str) -> str:
    """Look at something."""
    return f"{what} is there"


def tools(**metadata) -> list[StructuredTool]:
    ends = StructuredTool.from_function(coroutine=finish, metadata={"is_terminal": True, **metadata})
    return [ends, StructuredTool.from_function(coroutine=look)]


async def test_its_result_is_the_answer_without_another_model_call():
    async with coder_with(tools(said_by="maniple"), call("finish", summary="all done"), MORE) as (
        coder,
        server,
    ):
        assert await coder.work(TASK) == "Summary: all done"
    assert len(server.requests) == 1


async def test_what_it_brings_from_outside_stays_between_the_marks_of_the_run():
    async with coder_with(tools(), call("finish", summary="x"), MORE) as (coder, _):
        assert (await coder.work(TASK)).startswith("<data ")


@pytest.mark.parametrize("first", ["finish", "look"])
async def test_it_ends_the_step_beside_other_calls_when_all_of_them_are_over(first):
    both = [("finish", {"summary": "x"}), ("look", {"what": "a door"})]
    answer = calls(*(both if first == "finish" else reversed(both)))
    async with coder_with(tools(said_by="maniple"), answer, MORE) as (coder, server):
        assert await coder.work(TASK) == "Summary: x"
    assert len(server.requests) == 1


@pytest.mark.parametrize("wrong", [{"summary": "too early"}, {"text": "x"}])
async def test_a_failure_of_it_ends_nothing(wrong):
    async with coder_with(tools(), call("finish", **wrong), MORE) as (coder, server):
        assert await coder.work(TASK) == "I go on."
    assert len(results_shown(server)) == 1


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        ({"status": "partial", "result": "3 [1]", "missing": "May"}, ("partial", "May", "", "3 [1]")),
        ({"status": "partial", "missing": "May", "needs": "a page"}, ("partial", "May", "a page", "I read.")),
        ({"status": "failure", "result": "no", "needs": "a login"}, ("failed", "no", "a login", "no")),
        ({"status": "failure", "needs": "a login"}, ("failed", "I read.", "a login", "I read.")),
        ({"status": "success", "result": "3", "missing": None, "needs": None}, ("done", "", "", "3")),
    ],
)
async def test_the_outcome_given_to_terminate_is_that_of_the_step(ending, expected):
    answer = {**call("terminate", **ending), "text": "I read."}
    async with coder_with([terminate_tool()], answer, MORE) as (coder, _):
        parsed = parse_answer(await coder.work(TASK))
    status, reason, needs, text = expected
    assert (parsed.outcome.status, parsed.outcome.reason, parsed.outcome.needs) == (status, reason, needs)
    assert parsed.text.splitlines()[0] == text
