"""Whatever members answer, the lead decides and the user changes, no step and no partial result is lost.

A step is done, removed by the user, replaced by a new rest of the plan, or a gap with a reason.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maniple.agents.step_outcome import parse_answer, parse_failure
from maniple.agents.task import find_gaps
from maniple.graph.adaptation import answers_of, apply_rest, prepare_replanning
from maniple.graph.lead import Failure
from maniple.graph.plan import OPEN, Plan, PlannedStep, PlanProgress, TrackedStep
from maniple.graph.plan_edits import apply_changes
from maniple.graph.step_records import LeadDecision, NewStep, apply_decision, apply_records
from maniple.scope.inputs import SKIPPED, PlanChange

MEMBERS = ("researcher", "coder", "browser")
TEAM = (*MEMBERS, "reporter")
PARTIAL = "PARTIAL: May\n\nThe value {number} of the others is 3 [1]."
ENDINGS = (
    "It is done [1].",
    "STEP FAILED: no data",
    "STEP FAILED: no data\n\n**Needs:**\n- a page",
    "I tried.\nNEEDS: a page",
    PARTIAL,
    PARTIAL,
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


def rests(number: int) -> st.SearchStrategy[Plan]:
    titles = st.lists(st.sampled_from(MEMBERS), max_size=2)
    return st.builds(
        lambda members: Plan(
            title="The rest",
            steps=[
                *(
                    PlannedStep(agent_name=one, title=f"Rest {number}.{at}", description=f"do {number}.{at}")
                    for at, one in enumerate(members)
                ),
                PlannedStep(agent_name="reporter", title="Report", description="report"),
            ],
        ),
        titles,
    )


def decisions(number: int, kinds: list[Any]) -> st.SearchStrategy[LeadDecision | None]:
    """Return decisions that are possible; None stands for an answer that cannot be used."""
    decided = st.builds(
        LeadDecision,
        decision=st.sampled_from(kinds),
        hint=st.none() | st.just("look again"),
        step=st.builds(
            NewStep,
            agent_name=st.sampled_from(MEMBERS),
            title=st.just(f"New {number}"),
            description=st.just(f"do new {number}"),
        ),
        then_retry=st.none() | st.booleans(),
    )
    return st.none() | decided


def changes(number: int) -> st.SearchStrategy[PlanChange]:
    return st.builds(
        PlanChange,
        action=st.sampled_from(("skip", "redo", "edit", "add", "move", "retry")),
        step_id=st.integers(0, 9),
        title=st.just(f"Of the user {number}"),
        description=st.just(f"do {number} of the user"),
        agent_name=st.sampled_from(MEMBERS),
        after=st.integers(0, 9),
        change_id=st.just(f"change {number}"),
    )


@dataclass
class Run:
    """A run of a plan, step by step, with what is remembered of it."""

    data: st.DataObject
    progress: PlanProgress
    parts: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    """What partial results of each edition of a step found."""
    rewritten: set[int] = field(default_factory=set)
    """The steps that a new rest of the plan, with work in it, stood in for."""
    known: dict[int, str] = field(default_factory=dict)

    def play(self) -> None:
        for number in range(1, MAX_ROUNDS):
            self.notice()
            self.change(number)
            if not self.data.draw(st.integers(0, 15)):
                self.progress = self.progress.skipped_to_report("the budget is used up")
                self.check_parts()
            if (step := self.progress.current()) is None:
                break
            tried = self.attempt(step, number)
            self.check_parts()
            if tried.awaits_decision and not tried.by_code:
                self.decide(tried, number)
                self.check_parts()
        while (step := self.progress.current()) is not None:  # whatever is left is done
            self.end(step, MAX_ROUNDS, "It is done.")
        self.notice()

    def notice(self) -> None:
        new = {one.id: one.title for one in self.progress.steps if one.agent_name != "reporter"}
        lost = self.known.keys() - new.keys() - self.rewritten
        assert not lost, f"steps {lost} have left the plan"
        self.known |= new

    def change(self, number: int) -> None:
        if not self.data.draw(st.integers(0, 4)):
            change = self.data.draw(changes(number))
            before = self.progress
            self.progress = apply_changes(before, [change], TEAM)
            if change.action == "retry":  # it keeps what was found; every other change makes it void
                for one in before.steps:
                    now = self.progress.step(one.id)
                    if now is not None and (one.id, one.edition) in self.parts:
                        self.parts[(one.id, now.edition)] = self.parts[(one.id, one.edition)]
            reason = self.progress.refused.get(change.change_id)
            is_same = self.progress.steps == before.steps
            assert reason or not is_same or change.action == "skip", "a change had no effect, in silence"
            assert not (reason and not is_same)

    def attempt(self, step: TrackedStep, number: int) -> TrackedStep:
        ending = self.data.draw(st.sampled_from((*ENDINGS, None)))  # None: the member raises
        return self.end(step, number, ending)

    def end(self, step: TrackedStep, number: int, ending: str | None) -> TrackedStep:
        text = "Something broke." if ending is None else ending.format(number=number)
        is_report = step.agent_name == "reporter"
        answer = parse_failure(text) if ending is None else parse_answer(text, is_report=is_report)
        outcome, is_failed = answer.outcome, answer.outcome.status == "failed"
        if outcome.status == "partial":
            self.parts.setdefault((step.id, step.edition), []).append(f"The value {number} of")
        fields = {
            "status": "failed" if is_failed else "completed",
            "attempts": step.attempts + 1,
            "result": answer.text,
            "reason": outcome.summary if is_failed else "",
            "outcome": outcome.model_dump(mode="json"),
            "error_code": "internal" if ending is None else "",
            "settled": is_report and is_failed,
            "continuation": None,
        }
        self.progress = apply_records(self.progress, [record(step, number, "try", fields)])
        tried = self.progress.step(step.id)
        assert tried is not None
        return tried

    def decide(self, tried: TrackedStep, number: int) -> None:
        can_replan = self.progress.adaptations < 2
        failure = Failure(self.progress, tried, tried.attempts <= 1, can_replan)
        decision = self.data.draw(decisions(number, failure.decisions(TEAM)))
        decision = failure.decide_by_rule() if decision is None else decision
        self.progress = apply_decision(self.progress, tried, decision)
        if self.progress.replan_hint is None:
            return
        before, rest = prepare_replanning(self.progress), self.data.draw(rests(number))
        if len(rest.steps) > 1:
            self.rewritten |= {one.id for one in before.steps if one.status in OPEN}
            self.rewritten |= {*before.to_replace}
        self.progress = apply_rest(before, rest)

    def check_parts(self) -> None:
        shown = "\n".join(str(one.content) for one in answers_of(self.progress, 100_000))
        for (step_id, edition), found in self.parts.items():
            step = self.progress.step(step_id)
            if step is None or step.edition != edition:
                continue  # the user had it done again, or removed it
            assert all(one in step.found for one in found), "a partial result was lost"
            assert all(one in shown for one in found), "the lead does not see a partial result"
            if step.agent_name != "reporter" and step.status not in OPEN:
                assert step.status == "completed", "a step with a part counts as failed"

    def check_end(self) -> None:
        gaps = find_gaps(self.progress.to_state())
        named = [title for title, _ in gaps]
        assert all(reason for _, reason in gaps)
        for one in self.progress.steps:
            end = self.final(one)
            is_done = end.status == "completed" and end.outcome.status == "done"
            is_removed = end.status == "skipped" and end.reason == SKIPPED
            is_rewritten = end.is_replaced and end.id in self.rewritten
            assert is_done or is_removed or is_rewritten or end.title in named, (one, end)
            if is_done and end.title != one.title:
                assert one.title not in named or self.has_namesake(one), "a gap that was closed"
        assert len(gaps) <= len(self.progress.steps)

    def has_namesake(self, step: TrackedStep) -> bool:
        return sum(one.title == step.title for one in self.progress.steps) > 1

    def final(self, step: TrackedStep) -> TrackedStep:
        """Return the step that is done instead of `step` in the end; itself if none is."""
        for _ in self.progress.steps:
            step = self.progress.replacement_of(step) or step
        return step


def record(step: TrackedStep, at: int, kind: str, fields: dict[str, Any]) -> Any:
    place = {"at": at, "by": 1, "index": at, "name": kind, "step": step.id, "edition": step.edition}
    return {**place, "changes": 0, "kind": kind, "fields": fields, "at_work": []}


def play(data: st.DataObject) -> None:
    run = Run(data, data.draw(plans()))
    run.play()
    run.check_end()


@pytest.mark.slow
@settings(max_examples=150)
@given(data=st.data())
def test_no_step_and_no_part_is_lost(data: st.DataObject) -> None:
    play(data)


@pytest.mark.slow
@settings(max_examples=3_000, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_no_step_and_no_part_is_lost_in_many_runs(data: st.DataObject) -> None:
    play(data)
