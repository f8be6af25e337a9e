"""Change a plan that is worked through step by step, and undo only what depends on what was changed.

A step depends on the earlier ones whose results it was given (`PlanProgress.given_to`), and so on.
Mistakes are `ValueError`s with a message for the user.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from maniple.agents.plan_edits import SKIPPED, PlanChange
from maniple.graph.plan import DECISIONS_FOR_A_STEP, TO_BEGIN, Plan, PlannedStep, PlanProgress, TrackedStep

S = TypeVar("S", bound=PlannedStep)

MOST_STEPS = 100
"""As many steps as a plan may have by the user's additions."""


def apply_changes(
    progress: PlanProgress, changes: Iterable[PlanChange], members: Sequence[str]
) -> PlanProgress:
    """Return the plan with those `changes` that are not in it yet, in their order.

    One that has become impossible since it was accepted is left out.
    """
    for change in changes:
        if change.change_id in progress.changes:
            continue
        with suppress(ValueError):
            progress = apply_change(progress, change, members)
        progress = progress.model_copy(update={"changes": (*progress.changes, change.change_id)})
    return progress


def apply_change(progress: PlanProgress, change: PlanChange, members: Sequence[str]) -> PlanProgress:
    """Return the plan with one change; `members` are who may be given a step."""
    match change.action:
        case "skip":
            return skip(progress, change.step_id)
        case "redo":
            return redo(progress, change.step_id)
        case "edit":
            return edit(progress, change, members)
        case "add":
            return add(progress, change, members)
        case "move":
            return move(progress, change)
        case "retry":
            return retry(progress)


def retry(progress: PlanProgress) -> PlanProgress:
    """Return the plan in which all that was not done is to be done, and then the report; the rest stays.

    What the user skipped, and what other steps replaced, is not tried again.
    """
    open_again = [
        step.id
        for step in progress.steps
        if step.agent_name == "reporter"
        or (step.status in ("failed", "skipped") and not _is_skipped(step) and not step.is_replaced)
    ]
    for step_id in open_again:
        progress = progress.with_step(step_id, **_blank())
    decisions = progress.decisions_left + DECISIONS_FOR_A_STEP * len(open_again)
    return progress.model_copy(update={"decisions_left": decisions})


def skip(progress: PlanProgress, step_id: int) -> PlanProgress:
    """Return the plan without the step's work; what was built on its result is done again without it."""
    step = _skippable(_known(progress.step(step_id), step_id))
    if step is progress.steps[-1]:  # of one who answers alone, without a report
        raise ValueError("This step cannot be skipped: it is the answer. Cancel the run instead.")
    if _is_skipped(step):
        return progress
    given_up = _blank() | {"status": "skipped", "reason": SKIPPED}
    return _undone(_settled(progress), step.id).with_step(step.id, **given_up)


def redo(progress: PlanProgress, step_id: int) -> PlanProgress:
    """Return the plan in which the step is done anew, and after it what was built on its result."""
    return _begun_anew(progress, _known(progress.step(step_id), step_id))


def edit(progress: PlanProgress, change: PlanChange, members: Sequence[str]) -> PlanProgress:
    """Return the plan in which the step is another one, to be done anew like by `redo`."""
    step = _known(progress.step(change.step_id), change.step_id)
    return _begun_anew(progress, step, **_edits(step, change, members))


def add(progress: PlanProgress, change: PlanChange, members: Sequence[str]) -> PlanProgress:
    """Return the plan with one more step; what comes after it and is given all results is done again."""
    step = _new(change, members, len(progress.steps))
    new = TrackedStep(id=max(one.id for one in progress.steps) + 1, **step.model_dump())
    return _placed(progress, new, _place(change, [one.id for one in progress.steps]))


def move(progress: PlanProgress, change: PlanChange) -> PlanProgress:
    """Return the plan in which a step that is not begun has another place."""
    step = _movable(_known(progress.step(change.step_id), change.step_id), progress.steps)
    if step.status not in TO_BEGIN:
        raise ValueError("This step was begun, so its place cannot change. Do it again, or skip it.")
    others = tuple(one for one in progress.steps if one is not step)
    place = _place(change, [one.id for one in others])
    return _placed(progress.model_copy(update={"steps": others}), step, place)


def apply_to_review(plan: Plan, change: PlanChange, members: Sequence[str]) -> Plan:
    """Return a plan that waits for its review with one change; its steps are numbered from 1."""
    number, steps = change.step_id, list(plan.steps)
    order = list(range(1, len(steps) + 1))
    if change.action == "add":
        steps.append(_new(change, members, len(steps)))
        order.insert(_place(change, order), len(steps))
        return _reordered(plan, steps, order)
    step = _known(steps[number - 1] if 0 < number <= len(steps) else None, number)
    match change.action:
        case "redo":
            raise ValueError("Nothing of the plan is done yet, so no step can be done again.")
        case "edit":
            steps[number - 1] = step.model_copy(update=_edits(step, change, members))
        case "skip":
            _skippable(step)
            order.remove(number)
        case "move":
            _movable(step, steps)
            order.remove(number)
            order.insert(_place(change, order), number)
    return _reordered(plan, steps, order)


def _known(step: S | None, step_id: int) -> S:
    if step is None:
        raise ValueError(f"The plan has no step {step_id}.")
    return step


def _skippable(step: S) -> S:
    if step.agent_name == "reporter":
        raise ValueError("The report cannot be skipped: it is the answer. Cancel the run instead.")
    return step


def _movable(step: S, steps: Sequence[PlannedStep]) -> S:
    if step is steps[-1]:
        raise ValueError("The last step cannot be moved: it is the answer.")
    return step


def _place(change: PlanChange, ids: Sequence[int]) -> int:
    """Return where among the other steps, `ids`, the one that is added or moved goes."""
    if change.after is None:
        raise ValueError("It needs `after`: the step behind which it goes, 0 for the beginning.")
    if change.after != 0 and change.after not in ids:
        raise ValueError(f"The plan has no step {change.after} behind which it could go.")
    place = ids.index(change.after) + 1 if change.after else 0
    if place == len(ids):
        raise ValueError("Nothing comes after the last step: it is the answer.")
    return place


def _new(change: PlanChange, members: Sequence[str], steps: int) -> PlannedStep:
    if steps >= MOST_STEPS:
        raise ValueError(f"A plan of {steps} steps takes no more. Skip some, or ask in a run of its own.")
    if None in (change.title, change.description, change.agent_name):
        raise ValueError("A new step needs a title, a description and an agent_name.")
    blank = PlannedStep(agent_name="", title="?", description="")
    return blank.model_copy(update=_edits(blank, change, members))


def _placed(progress: PlanProgress, step: TrackedStep, place: int) -> PlanProgress:
    progress = _settled(progress)
    steps = (*progress.steps[:place], step, *progress.steps[place:])
    more = {"decisions_left": progress.decisions_left + DECISIONS_FOR_A_STEP, "failures": 0}
    return _undone(progress.model_copy(update={"steps": steps, **more}), step.id)


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


def _begun_anew(progress: PlanProgress, step: TrackedStep, **edits: Any) -> PlanProgress:
    progress = _undone(_settled(progress), step.id)
    more = {"decisions_left": progress.decisions_left + DECISIONS_FOR_A_STEP, "failures": 0}
    return progress.with_step(step.id, **_blank(), **edits).model_copy(update=more)


def _undone(progress: PlanProgress, step_id: int) -> PlanProgress:
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


def _settled(progress: PlanProgress) -> PlanProgress:
    """Return the plan in which steps that the run has gone on without stay so, though others begin anew."""
    for step in progress.steps:
        if step.status == "failed" and progress.given_up(step):
            progress = progress.with_step(step.id, reason=step.reason, settled=True)
    return progress


def _blank() -> dict[str, Any]:
    """Return what makes a step one that was never begun."""
    names = ("status", "attempts", "result", "reason", "settled", "by_code", "is_replaced")
    return {name: TrackedStep.model_fields[name].default for name in names}


def _reordered(plan: Plan, steps: Sequence[PlannedStep], order: Sequence[int]) -> Plan:
    """Return the plan with the steps of these numbers in this order; each needs the earlier ones it did."""
    numbers = {old: new for new, old in enumerate(order, start=1)}
    placed = [_needing(steps[old - 1], numbers, numbers[old]) for old in order]
    return plan.model_copy(update={"steps": placed})


def _needing(step: PlannedStep, numbers: Mapping[int, int], own: int) -> PlannedStep:
    if step.needs is None:
        return step
    needs = [numbers[need] for need in step.needs if numbers.get(need, own) < own]
    return step.model_copy(update={"needs": needs})
