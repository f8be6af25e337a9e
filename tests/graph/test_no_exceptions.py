"""No answer, and nothing else that a person reads of a run's end, has the text of an exception."""

import json
import re

import pytest
from langchain_core.tools import tool

from maniple.agents.offers import Offer
from maniple.errors import SearchError
from tests.agents.test_compact import COMPACT, small, sort
from tests.openai_server import call, reply
from tests.team import agents, data, plan, scripted_team, step

pytestmark = pytest.mark.anyio
RAW = re.compile(r"\w+Error\b ?[(:]|Traceback|\[Errno|os error|\[unverified\]|0x[0-9a-f]{6}")
ERRORS = [
    SearchError("No search provider answered. ddgs: duckduckgo: DNSError('error for (https://d.test/)')."),
    OSError(-2, "Name or service not known"),
    ValueError("<Client object at 0x7f00deadbeef> broke"),
    KeyError("x"),
    RuntimeError("Traceback (most recent call last):\n  File 'a.py'\nTypeError: boom"),
]
TOOL = {"researcher": "tavily_search", "coder": "python_repl_tool"}
ARGUMENTS = {"researcher": {"query": "q"}, "coder": {"code": "print(1)"}}


def broken(member, error):
    """The main tool of a member, which raises `error`."""

    async def fail(**_):
        raise error

    @tool(TOOL[member])
    async def search(query: str) -> str:
        """Search."""
        return await fail()

    @tool(TOOL[member])
    async def run(code: str) -> str:
        """Run."""
        return await fail()

    return Offer({member: [search if member == "researcher" else run]})


def assert_plain(frames):
    answer = frames[-1][1]["messages"][-1]["content"]
    assert answer
    assert not RAW.search(answer)
    ended = data(frames, "run_status")[-1]
    assert ended["status"] == "completed"
    gaps = ended.get("gaps", [])
    assert gaps
    assert not RAW.search(json.dumps(gaps))
    for one in data(frames, "plan")[-1]["steps"]:
        assert not RAW.search(one.get("reason", ""))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("member", TOOL)
async def test_a_report_by_code_has_none_though_the_member_repeats_it(member, error):
    script = {
        "coordinator": [call("handoff_to_planner")],
        "planner": [reply(json.dumps(plan(step(member), step("reporter"))))],
        member: [
            call(TOOL[member], **ARGUMENTS[member]),
            reply(f"STEP FAILED: {TOOL[member]} failed: {type(error).__name__}: {error}"),
        ],
        "supervisor": [reply('{"decision": "continue_without"}')],
        "reporter": [reply(" ")],
    }
    async with scripted_team(script, toolbox=broken(member, error)) as it:
        frames = await it.run()
        assert not RAW.search(it.prompts("reporter")[0].split("An earlier try failed")[0])
    assert agents(frames)[-1] == "reporter"
    assert_plain(frames)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("member", TOOL)
async def test_the_answer_of_a_small_model_has_none(member, error):
    script = small(sort(member), reply("```python\nprint(1)\n```"))
    steps = [{"agent_name": member, "title": "Look", "description": "d"}]
    script["planner"] = [reply(json.dumps({"thought": "t", "title": "P", "steps": steps}))]

    class Search:
        async def search(self, query, *, limit):
            return []

    async with scripted_team(script, models=COMPACT, toolbox=broken(member, error), search=Search()) as it:
        assert_plain(await it.run("What is 12*9?"))


async def test_the_error_itself_is_in_the_event_and_in_the_log(caplog):
    error = OSError(-2, "Name or service not known")
    script = small(sort("coder"), reply("```python\nprint(1)\n```"))
    async with scripted_team(script, models=COMPACT, toolbox=broken("coder", error)) as it:
        frames = await it.run("What is 12*9?")
    assert "Errno -2" in data(frames, "plan")[-1]["steps"][0]["details"]
    assert "Errno -2" in caplog.text
