"""Conversations cut to a number of tokens: what must stay together stays together."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from maniple.agents.middleware.context_window import (
    count_task_messages,
    find_newest_start,
    fit_messages,
    group_messages,
)
from maniple.llms.context_windows import count_tokens


def asked(*ids, **args):
    calls = [{"name": "look", "args": args, "id": one, "type": "tool_call"} for one in ids]
    return AIMessage("", tool_calls=calls)


def turn(number, size=1, calls=1):
    ids = [f"{number}.{n}" for n in range(calls)]
    return [asked(*ids), *(ToolMessage("x" * size, tool_call_id=one) for one in ids)]


TASK = [SystemMessage("You are the coder."), HumanMessage("Request: 1+3"), HumanMessage("Your step")]


def assert_paired(messages):
    """Every result follows its call at once, and every call has its results: what endpoints insist on."""
    open_calls: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in open_calls
            open_calls.remove(message.tool_call_id)
        else:
            assert not open_calls
            if isinstance(message, AIMessage):
                open_calls = {call["id"] for call in message.tool_calls}
    assert not open_calls


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9_000)), min_size=1, max_size=12),
    st.integers(100, 20_000),
)
@settings(max_examples=100, deadline=None)
def test_no_call_is_ever_parted_from_its_results(turns, tokens):
    messages = list(TASK)
    for number, (calls, size) in enumerate(turns):
        messages += turn(number, size, calls)
    short = fit_messages(messages, tokens, pinned=len(TASK))
    assert_paired(short)
    assert short[:3] == TASK
    assert short[-1].tool_call_id == messages[-1].tool_call_id
    start = find_newest_start(messages[3:], tokens)
    assert_paired(messages[3 + start :])
    # The task and the newest turn, with its texts at their shortest, are never left out.
    assert count_tokens(short) <= max(tokens, count_tokens(TASK) + 700)


def test_what_fits_is_left_as_it_is():
    messages = [*TASK, *turn(1, 100)]
    assert fit_messages(messages, 10_000, pinned=3) == messages


def test_the_longest_texts_are_cut_first_and_marked():
    messages = [*TASK, *turn(1, 50_000), *turn(2, 300)]
    short = fit_messages(messages, 2_000, pinned=3)
    assert "characters left out" in short[4].text
    assert short[6].text == "x" * 300
    assert count_tokens(short) <= 2_000
    assert messages[4].text == "x" * 50_000, "the given messages are left alone"


def test_long_arguments_are_cut_and_stay_arguments():
    messages = [*TASK, asked("1", code="y" * 40_000, timeout=3), ToolMessage("ok", tool_call_id="1")]
    call = fit_messages(messages, 1_000, pinned=3)[3].tool_calls[0]
    assert call["args"]["timeout"] == 3
    assert len(call["args"]["code"]) < 5_000


def test_the_oldest_are_left_out_only_when_cutting_is_not_enough():
    messages = [*TASK, *(one for n in range(60) for one in turn(n, 600))]
    short = fit_messages(messages, 3_000, pinned=3)
    assert short[:3] == TASK
    assert "earlier messages are left" in short[3].text
    assert_paired(short)
    assert count_tokens(short) <= 3_000


def test_a_system_prompt_and_pictures_are_not_cut():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9_000}}
    seen = HumanMessage([{"type": "text", "text": "z" * 9_000}, picture])
    short = fit_messages([SystemMessage("s" * 4_000), seen], 2_500)
    assert short[0].text == "s" * 4_000
    assert short[1].content[1] == picture
    assert len(short[1].content[0]["text"]) < 9_000


@pytest.mark.parametrize(("messages", "length"), [([], 0), (TASK, 3), ([*TASK, *turn(1)], 3)])
def test_the_task_is_what_comes_before_the_first_answer(messages, length):
    assert count_task_messages(messages) == length


def test_answers_of_a_conversation_that_goes_on_are_part_of_the_task():
    conversation = [*TASK, AIMessage("An earlier answer."), HumanMessage("The question.")]
    assert count_task_messages([*conversation, *turn(1)], given=len(conversation)) == len(conversation)


def test_results_stay_with_the_answer_that_requested_them():
    assert [len(group) for group in group_messages([*TASK, *turn(1, calls=3), *turn(2)])] == [1, 1, 1, 4, 2]
