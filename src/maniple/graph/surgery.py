"""Change one step of a plan that is worked through, and undo only what depends on it.

A step depends on the earlier ones whose results it was given (`Progress.given_to`), and so on. Mistakes are
`ValueError`s with words for the user.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from maniple.agents.wishes import PlanChange
from maniple.graph.plan import DECISIONS_FOR_A_STEP, Plan, PlannedStep, Progress, TrackedStep

S = TypeVar("S", bound=PlannedStep)

SKIPPED = "the user skipped it"


def fulfilled(progress: Progress, changes: Iterable[PlanChange], members: Sequence[str]) -> Progress:
    """Return the plan with those `changes` that are not in it yet, in their order.

    One that has become impossible since it was accepted is left out.
    """
    for change in changes:
        if change.change_id in progress.changes:
            continue
        with suppress(ValueError):
            progress = changed(progress, change, members)
        progress = progress.model_copy(update={"changes": (*progress.changes, change.change_id)})
    return progress


def changed(progress: Progress, change: PlanChange, members: Sequence[str]) -> Progress:
    """Return the plan with one change; `members` are who may be given a step."""
    match change.action:
        case "skip":
            return skip(progress, change.step_id)
        case "redo":
            return redo(progress, change.step_id)
        case "edit":
            return edit(progress, change, members)


def skip(progress: Progress, step_id: int) -> Progress:
    """Return the plan without the step's work; what was built on its result is done again without it."""
    step = _skippable(_known(progress.step(step_id), step_id))
    if step is progress.steps[-1]:  # of one who answers alone, without a report
        raise ValueError("This step cannot be skipped: it is the answer. Cancel the run instead.")
    if _is_skipped(step):
        return progress
    given_up = _blank() | {"status": "skipped", "reason": SKIPPED}
    return _undone(_settled(progress), step.id).with_step(step.id, **given_up)


def redo(progress: Progress, step_id: int) -> Progress:
    """Return the plan in which the step is done anew, and after it what was built on its result."""
    return _begun_anew(progress, _known(progress.step(step_id), step_id))


def edit(progress: Progress, change: PlanChange, members: Sequence[str]) -> Progress:
    """Return the plan in which the step is another one, to be done anew like by `redo`."""
    step = _known(progress.step(change.step_id), change.step_id)
    return _begun_anew(progress, step, **_edits(step, change, members))


def reviewed(plan: Plan, change: PlanChange, members: Sequence[str]) -> Plan:
    """Return a plan that waits for its review with one change; its steps are numbered from 1."""
    number, steps = change.step_id, list(plan.steps)
    step = _known(steps[number - 1] if 0 < number <= len(steps) else None, number)
    match change.action:
        case "redo":
            raise ValueError("Nothing of the plan is done yet, so no step can be done again.")
        case "edit":
            steps[number - 1] = step.model_copy(update=_edits(step, change, members))
        case "skip":
            _skippable(step)
            steps = [_renumbered(one, number) for one in steps if one is not step]
    return plan.model_copy(update={"steps": steps})


def _known(step: S | None, step_id: int) -> S:
    if step is None:
        raise ValueError(f"The plan has no step {step_id}.")
    return step


def _skippable(step: S) -> S:
    if step.agent_name == "reporter":
        raise ValueError("The report cannot be skipped: it is the answer. Cancel the run instead.")
    return step


def _edits(step: PlannedStep, change: PlanChange, members: Sequence[str]) -> dict[str, Any]:
    """Return what `change` says of the step, checked."""
    given = {"title": change.title, "description": change.description, "agent_name": change.agent_name}
    edits = {name: text.strip() for name, text in given.items() if text is not None}
    if not edits:
        raise ValueError("An edit needs a title, a description or an agent_name.")
    if empty := [name for name, text in edits.items() if not text]:
        raise ValueError(f"{', '.join(empty)} must not be empty.")
    agent = edits.get("agent_name", step.agent_name)
    if agent not in members:
        raise ValueError(f"{agent} is not on the team of this run; it has {', '.join(members)}.")
    if (agent == "reporter") != (step.agent_name == "reporter"):
        raise ValueError("The reporter has the last step and no other, and nobody else can take that.")
    return edits


def _begun_anew(progress: Progress, step: TrackedStep, **edits: Any) -> Progress:
    progress = _undone(_settled(progress), step.id)
    more = {"decisions_left": progress.decisions_left + DECISIONS_FOR_A_STEP, "failures": 0}
    return progress.with_step(step.id, **_blank(), **edits).model_copy(update=more)


def _undone(progress: Progress, step_id: int) -> Progress:
    """Return the plan in which all that depends on the step is still to be done.

    What the user skipped stays so; what the team gave up is tried again.
    """
    affected = {step_id}
    for step in progress.steps:
        if not _is_skipped(step) and any(one.id in affected for one in progress.given_to(step)):
            affected.add(step.id)
            progress = progress.with_step(step.id, **_blank())
    return progress


def _is_skipped(step: TrackedStep) -> bool:
    return step.status == "skipped" and step.reason == SKIPPED


def _settled(progress: Progress) -> Progress:
    """Return the plan in which steps that the run has gone on without stay so, though others begin anew."""
    for step in progress.steps:
        if step.status == "failed" and progress.given_up(step):
            progress = progress.with_step(step.id, reason=step.reason, settled=True)
    return progress


def _blank() -> dict[str, Any]:
    """Return what makes a step one that was never begun."""
    names = ("status", "attempts", "result", "reason", "settled")
    return {name: TrackedStep.model_fields[name].default for name in names}


def _renumbered(step: PlannedStep, gone: int) -> PlannedStep:
    if step.needs is None:
        return step
    needs = [need - (need > gone) for need in step.needs if need != gone]
    return step.model_copy(update={"needs": needs})
