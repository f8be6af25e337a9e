"""What a user's answer decides, for every client alike."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.tools.decisions import (
    CallApproval,
    CallEdit,
    CallRejection,
    CallRerun,
    CallResult,
    CallSkip,
    UnclearDecision,
    is_plan_acceptance,
    parse_approval,
    parse_plan_feedback,
    parse_unknown_result,
)


@pytest.mark.parametrize(
    "answer",
    [
        *("yes", "y", "ok", "Approve.", "Yes!", "yes, please", "OK, go", "thanks, yes"),
        *("ja", "oui", "sí", "好的。", True, {"type": "approve"}, {"type": "accept"}, {"type": "Accepted"}),
    ],
)
def test_words_of_acceptance_alone_approve_a_call(answer: object) -> None:
    assert parse_approval(answer) == CallApproval()


@pytest.mark.parametrize(
    "text",
    [
        "yes, but not this one",
        "yes?",
        "Approve? No!",
        "approve the other one",
        "go away",
        "ok, what does it do?",
        "it is fine if there is no backup",
        "nothing is wrong with it",
        "not now",
        "n\u00e9anmoins",
        "rejecting this would be a mistake",
        "edit",
        "",
    ],
)
def test_a_text_that_is_neither_acceptance_nor_rejection_is_unclear(text: str) -> None:
    decision = parse_approval(text)
    assert isinstance(decision, UnclearDecision)
    assert all(kind in decision.explanation for kind in ("approve", "edit", "reject"))


@pytest.mark.parametrize("answer", [None, 1, [], {}, {"type": "edit"}, {"type": "edit", "args": "x"}])
def test_a_value_of_no_known_form_is_unclear(answer: object) -> None:
    assert isinstance(parse_approval(answer), UnclearDecision)
    assert isinstance(parse_unknown_result(answer), UnclearDecision)


@given(
    st.text(st.characters(codec="utf-8"), max_size=80), st.sampled_from(["no", "No,", "n:", "NO -", "no\n"])
)
def test_the_reason_of_a_rejection_is_the_text_unchanged(reason: str, beginning: str) -> None:
    text = f"{beginning} there is no {reason}".strip()
    assert parse_approval(text) == CallRejection(text)
    assert parse_approval(f"/reject {text}") == CallRejection(text)
    assert parse_approval({"type": "reject", "message": text}) == CallRejection(text)


@pytest.mark.parametrize(
    "text",
    ["Nein, davon gibt es keine Kopie", "non : pas ce fichier", "No, ese no", "不，先备份", "不要删除它"],
)
def test_a_no_of_any_known_language_rejects(text: str) -> None:
    assert parse_approval(text) == CallRejection(text)


@pytest.mark.parametrize("text", ["不要紧", "Nonsense was meant", "Neinhausen is it", "notes.md instead"])
def test_a_word_that_only_begins_like_a_no_is_unclear(text: str) -> None:
    assert isinstance(parse_approval(text), UnclearDecision)


@pytest.mark.parametrize("answer", ["no", "N.", "/reject", "nein", "不要", False, {"type": "reject"}])
def test_a_rejection_may_have_no_reason(answer: object) -> None:
    assert parse_approval(answer) == CallRejection("")


def test_an_edit_has_the_arguments_that_run() -> None:
    assert parse_approval({"type": "edit", "args": {"cmd": "ls"}}) == CallEdit({"cmd": "ls"})


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ("Run again.", CallRerun()),
        ({"type": "run_again"}, CallRerun()),
        ("skip", CallSkip()),
        ({"type": "skip"}, CallSkip()),
        ("result: no rows were left", CallResult("no rows were left")),
        ("Result:\n1\n2", CallResult("1\n2")),
        ({"type": "result", "message": "run again"}, CallResult("run again")),
    ],
)
def test_an_unknown_result_is_decided_by_name(answer: object, decision: object) -> None:
    assert parse_unknown_result(answer) == decision


@pytest.mark.parametrize(
    "answer", [{"type": "reject", "message": "no {backup}"}, {"type": "edit", "args": {"n": 1}}]
)
def test_an_object_as_text_decides_like_the_object(answer: dict[str, object]) -> None:
    assert parse_approval(f"\n{json.dumps(answer, indent=1)} ") == parse_approval(answer)
    assert parse_approval('{"type": "approve"}') == CallApproval()
    assert parse_unknown_result('{"type": "result", "message": "5"}') == CallResult("5")
    assert isinstance(parse_approval('{"a":' * 100_000), UnclearDecision)


@pytest.mark.parametrize("always", [1, "yes", "true", None, False])
def test_only_true_approves_for_the_rest_of_the_run(always: object) -> None:
    assert parse_approval({"type": "approve", "always": True}) == CallApproval(always=True)
    assert parse_approval({"type": "approve", "always": always}) == CallApproval()


@pytest.mark.parametrize("key", ["message", "reason", "text"])
def test_an_acceptance_with_a_message_that_asks_for_something_else_is_none(key: str) -> None:
    assert isinstance(parse_approval({"type": "approve", key: "but not b.txt"}), UnclearDecision)
    assert not is_plan_acceptance({"type": "accept", key: "but without step 2"})
    assert parse_approval({"type": "approve", key: "ok"}) == CallApproval()
    assert parse_approval({"type": "approve", key: ""}) == CallApproval()


@pytest.mark.parametrize("text", ["yes", "approve", "Use euros throughout.", "no", "results look fine"])
def test_a_text_is_no_result_unless_it_says_so(text: str) -> None:
    assert isinstance(parse_unknown_result(text), UnclearDecision)


@pytest.mark.parametrize(("text", "accepts"), [("Looks good!", True), ("go ahead", True), ("no", False)])
def test_a_plan_is_accepted_in_a_few_words(text: str, accepts: bool) -> None:
    assert is_plan_acceptance(text) is accepts


def test_feedback_on_a_plan_is_passed_on_without_the_command() -> None:
    assert parse_plan_feedback("/reject use no browser") == "use no browser"
    assert parse_plan_feedback("No, use no browser") == "No, use no browser"
