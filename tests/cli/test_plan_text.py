from typing import Any

import pytest

from maniple.cli.chat.answers import format_plan, parse_plan_text
from maniple.types import WORKERS

PLAN: dict[str, Any] = {
    "thought": "A sum.",
    "title": "1 + 3",
    "steps": [
        {
            "agent_name": "coder",
            "title": "Compute: all",
            "description": "Compute 1 + 3.\n\n# With Python",
            "note": "n",
        },
        {"agent_name": "file_manager", "title": "Keep", "description": "Keep it."},
        {"agent_name": "reporter", "title": "Report", "description": "Report."},
    ],
}


def read(text: str, most_steps: int = 12) -> dict[str, Any]:
    return parse_plan_text(text, PLAN, WORKERS, most_steps)


def test_a_plan_that_was_not_touched_is_the_same_plan() -> None:
    assert read(format_plan(PLAN)) == PLAN


def test_the_note_of_a_step_is_edited_deleted_and_added_like_its_text() -> None:
    text = format_plan(PLAN)
    notes = [
        step.get("note")
        for step in read(text.replace("Note: n", "Note: not by head\n  nor by hand"))["steps"]
    ]
    assert notes == ["not by head\nnor by hand", None, None]
    assert "note" not in read(text.replace("  Note: n\n", ""))["steps"][0]
    kept = read(text.replace("  Keep it.", "  Keep it.\n  note: as text"))["steps"][1]
    assert (kept["description"], kept["note"]) == ("Keep it.", "as text")


def test_steps_are_changed_moved_added_and_deleted_as_lines() -> None:
    plan = read("# a remark\nPlan: 1 + 4\n\nreporter: Report\n  Shortly.\n  In French.\nFile manager: Look\n")
    assert plan == {
        "thought": "A sum.",
        "title": "1 + 4",
        "steps": [
            {"agent_name": "reporter", "title": "Report", "description": "Shortly.\nIn French."},
            {"agent_name": "file_manager", "title": "Look", "description": "Look"},
        ],
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("codr: Compute", "Did you mean coder?"),
        ("just words", "Line 1 is not a step: 'just words'"),
        ("# nothing\nPlan: x\n", "has no steps"),
        ("coder: a\nbrowser: b\ncoder: c", "has 3 steps; at most 2"),
    ],
)
def test_an_invalid_plan_is_reported_as_text(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        read(text, most_steps=2)


GRAPH: dict[str, Any] = {
    "title": "Both",
    "steps": [
        {"agent_name": "researcher", "title": "A", "description": "Find A.", "needs": []},
        {"agent_name": "researcher", "title": "B", "description": "Find B.", "needs": []},
        {"agent_name": "coder", "title": "C", "description": "Compute C.", "needs": [2]},
        {"agent_name": "reporter", "title": "Report", "description": "Report."},
    ],
}


def needs(text: str) -> list[tuple[str, Any]]:
    plan = parse_plan_text(text, GRAPH, WORKERS, 12)
    return [(step["title"], step.get("needs")) for step in plan["steps"]]


@pytest.mark.parametrize(
    ("old", "new"),
    [("Report.", "Report briefly."), ("Find A.", "Find all of A."), (": A\n  Find A.", ": X\n  y")],
)
def test_an_edited_step_leaves_what_the_steps_need(old: str, new: str) -> None:
    assert [one for _, one in needs(format_plan(GRAPH).replace(old, new))] == [[], [], [2], None]


def test_steps_that_are_moved_or_deleted_are_needed_by_their_new_numbers() -> None:
    first = "1. researcher: A\n  Find A.\n  After: nothing\n"
    text = format_plan(GRAPH)
    assert first in text
    assert needs(text.replace(first, "")) == [("B", []), ("C", [1]), ("Report", None)]
    moved = text.replace(first, "").replace("3. coder: C", f"{first}3. coder: C")
    assert needs(moved) == [("B", []), ("A", []), ("C", [1]), ("Report", None)]
    added = text.replace(first, f"coder: N\n  New.\n{first}")
    assert needs(added) == [("N", None), ("A", []), ("B", []), ("C", [3]), ("Report", None)]
    gone = text.replace("2. researcher: B\n  Find B.\n  After: nothing\n", "")
    assert needs(gone) == [("A", []), ("C", []), ("Report", None)]


@pytest.mark.parametrize(
    ("new", "expected"),
    [("After: 1, 2", [1, 2]), ("after: 1 2", [1, 2]), ("After: none", []), ("After:", []), ("", None)],
)
def test_what_a_step_waits_for_is_edited(new: str, expected: list[int] | None) -> None:
    assert needs(format_plan(GRAPH).replace("After: 2", new))[2] == ("C", expected)


def test_a_step_that_is_copied_is_new_and_the_first_one_keeps_the_number() -> None:
    text = format_plan(GRAPH).replace("3. coder: C", "2. researcher: B again\n  Find B.\n3. coder: C")
    assert needs(text)[2:4] == [("B again", None), ("C", [2])]


@pytest.mark.parametrize("wrong", ["After: 3", "After: 4", "After: 9", "After: A"])
def test_a_step_can_only_wait_for_steps_above_it(wrong: str) -> None:
    with pytest.raises(ValueError, match="step"):
        needs(format_plan(GRAPH).replace("After: 2", wrong))


def test_a_repeated_step_stays_one_wherever_it_is_moved() -> None:
    steps = [GRAPH["steps"][0], {**GRAPH["steps"][3], "repeats": 1}]
    plan = {"title": "P", "steps": steps}
    assert parse_plan_text(format_plan(plan), plan, WORKERS, 12) == plan
