"""Results of tools, including commands to the graph, are stored and restored after a crash."""

import json
from dataclasses import dataclass
from typing import Annotated

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool
from langgraph.types import Command, Send

from maniple.agents.middleware.call_records import decode_answer, encode_answer, read_message
from maniple.redaction import Redactor
from maniple.store.redaction import RedactedLedger
from tests.agents.memory_ledger import MemoryLedger
from tests.agents.restartable_team import FakeTools, calls, open_team, scope, script
from tests.openai_server import reply

pytestmark = pytest.mark.anyio
SAID = ToolMessage("noted", tool_call_id="1", name="note")


def back(answer):
    return decode_answer(json.loads(json.dumps(encode_answer(answer, "note", "1"))), "note", "1")


def noting(machine, update=lambda said: [said, HumanMessage("The user's number is 7.")]):
    async def note(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Note something in the state."""
        machine.ran.append(text)
        return Command(update={"messages": update(ToolMessage("noted", tool_call_id=tool_call_id))})

    return [StructuredTool.from_function(coroutine=note, name="note"), *machine.tools()]


@dataclass
class Telling(MemoryLedger):
    """Lets the machine's watcher know of each result."""

    machine: FakeTools | None = None

    async def end(self, run_id, tool_call_id, result):
        await super().end(run_id, tool_call_id, result)
        if self.machine:
            self.machine.stuck.release()


async def test_a_tools_command_is_given_back_after_a_crash_and_the_tool_is_not_run_again(tmp_path):
    machine = FakeTools()
    book = Telling(machine=machine)
    two = calls(("note", {"text": "seven"}), ("look", {"what": "slow"}))
    async with open_team(tmp_path, script(two), machine, scope(book), tools=noting(machine)) as it:
        await it.die({"messages": [("user", "do it")]}, machine, at="slow", calls=2)
    async with open_team(tmp_path, script(reply("done")), machine, scope(book), tools=noting(machine)) as it:
        assert await it.recover() == []
        assert [message["content"] for message in it.tool_messages()] == ["noted", "did slow"]
        assert "The user's number is 7." in str(it.server.requests[0]["messages"]), "the update is not lost"
    assert sorted(machine.ran) == ["seven", "slow", "slow"]


async def test_a_command_on_record_holds_no_secret():
    book = MemoryLedger()
    ledger = RedactedLedger(book, Redactor(["canary-1234"]))
    await ledger.begin("r", "1", "note", "{}")
    command = Command(update={"messages": [SAID], "password": "canary-1234"})
    await ledger.end("r", "1", json.dumps(encode_answer(command, "note", "1")))
    (row,) = book.of_tool("note")
    assert "canary" not in str(row)
    again = decode_answer(json.loads(row.result or ""), "note", "1")
    assert isinstance(again, Command)
    assert again.update == {"messages": [SAID], "password": "***"}


@pytest.mark.parametrize(
    "answer",
    [
        SAID,
        Command(update={"messages": [SAID, RemoveMessage(id="m")], "n": 3, "pair": (1, [None, 2.5])}),
        Command(goto="reporter", graph=Command.PARENT),
        Command(goto=[Send("worker", {"dict": {"message": 1}}), "other"], update=[("n", 1)]),
        [SAID, Command(update={"command": [1], 7: {"tuple": "send"}})],
        Command(resume={"id": True}),
    ],
)
def test_what_json_can_hold_comes_back_as_it_was(answer):
    assert back(answer) == answer


@pytest.mark.parametrize("extra", [object(), b"bytes", {1, 2}])
def test_of_what_it_cannot_hold_the_words_to_the_model_are_left(extra):
    again = back(Command(update={"messages": [SAID], "extra": extra}))
    assert isinstance(again, ToolMessage)
    assert (again.content, again.tool_call_id) == ("noted", "1")


def test_a_result_without_text_reports_that_the_work_was_done():
    again = back(Command(update={"extra": object()}))
    assert isinstance(again, ToolMessage)
    assert "note did its work" in str(again.content)


@pytest.mark.parametrize("answer", [SAID, Command(update={"messages": SAID}), [SAID, Command(goto="coder")]])
def test_the_message_of_any_recorded_result_can_be_read_for_any_call(answer):
    stored = json.dumps(encode_answer(answer, "note", "1"))
    assert (message := read_message(stored, "note", "another")) is not None
    assert (message.text, message.tool_call_id) == ("noted", "another")


@pytest.mark.parametrize("result", [None, "null", '{"status": "paused"}'])
def test_a_call_without_a_recorded_result_has_no_message(result):
    assert read_message(result, "note", "1") is None
