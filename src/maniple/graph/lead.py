"""What the lead decides after a step has failed, and what that makes of the plan."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, model_validator

from maniple.agents.briefing import RESULTS_SHARE, format_plan
from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.task import PlanStepSummary
from maniple.graph.adaptation import answers_of
from maniple.graph.plan import OPEN, PlannedStep, PlanProgress, TrackedStep
from maniple.graph.written_plan import REPORTER, object_schema
from maniple.llms import Shape, ShapeError, ask_for
from maniple.llms.context_windows import room_of
from maniple.prompts import render
from maniple.types import Worker

DecisionKind = Literal["retry", "reassign", "continue_without", "replan", "finish"]
NEEDS = re.compile(r"[ \t*#_`]{0,20}NEEDS:")


class NewStep(BaseModel):
    """A step that the lead gives to a member."""

    agent_name: str
    title: str = ""
    description: str


class LeadDecision(BaseModel):
    """The lead's answer."""

    decision: DecisionKind
    hint: str | None = None
    step: NewStep | None = None

    @model_validator(mode="before")
    @classmethod
    def _accepts_a_name(cls, value: Any) -> Any:
        """Take `{"next": MEMBER}`, as LangManus's supervisor answers, for a decision."""
        if not isinstance(value, Mapping) or "decision" in value or "next" not in value:
            return value
        name = str(value["next"])
        if name in ("FINISH", REPORTER):
            return {"decision": "finish"}
        return {"decision": "retry", "hint": value.get("hint")}


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed step, and what may be decided about it."""

    progress: PlanProgress
    step: TrackedStep
    has_tries_left: bool
    can_replan: bool

    @property
    def asks_for_something(self) -> bool:
        """Whether the step waits for something that another member could provide."""
        return NEEDS.match(self.step.result.rstrip().rpartition("\n")[2]) is not None

    def decisions(self, members: Sequence[Worker]) -> list[DecisionKind]:
        """Return what the lead may decide."""
        left_out: set[str] = set()
        if not self.has_tries_left:
            left_out |= {"retry", "reassign"}
        if not self.can_replan or self.step.agent_name == REPORTER:
            left_out.add("replan")
        if not [name for name in members if name not in (REPORTER, self.step.agent_name)]:
            left_out.add("reassign")
        return [kind for kind in get_args(DecisionKind) if kind not in left_out]

    def needs_no_model(self) -> bool:
        """Return whether the rule decides as well as a model: an empty report, or nothing left to decide."""
        if self.step.agent_name == REPORTER and not self.asks_for_something:
            return True
        others = [one for one in self.progress.steps if one.status in OPEN and one.agent_name != REPORTER]
        return not (self.has_tries_left or self.can_replan or others)

    def by_rule(self) -> LeadDecision:
        """Return the decision where no model makes a usable one: try once more, else go another way."""
        if self.has_tries_left:
            return LeadDecision(decision="retry")
        if self.can_replan and self.step.agent_name != REPORTER:
            return LeadDecision(decision="replan")
        return LeadDecision(decision="continue_without")


async def ask_lead(
    model: BaseChatModel,
    request: str,
    failure: Failure,
    members: Sequence[Worker],
    briefs: Sequence[Mapping[str, str]],
    before: str = "",
) -> LeadDecision:
    """Return what the lead decides; by rule when its answer is unusable twice.

    `before` says what happened on the thread before the request.

    Raises `ModelError` and `BudgetExhausted`.
    """
    kinds = failure.decisions(members)
    shape = Shape("LeadDecision", _schema(kinds, members), LeadDecision)
    messages = _messages(request, failure, kinds, briefs, before, room_of(model))
    try:
        decision, _ = await send_within_window(
            model,
            messages,
            lambda shown: ask_for(model, shown, shape, check=lambda one: _checked(one, kinds, members)),
        )
    except ShapeError:
        return failure.by_rule()
    return decision


def apply_decision(failure: Failure, decision: LeadDecision) -> PlanProgress:
    """Return the plan after a decision other than `replan`, which is the planner's to carry out."""
    progress, failed = failure.progress, failure.step
    match decision.decision:
        case "retry":
            return _tried_again(progress, failed, decision.hint)
        case "reassign" if decision.step is not None:
            return _reassigned(failure, decision.step, decision.hint)
        case "finish":
            reason = f"{failed.title!r} could not be done"
            return _given_up(progress.skipped_to_report(reason), failed)
        case _:
            return _given_up(progress, failed)


def _messages(
    request: str,
    failure: Failure,
    kinds: Collection[DecisionKind],
    briefs: Sequence[Mapping[str, str]],
    before: str,
    room: int,
) -> list[BaseMessage]:
    progress, failed = failure.progress, failure.step
    team = [brief["name"] for brief in briefs]
    prompt = render("lead", members=briefs, team=team, decisions=kinds, locale="")
    lines = [PlanStepSummary(one.id, one.agent_name, one.title, one.status) for one in progress.steps]
    results = answers_of(progress, int(RESULTS_SHARE * room))
    asked = "\n".join(
        filter(
            None,
            (
                f"The failed step {failed.id}, try {failed.attempts}, of {failed.agent_name}: {failed.title}",
                failed.description,
                f"Note: {failed.note}" if failed.note else "",
                f"Why it failed: {failed.reason or 'no reason was given'}",
            ),
        )
    )
    texts = [f"Request: {request}", before, format_plan(lines), *(str(one.content) for one in results), asked]
    return [SystemMessage(prompt), *(HumanMessage(text) for text in texts if text)]


def _schema(kinds: Sequence[DecisionKind], members: Sequence[Worker]) -> dict[str, Any]:
    text = {"type": "string"}
    names = [name for name in members if name != REPORTER]
    step = object_schema(agent_name={"type": "string", "enum": names}, title=text, description=text)
    return object_schema(
        decision={"type": "string", "enum": list(kinds)},
        hint={"type": ["string", "null"]},
        step={"anyOf": [step, {"type": "null"}]},
    )


def _checked(
    decision: LeadDecision, kinds: Sequence[DecisionKind], members: Sequence[Worker]
) -> LeadDecision:
    if decision.decision not in kinds:
        raise ValueError(f"decision {decision.decision!r} is not possible now; use {', '.join(kinds)}")
    if decision.decision == "reassign":
        names = [name for name in members if name != REPORTER]
        if decision.step is None or decision.step.agent_name not in names:
            raise ValueError(f"reassign needs a step whose agent_name is one of {', '.join(names)}")
    return decision


def _tried_again(progress: PlanProgress, failed: TrackedStep, hint: str | None) -> PlanProgress:
    return progress.with_step(
        failed.id, status="blocked", reason=failed.reason, note=_joined(failed.note, hint), repeats=None
    )


def _reassigned(failure: Failure, new: NewStep, hint: str | None) -> PlanProgress:
    """Return the plan in which another member does the failed step, or first what that needs."""
    progress, failed = failure.progress, failure.step
    title = new.title or failed.title
    if not failure.asks_for_something:
        return progress.with_step(
            failed.id,
            agent_name=new.agent_name,
            title=title,
            description=new.description,
            note=_joined(failed.note, hint),
            status="not_started",
        )
    same = any(
        one.agent_name == new.agent_name and one.description == new.description for one in progress.steps
    )
    if same:
        return _given_up(progress, failed)
    step = PlannedStep(agent_name=new.agent_name, title=title, description=new.description, note=hint)
    return _tried_again(progress, failed, None).inserted_before(failed.id, step)


def _given_up(progress: PlanProgress, failed: TrackedStep) -> PlanProgress:
    """Return the plan that goes on without a step; a report that fails is written by code."""
    if failed.agent_name == REPORTER:
        return progress.with_step(failed.id, status="not_started", by_code=True, repeats=None)
    return progress.with_step(failed.id, settled=True, reason=failed.reason)


def _joined(note: str | None, hint: str | None) -> str | None:
    return "\n".join(filter(None, (note, hint))) or None
