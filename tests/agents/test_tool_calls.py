"""Each tool call runs once: through pauses, crashes and parallel calls, on real SQLite checkpoints."""

import asyncio
import json
from dataclasses import replace

import pytest
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command

from maniple.agents.middleware.call_records import CallRecords
from maniple.scope.budget import Budget, UsageMeter
from maniple.scope.effects import begin_effect
from maniple.scope.run_scope import RunScope, run_scope
from maniple.store import RunUsage
from maniple.tools.decisions import UNKNOWN_RESULT_ANSWERS
from tests.agents.memory_ledger import MemoryLedger
from tests.agents.restartable_team import FakeTools, calls, open_team, scope, script
from tests.openai_server import call, reply

pytestmark = pytest.mark.anyio
BASH = call("bash_tool", cmd="make")
DONE = reply("done")


def payloads(waiting):
    return [dict(one.value) for one in waiting]


async def test_a_call_is_recorded_before_and_after(tmp_path):
    book, machine = MemoryLedger(), FakeTools()
    async with open_team(tmp_path, script(BASH, DONE), machine, scope(book)) as it:
        assert await it.begin() == []
    (row,) = book.of_tool("bash_tool")
    assert json.loads(row.arguments) == {"cmd": "make"}
    assert json.loads(row.result or "") == {"status": "success", "content": "did make"}


async def test_a_failure_is_recorded_as_one(tmp_path):
    book = MemoryLedger()
    async with open_team(
        tmp_path, script(call("bash_tool", cmd="fail"), DONE), FakeTools(), scope(book)
    ) as it:
        await it.begin()
        assert "it broke" in it.tool_messages()[0]["content"]
    (row,) = book.of_tool("bash_tool")
    assert json.loads(row.result or "")["status"] == "error"
    assert "it broke" in json.loads(row.result or "")["content"]


async def test_a_result_on_record_is_returned_without_running_the_tool(tmp_path):
    """The process died after the result was recorded and before LangGraph had stored it."""
    book, machine = MemoryLedger(), FakeTools()
    two = calls(("bash_tool", {"cmd": "quick"}), ("look", {"what": "slow"}))
    first, then = script(two, DONE), script(DONE)
    async with open_team(tmp_path, first, machine, scope(book)) as it:
        task = {"messages": [("user", "do it")]}
        await it.die(task, machine, calls=2)
        assert sorted(machine.ran) == ["quick", "slow"]
        assert it.asked() == 1
    for row in book.of_tool("bash_tool"):
        await book.end(row.run_id, row.tool_call_id, '{"status": "error", "content": "as recorded"}')
    async with open_team(tmp_path, then, machine, scope(book)) as it:
        assert await it.recover() == []
        assert [m["content"] for m in it.tool_messages()] == ["as recorded", "did slow"]
        assert it.asked() == 1
    assert sorted(machine.ran) == ["quick", "slow", "slow"], "only what is idempotent may run again"


async def died(tmp_path, machine, book, told=None):
    async with open_team(tmp_path, told or script(BASH, DONE), machine, scope(book)) as it:
        await it.die({"messages": [("user", "do it")]}, machine)


async def test_an_unknown_result_is_run_again_only_after_approval(tmp_path):
    book, machine = MemoryLedger(), FakeTools()
    await died(tmp_path, machine, book)
    async with open_team(tmp_path, script(DONE), machine, scope(book)) as it:
        (question,) = payloads(await it.recover())
        assert question == {
            "kind": "tool_approval",
            "reason": "unknown_result",
            "tool_name": "bash_tool",
            "tool_input": {"cmd": "make"},
            "tool_call_id": question["tool_call_id"],
            "answers": dict(UNKNOWN_RESULT_ANSWERS),
        }
        assert machine.ran == ["make"]
        assert await it.answer("Run again") == []
        assert machine.ran == ["make", "make"]
        assert it.asked() == 1, "the model is not asked again for what it decided"
        assert it.tool_messages()[0]["content"] == "did make"


def marking_tool(machine: FakeTools, *, begins: bool, **metadata: bool) -> list[BaseTool]:
    """A tool that waits for its place first, and says when it has it."""

    async def bash_tool(cmd: str) -> str:
        """Run a command."""
        if begins:
            await begin_effect()
        machine.ran.append(cmd)
        if machine.sticks_at is not None:
            machine.stuck.release()
            await asyncio.Event().wait()
        return f"did {cmd}"

    return [StructuredTool.from_function(coroutine=bash_tool, name="bash_tool", metadata=metadata)]


@pytest.mark.parametrize(("begins", "asks"), [(False, []), (True, ["unknown_result"])])
async def test_a_call_that_had_not_begun_is_simply_made(tmp_path, begins, asks):
    book, machine = MemoryLedger(), FakeTools()
    tools = marking_tool(machine, begins=begins, marks_effect=True)
    async with open_team(tmp_path, script(BASH, DONE), machine, scope(book), tools=tools) as it:
        await it.die({"messages": [("user", "do it")]}, machine)
    async with open_team(tmp_path, script(DONE), machine, scope(book), tools=tools) as it:
        assert [one["reason"] for one in payloads(await it.recover())] == asks
    assert machine.ran == ["make"] * (1 if asks else 2)


async def test_a_call_that_only_reads_runs_again(tmp_path):
    book, machine = MemoryLedger(), FakeTools()
    tools = marking_tool(machine, begins=False, only_reads=True)
    async with open_team(tmp_path, script(BASH, DONE), machine, scope(book), tools=tools) as it:
        await it.die({"messages": [("user", "do it")]}, machine)
    async with open_team(tmp_path, script(DONE), machine, scope(book), tools=tools) as it:
        assert await it.recover() == []
    assert machine.ran == ["make", "make"]


@pytest.mark.parametrize(
    ("policy", "ran", "told"), [("rerun", 2, "did make"), ("fail", 1, "was not run again")]
)
async def test_the_settings_say_what_is_done_about_an_unknown_result(tmp_path, policy, ran, told):
    book, machine = MemoryLedger(), FakeTools()
    chosen = replace(scope(book), on_unknown={"bash_tool": policy})
    await died(tmp_path, machine, book)  # the settings were changed after the call
    async with open_team(tmp_path, script(DONE), machine, chosen) as it:
        assert await it.recover() == []
        assert told in it.tool_messages()[0]["content"]
    assert machine.ran == ["make"] * ran


async def test_the_settings_can_ask_about_what_may_run_again(tmp_path):
    book, machine = MemoryLedger(), FakeTools()
    chosen = replace(scope(book), on_unknown={"look": "ask"})
    async with open_team(tmp_path, script(call("look", what="x"), DONE), machine, chosen) as it:
        await it.die({"messages": [("user", "do it")]}, machine)
    async with open_team(tmp_path, script(DONE), machine, chosen) as it:
        assert [one["reason"] for one in payloads(await it.recover())] == ["unknown_result"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("result: the build is up to date", "the build is up to date"),
        ({"type": "result", "message": "skip"}, "skip"),
        ("skip", "chose to skip"),
    ],
)
async def test_an_unknown_result_is_skipped_or_given_by_name(tmp_path, answer, told):
    book, machine = MemoryLedger(), FakeTools()
    await died(tmp_path, machine, book)
    async with open_team(tmp_path, script(DONE), machine, scope(book)) as it:
        await it.recover()
        assert await it.answer(answer) == []
        assert told in it.tool_messages()[0]["content"]
    assert machine.ran == ["make"]


@pytest.mark.parametrize("unclear", ["use euros throughout", "approve", "yes", {"type": "reject"}])
async def test_other_text_is_never_the_result_of_a_tool(tmp_path, unclear):
    book, machine = MemoryLedger(), FakeTools()
    await died(tmp_path, machine, book)
    async with open_team(tmp_path, script(DONE), machine, scope(book)) as it:
        await it.recover()
        (again,) = await it.answer(unclear)
        assert (again.value["reason"], bool(again.value["unclear"])) == ("unknown_result", True)
        assert await it.answer("skip") == []
    assert machine.ran == ["make"]


async def test_a_second_crash_asks_again(tmp_path):
    """The first answer is still on the checkpoint: it must not count for the second try."""
    book, machine = MemoryLedger(), FakeTools()
    await died(tmp_path, machine, book)
    async with open_team(tmp_path, script(DONE), machine, scope(book)) as it:
        await it.recover()
        (waiting,) = (await it.team.aget_state(it.config)).interrupts
        await it.die(Command(resume={waiting.id: "run again"}), machine)
    assert machine.ran == ["make", "make"]
    async with open_team(tmp_path, script(DONE), machine, scope(book)) as it:
        assert [one["reason"] for one in payloads(await it.recover())] == ["unknown_result"]
        assert machine.ran == ["make", "make"]
        assert await it.answer("result: it worked") == []
        assert it.tool_messages()[0]["content"] == "it worked"


async def test_an_idempotent_tool_just_runs_again(tmp_path):
    book, machine = MemoryLedger(), FakeTools()
    await died(tmp_path, machine, book, script(call("look", what="x"), DONE))
    async with open_team(tmp_path, script(DONE), machine, scope(book)) as it:
        assert await it.recover() == []
    assert machine.ran == ["x", "x"]


async def test_the_same_call_id_in_another_step_is_another_call(tmp_path):
    """Endpoints restart the numbers of calls in each answer."""
    book, machine = MemoryLedger(), FakeTools()
    same = {"tool_calls": [{"name": "bash_tool", "arguments": {"cmd": "make"}, "id": "call_0"}]}
    async with open_team(tmp_path, script(same, same, DONE), machine, scope(book)) as it:
        assert await it.begin() == []
    assert machine.ran == ["make", "make"]
    assert len(book.rows) == 2


async def test_without_a_ledger_nothing_is_stored_and_calls_work(tmp_path):
    machine = FakeTools()
    async with open_team(tmp_path, script(BASH, DONE), machine, None) as it:
        assert await it.begin() == []
        assert it.tool_messages()[0]["content"] == "did make"


async def test_the_scope_is_inherited_by_agents_and_stored_nowhere(tmp_path):
    seen: list[RunScope] = []
    machine = FakeTools()
    tools = machine.tools()
    look = next(tool for tool in tools if tool.name == "look")

    async def spy(what: str) -> str:
        """Look."""
        seen.append(run_scope())
        return what

    look.coroutine = spy  # type: ignore[attr-defined]
    mine = scope(MemoryLedger(), "canary-of-the-scope")
    async with open_team(tmp_path, script(call("look", what="x"), DONE), machine, mine, tools=tools) as it:
        await it.begin()
    assert seen == [replace(mine, thread_id="t")]
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*.db*"))
    assert b"canary-of-the-scope" not in stored
    assert b"maniple_scope" not in stored


async def test_outside_of_a_run_the_scope_is_empty():
    assert run_scope() == RunScope()
    assert CallRecords(MemoryLedger(), "r", "t", "c").key == ":c"


async def test_a_call_that_the_budget_refuses_leaves_no_intent_behind(tmp_path):
    book, machine, meter = MemoryLedger(), FakeTools(), UsageMeter(Budget(tool_calls=1))
    mine = RunScope(run_id="r", ledger=book, meter=meter, approval=frozenset({"look"}))
    told = script(call("bash_tool", cmd="one"), call("bash_tool", cmd="two"), call("look", what="x"), DONE)
    async with open_team(tmp_path, told, machine, mine) as it:
        it.config["callbacks"] = meter.callbacks
        assert await it.begin() == []
    assert machine.ran == ["one"]
    assert [json.loads(row.arguments)["cmd"] for row in book.of_tool("bash_tool")] == ["one"]
    assert meter.exhausted


async def test_a_result_on_record_is_handed_out_though_the_budget_is_used_up(tmp_path):
    book, machine = MemoryLedger(), FakeTools()
    both = calls(("look", {"what": "one"}), ("bash_tool", {"cmd": "two"}))
    async with open_team(tmp_path, script(both, DONE), machine, scope(book)) as it:
        await it.die({"messages": [("user", "do it")]}, machine, calls=2)
    (first,) = book.of_tool("look")
    await book.end(first.run_id, first.tool_call_id, '{"status": "success", "content": "as recorded"}')
    meter = UsageMeter(Budget(tool_calls=2), used=RunUsage(tool_calls=2))
    async with open_team(tmp_path, script(DONE), machine, RunScope("r", book, meter)) as it:
        it.config["callbacks"] = meter.callbacks
        (waiting,) = await it.recover()
        assert waiting.value["reason"] == "unknown_result"
        assert await it.answer("skip") == []
        assert "as recorded" in [message["content"] for message in it.tool_messages()]
    assert len(machine.ran) == 2
    assert meter.exhausted is None
