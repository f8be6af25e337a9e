"""Calls that wait for the user's word: exactly what was approved runs, and nothing else."""

import json
import re

import pytest
from langchain_core.tools import StructuredTool
from langgraph.types import Command

from maniple.tools.decisions import APPROVAL_ANSWERS
from tests.agents.memory_ledger import MemoryLedger
from tests.agents.restartable_team import FakeTools, calls, open_team, scope, script
from tests.openai_server import call, reply

pytestmark = pytest.mark.anyio
BASH = call("bash_tool", cmd="make")
DONE = reply("done")


@pytest.fixture(params=[True, False], ids=["ledger", "no ledger"])
def book(request):
    return MemoryLedger() if request.param else None


async def test_a_call_waits_with_its_exact_arguments_and_runs_once_approved(tmp_path, book):
    machine = FakeTools()
    async with open_team(tmp_path, script(BASH, DONE), machine, scope(book, "bash_tool")) as it:
        (waiting,) = await it.begin()
        assert machine.ran == []
        asked = dict(waiting.value)
        assert asked.pop("tool_call_id")
        assert asked == {
            "kind": "tool_approval",
            "reason": "approval",
            "tool_name": "bash_tool",
            "tool_input": {"cmd": "make"},
            "answers": dict(APPROVAL_ANSWERS),
        }
    async with open_team(tmp_path, script(DONE), machine, scope(book, "bash_tool")) as it:
        assert await it.answer(" Approve ") == []
        assert it.asked() == 1, "only about the result"
        assert it.tool_messages()[0]["content"] == "did make"
    assert machine.ran == ["make"]


async def test_edited_arguments_run_instead(tmp_path, book):
    machine = FakeTools()
    async with open_team(tmp_path, script(BASH, DONE), machine, scope(book, "bash_tool")) as it:
        await it.begin()
        assert await it.answer({"type": "edit", "args": {"cmd": "make test", "count": 2}}) == []
    assert machine.ran == ["make test"]
    if book:
        (row,) = book.of_tool("bash_tool")
        assert json.loads(row.arguments) == {"cmd": "make test", "count": 2}


@pytest.mark.parametrize(
    "wrong", [{"cmd": "x", "count": "many"}, {"count": 1}, {"cmd": "x", "sudo": True}, {}]
)
async def test_an_invalid_edit_is_asked_for_again_with_the_reason(tmp_path, book, wrong):
    machine = FakeTools()
    async with open_team(tmp_path, script(BASH, DONE), machine, scope(book, "bash_tool")) as it:
        await it.begin()
        (again,) = await it.answer({"type": "edit", "args": wrong})
        assert again.value["tool_input"] == wrong
        assert again.value["error"]
        (still,) = await it.answer("approve")
        assert (machine.ran, still.value["error"]) == ([], again.value["error"])
        assert await it.answer({"type": "edit", "args": {"cmd": "right"}}) == []
        assert it.asked() == 2
    assert machine.ran == ["right"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("No, there is no backup of it", "No, there is no backup of it"),
        ("n: there is no backup, and n is not no", "n: there is no backup, and n is not no"),
        ("/reject there is no backup of it", "there is no backup of it"),
        ({"type": "reject", "message": "there is no backup"}, "there is no backup"),
        ("no", ""),
        (False, ""),
    ],
)
async def test_a_rejection_reaches_the_model_word_for_word(tmp_path, book, answer, words):
    machine = FakeTools()
    async with open_team(tmp_path, script(BASH, DONE), machine, scope(book, "bash_tool")) as it:
        await it.begin()
        assert await it.answer(answer) == []
        assert (
            it.tool_messages()[0]["content"] == f"The user rejected this call{f': {words}' if words else '.'}"
        )
        shown = [message for request in it.server.requests for message in request["messages"]]
        results = [message["content"] for message in shown if message["role"] == "tool"]
        assert "</data" not in str(results), "the user's words are not for the model to doubt"
    assert machine.ran == []


@pytest.mark.parametrize("unclear", ["use ninja", "what is this for?", {"type": "?"}, {"type": "edit"}, 7])
async def test_an_unclear_answer_is_asked_again_and_decides_nothing(tmp_path, book, unclear):
    machine = FakeTools()
    async with open_team(tmp_path, script(BASH, DONE), machine, scope(book, "bash_tool")) as it:
        await it.begin()
        (again,) = await it.answer(unclear)
        assert again.value["unclear"]
        assert again.value["tool_input"] == {"cmd": "make"}
        assert machine.ran == []
        (still,) = await it.answer(unclear)
        assert still.value["unclear"]
        asked = it.asked()
        assert await it.answer("Yes.") == []
        assert it.asked() == asked + 1, "the model is not asked for the call again"
    assert machine.ran == ["make"]


async def test_the_model_reads_that_the_user_changed_the_call(tmp_path, book):
    machine = FakeTools()
    async with open_team(tmp_path, script(BASH, DONE), machine, scope(book, "bash_tool")) as it:
        await it.begin()
        assert await it.answer({"type": "edit", "args": {"cmd": "make test"}}) == []
        shown = [message for request in it.server.requests for message in request["messages"]]
        [result] = [message["content"] for message in shown if message["role"] == "tool"]
        note, fence, data = result.partition("<data ")
        assert '{"cmd": "make test"' in note, "the user's change is no data of the tool"
        assert fence
        assert "did make test" in data


async def test_arguments_that_do_not_fit_are_not_put_before_the_user(tmp_path, book):
    machine = FakeTools()
    wrong = call("bash_tool", cmd="make", sudo=True)
    async with open_team(tmp_path, script(wrong, DONE), machine, scope(book, "bash_tool")) as it:
        assert await it.begin() == []
        assert "unknown: sudo" in it.tool_messages()[0]["content"]
    assert machine.ran == []


async def test_siblings_of_a_call_that_waits_run_and_are_not_run_again(tmp_path, book):
    machine = FakeTools()
    three = calls(("look", {"what": "a"}), ("bash_tool", {"cmd": "b"}), ("look", {"what": "c"}))
    async with open_team(tmp_path, script(three, DONE), machine, scope(book, "bash_tool")) as it:
        assert len(await it.begin()) == 1
        assert sorted(machine.ran) == ["a", "c"]
    async with open_team(tmp_path, script(DONE), machine, scope(book, "bash_tool")) as it:
        assert await it.answer("accept") == []
        assert [m["content"] for m in it.tool_messages()] == ["did a", "did b", "did c"]
        assert it.asked() == 1
    assert sorted(machine.ran) == ["a", "b", "c"]


async def test_two_calls_wait_at_once_and_are_answered_one_by_one(tmp_path, book):
    machine = FakeTools()
    two = calls(("bash_tool", {"cmd": "a"}), ("bash_tool", {"cmd": "b"}))
    async with open_team(tmp_path, script(two, DONE), machine, scope(book, "bash_tool")) as it:
        waiting = {one.value["tool_input"]["cmd"]: one.id for one in await it.begin()}
        assert sorted(waiting) == ["a", "b"]
        left = await it.answer_by_id({waiting["a"]: "approve"})
        assert [one.value["tool_input"]["cmd"] for one in left] == ["b"]
        assert machine.ran == ["a"]
        assert await it.answer("no, not that") == []
        said = ["did a", "The user rejected this call: no, not that"]
        assert [m["content"] for m in it.tool_messages()] == said
        assert it.asked() == 2
    assert machine.ran == ["a"]


async def test_one_approval_does_not_count_for_the_next_call(tmp_path, book):
    machine = FakeTools()
    script_ = script(BASH, call("bash_tool", cmd="rm"), DONE)
    async with open_team(tmp_path, script_, machine, scope(book, "bash_tool")) as it:
        await it.begin()
        (second,) = await it.answer("approve")
        assert second.value["tool_input"] == {"cmd": "rm"}
        assert (machine.ran, it.asked()) == (["make"], 2)
        assert await it.answer("approve") == []
    assert machine.ran == ["make", "rm"]


ALWAYS = {"type": "approve", "always": True}


async def test_an_approval_for_the_rest_of_the_run_counts_for_the_next_calls(tmp_path):
    book, machine = MemoryLedger(), FakeTools()
    more = call("bash_tool", cmd="make test")
    async with open_team(tmp_path, script(BASH, more, more, DONE), machine, scope(book, "bash_tool")) as it:
        await it.begin()
        assert await it.answer(ALWAYS) == []
    assert machine.ran == ["make", "make test", "make test"]


async def test_what_waits_already_is_still_asked_about_after_an_approval_for_the_rest(tmp_path):
    book, machine = MemoryLedger(), FakeTools()
    two = calls(("bash_tool", {"cmd": "a"}), ("bash_tool", {"cmd": "b"}))
    async with open_team(tmp_path, script(two, DONE), machine, scope(book, "bash_tool")) as it:
        waiting = {one.value["tool_input"]["cmd"]: one.id for one in await it.begin()}
        left = await it.answer_by_id({waiting["a"]: ALWAYS})
        assert [one.value["tool_input"]["cmd"] for one in left] == ["b"]
        assert await it.answer("no") == []
    assert machine.ran == ["a"]


async def test_an_approval_for_the_rest_of_the_run_outlasts_a_crash(tmp_path):
    book, machine = MemoryLedger(), FakeTools()
    more = call("bash_tool", cmd="make test")
    async with open_team(tmp_path, script(BASH, more, DONE), machine, scope(book, "bash_tool")) as it:
        (waiting,) = await it.begin()
        await it.die(Command(resume={waiting.id: ALWAYS}), machine, at="make test")
    async with open_team(tmp_path, script(DONE), machine, scope(book, "bash_tool")) as it:
        assert [one.value["reason"] for one in await it.recover()] == ["unknown_result"]
        assert await it.answer("run again") == []
    assert machine.ran == ["make", "make test", "make test"]


async def test_an_approval_does_not_answer_for_an_unknown_result_after_a_crash(tmp_path):
    """Approved, begun, died: that it was approved does not mean that it may run twice."""
    book, machine = MemoryLedger(), FakeTools()
    async with open_team(tmp_path, script(BASH, DONE), machine, scope(book, "bash_tool")) as it:
        (waiting,) = await it.begin()
        await it.die(Command(resume={waiting.id: "approve"}), machine)
    async with open_team(tmp_path, script(DONE), machine, scope(book, "bash_tool")) as it:
        assert [one.value["reason"] for one in await it.recover()] == ["unknown_result"]
        assert machine.ran == ["make"]
        assert await it.answer("run again") == []
    assert machine.ran == ["make", "make"]


async def test_an_answer_left_over_from_a_crash_approves_nothing_else(tmp_path):
    """A resume value without an interrupt's id stays on the parent's checkpoint until its node has ended."""
    book, machine = MemoryLedger(), FakeTools()
    first = script(BASH, call("look", what="x"), DONE)
    async with open_team(tmp_path, first, machine, scope(book, "bash_tool")) as it:
        await it.begin()
        await it.die(Command(resume="approve"), machine, at="x")
        assert machine.ran == ["make", "x"]
    async with open_team(
        tmp_path, script(call("bash_tool", cmd="rm"), DONE), machine, scope(book, "bash_tool")
    ) as it:
        (waiting,) = await it.recover()
        assert waiting.value["tool_input"] == {"cmd": "rm"}
        assert machine.ran == ["make", "x", "x"]
        assert await it.answer("approve") == []
    assert machine.ran == ["make", "x", "x", "rm"]
    assert sum("premature" in (row.result or "") for row in book.rows.values()) == 1


async def test_settings_that_changed_over_a_crash_mix_no_answers_up(tmp_path):
    """Approved, died, and started again without approval: the old word says nothing of the result."""
    book, machine = MemoryLedger(), FakeTools()
    async with open_team(tmp_path, script(BASH, DONE), machine, scope(book, "bash_tool")) as it:
        await it.begin()
        await it.die(Command(resume="approve"), machine)
    async with open_team(tmp_path, script(DONE), machine, scope(book)) as it:
        assert [one.value["reason"] for one in await it.recover()] == ["unknown_result"]
    async with open_team(tmp_path, script(DONE), machine, scope(book, "bash_tool")) as it:
        assert await it.answer("run again") == []
    assert machine.ran == ["make", "make"]


async def test_a_tool_may_declare_that_it_needs_approval(tmp_path, book):
    machine = FakeTools()
    bash, _ = machine.tools()
    bash.metadata = {"approval": True}
    async with open_team(tmp_path, script(BASH, DONE), machine, scope(book), tools=[bash]) as it:
        (waiting,) = await it.begin()
        assert waiting.value["reason"] == "approval"
        assert machine.ran == []
        assert await it.answer("approve") == []
    assert machine.ran == ["make"]


async def test_wrong_arguments_are_shown_to_the_model_and_not_to_people(tmp_path, book):
    machine, wrong = FakeTools(), call("bash_tool", cmd="make", count="many")
    async with open_team(tmp_path, script(wrong, DONE), machine, scope(book, "bash_tool")) as it:
        assert await it.begin() == []
        words = it.tool_messages()[0]["content"]
    assert re.match(r"bash_tool was not run\.\n.*count: Input", words)
    assert '"required": ["cmd"]' in words
    assert machine.ran == []


@pytest.mark.parametrize(("action", "asks"), [("delete", True), ("move", False)])
async def test_a_call_that_does_the_work_of_another_tool_needs_its_approval(tmp_path, book, action, asks):
    async def operate(operations: list[dict]) -> str:
        """Change files."""
        return "changed"

    tool = StructuredTool.from_function(
        coroutine=operate,
        name="file_operations",
        metadata={"includes": {"delete": "delete_file", "move": "move_file"}, "mode": "ordered"},
    )
    answer = call("file_operations", operations=[{"action": "copy"}, {"action": action}])
    machine = FakeTools()
    approval = scope(book, "delete_file")
    async with open_team(tmp_path, script(answer, DONE), machine, approval, tools=[tool]) as it:
        assert [one.value["tool_name"] for one in await it.begin()] == ["file_operations"] * asks
