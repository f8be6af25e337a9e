"""Decide who acts next: by the plan while it works, by the lead when a step has failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.graph import END
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import BaseModel

from maniple.agents import ROLES, Roles, format_briefs
from maniple.agents.briefing import REPORT_SHARE, RESULTS_SHARE, format_history
from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.plan_edits import PendingPlanEdits
from maniple.agents.profiles import profile_of
from maniple.agents.run_scope import run_scope
from maniple.errors import BudgetExhausted, ManipleError
from maniple.graph.adaptation import answers_of, begun
from maniple.graph.lead import Failure, LeadDecision, apply_decision, ask_lead
from maniple.graph.limits import current_meter, wrapped_up
from maniple.graph.plan import PlannedStep, PlanProgress
from maniple.graph.plan_edits import apply_changes
from maniple.graph.state import (
    RunOptions,
    State,
    history_of,
    make_update,
    private_of,
    progress_of,
    request_of,
)
from maniple.graph.waves import can_run_parallel, send_wave
from maniple.graph.written_plan import object_schema
from maniple.llms import Shape, ShapeError, ask_for
from maniple.llms.context_windows import room_of
from maniple.prompts import render
from maniple.types import Worker

FINISH = "FINISH"
PLANNER = "planner"


class Router(BaseModel):
    """The supervisor's answer: a member, or FINISH."""

    next: str


@dataclass(frozen=True, slots=True)
class SupervisorNode:
    """Send the worker of the next step, or end the run."""

    model: BaseChatModel
    available: Sequence[Worker]
    mode: Literal["plan", "always"] = "plan"
    step_retries: int = 1
    roles: Roles = field(default_factory=lambda: ROLES)
    max_adaptations: int = 0
    """How often in a run the planner may write the rest of the plan anew."""
    parallel_steps: int = 4
    """How many steps may run concurrently."""

    async def __call__(self, state: State, runtime: Runtime[Any]) -> Command[str]:
        progress = progress_of(state)
        if progress is None:
            raise ManipleError("The supervisor was reached without a plan; enter the graph at its start.")
        options = RunOptions.of(runtime, state)
        members = options.at_work(self.available)
        plan_edits = run_scope().plan_edits or PendingPlanEdits()
        while True:
            plan_edits.open()
            progress = apply_changes(progress, plan_edits.take(), members)
            progress, is_replanned = await self._within_budget(state, progress, members)
            if is_replanned:
                return Command(
                    goto=PLANNER,
                    update=make_update(plan=begun(progress).to_state(), ended=None, next=PLANNER),
                )
            step = progress.current()
            # What was wished meanwhile counts, even when the report is written.
            if step is not None or plan_edits.close():
                break
        if step is None:
            return Command(goto=END, update=make_update(plan=progress.to_state(), ended=None, next=FINISH))
        if self.mode == "plan" and self.parallel_steps > 1 and can_run_parallel(progress, self.roles):
            return send_wave(state, progress, self.roles)
        progress = progress.with_step(step.id, status="in_progress", attempts=step.attempts + 1)
        update = make_update(plan=progress.to_state(), ended=None, next=step.agent_name)
        return Command(goto=step.agent_name, update=update)

    async def _within_budget(
        self, state: State, progress: PlanProgress, members: Sequence[Worker]
    ) -> tuple[PlanProgress, bool]:
        """Return the plan with what to do next, and whether the planner is to write its rest again.

        Near the end of the budget only the report is left to do.
        """
        meter = current_meter()
        reason = meter.describe_near_limit()
        if reason is None:
            try:
                async with meter.enforce_time_limit():
                    return await self._decided(state, progress, members)
            except BudgetExhausted as error:
                reason = str(error)
        gives_up = self._failure(progress, members) is not None
        return wrapped_up(progress, reason, gives_up=gives_up), False

    async def _decided(
        self, state: State, progress: PlanProgress, members: Sequence[Worker]
    ) -> tuple[PlanProgress, bool]:
        if "reporter" not in members:
            return progress, False
        is_after_failure = False
        while (failure := self._failure(progress, members)) is not None:
            is_after_failure = True
            decision = await self._lead(state, failure, members)
            left = {"decisions_left": max(progress.decisions_left - 1, 0)}
            failure = replace(failure, progress=progress.model_copy(update=left))
            if decision.decision == "replan":
                return failure.progress, True
            progress = apply_decision(failure, decision)
        if is_after_failure:
            return progress, False
        if self.mode == "plan" or progress.current() is None or progress.decisions_left == 0:
            return progress, False
        if not profile_of(self.model).judges_failures:
            return progress, False
        choice = await self._ask(state, progress, members)
        progress = progress.model_copy(update={"decisions_left": progress.decisions_left - 1})
        return _chosen(progress, choice), False

    def _failure(self, progress: PlanProgress, members: Sequence[Worker]) -> Failure | None:
        """Return the failed step that nothing was decided about yet."""
        for step in progress.steps:
            if step.status == "failed" and not progress.given_up(step):
                can_replan = "reporter" in members and progress.adaptations < self.max_adaptations
                return Failure(progress, step, step.attempts <= self.step_retries, can_replan)
        return None

    async def _lead(self, state: State, failure: Failure, members: Sequence[Worker]) -> LeadDecision:
        if failure.progress.decisions_left == 0:
            return LeadDecision(decision="continue_without")
        if failure.needs_no_model() or not profile_of(self.model).judges_failures:
            return failure.by_rule()
        briefs = format_briefs(members, self.roles)
        before = format_history(history_of(state), int(REPORT_SHARE * room_of(self.model)))
        return await ask_lead(self.model, request_of(state), failure, members, briefs, before)

    async def _ask(self, state: State, progress: PlanProgress, members: Sequence[Worker]) -> str | None:
        """Return the model's choice; `None` when it named nobody, so that the plan decides."""
        team = [*members, FINISH]
        schema = object_schema(next={"type": "string", "enum": team})
        try:
            answer, _ = await send_within_window(
                self.model,
                _messages(state, progress, format_briefs(members, self.roles), room_of(self.model)),
                lambda messages: ask_for(
                    self.model,
                    messages,
                    Shape("Router", schema, Router),
                    check=lambda router: _known(router, team),
                ),
            )
        except ShapeError:
            return None
        return answer.next


def _messages(
    state: State, progress: PlanProgress, members: Sequence[Mapping[str, str]], room: int
) -> list[BaseMessage]:
    team, private = [member["name"] for member in members], private_of(state)
    prompt = render("supervisor", members=members, team=team, locale=private.get("locale") or "")
    return [
        SystemMessage(prompt),
        HumanMessage(f"Request: {request_of(state)}"),
        HumanMessage(private.get("full_plan") or ""),
        *answers_of(progress, int(RESULTS_SHARE * room)),
    ]


def _known(router: Router, team: Sequence[str]) -> Router:
    if router.next not in team:
        raise ValueError(f"{router.next!r} is not on the team; answer with one of {', '.join(team)}")
    return router


def _chosen(progress: PlanProgress, choice: str | None) -> PlanProgress:
    """Apply the model's answer while the plan works (`supervisor: always`)."""
    step = progress.current()
    if choice is None or step is None or choice == step.agent_name:
        return progress
    if choice in ("reporter", FINISH):
        return progress.skipped_to_report("the supervisor went on without it")
    ahead = next((s for s in progress.steps if s.status == "not_started" and s.agent_name == choice), None)
    if ahead is None:
        title = f"{choice}: what the plan left out"
        return progress.inserted_before(
            step.id, PlannedStep(agent_name=choice, title=title, description=progress.title)
        )
    order = [s for s in progress.steps if s.id != ahead.id]
    order.insert(order.index(step), ahead)
    return progress.model_copy(update={"steps": tuple(order)})
