"""A plan as it was written, by the planner or a user, brought into the form in which it is worked through."""

import re
from collections.abc import Collection, Sequence
from typing import Any

from maniple.graph.plan import Plan, PlannedStep, PlanProgress, TrackedStep
from maniple.llms import Shape

REPORTER = "reporter"
_NO_LETTER = re.compile(r"[\W_]+")
_NAMED = re.compile(r"\s*(?P<name>[\w -]{2,30})\s*:\s*(?P<rest>\S.*)", re.S)


def normalised(plan: Plan, members: Sequence[str], max_steps: int, *, always_reports: bool = False) -> Plan:
    """Return the plan with each step given to a member, and the report at its end.

    Names are found in any case and with blanks. A plan that ends without a report is answered by its last
    step, if that builds on all others; otherwise, or with `always_reports`, a report is added. At most
    `max_steps` steps stand before the report. Raises `ValueError` with words for the planner when a step
    names nobody on the team, when there are too many steps, or none.
    """
    if not plan.steps:
        raise ValueError("the plan has no step")
    steps = [_assigned(step, members) for step in plan.steps]
    strangers = sorted({step.agent_name for step in steps} - set(members))
    if strangers:
        raise ValueError(
            f"agent_name {', '.join(strangers)} is not on the team; use only {', '.join(members)}"
        )
    reports = [step for step in steps if step.agent_name == REPORTER]
    numbered = [(number, step) for number, step in enumerate(steps, 1) if step.agent_name != REPORTER]
    places = {number: place for place, (number, _) in enumerate(numbered, start=1)}
    work = [_renumbered(step, number, places) for number, step in numbered]
    if len(work) > max_steps:
        raise ValueError(f"the plan has {len(work)} steps; use at most {max_steps}")
    report = reports[-1].model_copy(update={"needs": None}) if reports else _added_report(plan, work)
    if always_reports:
        report = report.model_copy(update={"repeats": None})
    return plan.model_copy(update={"steps": [*work, report]})


def one_step_plan(request: str, members: Sequence[str]) -> Plan:
    """Return the plan for when the planner gave none: the first member does what was asked."""
    title = " ".join(request.split())[:80] or "The request"
    worker = next((name for name in members if name != REPORTER), REPORTER)
    report = PlannedStep(agent_name=REPORTER, title=title, description=request)
    work = PlannedStep(agent_name=worker, title=title, description=request)
    return Plan(title=title, steps=[report] if worker == REPORTER else [work, report])


def last_of(steps: Sequence[PlannedStep], ids: Sequence[int]) -> int | None:
    """Return the id of the last step if it is given, directly or through others, every other one's result."""
    if not steps:
        return None
    needed = {ids[-1]}
    for number, step in reversed(list(zip(ids, steps, strict=True))):
        if number in needed:
            needed |= set(ids[: ids.index(number)]) if step.needs is None else set(step.needs)
    return ids[-1] if needed >= set(ids) else None


def repeated_step(progress: PlanProgress, step: TrackedStep) -> TrackedStep | None:
    """Return the step whose result is the report `step`; None when a model is to write the report.

    That is so when another step has failed meanwhile, or the plan was changed.
    """
    work = progress.given_to(step) if step.repeats else ()
    if not work or any(one.status != "completed" for one in work):
        return None
    last = last_of(work, [one.id for one in work])
    return progress.step(last) if last is not None else None


def is_answer(progress: PlanProgress, step: TrackedStep) -> bool:
    """Return whether the result of `step` will be the answer that the user reads."""
    work = [one for one in progress.steps if one.agent_name != REPORTER]
    repeats = any(one.repeats for one in progress.steps if one.agent_name == REPORTER)
    return repeats and last_of(work, [one.id for one in work]) == step.id


def _added_report(plan: Plan, work: Sequence[PlannedStep]) -> PlannedStep:
    is_answered = last_of(work, range(1, len(work) + 1)) is not None
    return PlannedStep(
        agent_name=REPORTER, title=plan.title, description=plan.title, repeats=True if is_answered else None
    )


def _assigned(step: PlannedStep, members: Collection[str]) -> PlannedStep:
    """Return the step with its member's name as the team has it; one without a name may begin with it."""
    by_letters = {_letters(name): name for name in members}
    if found := by_letters.get(_letters(step.agent_name)):
        return step.model_copy(update={"agent_name": found})
    named = _NAMED.fullmatch(step.description)
    if not step.agent_name and named and (found := by_letters.get(_letters(named["name"]))):
        title = step.title if step.title != step.description else named["rest"]
        return step.model_copy(
            update={"agent_name": found, "title": title[:80], "description": named["rest"]}
        )
    return step


def _letters(name: str) -> str:
    return _NO_LETTER.sub("", name).casefold()


def _renumbered(step: PlannedStep, number: int, places: dict[int, int]) -> PlannedStep:
    """Return the step with the new numbers of what it needs; everything where the old ones make no sense."""
    if step.needs is None:
        return step
    if any(not 0 < need < number for need in step.needs):
        return step.model_copy(update={"needs": None})
    return step.model_copy(update={"needs": sorted({places[need] for need in step.needs if need in places})})


def plan_shape(members: Sequence[str], max_steps: int) -> Shape[Plan]:
    """Return the shape the planner must answer in: only `members` can be named."""
    text = {"type": "string"}
    numbers = {"type": "array", "items": {"type": "integer"}}
    step = object_schema(
        agent_name={"type": "string", "enum": list(members)},
        title=text,
        description=text,
        note={"type": ["string", "null"]},
        needs={"anyOf": [numbers, {"type": "null"}]},
    )
    steps = {"type": "array", "items": step, "minItems": 1, "maxItems": max_steps}
    return Shape("Plan", object_schema(thought=text, title=text, steps=steps), Plan)


def compact_plan_shape(members: Sequence[str], max_steps: int) -> Shape[Plan]:
    """Return the shape for small models: no notes, no needs, and bounds on every text, or they overrun."""
    step = object_schema(
        agent_name={"enum": list(members)},
        title={"type": "string", "maxLength": 60},
        description={"type": "string", "maxLength": 120},
    )
    steps = {"type": "array", "items": step, "minItems": 1, "maxItems": max_steps}
    thought, title = {"type": "string", "maxLength": 120}, {"type": "string", "maxLength": 60}
    return Shape("Plan", object_schema(thought=thought, title=title, steps=steps), Plan)


def object_schema(**properties: object) -> dict[str, Any]:
    """Return the JSON schema of an object that has exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
