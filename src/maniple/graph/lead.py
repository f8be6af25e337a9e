"""The lead's decisions after a step has failed or gave only a part."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from maniple.agents import ROLES, Roles, find_current_roles, format_briefs
from maniple.agents.briefing import (
    REPORT_SHARE,
    RESULTS_SHARE,
    format_history,
    format_notes,
    format_plan,
    format_removed,
)
from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.profiles import profile_of
from maniple.agents.task import BY_USER_LINE, LATER_TRY_FAILED, PlanStepSummary, format_files
from maniple.errors import ModelError
from maniple.graph.adaptation import answers_of
from maniple.graph.earlier_turns import history_of, notes_of_run
from maniple.graph.plan import OPEN, PlanProgress, TrackedStep
from maniple.graph.state import State, private_of, request_of
from maniple.graph.step_records import LeadDecision
from maniple.graph.written_plan import REPORTER, object_schema
from maniple.llms import Shape, ShapeError, ask_for
from maniple.llms.context_windows import room_of
from maniple.prompts import render
from maniple.search import SearchProvider
from maniple.text import join_title
from maniple.types import LEAD_DECISION, STEP_NEEDS, DecisionKind, Worker


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed step, or one with a partial result, and the possible decisions about it."""

    progress: PlanProgress
    step: TrackedStep
    has_tries_left: bool
    can_replan: bool

    def decisions(self, members: Sequence[Worker]) -> list[DecisionKind]:
        """Return the decisions that the lead can make."""
        left_out: set[str] = set()
        if not self.has_tries_left:
            left_out |= {"retry", "reassign"}
        if not self.can_replan or self.step.agent_name == REPORTER:
            left_out.add("replan")
        if not [name for name in members if name not in (REPORTER, self.step.agent_name)]:
            left_out.add("reassign")
        return [kind for kind in get_args(DecisionKind) if kind not in left_out]

    def needs_no_model(self) -> bool:
        """Return whether a rule suffices: for a failed report, or if there is nothing to choose."""
        if self.step.agent_name == REPORTER and not self.step.outcome.needs:
            return True
        others = [one for one in self.progress.steps if one.status in OPEN and one.agent_name != REPORTER]
        return not (self.has_tries_left or self.can_replan or others)

    def decide_by_rule(self) -> LeadDecision:
        """Return the decision without a usable answer of a model: retry, else replan, else continue.

        A partial result is accepted.
        """
        if self.step.is_partial:
            return LeadDecision(decision="continue_without")
        if self.has_tries_left:
            return LeadDecision(decision="retry")
        if self.can_replan and self.step.agent_name != REPORTER:
            return LeadDecision(decision="replan")
        return LeadDecision(decision="continue_without")

    def decide_without_model(self) -> LeadDecision:
        """Return the decision if the lead's model does not answer.

        If the step failed because its model did not answer either, other steps would fail, too, each after
        its own timeout. The run then finishes with its present results.
        """
        if self.step.error_code.startswith("model_"):
            return LeadDecision(decision="finish")
        is_tried = self.has_tries_left and not self.step.is_partial
        return LeadDecision(decision="retry" if is_tried else "continue_without")


@dataclass(frozen=True, slots=True)
class Lead:
    """Decides how a run continues after a failure."""

    model: BaseChatModel
    step_retries: int = 1
    roles: Roles = field(default_factory=lambda: ROLES)
    max_adaptations: int = 0
    """How often per run the planner may replace the rest of the plan."""
    search: SearchProvider | None = None
    """If it is unavailable, the researcher's description says so."""

    def find_failure(self, progress: PlanProgress, members: Sequence[Worker]) -> Failure | None:
        """Return the first failed or partial step without a decision."""
        for step in progress.steps:
            if step.awaits_decision and not progress.given_up(step):
                return self.failure_of(progress, step, members)
        return None

    def failure_of(self, progress: PlanProgress, step: TrackedStep, members: Sequence[Worker]) -> Failure:
        """Return the failure of one step with the possible decisions."""
        can_replan = REPORTER in members and progress.adaptations < self.max_adaptations
        return Failure(progress, step, step.attempts <= self.step_retries, can_replan)

    async def decide(
        self, state: State, failure: Failure, members: Sequence[Worker], message: str = ""
    ) -> LeadDecision:
        """Return the decision; a rule decides if the model fails or gives two unusable answers.

        `message` is shown to the model last, after the failed step. Raises `BudgetExhausted`.
        """
        if failure.progress.decisions_left == 0:
            return LeadDecision(decision="continue_without")
        if failure.needs_no_model() or not profile_of(self.model).judges_failures:
            return failure.decide_by_rule()
        kinds = failure.decisions(members)
        briefs = format_briefs(members, await find_current_roles(self.roles, self.search))
        room = room_of(self.model)
        before = [
            format_files(private_of(state).get("files") or ()).strip(),
            format_history(history_of(state), int(REPORT_SHARE * room)),
            format_notes(notes_of_run(state, failure.progress)),
        ]
        messages = _messages(request_of(state), failure, kinds, briefs, before, room)
        if message:
            messages.append(HumanMessage(message))
        shape = Shape("LeadDecision", _schema(kinds, members), LeadDecision)
        try:
            decision, _ = await send_within_window(
                self.model,
                messages,
                lambda shown: ask_for(
                    self.model, shown, shape, check=lambda one: _checked(one, kinds, members)
                ),
            )
        except ShapeError:
            return failure.decide_by_rule()
        except ModelError:
            return failure.decide_without_model()
        return decision


async def report_decision(step: TrackedStep, decision: LeadDecision) -> None:
    """Send an event about the decision to the clients of the run."""
    new = decision.step if decision.decision == "reassign" else None
    event = {
        "step_id": step.id,
        "title": step.title,
        "decision": decision.decision,
        "agent_name": new.agent_name if new else None,
        "hint": decision.hint or None,
    }
    await adispatch_custom_event(LEAD_DECISION, event)


def _messages(
    request: str,
    failure: Failure,
    kinds: Collection[DecisionKind],
    briefs: Sequence[Mapping[str, str]],
    before: Sequence[str],
    room: int,
) -> list[BaseMessage]:
    progress, failed = failure.progress, failure.step
    team = [brief["name"] for brief in briefs]
    prompt = render(
        "lead", members=briefs, team=team, decisions=kinds, locale="", is_partial=failed.is_partial
    )
    results = answers_of(progress, int(RESULTS_SHARE * room))
    how = "partial" if failed.is_partial else "failed"
    asked = "\n".join(
        filter(
            None,
            (
                f"The {how} step {failed.id}, try {failed.attempts}, of {failed.agent_name}: "
                + join_title(failed.title, failed.description),
                BY_USER_LINE if failed.by_user else "",
                f"Note: {failed.note}" if failed.note else "",
                *_explain(failed),
                f"Files it made: {', '.join(failed.outcome.files)}" if failed.outcome.files else "",
            ),
        )
    )
    plan = (format_plan(list_steps(progress)), format_removed(progress.removed))
    texts = [f"Request: {request}", *before, *plan, *(str(one.content) for one in results), asked]
    return [SystemMessage(prompt), *(HumanMessage(text) for text in texts if text)]


def list_steps(progress: PlanProgress) -> list[PlanStepSummary]:
    """Return the steps with their ids as the lead sees them, without those that the user removed."""
    return [
        PlanStepSummary(
            one.id,
            one.agent_name,
            one.title,
            one.status,
            needs=_awaited(progress, one),
            replaced_by=one.replaced_by or 0,
            is_partial=one.is_partial,
        )
        for one in progress.steps
        if not one.is_removed
    ]


def _explain(step: TrackedStep) -> list[str]:
    """Return why a step failed, or what its result lacks, and what its member needs."""
    outcome = step.outcome
    needs = f"{STEP_NEEDS} {outcome.needs}" if outcome.needs else ""
    if not step.is_partial:
        reason = outcome.reason if outcome.needs else step.reason
        return [f"Why it failed: {reason or 'no reason was given'}", needs]
    return [
        f"What is missing in its result: {outcome.reason}",
        needs,
        f"{LATER_TRY_FAILED} {step.reason}" if step.reason else "",
    ]


def _awaited(progress: PlanProgress, step: TrackedStep) -> list[int]:
    """Return the ids of the steps that an open step waits for; the report waits for all, which is known."""
    if step.status not in OPEN or step.agent_name == REPORTER:
        return []
    return [one.id for one in progress.given_to(step) if not one.is_removed]


def _schema(kinds: Sequence[DecisionKind], members: Sequence[Worker]) -> dict[str, Any]:
    text = {"type": "string"}
    names = [name for name in members if name != REPORTER]
    step = object_schema(agent_name={"type": "string", "enum": names}, title=text, description=text)
    return object_schema(
        decision={"type": "string", "enum": list(kinds)},
        hint={"type": ["string", "null"]},
        step={"anyOf": [step, {"type": "null"}]},
        then_retry={"type": ["boolean", "null"]},
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
