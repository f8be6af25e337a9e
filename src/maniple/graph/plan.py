"""The plan: what the planner writes, and the record of how far it has come."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from maniple.types import StepStatus

OPEN: frozenset[StepStatus] = frozenset({"not_started", "in_progress", "blocked"})
TO_BEGIN: frozenset[StepStatus] = frozenset({"not_started", "blocked"})
DECISIONS_FOR_A_STEP = 3
"""How often the supervisor may ask its model, for each step that is planned."""


class PlannedStep(BaseModel):
    """One step as the planner writes it.

    `needs` are the numbers, from 1, of the earlier steps whose results it is given; `None` means all of them.
    The report is always given all.
    """

    agent_name: str
    title: str = Field(min_length=1)
    description: str
    note: str | None = None
    needs: list[int] | None = None
    repeats: bool | None = None
    """Of a report: it is the result of the step before it, and no model is asked for it."""

    @model_validator(mode="before")
    @classmethod
    def _accepts_loose_forms(cls, value: Any) -> Any:
        """Take a text for the whole step, and a description for the title or the other way round."""
        if isinstance(value, str):
            value = {"description": value}
        if not isinstance(value, Mapping):
            return value
        title, description = value.get("title") or "", value.get("description") or ""
        name = value.get("agent_name") or ""
        texts = {"title": title or str(description)[:80], "description": description or title}
        return {**value, **texts, "agent_name": name}

    @field_validator("needs", mode="before")
    @classmethod
    def _all_where_unclear(cls, value: Any) -> Any:
        clear = isinstance(value, list) and all(type(number) is int for number in value)
        return value if clear else None


class Plan(BaseModel):
    """The planner's answer (seed 002, appendix)."""

    thought: str = ""
    title: str = Field(min_length=1)
    steps: list[PlannedStep]

    @model_validator(mode="before")
    @classmethod
    def _accepts_loose_forms(cls, value: Any) -> Any:
        """Take a bare list for the steps, and leave out a last step that was cut off."""
        if isinstance(value, list):
            value = {"steps": value}
        if not isinstance(value, Mapping) or not isinstance(value.get("steps"), list):
            return value
        steps = value["steps"]
        if len(steps) > 1 and not _is_step(steps[-1]):
            steps = steps[:-1]
        return {**value, "steps": steps, "title": value.get("title") or _title_of(steps)}

    def as_text(self) -> str:
        """Return the plan as the JSON text that clients parse."""
        return self.model_dump_json(exclude_none=True)


def _is_step(value: Any) -> bool:
    """Return whether a step says who does what; a step at which an answer broke off does not."""
    if not isinstance(value, Mapping):
        return isinstance(value, str | PlannedStep)
    return bool(value.get("agent_name")) and bool(value.get("title") or value.get("description"))


def _title_of(steps: list[Any]) -> str:
    first = steps[0] if steps else ""
    text = first.get("title") or first.get("description") if isinstance(first, Mapping) else first
    return str(text or "")[:80] or "Plan"


class TrackedStep(PlannedStep):
    """A step with how it went. `attempts` counts the times its worker was sent.

    `reason` says in a line why a step failed, is blocked or was skipped; it is empty otherwise. `needs` are
    ids here.
    """

    id: int
    status: StepStatus = "not_started"
    attempts: int = 0
    result: str = ""
    reason: str = ""
    settled: bool = False
    """The run has gone on without this step, which failed, and is not to come back to it by itself."""
    is_replaced: bool = False
    """Of a failed step: the rest of the plan was written again to reach its result another way."""
    by_code: bool = False
    """Of a report: it is put together from the results, because no model could write it."""


class PlanProgress(BaseModel):
    """The plan as it is worked through; kept in the graph's state as plain data."""

    model_config = ConfigDict(frozen=True)

    title: str
    steps: tuple[TrackedStep, ...]
    decisions_left: int = 0
    """How often the supervisor may still ask its model: what bounds a run that goes astray."""
    changes: tuple[str, ...] = ()
    """The ids of the user's changes that are in it."""
    adaptations: int = 0
    """How often its rest was to be written anew because it did not work."""

    @classmethod
    def of(cls, plan: Plan) -> "PlanProgress":
        """Return a plan on which nothing has been done yet."""
        steps = (TrackedStep(id=n, **step.model_dump()) for n, step in enumerate(plan.steps, start=1))
        return cls(
            title=plan.title, steps=tuple(steps), decisions_left=DECISIONS_FOR_A_STEP * len(plan.steps)
        )

    @classmethod
    def from_state(cls, data: Mapping[str, Any]) -> "PlanProgress":
        """Read what `to_state` wrote."""
        return cls.model_validate(data)

    def to_state(self) -> dict[str, Any]:
        """Return plain data, since checkpoints outlive our classes."""
        return self.model_dump(mode="json")

    def current(self) -> TrackedStep | None:
        """Return the first step that is not over yet."""
        return next((step for step in self.steps if step.status in OPEN), None)

    def open_work(self) -> list[TrackedStep]:
        """Return the steps that are not over, without the report."""
        return [step for step in self.steps if step.status in OPEN and step.agent_name != "reporter"]

    def step(self, step_id: int) -> TrackedStep | None:
        """Return the step with this id, if there is one."""
        return next((step for step in self.steps if step.id == step_id), None)

    def given_to(self, step: TrackedStep) -> tuple[TrackedStep, ...]:
        """Return the earlier steps whose results `step` is given; all steps for one that is not planned."""
        ids = [one.id for one in self.steps]
        earlier = self.steps[: ids.index(step.id)] if step.id in ids else self.steps
        if step.needs is None or step.agent_name == "reporter":
            return earlier
        return tuple(one for one in earlier if one.id in step.needs)

    def given_up(self, step: TrackedStep) -> bool:
        """Return whether the run has gone on without `step`: nothing after it is still to be begun."""
        later = self.steps[self.steps.index(step) + 1 :]
        return step.settled or (bool(later) and all(other.status not in TO_BEGIN for other in later))

    def with_step(self, step_id: int, **changes: Any) -> "PlanProgress":
        """Return the plan with one step changed; a reason that is not given again is forgotten."""
        changes = {"reason": "", **changes}
        steps = tuple(s.model_copy(update=changes) if s.id == step_id else s for s in self.steps)
        return self.model_copy(update={"steps": steps})

    def tried(
        self, step_id: int, *, done: bool, result: str, reason: str, settled: bool = False
    ) -> "PlanProgress":
        """Return the plan after a try of a step; the run goes on without a `settled` one."""
        status: StepStatus = "completed" if done else "failed"
        return self.with_step(step_id, status=status, result=result, reason=reason, settled=settled)

    def inserted_before(self, step_id: int, step: PlannedStep) -> "PlanProgress":
        """Return the plan with a new step in front of `step_id`, which is given its result."""
        new = TrackedStep(id=max(s.id for s in self.steps) + 1, **step.model_dump())
        position = next(n for n, s in enumerate(self.steps) if s.id == step_id)
        helped = self.steps[position]
        if helped.needs is not None:
            helped = helped.model_copy(update={"needs": [*helped.needs, new.id]})
        steps = (*self.steps[:position], new, helped, *self.steps[position + 1 :])
        return self.model_copy(update={"steps": steps})

    def skipped_to_report(self, reason: str) -> "PlanProgress":
        """Return the plan with every open step but the report given up for `reason`."""
        steps = tuple(
            s.model_copy(update={"status": "skipped", "reason": reason})
            if s.status in OPEN and s.agent_name != "reporter"
            else s
            for s in self.steps
        )
        return self.model_copy(update={"steps": steps})
