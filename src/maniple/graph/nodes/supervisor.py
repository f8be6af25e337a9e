"""The supervisor: chooses the next step by the plan, or by the lead if a step has failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast, get_args

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.config import get_config
from langgraph.graph import END  # pyright: ignore[reportMissingTypeStubs] - it has types
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import BaseModel

from maniple.agents import ROLES, Roles, format_briefs
from maniple.agents.briefing import RESULTS_SHARE, format_notes
from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.profiles import profile_of
from maniple.errors import BudgetExhausted, ManipleError, ModelError, ModelErrorCode
from maniple.graph.adaptation import answers_of, prepare_replanning
from maniple.graph.earlier_turns import notes_of_run
from maniple.graph.gap_review import GapReviewer, is_due
from maniple.graph.lead import Lead, report_decision
from maniple.graph.limits import wrap_up
from maniple.graph.nodes.review import describe_review, reviewed_plan, send_back
from maniple.graph.plan import PlannedStep, PlanProgress
from maniple.graph.plan_events import show_changes
from maniple.graph.state import RunOptions, State, make_update, private_of, records_of, request_of
from maniple.graph.steering import MessageCase, as_exchange, exchange_of, find_replanning
from maniple.graph.step_records import apply_decision, apply_records
from maniple.graph.waiting_answers import answer_about_plan, send_reply
from maniple.graph.waves import StepOrder, can_run_parallel, order_of_wave, send_wave
from maniple.graph.written_plan import REPORTER, object_schema, repeated_step
from maniple.llms import Shape, ShapeError, ask_for
from maniple.llms.context_windows import room_of
from maniple.prompts import render
from maniple.scope.inputs import UserMessage
from maniple.scope.run_scope import current_meter, run_scope
from maniple.types import RUN_MARK, Depth, Worker

FINISH = "FINISH"
PLANNER = "planner"
_LASTING: frozenset[ModelErrorCode] = frozenset(
    {"model_auth", "model_not_found", "model_bad_request", "model_not_configured"}
)
"""Codes of errors that recur until a setting is changed."""


class Router(BaseModel):
    """The supervisor's answer: a member, or FINISH."""

    next: str


@dataclass(frozen=True, slots=True)
class SupervisorNode:
    """Starts the worker of the next step, or ends the run."""

    lead: Lead
    available: Sequence[Worker]
    mode: Literal["plan", "always"] = "plan"
    roles: Roles = field(default_factory=lambda: ROLES)
    parallel_steps: int = 4
    """The number of steps that may run concurrently."""
    depth: Depth = "standard"
    """How far a question is researched if the caller does not say it."""

    async def __call__(self, state: State, runtime: Runtime[Any]) -> Command[str]:
        options = RunOptions.of(runtime, state)
        if asked := private_of(state).get("asked"):
            return await self._answer_reviewer(state, asked, options.at_work(self.available))
        members, is_deep = options.at_work(self.available), (options.depth or self.depth) == "deep"
        async with show_changes(state, members):
            command = await self._next(state, members, is_deep=is_deep)
        if not (exchange := exchange_of(state)):
            return command
        update = cast("Mapping[str, Any]", command.update)
        return replace(command, update={**update, "messages": exchange})

    def order_of(self, progress: PlanProgress) -> list[StepOrder]:
        """Return when each step of a plan that has not begun will begin; [] if they run one by one."""
        return order_of_wave(progress, self.roles, self.parallel_steps) if self._runs_wave(progress) else []

    def _runs_wave(self, progress: PlanProgress) -> bool:
        return self.mode == "plan" and self.parallel_steps > 1 and can_run_parallel(progress, self.roles)

    async def _answer_reviewer(self, state: State, asked: str, members: Sequence[Worker]) -> Command[str]:
        """Answer a question about the plan and let its review go on, or have the plan changed as it asks."""
        plan, message = reviewed_plan(state), UserMessage(str(state["messages"][-1].id), asked)
        question = describe_review(plan, self.order_of(PlanProgress.of(plan)))
        case = MessageCase(message, run_scope().inbox.decided, state, _load_plan(state), members)
        reply = await answer_about_plan(self.lead.model, case, question)
        if reply is None:
            return Command(goto=PLANNER, update=send_back(state, asked))
        await send_reply(message.message_id, reply.text)
        _, answer = as_exchange(replace(message, reply=reply))
        return Command(goto="review", update=make_update(answer, asked=""))

    async def _next(self, state: State, members: Sequence[Worker], *, is_deep: bool) -> Command[str]:
        inbox = run_scope().inbox
        progress, records = _load_plan(state), records_of(state)
        while True:
            inbox.open()
            # The lead's decision may change the next step, and a run does not end before it.
            await inbox.settled()
            inbox.show_plan = None
            progress, records = apply_records(progress, records, inbox.changes, members), []
            await inbox.refuse(progress.refused)
            if message := find_replanning(progress):
                return _replanning(progress, message)
            progress, is_replanned = await self._within_budget(state, progress, members)
            if is_replanned:
                return Command(
                    goto=PLANNER,
                    update=make_update(
                        plan=prepare_replanning(progress).to_state(), ended=None, next=PLANNER
                    ),
                )
            if is_deep and is_due(progress):
                progress = await GapReviewer(self.lead).review(state, progress, members)
                continue  # what the user has sent meanwhile goes first
            step = progress.current()
            # Changes that were requested in the meantime are applied even after the report.
            if step is not None or await inbox.seal(progress.changes):
                break
        if step is None:
            _check_delivered(progress)
            return Command(goto=END, update=make_update(plan=progress.to_state(), ended=None, next=FINISH))
        if self._runs_wave(progress):
            return send_wave(state, progress)
        progress = progress.with_step(
            step.id,
            status="in_progress",
            attempts=step.attempts + 1,
            repeats=repeated_step(progress, step) is not None or None,
        )
        update = make_update(plan=progress.to_state(), ended=None, next=step.agent_name)
        return Command(goto=step.agent_name, update=update)

    async def _within_budget(
        self, state: State, progress: PlanProgress, members: Sequence[Worker]
    ) -> tuple[PlanProgress, bool]:
        """Return the plan after decisions about failed steps, and whether its rest has to be written again.

        If the budget is nearly exhausted, all open steps except the report are skipped.
        """
        meter = current_meter()
        reason = meter.describe_near_limit()
        if reason is None:
            try:
                async with meter.enforce_time_limit():
                    return await self._decided(state, progress, members)
            except BudgetExhausted as error:
                reason = str(error)
        gives_up = self.lead.find_failure(progress, members) is not None
        progress = progress.model_copy(update={"replan_hint": None})
        return wrap_up(progress, reason, gives_up=gives_up), False

    async def _decided(
        self, state: State, progress: PlanProgress, members: Sequence[Worker]
    ) -> tuple[PlanProgress, bool]:
        if progress.replan_hint is not None:
            return progress, True
        if REPORTER not in members:
            return progress, False
        is_after_failure = False
        while (failure := self.lead.find_failure(progress, members)) is not None:
            is_after_failure = True
            decision = await self.lead.decide(state, failure, members)
            await report_decision(failure.step, decision)
            progress = apply_decision(progress, failure.step, decision)
            if progress.replan_hint is not None:
                return progress, True
        if is_after_failure:
            return progress, False
        if self.mode == "plan" or progress.current() is None or progress.decisions_left == 0:
            return progress, False
        if not profile_of(self.lead.model).judges_failures:
            return progress, False
        choice = await self._ask(state, progress, members)
        progress = progress.model_copy(update={"decisions_left": progress.decisions_left - 1})
        return _chosen(progress, choice), False

    async def _ask(self, state: State, progress: PlanProgress, members: Sequence[Worker]) -> str | None:
        """Return the model's choice; `None` without a usable answer, so that the plan decides."""
        team, model = [*members, FINISH], self.lead.model
        schema = object_schema(next={"type": "string", "enum": team})
        try:
            answer, _ = await send_within_window(
                model,
                _messages(state, progress, format_briefs(members, self.roles), room_of(model)),
                lambda messages: ask_for(
                    model,
                    messages,
                    Shape("Router", schema, Router),
                    check=lambda router: _check_router(router, team),
                ),
            )
        except (ShapeError, ModelError):
            return None
        return answer.next


def _load_plan(state: State) -> PlanProgress:
    """Return the plan before the records of the last wave; raises `ManipleError` without one."""
    if not (plan := private_of(state).get("plan")):
        raise ManipleError("The supervisor was reached without a plan; enter the graph at its start.")
    return PlanProgress.from_state(plan)


def _replanning(progress: PlanProgress, message: UserMessage) -> Command[str]:
    """Return the command that sends the plan to the planner because of a message of the user."""
    changes, adaptations = (*progress.changes, message.message_id), progress.adaptations
    plan = prepare_replanning(progress).model_copy(update={"changes": changes, "adaptations": adaptations})
    update = make_update(plan=plan.to_state(), ended=None, next=PLANNER, feedback=message.text)
    return Command(goto=PLANNER, update=update)


def _messages(
    state: State, progress: PlanProgress, members: Sequence[Mapping[str, str]], room: int
) -> list[BaseMessage]:
    team, private = [member["name"] for member in members], private_of(state)
    prompt = render("supervisor", members=members, team=team, locale=private.get("locale") or "")
    return [
        SystemMessage(prompt),
        HumanMessage(f"Request: {request_of(state)}"),
        HumanMessage(private.get("full_plan") or ""),
        *(HumanMessage(one) for one in [format_notes(notes_of_run(state, progress))] if one),
        *answers_of(progress, int(RESULTS_SHARE * room)),
    ]


def _check_delivered(progress: PlanProgress) -> None:
    """Raise the error that ended the last step, unless a model has written an answer.

    After a report by code the run fails, too, so that it can be retried. An embedded run says so in its last
    message instead, because an error would end the graph around it.
    """
    last = progress.steps[-1]
    if RUN_MARK not in get_config().get("metadata", {}):
        return
    if last.status != "failed" or not last.error_code:
        return
    if last.error_code in get_args(ModelErrorCode):
        code = cast("ModelErrorCode", last.error_code)
        text = last.reason if last.by_code else last.result
        error: ManipleError = ModelError(text, code=code, retryable=code not in _LASTING)
    else:
        error = ManipleError(f"Something went wrong inside maniple ({last.result}).")
    error.agent_name, error.has_answer = last.agent_name, last.by_code
    raise error


def _check_router(router: Router, team: Sequence[str]) -> Router:
    if router.next not in team:
        raise ValueError(f"{router.next!r} is not on the team; answer with one of {', '.join(team)}")
    return router


def _chosen(progress: PlanProgress, choice: str | None) -> PlanProgress:
    """Apply the model's choice of the next member (`supervisor: always`)."""
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
