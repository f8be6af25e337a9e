"""What the steps that are not done have so far, from the events of a run."""

from dataclasses import replace

import pytest

from maniple.events import (
    NO_RESULT,
    AgentEnded,
    AgentStarted,
    MessageChunk,
    MessageReplaced,
    PlanChanged,
    PlanStepView,
    ToolCalled,
    ToolReturned,
    record_of,
)
from maniple.events.base import TurnMark
from maniple.events.model import MessageDelta
from maniple.runs.newest_work import MAX_PARTS, NewestWork


def text(message_id, content):
    return MessageChunk(message_id=message_id, delta=MessageDelta(content=content))


def called(name, **arguments):
    return ToolCalled(tool_call_id=name, tool_name=name, tool_input=arguments)


def returned(name, result):
    return ToolReturned(tool_call_id=name, tool_name=name, tool_result=result)


def begin(agent, step):
    return agent, step, AgentStarted(agent_name="researcher", agent_id=agent)


def end(agent, step):
    return agent, step, AgentEnded(agent_name="researcher", agent_id=agent)


def planned(*statuses, **options):
    steps = [
        PlanStepView(id=number, agent_name="coder", title="t", description="d", status=status)
        for number, status in enumerate(statuses, start=1)
    ]
    return "", None, PlanChanged(title="Plan", steps=steps, **options)


def found(*events):
    work = NewestWork()
    work.feed(
        record_of(event.in_turn(TurnMark(agent, step) if agent else None, None), number)
        for number, (agent, step, event) in enumerate(events, start=1)
    )
    return work.shown()


def test_texts_and_calls_of_each_step_are_shown_in_order_and_those_of_done_steps_are_not():
    shown = found(
        begin("a", 1),
        begin("b", 2),
        ("a", 1, text("m1", "I look ")),
        ("b", 2, text("m2", "Other")),
        ("a", 1, text("m1", "it up.")),
        ("a", 1, called("search", q="tea")),
        ("a", 1, returned("search", "4 euros")),
        end("b", 2),
        planned("in_progress", "completed"),
    )
    said, search = shown[1]
    assert said == "I look it up."
    assert "search({'q': 'tea'})" in search
    assert search.endswith("4 euros")
    assert 2 not in shown


def test_only_the_newest_parts_are_shown():
    many = [("a", 1, text(f"m{n}", f"text {n}")) for n in range(50)]
    assert found(begin("a", 1), *many)[1] == [f"text {n}" for n in range(50)][-MAX_PARTS:]


def test_a_turn_that_was_cut_off_and_goes_on_in_another_loses_nothing():
    first = begin("a", 1), ("a", 1, text("m1", "Tea is 4 euros.")), end("a", 1)
    assert found(*first)[1] == ["Tea is 4 euros."]
    again = begin("b", 1), ("b", 1, text("m2", "Cocoa"))
    assert found(*first, *again)[1] == ["Tea is 4 euros.", "Cocoa"]


def test_a_step_that_failed_has_its_words_until_it_begins_again():
    failed = begin("a", 1), ("a", 1, text("m1", "Nothing.")), end("a", 1), planned("failed")
    assert found(*failed)[1] == ["Nothing."]
    assert found(*failed, planned("in_progress"), begin("b", 1)) == {}


def test_a_draft_of_a_plan_says_nothing_about_the_steps_at_work():
    assert found(begin("a", 1), ("a", 1, text("m", "Tea")), planned("completed", draft=True)) == {1: ["Tea"]}


def test_a_call_that_was_cut_off_has_no_result_and_a_text_that_was_replaced_is_gone():
    shown = found(
        ("a", 1, text("m1", "It is")),
        ("a", 1, MessageReplaced(message_id="m1", replaced_by="m2")),
        ("a", 1, called("bash", cmd="ls")),
        ("a", 1, returned("bash", NO_RESULT)),
    )
    [cut] = shown[1]
    assert "bash" in cut
    assert NO_RESULT not in cut


@pytest.mark.parametrize("size", [3_000, 100_000])
def test_of_a_long_text_the_newest_words_are_shown(size):
    [shown] = found(("a", 1, text("m", "x" * size)), ("a", 1, text("m", "the newest")))[1]
    assert shown.endswith("the newest")
    assert len(shown) < 2_000


def test_what_the_user_answered_is_no_finding():
    asked = called("ask_human", question="Which town?"), returned("ask_human", "Rome")
    assert found(*(("a", 1, one) for one in asked)) == {}


def test_the_begin_of_a_step_stands_until_it_is_done():
    def begun(*events):
        work = NewestWork()
        work.feed(
            replace(
                record_of(event.in_turn(TurnMark(agent, step) if agent else None, None), number), at=number
            )
            for number, (agent, step, event) in enumerate(events, start=1)
        )
        return work.begun_at

    said = [("a", 1, text("m1", "I look")), ("b", 2, text("m2", "Other")), ("a", 1, text("m3", "it up."))]
    assert begun(*said) == {1: 1, 2: 2}
    assert begun(*said, planned("completed", "in_progress")) == {2: 2}
