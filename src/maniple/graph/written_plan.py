"""Normalises plans that the planner or a user wrote, also while they are being written."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from maniple.graph.plan import TITLE_CHARACTERS, Plan, PlannedStep, PlanProgress, TrackedStep
from maniple.llms import Shape, read_partial_json
from maniple.text import shorten
from maniple.types import is_dict, is_list, is_mapping

REPORTER = "reporter"
_NO_LETTER = re.compile(r"[\W_]+")
_NAMED = re.compile(r"\s*(?P<name>[\w -]{2,30})\s*:\s*(?P<rest>\S.*)", re.S)


def normalize_plan(
    plan: Plan, members: Sequence[str], max_steps: int, *, always_reports: bool = False
) -> Plan:
    """Return the plan with each step assigned to a member, and a report at its end.

    Names match in any letter case and with spaces. If a plan has no report, its last step is the answer if
    that depends on all other steps; else, or with `always_reports`, a report is added. Raises `ValueError`
    with a message for the planner if a step names no member of the team, or if the number of steps without
    the report is 0 or more than `max_steps`.
    """
    if not plan.steps:
        raise ValueError("the plan has no step")
    steps = [_assign_member(step, members) for step in plan.steps]
    unknown = sorted({step.agent_name for step in steps} - set(members))
    if unknown:
        raise ValueError(f"agent_name {', '.join(unknown)} is not on the team; use only {', '.join(members)}")
    reports = [step for step in steps if step.agent_name == REPORTER]
    numbered = [(number, step) for number, step in enumerate(steps, 1) if step.agent_name != REPORTER]
    places = {number: place for place, (number, _) in enumerate(numbered, start=1)}
    work = [_renumber_needs(step, number, places) for number, step in numbered]
    if len(work) > max_steps:
        raise ValueError(f"the plan has {len(work)} steps; use at most {max_steps}")
    report = reports[-1].model_copy(update={"needs": None}) if reports else _make_report_step(plan, work)
    if always_reports:
        report = report.model_copy(update={"repeats": None})
    return plan.model_copy(update={"steps": [*work, report]})


def plan_of_step(step: Any, members: Sequence[str]) -> Plan | None:
    """Return the plan of one step that a model wrote; None if it is no step for a member."""
    try:
        return normalize_plan(Plan.model_validate({"steps": [step]}), members, 1)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """A plan that is still being written.

    `plan` has the complete steps, as `normalize_plan` will return them. `text` is the beginning of the plan's
    text; "" if later text may still change it.
    """

    plan: Plan
    text: str


def read_draft(answer: str, members: Sequence[str], max_steps: int) -> PlanDraft | None:
    """Return the plan in an incomplete answer; None if there is nothing of it yet.

    The steps end before the first one that `normalize_plan` will reject.
    """
    written, _ = read_partial_json(answer)
    value: Mapping[str, Any] = written if is_dict(written) else {}
    try:
        plan = Plan.model_validate({**value, "steps": _closed_steps(answer)})
    except ValidationError:
        return None
    work: list[PlannedStep] = []
    reports: list[PlannedStep] = []
    places: dict[int, int] = {}
    for number, step in enumerate((_assign_member(step, members) for step in plan.steps), start=1):
        if step.agent_name not in members or len(work) == max_steps:
            break
        if step.agent_name == REPORTER:
            reports.append(step)
            continue
        work.append(_renumber_needs(step, number, places))
        places[number] = len(work)
    text = _certain_text(value, plan.model_copy(update={"steps": work}))
    return PlanDraft(plan.model_copy(update={"steps": [*work, *reports[-1:]]}), text)


def _closed_steps(answer: str) -> list[Any]:
    """Return the complete steps of a plan or a bare list."""
    written, closed = read_partial_json(answer[: answer.rfind("}") + 1])
    steps = written.get("steps") if is_mapping(written) else written
    if not is_list(steps):
        return []
    # If the last brace is inside of a string, neither the string nor its step is complete.
    return steps if written == closed else steps[:-1]


def _certain_text(value: Mapping[str, Any], plan: Plan) -> str:
    """Return the plan's text without its closing brackets, if the keys of `value` have the usual order."""
    match list(value):
        case ["thought"]:
            text, open_end = plan.model_copy(update={"title": "", "steps": []}), '","title":"","steps":[]}'
        case ["thought", "title"]:
            text, open_end = plan.model_copy(update={"title": value["title"] or ""}), '","steps":[]}'
        case ["thought", "title", "steps", *_] if value["title"]:
            text, open_end = plan, "]}"
        case _:
            return ""
    return text.as_text().removesuffix(open_end)


def one_step_plan(request: str, worker: str | None) -> Plan:
    """Return the plan if the planner gave none: `worker` works on the whole request, and the plan says so.

    Without a worker, the reporter answers.
    """
    title = shorten(request, TITLE_CHARACTERS) or "The request"
    report = PlannedStep(agent_name=REPORTER, title=title, description=request)
    chosen = worker or REPORTER
    work = [PlannedStep(agent_name=chosen, title=title, description=request)] if worker else []
    said = f"No usable plan: the {chosen} works on the whole request"
    thought = f"The planner gave no usable plan twice, so the {chosen} works on the whole request."
    return Plan(thought=thought, title=said, steps=[*work, report])


def add_worker_step(plan: Plan, members: Sequence[str], request: str) -> Plan:
    """Return the plan; if it is only a report and there is another member, that member's step is added."""
    worker = next((name for name in members if name != REPORTER), None)
    if worker is None or any(step.agent_name != REPORTER for step in plan.steps):
        return plan
    work = PlannedStep(agent_name=worker, title=plan.title, description=request)
    return plan.model_copy(update={"steps": [work, *plan.steps]})


def find_final_step(steps: Sequence[PlannedStep], ids: Sequence[int]) -> int | None:
    """Return the id of the last step if it depends, directly or indirectly, on all others; else None."""
    if not steps:
        return None
    needed = {ids[-1]}
    for number, step in reversed(list(zip(ids, steps, strict=True))):
        if number in needed:
            needed |= set(ids[: ids.index(number)]) if step.needs is None else set(step.needs)
    return ids[-1] if needed >= set(ids) else None


def repeated_step(progress: PlanProgress, step: TrackedStep) -> TrackedStep | None:
    """Return the step whose result the report `step` repeats; None if a model has to write the report.

    The step wrote its result as the answer, with what earlier failures left out. A model has to write the
    report if there is no such step, if it is not done, or if an earlier try of it found more.
    """
    if not step.repeats or not all(progress.is_over(one) for one in progress.given_to(step)):
        return None
    last = _find_answering_step(progress)
    is_whole = last is not None and last.status == "completed" and last.found == last.result
    return last if is_whole else None


def is_answer(progress: PlanProgress, step: TrackedStep) -> bool:
    """Return whether the result of `step` will be the answer that the user reads."""
    repeats = any(one.repeats for one in progress.steps if one.agent_name == REPORTER)
    last = _find_answering_step(progress) if repeats else None
    return last is not None and last.id == step.id


def _find_answering_step(progress: PlanProgress) -> TrackedStep | None:
    """Return the step that builds on all others; steps that were removed or replaced do not count."""
    work = [
        one
        for one in progress.steps
        if not (one.agent_name == REPORTER or one.is_removed or progress.is_replaced(one))
    ]
    last = find_final_step(work, [one.id for one in work])
    return progress.step(last) if last is not None else None


def _make_report_step(plan: Plan, work: Sequence[PlannedStep]) -> PlannedStep:
    is_answered = find_final_step(work, range(1, len(work) + 1)) is not None
    return PlannedStep(
        agent_name=REPORTER, title=plan.title, description=plan.title, repeats=True if is_answered else None
    )


def _assign_member(step: PlannedStep, members: Collection[str]) -> PlannedStep:
    """Return the step with its member's exact name, which may also be a prefix of its description."""
    by_letters = {_letters(name): name for name in members}
    if found := by_letters.get(_letters(step.agent_name)):
        return step.model_copy(update={"agent_name": found})
    if not step.agent_name and (found := by_letters.get(_letters(step.title))):
        return step.model_copy(
            update={"agent_name": found, "title": shorten(step.description, TITLE_CHARACTERS)}
        )
    named = _NAMED.fullmatch(step.description)
    if not step.agent_name and named and (found := by_letters.get(_letters(named["name"]))):
        title = step.title if step.title != step.description else named["rest"]
        return step.model_copy(
            update={
                "agent_name": found,
                "title": shorten(title, TITLE_CHARACTERS),
                "description": named["rest"],
            }
        )
    return step


def _letters(name: str) -> str:
    return _NO_LETTER.sub("", name).casefold()


def _renumber_needs(step: PlannedStep, number: int, places: dict[int, int]) -> PlannedStep:
    """Return the step with renumbered needs; all earlier steps if the numbers are invalid."""
    if step.needs is None:
        return step
    if any(not 0 < need < number for need in step.needs):
        return step.model_copy(update={"needs": None})
    return step.model_copy(update={"needs": sorted({places[need] for need in step.needs if need in places})})


def plan_shape(members: Sequence[str], max_steps: int) -> Shape[Plan]:
    """Return the shape of the planner's answer; only `members` can be named."""
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
    """Return the shape for small models: without notes and needs, and with a limit for each text."""
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
