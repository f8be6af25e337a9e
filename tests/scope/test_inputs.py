"""What is sent to a run: what is malformed is refused with words."""

import pytest

from maniple.scope.inputs import PlanChange


def test_each_change_has_an_id_of_its_own():
    told = PlanChange.from_dict({"action": "skip", "step_id": 1})
    assert (told.action, told.step_id, told.title) == ("skip", 1, None)
    assert told.change_id != PlanChange.from_dict({"action": "skip", "step_id": 1}).change_id


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "action must be one of skip, redo, edit"),
        ({"action": ["skip"], "step_id": 1}, "action must be"),
        ({"action": "skip", "step_id": True}, "step_id must be the number"),
        ({"action": "skip", "step_id": "1"}, "step_id must be the number"),
        ({"action": "edit", "step_id": 1, "title": 5}, "title must be text"),
    ],
)
def test_what_is_no_change_is_refused_with_words(data, words):
    with pytest.raises(ValueError, match=words):
        PlanChange.from_dict(data)
