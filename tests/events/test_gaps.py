"""The gaps of an answer: their steps and their texts."""

import pytest

from maniple.agents.task import NOT_WRITTEN, StepResult, explain_failure, find_partial_work
from maniple.events import (
    PlanChanged,
    PlanStepView,
    RunStatusChanged,
    RunView,
    StreamState,
    Translator,
    as_json,
)
from maniple.scope.inputs import SKIPPED
from maniple.types import RunStatus


def ended(status: RunStatus, *steps: tuple[str, str]) -> RunStatusChanged:
    views = [
        PlanStepView(id=n, agent_name="coder", title=f"Step {n}", description="", status=state, reason=reason)
        for n, (state, reason) in enumerate(steps, start=1)
    ]
    stream = StreamState(has_started=True, plan=PlanChanged(title="Plan", steps=views))
    events = Translator("run", "thread", [], stream).close(status)
    return next(event for event in events if isinstance(event, RunStatusChanged))


def test_steps_that_failed_or_were_skipped_are_gaps_but_not_those_that_the_user_skipped():
    event = ended(
        "completed", ("completed", ""), ("failed", "no data"), ("skipped", SKIPPED), ("skipped", "no time")
    )
    assert [(gap.step, gap.reason) for gap in event.gaps or ()] == [
        ("Step 2", "No data."),
        ("Step 4", "No time."),
    ]


def test_without_gaps_and_without_an_answer_the_wire_has_no_such_key():
    assert as_json(ended("completed", ("completed", ""))) == '{"status": "completed"}'
    assert as_json(ended("failed", ("failed", "no data"))) == '{"status": "failed"}'


def test_the_view_has_the_gaps_of_the_newest_segment():
    view = RunView()
    view.apply(ended("completed", ("failed", "no data")))
    assert [gap.step for gap in view.gaps] == ["Step 1"]


def test_a_gap_that_the_answer_names_itself_is_not_stated_twice():
    answer = StepResult("coder", "Step 1", "", done=False, reason="No data.").describe_missing()
    steps = ("failed", "no data"), ("failed", "no data"), ("failed", "The reporter gave none.")
    view = RunView(answer=f"# Sum\n\n{answer}\n\n*{NOT_WRITTEN}: The reporter gave none.*")
    view.apply(ended("completed", *steps))
    assert [gap.step for gap in view.gaps] == ["Step 1", "Step 2", "Step 3"]
    assert [gap.step for gap in view.unstated_gaps] == ["Step 2"]
    view.answer = "# Sum\n\n**Es fehlt (Step 2):** Nichts gefunden."
    assert [gap.step for gap in view.unstated_gaps] == ["Step 1", "Step 3"]
    view.answer = "# Sum"
    assert view.unstated_gaps == view.gaps


@pytest.mark.parametrize(
    "failure",
    [
        "tavily_search failed: No search provider answered. ddgs: DNSError('error sending request')",
        "crawl_tool failed: ConnectError: [Errno -2] Name or service not known",
        "anything_else failed: KeyError: 'x'",
        "the program failed twice: NameError: name 'x' is not defined\nTraceback (most recent call last):",
        "MISSING: httpx.ConnectError(boom)",
    ],
)
def test_no_exception_is_shown_to_the_user(failure):
    sentence = explain_failure(failure)
    assert "Error(" not in sentence
    assert "Error:" not in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert find_partial_work(failure) == ""


def test_text_and_results_of_a_member_stay():
    failure = "no table on the page\nUntil then:\nread: 42"
    assert explain_failure(failure) == "No table on the page."
    assert find_partial_work(failure) == "read: 42"


@pytest.mark.parametrize("reason", ["scan.pdf has no text.", "第二个页面不存在。", "http://a.test is gone!"])
def test_a_reason_that_is_a_sentence_stays_as_it_is(reason: str) -> None:
    assert explain_failure(reason) == reason
