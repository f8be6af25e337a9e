"""After a limit of tool calls in a step, the model has to answer with what it has."""

import pytest
from langchain_core.tools import tool

from maniple.agents import Task
from maniple.agents.middleware.limits import count_tool_results
from tests.agents.endpoints import coder_with, results_shown
from tests.agents.restartable_team import calls
from tests.openai_server import call, reply

pytestmark = pytest.mark.anyio
TASK = Task(request="read", title="Read", description="read on")


async def test_calls_beyond_the_limit_are_answered_with_our_message():
    ran = []

    @tool
    async def read(page: int) -> str:
        """Read a page."""
        ran.append(page)
        return f"page {page}"

    three = calls(*[("read", {"page": page}) for page in (2, 3, 4)])
    async with coder_with([read], call("read", page=1), three, reply("Done."), tool_calls=3) as (
        coder,
        server,
    ):
        assert await coder.work(TASK) == "Done."
    assert sorted(ran) == [1, 2, 3]
    words = results_shown(server)[-1]
    assert words.startswith("Not run: the limit of 3")
    assert "<data" not in words


def test_calls_that_a_summary_took_the_place_of_count_still():
    assert count_tool_results({"messages": [], "calls_left_out": 7}) == 7


async def test_an_answer_with_thousands_of_calls_ends_in_the_stream_at_what_may_still_run():
    ran = []

    @tool
    async def read(page: int) -> str:
        """Read a page."""
        ran.append(page)
        return f"page {page}"

    many = calls(*[("read", {"page": page}) for page in range(2, 3_000)])
    script = (call("read", page=1), many, reply("Done."))
    async with coder_with([read], *script, tool_calls=4) as (coder, server):
        assert await coder.work(TASK) == "Done."
        answers = [one for one in server.requests[-1]["messages"] if one["role"] == "tool"]
    assert sorted(ran) == [1, 2, 3, 4]
    assert len(answers) == 5, "the first call that is not run is refused, so that the model knows"
