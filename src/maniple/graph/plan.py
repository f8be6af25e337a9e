"""The plan: what the planner writes, and the record of how far it has come."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from maniple.llms import Shape
from maniple.types import StepStatus

OPEN: frozenset[StepStatus] = frozenset({"not_started", "in_progress"})


class PlannedStep(BaseModel):
    """One step as the planner writes it."""

    agent_name: str
    title: str = Field(min_length=1)
    description: str
    note: str | None = None


class Plan(BaseModel):
    """The planner's answer (seed 002, appendix)."""

    thought: str = ""
    title: str = Field(min_length=1)
    steps: list[PlannedStep] = Field(min_length=1)

    def as_text(self) -> str:
        """Return the plan as the JSON text that clients parse."""
        return self.model_dump_json(exclude_none=True)


def plan_shape(members: Sequence[str], max_steps: int) -> Shape[Plan]:
    """Return the shape the planner must answer in: only `members` can be named."""
    text = {"type": "string"}
    step = _object(
        agent_name={"type": "string", "enum": list(members)},
        title=text,
        description=text,
        note={"type": ["string", "null"]},
    )
    steps = {"type": "array", "items": step, "minItems": 1, "maxItems": max_steps}
    return Shape("Plan", _object(thought=text, title=text, steps=steps), Plan)


def compact_plan_shape(members: Sequence[str], max_steps: int) -> Shape[Plan]:
    """Return the shape for small models: no notes, and bounds on every text, which they would overrun."""
    step = _object(
        agent_name={"enum": list(members)},
        title={"type": "string", "maxLength": 60},
        description={"type": "string", "maxLength": 120},
    )
    steps = {"type": "array", "items": step, "minItems": 1, "maxItems": max_steps}
    thought, title = {"type": "string", "maxLength": 120}, {"type": "string", "maxLength": 60}
    return Shape("Plan", _object(thought=thought, title=title, steps=steps), Plan)


def _object(**properties: object) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def normalised(plan: Plan, members: Sequence[str], max_steps: int) -> Plan:
    """Return the plan with a final report and each member's consecutive steps joined.

    Raises `ValueError` with words for the planner when a step names nobody on the team, or there are
    more than `max_steps`.
    """
    strangers = sorted({step.agent_name for step in plan.steps} - set(members))
    if strangers:
        raise ValueError(
            f"agent_name {', '.join(strangers)} is not on the team; use only {', '.join(members)}"
        )
    reports = [step for step in plan.steps if step.agent_name == "reporter"]
    work = [step for step in plan.steps if step.agent_name != "reporter"]
    report = (
        reports[-1]
        if reports
        else PlannedStep(agent_name="reporter", title=plan.title, description=plan.title)
    )
    steps = [*_joined(work), report]
    if len(steps) > max_steps:
        raise ValueError(f"the plan has {len(steps)} steps; use at most {max_steps}")
    return plan.model_copy(update={"steps": steps})


def _joined(steps: Sequence[PlannedStep]) -> list[PlannedStep]:
    joined: list[PlannedStep] = []
    for step in steps:
        if joined and joined[-1].agent_name == step.agent_name:
            joined[-1] = _both(joined[-1], step)
        else:
            joined.append(step)
    return joined


def _both(first: PlannedStep, second: PlannedStep) -> PlannedStep:
    notes = "\n".join(note for note in (first.note, second.note) if note)
    return PlannedStep(
        agent_name=first.agent_name,
        title=f"{first.title}; {second.title}",
        description=f"{first.description}\n{second.description}",
        note=notes or None,
    )


class TrackedStep(PlannedStep):
    """A step with how it went. `attempts` counts the times its worker was sent."""

    id: int
    status: StepStatus = "not_started"
    attempts: int = 0
    result: str = ""


class Progress(BaseModel):
    """The plan as it is worked through; kept in the graph's state as plain data."""

    model_config = ConfigDict(frozen=True)

    title: str
    steps: tuple[TrackedStep, ...]
    decisions_left: int = 0
    """How often the supervisor may still ask its model: what bounds a run that goes astray."""

    @classmethod
    def of(cls, plan: Plan) -> "Progress":
        """Return a plan on which nothing has been done yet."""
        steps = (TrackedStep(id=n, **step.model_dump()) for n, step in enumerate(plan.steps, start=1))
        return cls(title=plan.title, steps=tuple(steps), decisions_left=3 * len(plan.steps))

    @classmethod
    def from_state(cls, data: Mapping[str, Any]) -> "Progress":
        """Read what `to_state` wrote."""
        return cls.model_validate(data)

    def to_state(self) -> dict[str, Any]:
        """Return plain data, since checkpoints outlive our classes."""
        return self.model_dump(mode="json")

    def current(self) -> TrackedStep | None:
        """Return the first step that is not over yet."""
        return next((step for step in self.steps if step.status in OPEN), None)

    def with_step(self, step_id: int, **changes: Any) -> "Progress":
        """Return the plan with one step changed."""
        steps = tuple(s.model_copy(update=changes) if s.id == step_id else s for s in self.steps)
        return self.model_copy(update={"steps": steps})

    def inserted_before(self, step_id: int, step: PlannedStep) -> "Progress":
        """Return the plan with a new step in front of `step_id`."""
        new = TrackedStep(id=max(s.id for s in self.steps) + 1, **step.model_dump())
        position = next(n for n, s in enumerate(self.steps) if s.id == step_id)
        steps = (*self.steps[:position], new, *self.steps[position:])
        return self.model_copy(update={"steps": steps})

    def skipped_to_report(self) -> "Progress":
        """Return the plan with every open step but the report given up."""
        steps = tuple(
            s.model_copy(update={"status": "skipped"})
            if s.status in OPEN and s.agent_name != "reporter"
            else s
            for s in self.steps
        )
        return self.model_copy(update={"steps": steps})
