"""An answer that lies wholly in the thoughts is asked for once more; thoughts never pass as an answer."""

import pytest

from maniple.agents import ROLES, StepFailed, StepLimits, Task, build_react_agent
from maniple.agents.react import ReactAgent
from tests.agents.endpoints import model_at
from tests.openai_server import call, reply, serving
from tests.team import tavily_search

pytestmark = pytest.mark.anyio
THOUGHT = reply("", reasoning="It is 4, or is it 5? The answer is 4.")
UNCLOSED = reply("<think>It is 4, or is it 5? The answer is 4.")


async def _work(*replies, member="researcher"):
    with serving({member: [*replies], "other": [*replies]}) as server:
        async with model_at(server) as chat:
            agent: ReactAgent = build_react_agent(ROLES[member], chat, [tavily_search], limits=StepLimits())
            try:
                answer = await agent.work(Task("What is 1 + 3?", "Compute", "Compute 1 + 3."))
            except StepFailed as failure:
                return failure, len(server.requests)
            return answer, len(server.requests)


@pytest.mark.parametrize("member", ["researcher", "reporter"])
@pytest.mark.parametrize("empty", [THOUGHT, UNCLOSED], ids=["field", "unclosed"])
async def test_an_answer_in_the_thoughts_is_asked_for_once_more(empty, member):
    assert await _work(empty, reply("It is 4."), member=member) == ("It is 4.", 2)


async def test_a_call_may_follow_as_well():
    answer, calls = await _work(THOUGHT, call("tavily_search", query="sum"), reply("It is 4."))
    assert (answer, calls) == ("It is 4.", 3)


@pytest.mark.parametrize("empty", [THOUGHT, UNCLOSED], ids=["field", "unclosed"])
async def test_thoughts_never_become_the_answer(empty):
    failure, calls = await _work(empty, empty)
    assert isinstance(failure, StepFailed)
    assert "parser of thoughts" in str(failure)
    assert "or is it 5" not in str(failure)
    assert calls == 2


async def test_thoughts_that_fill_the_output_name_the_setting():
    failure, calls = await _work({**THOUGHT, "finish_reason": "length"})
    assert isinstance(failure, StepFailed)
    assert "max_output_tokens" in str(failure)
    assert calls == 1
