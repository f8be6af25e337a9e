"""Who said what in a conversation that a client hands back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from maniple.events.conversation import as_chat_message, attributed
from tests.team import plan, step

PLAN = json.dumps(plan(step("researcher"), step("coder"), step("reporter")))
Said = tuple[str | None, str]


def human(*texts: str) -> list[BaseMessage]:
    return [HumanMessage(text) for text in texts]


def who(messages: list[BaseMessage]) -> list[Said]:
    return [(message.name, message.text) for message in attributed(messages)]


def test_what_follows_a_plan_is_the_teams_and_the_newest_message_the_users():
    told = who(human("What is tea?", PLAN, "found", "counted", "# Report", "And coffee?"))
    assert told == [
        (None, "What is tea?"),
        ("planner", PLAN),
        ("researcher", "found"),
        ("coder", "counted"),
        ("reporter", "# Report"),
        (None, "And coffee?"),
    ]


def test_each_workflow_of_a_long_conversation_is_understood():
    told = who(human("a", PLAN, "f", "c", "# A", "b", PLAN, "f", "c", "# B", "c"))
    assert [text for name, text in told if name is None] == ["a", "b", "c"]
    assert [text for name, text in told if name == "reporter"] == ["# A", "# B"]


def test_a_step_that_was_tried_again_does_not_take_the_reports_place():
    told = who(human("a", PLAN, "no", "still no", "found", "counted", "# A", "b"))
    assert [name for name, _ in told][-2:] == ["reporter", None]


def test_small_talk_after_a_workflow_stays_the_users_and_the_coordinators():
    messages = [*human("a", PLAN, "f", "c", "# A", "thanks"), AIMessage("You are welcome."), *human("b")]
    assert who(messages)[4:] == [
        ("reporter", "# A"),
        (None, "thanks"),
        (None, "You are welcome."),
        (None, "b"),
    ]


def test_a_workflow_that_failed_leaves_the_next_question_to_the_user():
    assert who(human("a", PLAN, "b")) == [(None, "a"), ("planner", PLAN), (None, "b")]


def test_a_plan_that_was_changed_before_it_began_has_no_results():
    told = who(human("a", PLAN, PLAN, "f", "c", "# A", "b"))
    assert [name for name, _ in told] == [None, "planner", "planner", "researcher", "coder", "reporter", None]


@pytest.mark.parametrize("text", ["{", "[]", '{"title": "x"}', '{"title": "x", "steps": [{"a": 1}]}', "{}{}"])
def test_other_json_of_a_user_is_the_users(text):
    assert {name for name, _ in who(human("a", text, "b", "c"))} == {None}


def test_an_edited_plan_as_the_newest_message_is_the_users():
    assert who(human("a", PLAN))[-1] == (None, PLAN)


def test_the_callers_wishes_for_the_answer_are_no_step():
    messages = [*human("a", PLAN, "f"), SystemMessage("Be brief."), *human("c", "# A", "b")]
    assert [name for name, _ in who(messages)] == [
        None,
        "planner",
        "researcher",
        None,
        "coder",
        "reporter",
        None,
    ]


@given(st.lists(st.sampled_from(["q", PLAN, "{", "r"]), min_size=1, max_size=12), st.randoms())
def test_no_message_is_lost_changed_or_moved_and_the_newest_is_never_the_teams(texts, random):
    messages = [AIMessage(text) if random.random() < 0.2 else HumanMessage(text) for text in texts]
    named = attributed(messages)
    assert [as_chat_message(one) for one in named] == [as_chat_message(one) for one in messages]
    assert named[-1].name is None
