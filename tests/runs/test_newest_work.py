"""What the members at work have so far, from the newest events of a run."""

from maniple.events import AgentEnded, AgentStarted, MessageChunk, ToolCalled, ToolReturned, record_of
from maniple.events.base import TurnMark
from maniple.events.model import MessageDelta
from maniple.runs.newest_work import MAX_PARTS, find_newest_work


def text(message_id, content):
    return MessageChunk(message_id=message_id, delta=MessageDelta(content=content))


def records(*events):
    return [
        record_of(event.in_turn(TurnMark(agent, step), None), number)
        for number, (agent, step, event) in enumerate(events, start=1)
    ]


def begin(agent, step):
    return agent, step, AgentStarted(agent_name="researcher", agent_id=agent)


def test_texts_and_calls_of_each_open_step_are_shown_in_order_and_those_of_ended_steps_are_not():
    found = find_newest_work(
        records(
            begin("a", 1),
            begin("b", 2),
            ("a", 1, text("m1", "I look ")),
            ("b", 2, text("m2", "Other")),
            ("a", 1, text("m1", "it up.")),
            ("a", 1, ToolCalled(tool_call_id="c", tool_name="search", tool_input={"q": "tea"})),
            ("a", 1, ToolReturned(tool_call_id="c", tool_name="search", tool_result="4 euros")),
            ("b", 2, AgentEnded(agent_name="researcher", agent_id="b")),
        )
    )
    said, called = found[1]
    assert said == "I look it up."
    assert "search({'q': 'tea'})" in called
    assert called.endswith("4 euros")
    assert 2 not in found


def test_only_the_newest_parts_are_shown_and_a_step_that_begins_again_starts_anew():
    old = [("a", 1, text(f"m{n}", f"text {n}")) for n in range(50)]
    assert find_newest_work(records(begin("a", 1), *old))[1] == [f"text {n}" for n in range(50)][-MAX_PARTS:]
    assert find_newest_work(records(begin("a", 1), *old, begin("b", 1))) == {}
