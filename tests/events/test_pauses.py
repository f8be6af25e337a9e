"""The answers that a client can offer for each kind of pause."""

import pytest

from maniple.events.raw_data import interrupt_event


@pytest.mark.parametrize(
    ("value", "options"),
    [
        ({"kind": "plan_review", "plan": {}}, ["accept", "edit", "reply"]),
        ({"kind": "tool_approval", "reason": "approval"}, ["approve", "edit", "reject"]),
        ({"kind": "tool_approval", "reason": "unknown_result"}, ["run_again", "skip"]),
        ({"kind": "question", "question": "Which?", "options": ["a", "b"]}, ["a", "b"]),
        ({"kind": "question", "question": "Which?", "options": []}, []),
        ({"kind": "question", "options": "no list"}, []),
        ("a parent's own words", []),
    ],
)
def test_each_kind_of_pause_offers_the_answers_it_understands(value, options):
    event = interrupt_event("p1", value)
    assert event.options == options
    assert "kind" not in event.payload
