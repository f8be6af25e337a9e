"""The compact workers' calls pause, die and go on like all others, though their model is asked again."""

import json

import pytest
from langchain_core.tools import StructuredTool

from tests.agents.memory_ledger import MemoryLedger
from tests.agents.restartable_team import FakeTools, open_team, scope
from tests.agents.test_compact import COMPACT, PLAN
from tests.openai_server import reply

pytestmark = pytest.mark.anyio


def script_of(*programs, report="4"):
    """A small model that writes another program each time it is asked."""
    sort = reply(json.dumps({"kind": "coder", "language": "English"}))
    return {
        "other": [sort, *(reply(p) for p in programs), reply(report)],
        "planner": [reply(json.dumps(PLAN))],
    }


def tools(machine):
    bash = machine.tools()[0]
    bash.name = "python_repl_tool"

    async def python(code: str) -> str:
        """Run Python."""
        return await bash.coroutine(cmd=code)

    return [StructuredTool.from_function(coroutine=python, name="python_repl_tool")]


async def test_what_was_shown_is_what_runs_even_if_the_model_changes_its_mind(tmp_path):
    book, machine = MemoryLedger(), FakeTools()
    script = script_of("print('shown')", "print('another')")
    mine = scope(book, "python_repl_tool")
    async with open_team(tmp_path, script, machine, mine, tools=tools(machine), models=COMPACT) as it:
        (waiting,) = await it.begin("1+3=?")
        assert waiting.value["tool_input"] == {"code": "print('shown')"}
        assert await it.answer("approve") == []
        report = str(it.server.requests[-1]["messages"])
    assert machine.ran == ["print('shown')"]
    assert "print('shown')" in report
    assert "print('another')" not in report


async def test_a_rejected_program_fails_the_step(tmp_path):
    machine = FakeTools()
    mine = scope(MemoryLedger(), "python_repl_tool")
    async with open_team(
        tmp_path, script_of("a", "b"), machine, mine, tools=tools(machine), models=COMPACT
    ) as it:
        await it.begin("1+3=?")
        assert await it.answer("no, never") == []
    assert machine.ran == []


async def test_after_a_crash_the_question_shows_the_program_that_had_begun(tmp_path):
    book, machine = MemoryLedger(), FakeTools()
    mine = scope(book)
    async with open_team(tmp_path, script_of("a"), machine, mine, tools=tools(machine), models=COMPACT) as it:
        await it.die({"messages": [("user", "1+3=?")]}, machine)
    with_another = {"other": [reply("b"), reply("b"), reply("4")]}
    async with open_team(tmp_path, with_another, machine, mine, tools=tools(machine), models=COMPACT) as it:
        (waiting,) = await it.recover()
        assert waiting.value["reason"] == "unknown_result"
        assert waiting.value["tool_input"] == {"code": "a"}
        assert await it.answer("run again") == []
    assert machine.ran == ["a", "a"]
