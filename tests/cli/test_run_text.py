import pytest

from maniple.cli.chat import ChatOptions
from maniple.cli.render.run_text import (
    exit_code,
    gap_lines,
    gap_review_lines,
    has_answer,
    has_open_work,
    plan_lines,
    run_mark,
    summary_line,
)
from maniple.events import Event, GapsReviewed, RunGap, RunStatusChanged
from maniple.types import RunStatus
from tests.cli.events import agent, ending, model, plan, review, run_after, small_talk, workflow

LONG = (*(("researcher", f"Step {n}") for n in range(1, 12)), ("reporter", "Report"))


@pytest.mark.parametrize(
    ("status", "code"),
    [("completed", 0), ("failed", 1), ("budget_exhausted", 4), ("interrupted", 3), ("cancelled", 130)],
)
def test_each_outcome_has_its_exit_status(status: RunStatus, code: int) -> None:
    assert exit_code(run_after(ending(status))) == code


@pytest.mark.parametrize(("statuses", "code"), [(("failed", "failed"), 1), (("failed", "completed"), 0)])
def test_a_completed_run_whose_steps_all_failed_exits_with_1(statuses: tuple[str, str], code: int) -> None:
    assert exit_code(run_after([plan(*statuses), *ending("completed")])) == code


def test_a_run_without_a_final_status_has_failed() -> None:
    assert exit_code(run_after(workflow()[:-3])) == 1


def test_the_summary_has_status_time_calls_and_tokens() -> None:
    line = summary_line(run_after(workflow()), 0.04)
    assert line == "completed · 0.0 s · 5 model calls · 550 tokens (500 in, 50 out)"


@pytest.mark.parametrize("events", [workflow(), small_talk()])
def test_a_completed_run_has_an_answer(events: list[Event]) -> None:
    assert has_answer(run_after(events))


@pytest.mark.parametrize("status", ["failed", "cancelled", "interrupted"])
def test_a_run_that_did_not_complete_has_no_answer(status: RunStatus) -> None:
    run = run_after([*agent("reporter", *model("reporter", "Half")), review(), *ending(status)])
    assert not has_answer(run)


def test_a_plan_is_a_list_of_steps_with_their_marks() -> None:
    steps = plan("completed", "in_progress").steps
    assert [line.plain for line in plan_lines(steps)] == ["✔  1 coder     Compute", "▶  2 reporter  Report"]
    assert not has_open_work(steps)


@pytest.mark.parametrize(
    ("status", "mark"),
    [
        *(("not_started", "☐"), ("in_progress", "▶"), ("blocked", "!")),
        *(("completed", "✔"), ("failed", "✘"), ("skipped", "–")),
    ],
)
def test_each_step_status_has_its_mark(status: str, mark: str) -> None:
    assert plan_lines(plan(status, "not_started").steps)[0].plain.startswith(mark)


def test_steps_are_numbered_by_their_position() -> None:
    steps = plan("completed", "not_started").steps
    renumbered = [step.model_copy(update={"id": 7}) for step in steps]
    assert [line.plain[2:4].strip() for line in plan_lines(renumbered)] == ["1", "2"]


def test_control_sequences_in_a_plan_are_not_printed() -> None:
    steps = plan("not_started", steps=[("coder", "\x1b[2JCompute")]).steps
    assert plan_lines(steps)[0].plain == "☐  1 coder  Compute"


@pytest.mark.parametrize("done", range(13))
def test_a_long_plan_is_shown_around_the_current_step(done: int) -> None:
    statuses = ["completed"] * done + ["in_progress"] * (done < 12) + ["not_started"] * (11 - done)
    lines = [line.plain for line in plan_lines(plan(*statuses, steps=LONG).steps, most=6)]

    assert len(lines) <= 6
    assert done == 12 or any(line.startswith("▶") for line in lines)


def test_a_gap_is_a_line_with_its_reason_and_counts_in_the_summary() -> None:
    gap = RunGap(step="Search\x1b[2J", reason="No data.")
    run = run_after([RunStatusChanged(status="completed", gaps=[gap])])
    [line] = gap_lines(run)
    assert "\x1b" not in line
    assert line.startswith("Not complete: Search")
    assert line.endswith("(No data.)")
    assert "1 step not complete" in summary_line(run, 0.0)
    assert run_mark(run) == "!"


def test_each_fact_of_a_round_before_the_report_is_a_line() -> None:
    reviewed = GapsReviewed.model_validate(
        {
            "round": 1,
            "questions": [
                {"question": "And milk?", "why": "", "open": False},
                {"question": "And 2050?", "why": "", "open": True},
            ],
            "steps": ["Find milk"],
            "refused": [{"title": "Find tea", "reason": "done before"}],
            "notice": "Nothing new.",
        }
    )
    lines = gap_review_lines(reviewed)
    named = ["And milk?", "And 2050?", "Find milk", "Find tea (done before)", "Nothing new."]
    assert [name in line for name, line in zip(named, lines, strict=True)] == [True] * 5
    assert len(lines[1]) > len(lines[0])


def test_the_depth_of_the_command_line_is_that_of_the_run() -> None:
    assert ChatOptions(depth="quick").run_options().depth == "quick"
    assert ChatOptions().run_options().depth == ""
