"""An agent's questions to the user: they pause the run, and there is a bound to them."""

import pytest
from langchain_core.messages import HumanMessage

from maniple.graph import RunOptions
from maniple.tools.interaction import ask_tools
from tests.agents.memory_ledger import MemoryLedger
from tests.agents.restartable_team import FakeTools, calls, open_team, scope, script
from tests.openai_server import call, reply

pytestmark = pytest.mark.anyio
DONE = reply("done")


def question(text, **options):
    return call("ask_human", question=text, **options)


async def test_the_answer_is_the_result(tmp_path):
    machine = FakeTools()
    script_ = script(question("Which year?", options=["2024", "2025"]), DONE)
    async with open_team(tmp_path, script_, machine, scope(MemoryLedger())) as it:
        (waiting,) = await it.begin()
        assert waiting.value == {"kind": "question", "question": "Which year?", "options": ["2024", "2025"]}
        assert await it.answer("2025") == []
        assert it.tool_messages()[0]["content"] == "2025"
        assert it.asked() == 2


@pytest.mark.parametrize(
    ("answer", "told"), [({"answer": "5"}, "5"), ("  ", "decide for yourself"), (7, "7")]
)
async def test_an_answer_may_have_other_forms(tmp_path, answer, told):
    async with open_team(
        tmp_path, script(question("How many?"), DONE), FakeTools(), scope(MemoryLedger())
    ) as it:
        await it.begin()
        assert await it.answer(answer) == []
        assert told in it.tool_messages()[0]["content"]


async def test_a_question_beyond_the_limit_is_not_asked(tmp_path):
    book = MemoryLedger()
    script_ = script(question("1?"), question("2?"), question("3?"), question("4?"), question("5?"), DONE)
    async with open_team(tmp_path, script_, FakeTools(), scope(book)) as it:
        await it.begin()
        await it.answer("one")
        await it.answer("two")
        assert await it.answer("three") == []
        heard = [message["content"] for message in it.tool_messages()]
    assert heard[:3] == ["one", "two", "three"]
    assert ["asked often enough" in words for words in heard[3:]] == [True, True]


async def test_a_question_beside_other_calls_stops_none_of_them(tmp_path):
    machine = FakeTools()
    both = calls(("ask_human", {"question": "1?"}), ("bash_tool", {"cmd": "make"}))
    async with open_team(tmp_path, script(both, DONE), machine, scope(MemoryLedger())) as it:
        assert len(await it.begin()) == 1
        assert machine.ran == ["make"]
    async with open_team(tmp_path, script(DONE), machine, scope(MemoryLedger())) as it:
        assert await it.answer("one") == []
        assert [message["content"] for message in it.tool_messages()] == ["one", "did make"]
    assert machine.ran == ["make"]


async def test_a_question_can_itself_need_approval(tmp_path):
    """Two interrupts in one call: each answer goes to its own question."""
    book = MemoryLedger()
    async with open_team(tmp_path, script(question("1?"), DONE), FakeTools(), scope(book, "ask_human")) as it:
        (first,) = await it.begin()
        assert first.value["kind"] == "tool_approval"
        (second,) = await it.answer("approve")
        assert second.value["kind"] == "question"
        assert await it.answer("one") == []
        assert it.tool_messages()[0]["content"] == "one"


async def test_a_restart_while_a_question_waits_loses_nothing(tmp_path):
    book = MemoryLedger()
    async with open_team(tmp_path, script(question("1?"), DONE), FakeTools(), scope(book)) as it:
        await it.begin()
    async with open_team(tmp_path, script(DONE), FakeTools(), scope(book)) as it:
        assert len(await it.recover()) == 1
        assert await it.answer("one") == []
        assert it.tool_messages()[0]["content"] == "one"
        assert it.asked() == 1


def test_a_bound_of_zero_turns_it_off():
    assert ask_tools(0) == []


async def test_if_no_user_can_answer_the_agent_decides_itself(tmp_path):
    async with open_team(tmp_path, script(question("1?"), DONE), FakeTools(), scope(MemoryLedger())) as it:
        given = {"messages": [HumanMessage("do it")]}
        await it.team.ainvoke(given, it.config, context=RunOptions(may_ask=False))
        assert (await it.team.aget_state(it.config)).interrupts == ()
        assert "Nobody is there" in it.tool_messages()[0]["content"]
