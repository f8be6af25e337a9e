"""Requested changes of a plan: stored as JSON, and accepted only while a run works on the plan."""

import json

import pytest

from maniple.agents.plan_edits import PendingPlanEdits, PlanChange


def test_a_change_survives_as_json():
    change = PlanChange("edit", 2, title="T", agent_name="coder")
    assert PlanChange.from_dict(json.loads(json.dumps(change.to_dict()))) == change
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


def test_a_run_takes_changes_from_its_plans_first_step_to_its_end():
    kept, new = PlanChange("skip", 1), PlanChange("redo", 2)
    edits = PendingPlanEdits([kept])
    with pytest.raises(ValueError, match="not executing a plan"):
        edits.put(new)
    edits.open()
    edits.put(new)
    assert not edits.close(), "what waits must be fulfilled first"
    assert edits.is_open
    assert edits.take() == [kept, new]
    assert edits.take() == []
    assert edits.close()
    with pytest.raises(ValueError, match="not executing a plan"):
        edits.put(new)
