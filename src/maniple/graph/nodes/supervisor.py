"""Decide who acts next: by the plan while it works, by a model when it does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.graph import END
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import BaseModel

from maniple.agents import ROLES, Roles, format_briefs
from maniple.agents.briefing import RESULTS_SHARE
from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.plan_edits import PendingPlanEdits
from maniple.agents.profiles import profile_of
from maniple.agents.run_scope import run_scope
from maniple.errors import BudgetExhausted, ManipleError
from maniple.graph.adaptation import begun, is_due
from maniple.graph.limits import current_meter, wrapped_up
from maniple.graph.outcomes import answers_of
from maniple.graph.plan import PlannedStep, PlanProgress, TrackedStep
from maniple.graph.plan_edits import apply_changes
from maniple.graph.state import RunOptions, State, progress_of, request_of
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
    step_retries: int = 2
    roles: Roles = field(default_factory=lambda: ROLES)
    max_adaptations: int = 0
    """How often in a run the planner may write the rest of the plan anew."""

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
            if self._gives_back(progress, members):
                return Command(goto=PLANNER, update={"plan": begun(progress).to_state(), "next": PLANNER})
            progress = await self._within_budget(state, progress, members)
            step = progress.current()
            # What was wished meanwhile counts, even when the report is written.
            if step is not None or plan_edits.close():
                break
        if step is None:
            return Command(goto=END, update={"plan": progress.to_state(), "next": FINISH})
        progress = progress.with_step(step.id, status="in_progress", attempts=step.attempts + 1)
        return Command(goto=step.agent_name, update={"plan": progress.to_state(), "next": step.agent_name})

    def _gives_back(self, progress: PlanProgress, members: Sequence[Worker]) -> bool:
        """Return whether the planner is to write the rest of the plan anew."""
        due = "reporter" in members and is_due(progress, self.step_retries, self.max_adaptations)
        return due and current_meter().describe_near_limit() is None

    async def _within_budget(
        self, state: State, progress: PlanProgress, members: Sequence[Worker]
    ) -> PlanProgress:
        """Return the plan with what to do next: near the end of the budget, only the report is."""
        meter = current_meter()
        reason = meter.describe_near_limit()
        if reason is None:
            try:
                async with meter.enforce_time_limit():
                    return await self._decided(state, progress, members)
            except BudgetExhausted as error:
                reason = str(error)
        return wrapped_up(progress, reason, gives_up=self._worth_another_try(progress) is not None)

    async def _decided(self, state: State, progress: PlanProgress, members: Sequence[Worker]) -> PlanProgress:
        """Return the plan in which the current step is the one to do next."""
        if "reporter" not in members:
            return progress
        failed = self._worth_another_try(progress)
        if failed is None and self.mode == "plan":
            return progress
        if failed is None and progress.current() is None:
            return progress  # the report is written
        # A small model cannot judge a failure: the report says what is missing.
        if progress.decisions_left == 0 or not profile_of(self.model).judges_failures:
            return progress if failed is None else _mended(progress, failed, "reporter")
        choice = await self._ask(state, progress, members)
        progress = progress.model_copy(update={"decisions_left": progress.decisions_left - 1})
        if failed is not None:
            return _mended(progress, failed, choice)
        return _chosen(progress, choice)

    def _worth_another_try(self, progress: PlanProgress) -> TrackedStep | None:
        """Return the step that failed last, unless its tries are used up."""
        for step in progress.steps:
            tries_left = step.attempts <= self.step_retries
            if step.status == "failed" and tries_left and not progress.given_up(step):
                return step
        return None

    async def _ask(self, state: State, progress: PlanProgress, members: Sequence[Worker]) -> str | None:
        """Return the model's choice; `None` when it named nobody, so that the plan decides."""
        team = [*members, FINISH]
        schema = {
            "type": "object",
            "properties": {"next": {"type": "string", "enum": team}},
            "required": ["next"],
            "additionalProperties": False,
        }
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
    team = [member["name"] for member in members]
    prompt = render("supervisor", members=members, team=team, locale=state.get("locale") or "")
    return [
        SystemMessage(prompt),
        HumanMessage(f"Request: {request_of(state)}"),
        HumanMessage(state.get("full_plan") or ""),
        *answers_of(progress, int(RESULTS_SHARE * room)),
    ]


def _known(router: Router, team: Sequence[str]) -> Router:
    if router.next not in team:
        raise ValueError(f"{router.next!r} is not on the team; answer with one of {', '.join(team)}")
    return router


def _mended(progress: PlanProgress, failed: TrackedStep, choice: str | None) -> PlanProgress:
    """Apply the model's answer to a step that failed."""
    if failed.agent_name != "reporter" and choice in ("reporter", FINISH):
        return progress.skipped_to_report(f"{failed.title!r} could not be done")
    again = progress.with_step(failed.id, status="blocked", reason=failed.reason)
    if choice in (None, FINISH, failed.agent_name):
        return again
    help_step = PlannedStep(
        agent_name=choice,
        title=f"Help with: {failed.title}",
        description=f"{failed.title!r} could not be done: {failed.result}\nProvide what it is missing.",
    )
    return again.inserted_before(failed.id, help_step)


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
