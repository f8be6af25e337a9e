"""What a person's line means to the team that waits for it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from maniple.cli.chat.answers import (
    EditRequest,
    UnchangedAnswer,
    UnclearAnswer,
    parse_answer,
    parse_edited_answer,
)
from maniple.cli.chat.prompt import Prompt
from maniple.cli.render.run_text import answer_hint, answer_instructions, describe_question, review_texts
from maniple.events import PlanStepView, RunInterrupted
from maniple.tools.decisions import (
    CallApproval,
    CallEdit,
    CallRejection,
    CallRerun,
    CallResult,
    CallSkip,
    is_acceptance,
    parse_approval,
    parse_unknown_result,
)
from maniple.types import WORKERS
from tests.cli.pauses import ARGUMENTS, PLAN, approval, plan_review, question


@pytest.mark.parametrize("line", ["", "accept", "yes", " OK ", "好的"])
def test_a_plan_is_accepted_by_nothing_or_by_a_word(line: str) -> None:
    assert is_acceptance(parse_answer(plan_review(), line))


def test_other_words_on_a_plan_go_to_the_planner_as_they_are() -> None:
    assert parse_answer(plan_review(), "use the browser instead") == "use the browser instead"


def test_an_edited_plan_is_a_plan_and_one_that_was_not_changed_is_none() -> None:
    start = parse_answer(plan_review(), "e")
    assert isinstance(start, EditRequest)
    with pytest.raises(UnchangedAnswer):
        parse_edited_answer(plan_review(), start.text, WORKERS, 12)
    with pytest.raises(UnclearAnswer, match="Did you mean coder"):
        parse_edited_answer(plan_review(), start.text.replace("coder:", "codr:"), WORKERS, 12)
    plan = parse_edited_answer(plan_review(), start.text.replace("coder:", "browser:"), WORKERS, 12)
    assert [step["agent_name"] for step in plan["steps"]] == ["browser", "reporter"]


@pytest.mark.parametrize("line", ["y", "yes", "OK"])
def test_a_call_is_approved_by_a_word(line: str) -> None:
    assert parse_approval(parse_answer(approval(), line)) == CallApproval()


@pytest.mark.parametrize(
    ("line", "words"),
    [("n", ""), ("no", ""), ("n too risky", "n too risky"), ("No, use ls.", "No, use ls.")],
)
def test_a_call_is_rejected_by_no_with_the_text_unchanged(line: str, words: str) -> None:
    assert parse_approval(parse_answer(approval(), line)) == CallRejection(words)


@pytest.mark.parametrize("line", ["not now", "what does it do?", "use ls", "yes, but ls", "1"])
def test_another_text_decides_nothing_on_a_call(line: str) -> None:
    with pytest.raises(UnclearAnswer):
        parse_answer(approval(), line)


def test_the_arguments_of_a_call_are_edited_as_json() -> None:
    start = parse_answer(approval(), "e")
    assert isinstance(start, EditRequest)
    assert json.loads(start.text) == ARGUMENTS
    with pytest.raises(UnchangedAnswer):
        parse_edited_answer(approval(), start.text, WORKERS, 12)
    answer = parse_edited_answer(approval(), '{"cmd": "ls"}', WORKERS, 12)
    assert parse_approval(answer) == CallEdit({"cmd": "ls"})
    assert parse_answer(approval(), 'e {"cmd": "ls"}') == answer


@pytest.mark.parametrize(("text", "words"), [("{", "not valid JSON"), ("[1]", "must be a JSON object")])
def test_arguments_that_are_no_json_object_are_refused(text: str, words: str) -> None:
    with pytest.raises(UnclearAnswer, match=words):
        parse_edited_answer(approval(), text, WORKERS, 12)


def test_a_tool_is_never_run_by_pressing_enter() -> None:
    for one in (approval(), approval("unknown_result")):
        with pytest.raises(UnclearAnswer):
            parse_answer(one, "  ")


def test_arguments_that_cannot_be_used_are_not_approved() -> None:
    wrong = approval(error="cmd: missing")
    assert "not valid: cmd: missing" in describe_question(wrong)
    for line in ("y", ""):
        with pytest.raises(UnclearAnswer, match="Enter e to edit"):
            parse_answer(wrong, line)
    assert "y" not in answer_hint(wrong)


def test_an_unknown_result_is_repeated_skipped_or_given() -> None:
    unknown = approval("unknown_result")
    assert parse_unknown_result(parse_answer(unknown, "again")) == CallRerun()
    assert parse_unknown_result(parse_answer(unknown, "skip")) == CallSkip()
    given = parse_unknown_result(parse_answer(unknown, "result: It printed 4."))
    assert given == CallResult("It printed 4.")
    with pytest.raises(UnclearAnswer):
        parse_answer(unknown, "It printed 4.")
    assert "result is unknown" in describe_question(unknown)


def test_a_question_is_answered_by_number_or_in_words() -> None:
    asked = question("Which?", "red", "green")
    assert parse_answer(asked, "2") == "green"
    assert parse_answer(asked, "blue") == "blue"
    assert describe_question(asked).splitlines() == ["Which?", "  1  red", "  2  green"]
    for line in ("3", "0", ""):
        with pytest.raises(UnclearAnswer):
            parse_answer(asked, line)
    assert parse_answer(question("How many?"), "3") == "3"


def test_arguments_are_shown_exactly_and_nothing_in_them_is_hidden() -> None:
    shown = describe_question(
        approval(arguments={"cmd": "ls\x1b[2K\rrm -rf /", "code": "a\nb\u202ec", "n": {"x": [1]}})
    )
    assert shown.splitlines() == [
        "bash_tool asks for approval. Its arguments:",
        r"  cmd: ls\x1b[2K\rrm -rf /",
        "  code:",
        "    │ a",
        r"    │ b\u202ec",
        '  n: {"x": [1]}',
    ]


@pytest.mark.parametrize(
    "one", [plan_review(), approval(), approval("unknown_result"), question("?"), question("?", "a")]
)
def test_every_pause_shows_how_to_answer_it(one: RunInterrupted) -> None:
    assert answer_instructions(one)


def test_a_pause_of_a_graph_around_the_team_is_a_question() -> None:
    payload: dict[str, Any] = {"value": "Go?"}
    foreign = RunInterrupted(interrupt_id="1", kind="question", payload=payload, options=[])
    assert describe_question(foreign) == '{"value": "Go?"}'
    assert parse_answer(foreign, "yes") == "yes"


async def edited(keys: str, folder: Path) -> str:
    """Return what a person makes of three lines with the keys of the prompt's editor."""
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        prompt = Prompt(folder / "history", (), (), color=False)
        pipe.send_text(keys)
        return await asyncio.wait_for(prompt.edit("one\ntwo\nthree"), 20)


UP, ALT_ENTER, ENTER = "\x1b[A", "\x1b\r", "\r"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (f"!{ENTER}", "one\ntwo\nthree!"),
        (f"{UP}!{ENTER}?{ENTER}", "one\ntwo!\nthree?"),
        (f"{ALT_ENTER}four{ENTER}", "one\ntwo\nthree\nfour"),
    ],
)
async def test_only_enter_on_the_last_line_sends_an_edited_text(keys: str, text: str, tmp_path: Path) -> None:
    assert await edited(keys, tmp_path) == text


def test_a_review_reports_what_each_step_is_and_its_note() -> None:
    noted = {**PLAN, "steps": [{**PLAN["steps"][0], "note": "Not before noon."}, PLAN["steps"][1]]}
    review = RunInterrupted(interrupt_id="1", kind="plan_review", payload={"plan": noted}, options=[])
    first, second = (
        PlanStepView(id=number, status="not_started", **{**step, "description": f"What {number} does."})
        for number, step in enumerate(PLAN["steps"], start=1)
    )
    assert review_texts(first, review)[0] == "What 1 does."
    assert "Not before noon." in review_texts(first, review)[1]
    assert review_texts(second, review) == ["What 2 does."]


@pytest.mark.parametrize(
    ("needs", "expected"), [([], "Starts at once"), ([1], "Waits for 1"), ([1, 2], None), (None, None)]
)
def test_a_review_shows_what_a_step_waits_for_unless_it_is_all_above(
    needs: list[int] | None, expected: str | None
) -> None:
    step = {"agent_name": "coder", "title": "C", "description": "Compute C."}
    plan = {"title": "P", "steps": [*PLAN["steps"], {**step, "needs": needs}]}
    review = RunInterrupted(interrupt_id="1", kind="plan_review", payload={"plan": plan}, options=[])
    shown = review_texts(PlanStepView(id=3, status="not_started", **step), review)
    assert shown == ["Compute C.", *([expected] if expected else [])]
