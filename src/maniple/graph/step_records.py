"""Stored records of the steps of a wave, and the plan that follows from them.

The plan of a wave is a pure function of its initial plan, its records in order, and the user's changes. So
every execution of the wave, live or after a restart, results in the same plan.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict, cast

from pydantic import BaseModel, model_validator

from maniple.agents.task import MISSING_IN_IT
from maniple.graph.plan import PlannedStep, PlanProgress, TrackedStep
from maniple.graph.plan_edits import apply_changes
from maniple.graph.written_plan import REPORTER
from maniple.langgraph_internals import results_of_calls
from maniple.scope.inputs import PlanChange
from maniple.types import PRIVATE_CHANNEL, DecisionKind, is_mapping


class NewStep(BaseModel):
    """A step that the lead assigns to a member."""

    agent_name: str
    title: str = ""
    description: str


class LeadDecision(BaseModel):
    """The lead's answer."""

    decision: DecisionKind
    hint: str | None = None
    step: NewStep | None = None
    then_retry: bool | None = None
    """For `reassign`: whether the failed step is tried again after the new one, or that is done instead."""

    @model_validator(mode="before")
    @classmethod
    def _accepts_a_name(cls, value: Any) -> Any:
        """Accept `{"next": MEMBER}`, the answer of LangManus's supervisor, as a decision."""
        if not is_mapping(value) or "decision" in value or "next" not in value:
            return value
        name = str(value["next"])
        if name in ("FINISH", REPORTER):
            return {"decision": "finish"}
        return {"decision": "retry", "hint": value.get("hint")}


class StepRecord(TypedDict):
    """The outcome of one call in a wave: an attempt of a step, or a decision of the lead. Plain data."""

    at: int
    """Its position among all records of the wave."""
    by: int
    """The invocation that made the call, identified by its initial step."""
    index: int
    """Its position among the calls of that invocation."""
    name: str
    """The name of the call."""
    step: int
    edition: int
    """The edition of the step at the start of the call. Records of earlier editions have no effect."""
    changes: int
    """The number of the user's changes in the plan at that time."""
    kind: Literal["try", "stopped", "decision", "undecided"]
    fields: dict[str, Any]
    """For an attempt the changed fields of the step, for a decision a `LeadDecision`; empty otherwise."""
    at_work: list[int]
    """For a decision: the ids of the running steps, which finish even if no further step starts."""


def apply_records(
    progress: PlanProgress,
    records: Iterable[StepRecord],
    changes: Iterable[PlanChange] = (),
    members: Sequence[str] = (),
) -> PlanProgress:
    """Return the plan after the records and the user's changes, in the order in which they happened."""
    *_, last = _replay(progress, records, changes, members)
    return last


def close_progress(
    progress: PlanProgress,
    records: Iterable[StepRecord],
    changes: Iterable[PlanChange],
    members: Sequence[str],
) -> PlanProgress:
    """Return the plan of a run that goes no further, as `apply_records` does.

    What a step had found before a change of the user undid it stays in its `part`.
    """
    plans = [*_replay(progress, records, changes, members)]
    last = plans[-1]
    for step in last.steps:
        earlier = (plan.step(step.id) for plan in plans)
        found = dict.fromkeys(one.result for one in earlier if one is not None and one.has_result)
        undone = "\n\n".join(text for text in found if text != step.result and text not in step.part)
        if undone:
            part = "\n\n".join(filter(None, (step.part, undone)))
            last = last.with_step(step.id, reason=step.reason, part=part)
    return last


def _replay(
    progress: PlanProgress,
    records: Iterable[StepRecord],
    changes: Iterable[PlanChange],
    members: Sequence[str],
) -> Iterator[PlanProgress]:
    """Yield the plan, and the one after each record and each change that it does not contain."""
    yield progress
    waiting = [change for change in changes if change.change_id not in progress.changes]
    for record in sorted(records, key=lambda one: one["at"]):
        while waiting and len(progress.changes) < record["changes"]:
            progress = apply_changes(progress, [waiting.pop(0)], members)
            yield progress
        progress = _apply_record(progress, record)
        yield progress
    for change in waiting:
        progress = apply_changes(progress, [change], members)
        yield progress


def read_records(writes: Iterable[tuple[str, str, Any]]) -> tuple[list[StepRecord], set[int]]:
    """Return the records among the pending writes of a superstep, and the invocations that have ended."""
    writes = list(writes)
    records = [
        cast("StepRecord", one) for one in results_of_calls(writes) if is_mapping(one) and "kind" in one
    ]
    ended: set[int] = set()
    for _, channel, value in writes:
        if channel == PRIVATE_CHANNEL and is_mapping(value):
            finished = cast("Mapping[str, list[StepRecord]]", value.get("ended") or {})
            records += (record for group in finished.values() for record in group)
            ended |= {int(number) for number in finished}
    return records, ended


def is_effective(progress: PlanProgress, record: StepRecord) -> bool:
    """Return whether a record belongs to the present edition of its step."""
    step = progress.step(record["step"])
    return step is not None and step.edition == record["edition"]


def _apply_record(progress: PlanProgress, record: StepRecord) -> PlanProgress:
    step = progress.step(record["step"])
    if step is None or not is_effective(progress, record):
        return progress
    if record["kind"] == "try":
        return progress.with_attempt(step.id, record["fields"])
    if record["kind"] == "decision":
        decision = LeadDecision.model_validate(record["fields"])
        return apply_decision(progress, step, decision, record["at_work"])
    return progress


def apply_decision(
    progress: PlanProgress, failed: TrackedStep, decision: LeadDecision, at_work: Collection[int] = ()
) -> PlanProgress:
    """Return the plan after a decision of the lead. `replan` sets the plan's `replan_hint`.

    `at_work` are the ids of other steps that are running.
    """
    progress = progress.model_copy(update={"decisions_left": max(progress.decisions_left - 1, 0)})
    match decision.decision:
        case "retry":
            return _retry(progress, failed, decision.hint)
        case "reassign" if decision.step is not None:
            return _reassign(progress, failed, decision.step, decision)
        case "replan":
            return progress.model_copy(update={"replan_hint": decision.hint or ""})
        case "finish":
            reason = f"{failed.title!r} could not be done"
            progress = progress.skipped_to_report(reason, at_work).with_gap_rounds(is_over=True)
            return _give_up(progress, failed)
        case _:
            return _give_up(progress, failed)


def _retry(progress: PlanProgress, failed: TrackedStep, hint: str | None) -> PlanProgress:
    reason = f"{MISSING_IN_IT} {failed.outcome.reason}" if failed.is_partial else failed.reason
    return progress.with_step(
        failed.id, status="blocked", reason=reason, note=_join_notes(failed.note, hint), repeats=None
    )


def _reassign(
    progress: PlanProgress, failed: TrackedStep, new: NewStep, decision: LeadDecision
) -> PlanProgress:
    """Return the plan with a step of another member, before the failed one is tried again or instead of it.

    If the lead does not say which, it is the former if the failed step needs something. A report is always
    tried again.
    """
    title = new.title or failed.title
    step = PlannedStep(
        agent_name=new.agent_name, title=title, description=new.description, note=decision.hint
    )
    then_retry = bool(failed.outcome.needs) if decision.then_retry is None else decision.then_retry
    if not then_retry and failed.agent_name != REPORTER:
        return progress.replaced(failed.id, step)
    same = any(
        one.agent_name == new.agent_name and one.description == new.description for one in progress.steps
    )
    if same:
        return _give_up(progress, failed)
    return _retry(progress, failed, None).inserted_before(failed.id, step)


def _give_up(progress: PlanProgress, failed: TrackedStep) -> PlanProgress:
    """Return the plan that continues without a step; a failed report is compiled by code."""
    if failed.agent_name == REPORTER:
        return progress.with_step(failed.id, status="not_started", by_code=True, repeats=None)
    return progress.with_step(failed.id, settled=True, reason=failed.reason)


def _join_notes(note: str | None, hint: str | None) -> str | None:
    return "\n".join(filter(None, (note, hint))) or None
