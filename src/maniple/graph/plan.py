"""The plan: the planner's answer, and the progress of its steps."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from maniple.agents.step_outcome import StepOutcome
from maniple.agents.task import PARTIAL_WORK, find_partial_work
from maniple.graph.loose_plans import is_step, rename_step, unwrap_plan
from maniple.scope.inputs import SKIPPED
from maniple.text import shorten_words
from maniple.types import StepStatus, is_list, is_mapping

OPEN: frozenset[StepStatus] = frozenset({"not_started", "in_progress", "blocked"})
TO_BEGIN: frozenset[StepStatus] = frozenset({"not_started", "blocked"})
DECISIONS_FOR_A_STEP = 3
"""How often the supervisor may ask its model per planned step."""
TITLE_CHARACTERS = 80
"""The length of a title that is made of a longer text."""
_ANOTHER_TRY = "From another try of this step (what it lacked may stand above):"


class PlannedStep(BaseModel):
    """One step as the planner writes it.

    `needs` are the numbers, from 1, of the earlier steps whose results it gets; `None` means all of them. The
    report always gets all results.
    """

    agent_name: str
    title: str = Field(min_length=1)
    description: str
    note: str | None = None
    needs: list[int] | None = None
    repeats: bool | None = None
    """For a report: it repeats the result of the previous step, without a model call."""

    @model_validator(mode="before")
    @classmethod
    def _accepts_loose_forms(cls, value: Any) -> Any:
        """Accept a text as the whole step, and use title and description for each other if one is missing."""
        if isinstance(value, str):
            value = {"description": value}
        value = rename_step(value)
        if not is_mapping(value):
            return value
        title, description = value.get("title") or "", value.get("description") or ""
        name = value.get("agent_name") or ""
        texts = {
            "title": title or shorten_words(str(description), TITLE_CHARACTERS),
            "description": description or title,
        }
        return {**value, **texts, "agent_name": name}

    @field_validator("needs", mode="before")
    @classmethod
    def _all_where_unclear(cls, value: Any) -> Any:
        clear = is_list(value) and all(type(number) is int for number in value)
        return value if clear else None


class Plan(BaseModel):
    """The planner's answer (seed 002, appendix)."""

    thought: str = ""
    title: str = Field(min_length=1)
    steps: list[PlannedStep]

    @model_validator(mode="before")
    @classmethod
    def _accepts_loose_forms(cls, value: Any) -> Any:
        """Accept other forms of plans, and drop a last step that was cut off."""
        value = unwrap_plan(value)
        if not is_mapping(value) or not is_list(steps := value.get("steps")):
            return value
        if len(steps) > 1 and not _is_step(steps[-1]):
            steps = steps[:-1]
        return {**value, "steps": steps, "title": value.get("title") or _title_of(steps)}

    def as_text(self) -> str:
        """Return the plan as the JSON text that clients parse."""
        return self.model_dump_json(exclude_none=True)


def _is_step(value: Any) -> bool:
    """Return whether a step has a member and a title or description, and was not cut off."""
    return is_step(value) if is_mapping(value) else isinstance(value, str | PlannedStep)


def _title_of(steps: list[Any]) -> str:
    first = steps[0] if steps else ""
    first = rename_step(first)
    text = first["title"] or first["description"] if is_mapping(first) else first
    return shorten_words(str(text or ""), TITLE_CHARACTERS) or "Plan"


class TrackedStep(PlannedStep):
    """A step with its progress. `attempts` counts the attempts of its worker.

    `reason` says in one line why a step failed, is blocked or was skipped, else it is empty. Here `needs` are
    ids.
    """

    id: int
    status: StepStatus = "not_started"
    attempts: int = 0
    result: str = ""
    reason: str = ""
    outcome: StepOutcome = StepOutcome()
    """How its member ended the last attempt; a partial one stays if a later attempt fails."""
    part: str = ""
    """What other attempts found than the one that gave `result`, if one gave only a part."""
    settled: bool = False
    """For a failed or partial step: the run continues as it is and does not retry it."""
    is_replaced: bool = False
    """The rest of the plan was written again to get its result, or what it lacks, in another way."""
    replaced_by: int | None = None
    """The id of the step that the lead gave to a member instead of this one, or for what this one lacks."""
    by_code: bool = False
    """For a report: it is compiled from the results by code, because no model could write it."""
    error_code: str = ""
    """For a failed step: the code of the error that ended it; empty if the member itself gave up."""
    continuation: dict[str, Any] | None = None
    """For a failed step whose model gave no answer: what it had done (`agents.middleware.continuation`)."""
    edition: int = 0
    """How often a change of the user restarted it."""
    by_user: bool = False
    """Whether the user added or changed it."""

    @property
    def is_partial(self) -> bool:
        """Whether it is done but for what `outcome.reason` names."""
        return self.status == "completed" and self.outcome.status == "partial"

    @property
    def has_result(self) -> bool:
        """Whether it has a result that others can use, whole or in part."""
        return bool(self.result) and (self.status == "completed" or self.outcome.status == "partial")

    @property
    def awaits_decision(self) -> bool:
        """Whether the lead has not decided yet how the run continues after its failure or partial result."""
        return not self.settled and (self.status == "failed" or self.is_partial)

    @property
    def found(self) -> str:
        """The result, with what other attempts found."""
        if not self.part or self.part in self.result:
            return self.result
        return f"{self.result}\n\n{_ANOTHER_TRY}\n{self.part}".strip()

    def closed(self, status: StepStatus, reason: str) -> "TrackedStep":
        """Return the open or failed step without a further attempt; a partial result stays one."""
        if self.outcome.status == "partial":
            return self.model_copy(update={"status": "completed", "settled": True, "reason": ""})
        settled = self.settled or status == "failed"
        return self.model_copy(update={"status": status, "reason": reason, "settled": settled})

    @property
    def is_removed(self) -> bool:
        """Whether the user took it out of the plan while the run worked."""
        return self.status == "skipped" and self.reason == SKIPPED


class ResearchGap(BaseModel):
    """Something that the request needs and that no result answers."""

    question: str = Field(min_length=1)
    why: str = ""
    open: bool | None = None
    """Whether the lead says that no step can answer it, so that the run has a gap."""

    @model_validator(mode="before")
    @classmethod
    def _accepts_a_text(cls, value: Any) -> Any:
        return {"question": value} if isinstance(value, str) else value


class GapRounds(BaseModel):
    """The rounds of further steps before the report of a deep run (`graph.gap_review`)."""

    model_config = ConfigDict(frozen=True)

    rounds: int = 0
    """How many rounds have begun."""
    readings: int = 0
    """What the run had read when the last round began, as a number that grows with each reading."""
    is_over: bool = False
    """Whether no further round begins."""
    questions: tuple[ResearchGap, ...] = ()
    """What was open when the lead looked last; steps of the last round may have answered it since."""


class PlanProgress(BaseModel):
    """The plan with the progress of its steps, stored in the graph's state as plain data."""

    model_config = ConfigDict(frozen=True)

    title: str
    steps: tuple[TrackedStep, ...]
    decisions_left: int = 0
    """How often the supervisor may still ask its model. This limits a run that makes no progress."""
    changes: tuple[str, ...] = ()
    """The ids of the user's changes that were applied or refused."""
    refused: dict[str, str] = {}
    """Why changes that were accepted could not be made, by their ids."""
    adaptations: int = 0
    """How often replanning was requested because the plan did not work."""
    to_replace: tuple[int, ...] = ()
    """The ids of the failed and partial steps for which the rest of the plan is written again."""
    replan_hint: str | None = None
    """The lead's hint for the planner, who has to write the rest of the plan again; `None` otherwise."""
    gap_rounds: GapRounds = GapRounds()
    dropped: tuple[str, ...] = ()
    """The titles of the steps that the user removed when the plan was reviewed."""

    @classmethod
    def of(cls, plan: Plan) -> "PlanProgress":
        """Return the progress of a plan that has not started."""
        steps = (TrackedStep(id=n, **step.model_dump()) for n, step in enumerate(plan.steps, start=1))
        return cls(
            title=plan.title, steps=tuple(steps), decisions_left=DECISIONS_FOR_A_STEP * len(plan.steps)
        )

    @classmethod
    def from_state(cls, data: Mapping[str, Any]) -> "PlanProgress":
        """Parse the result of `to_state`."""
        return cls.model_validate(data)

    def to_state(self) -> dict[str, Any]:
        """Return plain data, because checkpoints outlive the present classes."""
        return self.model_dump(mode="json")

    def current(self) -> TrackedStep | None:
        """Return the first open step."""
        return next((step for step in self.steps if step.status in OPEN), None)

    @property
    def removed(self) -> list[str]:
        """The titles of the steps that the user removed, in the review or since."""
        return [*self.dropped, *(step.title for step in self.steps if step.is_removed)]

    @property
    def unfinished(self) -> list[TrackedStep]:
        """The steps whose results are missing: failed, given up, or never reached; none that was replaced.

        Nor is an open report that repeats another step's result, at which nobody works.
        """
        return [
            s
            for s in self.steps
            if s.status != "completed"
            and not (s.is_removed or self.is_replaced(s))
            and not (s.repeats and s.status in OPEN)
        ]

    def lacks_part(self, step: TrackedStep) -> bool:
        """Return whether a step has a partial result that no other step completes."""
        return step.is_partial and not self.is_replaced(step)

    def open_work(self) -> list[TrackedStep]:
        """Return the open steps without the report."""
        return [step for step in self.steps if step.status in OPEN and step.agent_name != "reporter"]

    def step(self, step_id: int) -> TrackedStep | None:
        """Return the step with this id, or None."""
        return next((step for step in self.steps if step.id == step_id), None)

    def place_of(self, step: TrackedStep) -> int:
        """Return the position of a step in the plan, from 1, as users see it; 0 if it is not in the plan."""
        return next((number for number, one in enumerate(self.steps, start=1) if one.id == step.id), 0)

    def given_to(self, step: TrackedStep) -> tuple[TrackedStep, ...]:
        """Return the earlier steps whose results `step` gets; all steps if it is not in the plan."""
        ids = [one.id for one in self.steps]
        earlier = self.steps[: ids.index(step.id)] if step.id in ids else self.steps
        if step.needs is None or step.agent_name == "reporter":
            return earlier
        return tuple(one for one in earlier if one.id in step.needs)

    def replacement_of(self, step: TrackedStep) -> TrackedStep | None:
        """Return the step that another member does instead; None if there is none, or the user removed it."""
        new = self.step(step.replaced_by) if step.replaced_by is not None else None
        return None if new is None or new.is_removed else new

    def is_replaced(self, step: TrackedStep) -> bool:
        """Return whether other steps were planned for the result of `step`; what they lack is their gap."""
        return step.is_replaced or self.replacement_of(step) is not None

    def place_of_replacement(self, step: TrackedStep) -> int:
        """Return the position of the step that is done instead, from 1; 0 if there is none."""
        new = self.replacement_of(step)
        return 0 if new is None else self.place_of(new)

    def is_made_up_for(self, step: TrackedStep) -> bool:
        """Return whether the step that replaced `step`, or in turn that one, is done."""
        seen = {step.id}
        while (new := self.replacement_of(step)) is not None and new.id not in seen:
            if new.status == "completed":
                return True
            seen.add(new.id)
            step = new
        return False

    def is_over(self, step: TrackedStep) -> bool:
        """Return whether steps that need `step` can start: it is done, or the run continues without it."""
        return step.status in ("completed", "skipped", "failed") and not step.awaits_decision

    def given_up(self, step: TrackedStep) -> bool:
        """Return whether the run continues without `step`: it is settled, or no later step is to start."""
        later = self.steps[self.steps.index(step) + 1 :]
        return step.settled or (bool(later) and all(other.status not in TO_BEGIN for other in later))

    def with_step(self, step_id: int, **changes: Any) -> "PlanProgress":
        """Return the plan with one step changed. Without a `reason` in `changes`, its reason is cleared."""
        changes = {"reason": "", **changes}
        steps = tuple(s.model_copy(update=changes) if s.id == step_id else s for s in self.steps)
        return self.model_copy(update={"steps": steps})

    def with_attempt(self, step_id: int, fields: Mapping[str, Any]) -> "PlanProgress":
        """Return the plan with a step changed by an attempt; `fields` are plain data."""
        outcome, before = StepOutcome.model_validate(fields.get("outcome") or {}), self.step(step_id)
        changes: dict[str, Any] = {**fields, "outcome": outcome}
        if before is not None and before.outcome.status == "partial":
            changes |= self._with_part(before, outcome, changes)
        return self.with_step(step_id, **changes)

    def _with_part(
        self, before: TrackedStep, outcome: StepOutcome, changes: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the fields after a further attempt of a step that had a partial result.

        If it fails, the partial result stays, unless an error leaves the run without an answer.
        """
        if outcome.status != "failed":
            return {"part": before.found}
        if changes.get("error_code") and before.id == self.steps[-1].id:
            return {"result": f"{changes['result']}{PARTIAL_WORK}{before.found}"}
        more = find_partial_work(changes["result"])
        return {
            "status": "completed",
            "result": before.result,
            "outcome": before.outcome.model_copy(update={"files": outcome.files}),
            "part": "\n\n".join(filter(None, (before.part, more))),
            "error_code": "",
        }

    def inserted_before(self, step_id: int, step: PlannedStep) -> "PlanProgress":
        """Return the plan with a new step before `step_id`, which gets its result."""
        new = TrackedStep(id=max(s.id for s in self.steps) + 1, **step.model_dump())
        position = next(n for n, s in enumerate(self.steps) if s.id == step_id)
        helped = self.steps[position]
        if helped.needs is not None:
            helped = helped.model_copy(update={"needs": [*helped.needs, new.id]})
        steps = (*self.steps[:position], new, helped, *self.steps[position + 1 :])
        return self.model_copy(update={"steps": steps})

    def replaced(self, step_id: int, step: PlannedStep) -> "PlanProgress":
        """Return the plan with a new step after a failed one, which stays: the new one is done instead.

        It gets what the failed step got, and that step's answer. What gets the failed step's result gets its
        result, too. The failed step's attempts count for it. After a partial result, the new step gets what
        is missing in it.
        """
        failed = next(one for one in self.steps if one.id == step_id)
        needs = None if failed.needs is None else [*failed.needs, failed.id]
        number = max(one.id for one in self.steps) + 1
        new = TrackedStep(id=number, **step.model_dump())
        new = new.model_copy(update={"needs": needs, "attempts": failed.attempts})
        settled = {"settled": True, "replaced_by": number, "continuation": None}
        steps: list[TrackedStep] = []
        for one in self.steps:
            if one.id == step_id:
                steps += [one.model_copy(update=settled), new]
            elif one.needs is not None and step_id in one.needs:
                steps.append(one.model_copy(update={"needs": [*one.needs, number]}))
            else:
                steps.append(one)
        return self.model_copy(update={"steps": tuple(steps)})

    def extended(self, steps: Sequence[PlannedStep]) -> "PlanProgress":
        """Return the plan with new steps before the report, which a model then has to write.

        `needs` of the new steps are ids; `None` means all steps that the plan has now, so that the new ones
        do not wait for each other.
        """
        work = [one for one in self.steps if one.agent_name != "reporter"]
        known, first = [one.id for one in work], max(one.id for one in self.steps) + 1
        new = [
            TrackedStep(
                id=number,
                needs=known if step.needs is None else step.needs,
                **step.model_dump(exclude={"needs"}),
            )
            for number, step in enumerate(steps, start=first)
        ]
        reports = [
            one.model_copy(update={"repeats": None}) for one in self.steps if one.agent_name == "reporter"
        ]
        left = self.decisions_left + DECISIONS_FOR_A_STEP * len(new)
        return self.model_copy(update={"steps": (*work, *new, *reports), "decisions_left": left})

    def with_gap_rounds(self, **changes: Any) -> "PlanProgress":
        """Return the plan with changed `gap_rounds`."""
        return self.model_copy(update={"gap_rounds": self.gap_rounds.model_copy(update=changes)})

    def skipped_to_report(self, reason: str, at_work: Collection[int] = ()) -> "PlanProgress":
        """Return the plan with open steps skipped for `reason`, except the report and those `at_work`."""
        steps = tuple(
            s.closed("skipped", reason)
            if s.status in OPEN and s.agent_name != "reporter" and s.id not in at_work
            else s
            for s in self.steps
        )
        return self.model_copy(update={"steps": steps})
