"""Changes of a plan during its execution. Only steps that depend on a changed step are done again.

A step depends on the earlier steps whose results it gets (`PlanProgress.given_to`), directly or indirectly.
Invalid changes raise `ValueError` with a message for the user.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from maniple.agents.task import find_partial_work
from maniple.graph.plan import (
    DECISIONS_FOR_A_STEP,
    TO_BEGIN,
    GapRounds,
    Plan,
    PlannedStep,
    PlanProgress,
    TrackedStep,
)
from maniple.scope.inputs import SKIPPED, PlanChange

S = TypeVar("S", bound=PlannedStep)

_WORKED_ON = (
    "status",
    "attempts",
    "result",
    "reason",
    "outcome",
    "part",
    "settled",
    "by_code",
    "is_replaced",
    "replaced_by",
    "error_code",
    "continuation",
)
"""The fields of a step that its execution changes."""
_WRITTEN = ("agent_name", "title", "description", "note")
"""The fields of a step that are texts for its member."""
MAX_STEPS = 100
"""The number of steps up to which the user can add steps to a plan."""


def apply_changes(
    progress: PlanProgress, changes: Iterable[PlanChange], members: Sequence[str]
) -> PlanProgress:
    """Return the plan with the `changes` that were not applied yet, in order.

    A change that has become impossible since it was accepted is refused: `refused` has the reason.
    """
    for change in changes:
        if change.change_id in progress.changes:
            continue
        refused = progress.refused
        try:
            progress = apply_change(progress, change, members)
        except ValueError as error:
            refused = {**refused, change.change_id: str(error)}
        done = (*progress.changes, change.change_id)
        progress = progress.model_copy(update={"changes": done, "refused": refused})
    return progress


def apply_change(progress: PlanProgress, change: PlanChange, members: Sequence[str]) -> PlanProgress:
    """Return the plan with one change; `members` are the agents to which steps can be assigned."""
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
    """Return the plan with all failed and skipped steps and the report open again; completed steps stay.

    So are those with a partial result, which their members read. A step whose model gave no answer continues
    from what it had done; where it cannot, it reads that. Steps
    that the user skipped, and steps that other steps replaced, are not repeated. A deep run may have further
    rounds again.
    """
    reopened = [
        step.id
        for step in progress.steps
        if step.agent_name == "reporter"
        or (
            (step.status in ("failed", "skipped") or step.is_partial)
            and not step.is_removed
            and not progress.is_replaced(step)
        )
    ]
    for step_id in reopened:
        step = _require_step(progress.step(step_id), step_id)
        has_found = step.is_partial or (step.status == "failed" and find_partial_work(step.result))
        kept = {"result": step.result, "outcome": step.outcome, "part": step.part} if has_found else {}
        progress = _with_new_edition(progress, step_id, continuation=step.continuation, **kept)
    decisions = progress.decisions_left + DECISIONS_FOR_A_STEP * len(reopened)
    return progress.model_copy(update={"decisions_left": decisions, "gap_rounds": GapRounds()})


def skip(progress: PlanProgress, step_id: int) -> PlanProgress:
    """Return the plan with the step skipped; steps that depend on its result are done again without it."""
    step = _check_skippable(_require_step(progress.step(step_id), step_id))
    if step is progress.steps[-1]:  # the step of an agent that answers alone, without a report
        raise ValueError("This step cannot be skipped: it is the answer. Cancel the run instead.")
    if step.is_removed:
        return progress
    progress = _reopen_dependents(_keep_settled(progress), step.id)
    return _with_new_edition(progress, step.id, status="skipped", reason=SKIPPED)


def redo(progress: PlanProgress, step_id: int) -> PlanProgress:
    """Return the plan with the step and the steps that depend on its result to be done again."""
    return _start_again(progress, _require_step(progress.step(step_id), step_id))


def edit(progress: PlanProgress, change: PlanChange, members: Sequence[str]) -> PlanProgress:
    """Return the plan with an edited step, which is done again as by `redo`."""
    step = _require_step(progress.step(change.step_id), change.step_id)
    return _start_again(progress, step, by_user=True, **_edits(step, change, members))


def add(progress: PlanProgress, change: PlanChange, members: Sequence[str]) -> PlanProgress:
    """Return the plan with a new step; later steps that get all results are done again."""
    step = _new(change, members, len(progress.steps))
    new = TrackedStep(id=max(one.id for one in progress.steps) + 1, by_user=True, **step.model_dump())
    ids = [one.id for one in progress.steps]
    place = _place(change, ids)
    _check_needs(change, ids[:place])
    return _insert_step(progress, new, place)


def move(progress: PlanProgress, change: PlanChange) -> PlanProgress:
    """Return the plan with a step that has not started at another position."""
    step = _check_movable(_require_step(progress.step(change.step_id), change.step_id), progress.steps)
    if step.status not in TO_BEGIN:
        raise ValueError("This step was started, so it cannot be moved. Do it again, or skip it.")
    others = tuple(one for one in progress.steps if one is not step)
    place = _place(change, [one.id for one in others])
    return _insert_step(progress.model_copy(update={"steps": others}), step, place)


def apply_to_review(plan: Plan, change: PlanChange, members: Sequence[str]) -> Plan:
    """Return a plan that waits for its review with one change applied; its steps are numbered from 1."""
    number, steps = change.step_id, list(plan.steps)
    order = list(range(1, len(steps) + 1))
    if change.action == "add":
        steps.append(_new(change, members, len(steps)))
        place = _place(change, order)
        _check_needs(change, order[:place])
        order.insert(place, len(steps))
        return _reorder_plan(plan, steps, order)
    step = _require_step(steps[number - 1] if 0 < number <= len(steps) else None, number)
    match change.action:
        case "redo" | "retry":
            raise ValueError("The plan has not started yet, so no step can be done again.")
        case "edit":
            steps[number - 1] = step.model_copy(update=_edits(step, change, members))
        case "skip":
            _check_skippable(step)
            order.remove(number)
        case "move":
            _check_movable(step, steps)
            order.remove(number)
            order.insert(_place(change, order), number)
    return _reorder_plan(plan, steps, order)


def record_review(reviewed: Plan, edited: Plan) -> PlanProgress:
    """Return the progress of a plan that the user edited in its review, with what the user changed in it."""
    before = [step for step in reviewed.steps if not step.repeats]
    origins = _find_origins(before, edited.steps)
    progress = PlanProgress.of(edited)
    for step, origin in zip(progress.steps, origins, strict=True):
        is_made = step.agent_name == "reporter" and step.description == edited.title  # by `normalize_plan`
        if not is_made and (origin is None or not _is_same(step, before[origin], _WRITTEN)):
            progress = progress.with_step(step.id, by_user=True)
    gone = [step for at, step in enumerate(before) if at not in origins and step.agent_name != "reporter"]
    return progress.model_copy(update={"dropped": tuple(step.title for step in gone)})


def _find_origins(before: Sequence[PlannedStep], after: Sequence[PlannedStep]) -> list[int | None]:
    """Return which step of the plan before each step was, as an index; None for a new one.

    It is known by its title, then by its description. In a plan of the same length, what is neither was
    rewritten in its place.
    """
    origins: list[int | None] = [None] * len(after)
    for fields in (("agent_name", "title"), ("title",), ("description",)):
        for at, step in enumerate(after):
            if origins[at] is None:
                free = (old for old in range(len(before)) if old not in origins)
                same = [old for old in free if _is_same(step, before[old], fields)]
                origins[at] = min(same, key=lambda old: abs(old - at), default=None)
    for at, origin in enumerate(origins):
        if origin is None and len(before) == len(after) and at not in origins:
            origins[at] = at
    return origins


def _is_same(step: PlannedStep, old: PlannedStep, fields: Sequence[str]) -> bool:
    texts = ((getattr(one, name) or "" for name in fields) for one in (step, old))
    return [text.split() for text in next(texts)] == [text.split() for text in next(texts)]


def _require_step(step: S | None, step_id: int) -> S:
    if step is None:
        raise ValueError(f"The plan has no step {step_id}.")
    return step


def _check_skippable(step: S) -> S:
    if step.agent_name == "reporter":
        raise ValueError("The report cannot be skipped: it is the answer. Cancel the run instead.")
    return step


def _check_movable(step: S, steps: Sequence[PlannedStep]) -> S:
    if step is steps[-1]:
        raise ValueError("The last step cannot be moved: it is the answer.")
    return step


def _place(change: PlanChange, ids: Sequence[int]) -> int:
    """Return the index among the other steps `ids` at which a step is inserted."""
    if change.after is None:
        raise ValueError("This change needs `after`: the step after which to insert it, 0 for the beginning.")
    if change.after != 0 and change.after not in ids:
        raise ValueError(f"The plan has no step {change.after} after which it could be inserted.")
    place = ids.index(change.after) + 1 if change.after else 0
    if place == len(ids):
        raise ValueError("No step can follow the last one: it is the answer.")
    return place


def _new(change: PlanChange, members: Sequence[str], steps: int) -> PlannedStep:
    if steps >= MAX_STEPS:
        raise ValueError(f"The plan has {steps} steps, which is the limit. Ask in a new run instead.")
    if None in (change.title, change.description, change.agent_name):
        raise ValueError("A new step needs a title, a description and an agent_name.")
    needs = None if change.needs is None else list(change.needs)
    blank = PlannedStep(agent_name="", title="?", description="", needs=needs)
    return blank.model_copy(update=_edits(blank, change, members))


def _check_needs(change: PlanChange, earlier: Sequence[int]) -> None:
    if unknown := [number for number in change.needs or () if number not in earlier]:
        numbers = ", ".join(map(str, unknown))
        raise ValueError(f"Step {numbers} is not before the new one, which can need only earlier steps.")


def _insert_step(progress: PlanProgress, step: TrackedStep, place: int) -> PlanProgress:
    progress = _keep_settled(progress)
    steps = (*progress.steps[:place], step, *progress.steps[place:])
    more = {"decisions_left": progress.decisions_left + DECISIONS_FOR_A_STEP}
    return _reopen_dependents(progress.model_copy(update={"steps": steps, **more}), step.id)


def _edits(step: PlannedStep, change: PlanChange, members: Sequence[str]) -> dict[str, Any]:
    """Return the validated new fields of the step."""
    fields = {"title": change.title, "description": change.description, "agent_name": change.agent_name}
    edits = {name: text.strip() for name, text in fields.items() if text is not None}
    if not edits:
        raise ValueError("An edit needs a title, a description or an agent_name.")
    if empty := [name for name, text in edits.items() if not text]:
        raise ValueError(f"{', '.join(empty)} must not be empty.")
    agent = edits.get("agent_name", step.agent_name)
    if agent not in members:
        raise ValueError(f"{agent} is not on the team of this run; it has {', '.join(members)}.")
    if (agent == "reporter") != (step.agent_name == "reporter"):
        raise ValueError("The reporter must have the last step and no other step.")
    return edits


def _start_again(progress: PlanProgress, step: TrackedStep, **edits: Any) -> PlanProgress:
    progress = _reopen_dependents(_keep_settled(progress), step.id)
    more = {"decisions_left": progress.decisions_left + DECISIONS_FOR_A_STEP}
    return _with_new_edition(progress, step.id, **edits).model_copy(update=more)


def _reopen_dependents(progress: PlanProgress, step_id: int) -> PlanProgress:
    """Return the plan with all steps that depend on the step to be done again.

    Steps that the user skipped stay skipped; steps that the team gave up are tried again.
    """
    affected = {step_id}
    for step in progress.steps:
        if not step.is_removed and any(one.id in affected for one in progress.given_to(step)):
            affected.add(step.id)
            progress = _with_new_edition(progress, step.id)
    return progress


def _keep_settled(progress: PlanProgress) -> PlanProgress:
    """Return the plan with failed steps that the run continued without settled, although others restart."""
    for step in progress.steps:
        if step.awaits_decision and progress.given_up(step):
            progress = progress.with_step(step.id, reason=step.reason, settled=True)
    return progress


def _with_new_edition(progress: PlanProgress, step_id: int, **changes: Any) -> PlanProgress:
    """Return the plan with a step reset to its initial state; an attempt that is running becomes invalid."""
    blank = {name: TrackedStep.model_fields[name].default for name in _WORKED_ON}
    step = next(one for one in progress.steps if one.id == step_id)
    return progress.with_step(step_id, **{**blank, "edition": step.edition + 1, **changes})


def _reorder_plan(plan: Plan, steps: Sequence[PlannedStep], order: Sequence[int]) -> Plan:
    """Return the plan with the steps of these numbers in this order, with their needs renumbered."""
    numbers = {old: new for new, old in enumerate(order, start=1)}
    placed = [_renumber_needs(steps[old - 1], numbers, numbers[old]) for old in order]
    return plan.model_copy(update={"steps": placed})


def _renumber_needs(step: PlannedStep, numbers: Mapping[int, int], own: int) -> PlannedStep:
    if step.needs is None:
        return step
    needs = [numbers[need] for need in step.needs if numbers.get(need, own) < own]
    return step.model_copy(update={"needs": needs})
