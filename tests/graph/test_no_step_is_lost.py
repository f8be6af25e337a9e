"""Whatever members answer and the lead decides, each step is done, removed with a reason, or a gap."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from maniple.agents.inputs import SKIPPED
from maniple.agents.step_outcome import parse_answer
from maniple.agents.task import find_gaps
from maniple.graph.plan import OPEN, Plan, PlannedStep, PlanProgress, TrackedStep
from maniple.graph.step_records import LeadDecision, NewStep, apply_decision, apply_records

MEMBERS = ("researcher", "coder", "browser")
ENDINGS = (
    "It is done [1].",
    "STEP FAILED: no data",
    "STEP FAILED: no data\n\n**Needs:**\n- a page",
    "I tried.\nNEEDS: a page",
    "",
)
MAX_ROUNDS = 60


@st.composite
def plans(draw: st.DrawFn) -> PlanProgress:
    steps = [
        PlannedStep(
            agent_name=draw(st.sampled_from(MEMBERS)),
            title=f"Step {number}",
            description=f"do {number}",
            needs=draw(st.none() | st.lists(st.integers(1, number - 1), unique=True)) if number > 1 else None,
        )
        for number in range(1, draw(st.integers(1, 4)) + 1)
    ]
    report = PlannedStep(agent_name="reporter", title="Report", description="report")
    return PlanProgress.of(Plan(title="The plan", steps=[*steps, report]))


def decisions(number: int) -> st.SearchStrategy[LeadDecision]:
    return st.builds(
        LeadDecision,
        decision=st.sampled_from(("retry", "reassign", "continue_without", "finish")),
        hint=st.none() | st.just("look again"),
        step=st.builds(
            NewStep,
            agent_name=st.sampled_from(MEMBERS),
            title=st.just(f"New {number}"),
            description=st.just(f"do new {number}"),
        ),
        then_retry=st.none() | st.booleans(),
    )


def attempt(progress: PlanProgress, step: TrackedStep, ending: str) -> dict[str, Any]:
    answer = parse_answer(ending, is_report=step.agent_name == "reporter")
    is_failed = answer.outcome.status == "failed"
    return {
        "status": "failed" if is_failed else "completed",
        "attempts": step.attempts + 1,
        "result": answer.text,
        "reason": answer.outcome.summary if is_failed else "",
        "outcome": answer.outcome.model_dump(mode="json"),
    }


def record(step: TrackedStep, at: int, kind: str, fields: dict[str, Any]) -> Any:
    place = {"at": at, "by": 1, "index": at, "name": kind, "step": step.id, "edition": step.edition}
    return {**place, "changes": 0, "kind": kind, "fields": fields, "at_work": []}


@given(data=st.data())
def test_no_step_leaves_a_plan_without_being_done_or_a_gap(data: st.DataObject) -> None:
    progress = data.draw(plans())
    titles, number = [one.title for one in progress.steps], 0
    for number in range(1, MAX_ROUNDS):
        step = progress.current()
        if step is None:
            break
        fields = attempt(progress, step, data.draw(st.sampled_from(ENDINGS)))
        progress = apply_records(progress, [record(step, number, "try", fields)])
        tried = progress.step(step.id)
        assert tried is not None
        if tried.status != "failed" or tried.settled:
            continue
        decision = data.draw(decisions(number))
        if tried.attempts > 1 and decision.decision in ("retry", "reassign"):
            decision = LeadDecision(decision="continue_without")
        if tried.by_code:
            break
        progress = apply_decision(progress, tried, decision)
    check(progress, titles)


def check(progress: PlanProgress, titles: list[str]) -> None:
    assert set(titles) <= {one.title for one in progress.steps}
    gaps = [title for title, _ in find_gaps(progress.to_state(), with_open=True)]
    assert all(reason for _, reason in find_gaps(progress.to_state(), with_open=True))
    for one in progress.steps:
        end = final(progress, one)
        is_done = end.status == "completed" and end.outcome.status == "done"
        is_removed = end.status == "skipped" and end.reason == SKIPPED
        assert is_done or is_removed or end.title in gaps, (one, end)
        assert (end.title in gaps) is not is_done
        if one.id != end.id and one.title != end.title:
            assert one.title not in gaps, "one gap for a step and its replacement"
    assert all(one.status not in OPEN or one.title in gaps for one in progress.steps)


def final(progress: PlanProgress, step: TrackedStep) -> TrackedStep:
    """Return the step that is done instead of `step` in the end; itself if none is."""
    for _ in progress.steps:
        step = progress.replacement_of(step) or step
    return step
