"""The user's input to a running run: changes of its plan, and messages to its team."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast
from uuid import UUID, uuid4

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig, RunnableLambda

from maniple.agents.plan_edits import PlanChange
from maniple.agents.run_scope import SCOPE_KEY, RunScope
from maniple.agents.steering import MessageDecision, UserMessage
from maniple.errors import StoreError
from maniple.events import (
    UsageReported,
    UserAnswered,
    UserMessageAnswered,
    UserMessageReceived,
    load_run_view,
    report_usage,
)
from maniple.graph import Plan, PlanProgress, Team, members_of
from maniple.graph.plan_edits import apply_change, apply_changes, apply_to_review
from maniple.graph.state import State, progress_of
from maniple.graph.steering import MessageCase, Steering
from maniple.redaction import Redactor
from maniple.runs.active_run import ActiveRun, Recorder
from maniple.runs.engine import InvalidPlanEdit, PlanNotEditable, TooManyRuns
from maniple.runs.engine_config import EngineConfig, RunTelemetry
from maniple.runs.request import RunRequest
from maniple.runtime import thread_state
from maniple.store import RunRecord, Store, read_event_pages
from maniple.tools.questions import OpenQuestion
from maniple.types import RUN_MARK, RunStatus, Worker

_LOG = logging.getLogger(__name__)
MAX_POSSIBLE_RUNS = 20
"""The limit of messages to one run that become, or may become, runs. No other limit counts them."""
_CANCELLED = "The run was cancelled before this could be answered."
_ENDED = "The run ended before the lead could answer this. It is the next request of the conversation."
PLAN_NOT_EDITABLE = (
    "The plan cannot be changed now: the run is neither executing it nor waiting for its review."
)


class RunAccess(Protocol):
    """The part of a run's driver that is used here."""

    @property
    def team(self) -> Team:
        """The team of the runs."""
        ...

    @property
    def store(self) -> Store:
        """The store of runs and events."""
        ...

    @property
    def recorder(self) -> Recorder:
        """Stores events."""
        ...

    @property
    def config(self) -> EngineConfig:
        """The configuration of the engine."""
        ...

    @property
    def telemetry(self) -> RunTelemetry:
        """The metrics and the tracing of runs."""
        ...

    async def store_request(self, active: ActiveRun, request: RunRequest) -> None:
        """Store a changed request of an active run."""
        ...


def _current_plan(active: ActiveRun, stored: PlanProgress, members: Sequence[Worker]) -> PlanProgress:
    """Return the plan with accepted changes that were not applied yet; a new change may refer to them."""
    if (live_plan := active.plan_edits.live_plan) is not None:
        return live_plan()
    return apply_changes(stored, active.plan_edits.waiting, members)


async def request_plan_edit(driver: RunAccess, active: ActiveRun, change: PlanChange) -> dict[str, Any]:
    """Accept a change of a plan that is being executed; return the resulting plan.

    The change is stored before it is applied. Raises `PlanNotEditable` or `InvalidPlanEdit`.
    """
    team = driver.team
    state = await thread_state(team, active.record.thread_id)
    progress = progress_of(state.values)
    if not active.plan_edits.is_open or progress is None:
        raise PlanNotEditable(PLAN_NOT_EDITABLE)
    members = _allowed_members(team, active.request)
    try:
        preview = apply_change(_current_plan(active, progress, members), change, members)
    except ValueError as error:
        raise InvalidPlanEdit(str(error)) from error
    await driver.store_request(active, active.request.with_changes([change]))
    try:
        active.plan_edits.put(change)
    except ValueError as error:  # the run has ended in the meantime
        others = [one for one in active.request.plan_changes if one.change_id != change.change_id]
        await driver.store_request(active, replace(active.request, plan_changes=others))
        raise PlanNotEditable(PLAN_NOT_EDITABLE) from error
    return preview.to_state()


def edit_reviewed_plan(
    team: Team, request: RunRequest, pending: Mapping[str, Any], change: PlanChange
) -> tuple[str, Plan]:
    """Return the interrupt id of the pending review, and the changed plan."""
    for interrupt_id, payload in pending.items():
        question: Mapping[str, Any] = (
            cast("Mapping[str, Any]", payload) if isinstance(payload, Mapping) else {}
        )
        if question.get("kind") == "plan_review":
            try:
                plan = apply_to_review(
                    Plan.model_validate(question["plan"]), change, _allowed_members(team, request)
                )
            except ValueError as error:
                raise InvalidPlanEdit(str(error)) from error
            return interrupt_id, plan
    raise PlanNotEditable(PLAN_NOT_EDITABLE)


def _allowed_members(team: Team, request: RunRequest) -> Sequence[Worker]:
    return request.options.at_work(members_of(team))


async def accept_message(driver: RunAccess, active: ActiveRun, text: str) -> UserMessage:
    """Accept a message to a running run: store it, then show it and let the lead decide.

    There must be no `await` between the caller's check that the run accepts messages and this call.
    Raises `TooManyRuns` if too many messages may become runs, and `StoreError` if it could not be stored;
    then it is not accepted.
    """
    if active.request.possible_runs >= MAX_POSSIBLE_RUNS:
        raise TooManyRuns(
            f"{MAX_POSSIBLE_RUNS} messages to this run wait for its lead, or for a run of their own, "
            "which is the limit. Try again when the lead has replied, or when the run has ended."
        )
    message = UserMessage(str(uuid4()), driver.config.redactor.text(text))
    try:
        await driver.store_request(active, active.request.with_message(message))
    except StoreError:
        active.request = active.request.without_message(message.message_id)
        raise
    active.messages.put(message)
    await MessageDesk(driver, active).announce(message)
    return message


async def accept_step_answer(
    driver: RunAccess, active: ActiveRun, question: OpenQuestion, answer: Any
) -> None:
    """Accept the answer to the question of a step that waits while others go on: store it, then hand it over.

    Between the caller's check that the question is open and this call there must be no `await`. Raises
    `StoreError` if the answer could not be stored; then the question stays open.
    """
    answer = driver.config.redactor.value(answer)
    async with active.questions.taking(question, answer):
        try:
            await driver.store_request(active, active.request.with_step_answer(question.key, answer))
        except StoreError:
            active.request = active.request.without_step_answer(question.key)
            raise
        if active.is_streaming:
            answered = UserAnswered(interrupt_id=question.interrupt_id, answer=answer)
            await active.record_event(answered, driver.recorder)


@dataclass(slots=True)
class MessageDesk:
    """Lets the lead decide about the messages to one run while the run works."""

    driver: RunAccess
    active: ActiveRun
    _shown: set[str] = field(default_factory=set[str])
    _task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None]:
        """Decide messages inside of the context, or until `close`."""
        self._task = asyncio.create_task(self._decide_all(), name=f"messages {self.active.record.run_id}")
        try:
            yield
        finally:
            await self._stop()

    async def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def announce(self, message: UserMessage) -> None:
        """Record the event of a message if the run's stream is open; otherwise `resume` does."""
        active = self.active
        if active.is_streaming and message.message_id not in active.announced:
            active.announced.add(message.message_id)
            event = UserMessageReceived(message_id=message.message_id, content=message.text)
            await active.record_event(event, self.driver.recorder)

    async def resume(self) -> None:
        """Record the events of stored messages and decisions that an earlier process did not record."""
        if not self.active.is_streaming and self.active.status is None:
            await self._catch_up()

    async def _show_answer(self) -> None:
        """Record the answer with which the run continues, unless an earlier process did."""
        active, request = self.active, self.active.request
        async for page in read_event_pages(
            self.driver.store.events, active.record.run_id, request.answered_after, {UserAnswered.type}
        ):
            if any(json.loads(one.data)["interrupt_id"] == request.answered for one in page):
                return
        [answer] = request.answers.values()
        answered = UserAnswered(interrupt_id=request.answered, answer=answer)
        await active.record_event(answered, self.driver.recorder)

    async def _catch_up(self) -> None:
        active = self.active
        if active.request.answered:
            await self._show_answer()
        if active.request.user_messages:
            types = [UserMessageReceived, UserMessageAnswered]
            view = await load_run_view(self.driver.store.events, active.record.run_id, types)
            active.announced |= view.exchanges.keys()
            self._shown |= {one for one, exchange in view.exchanges.items() if exchange.answer is not None}
        active.is_streaming = True
        for message in active.request.user_messages:
            await self.announce(message)
            await self._show_decision(message.message_id, message.decision)

    async def close(self, status: RunStatus) -> None:
        """Stop deciding, and record the outcome of undecided messages before the run ends.

        In a run that waits for an answer they stay undecided.
        """
        active = self.active
        # From here on the run accepts no messages, so that none is lost.
        active.takes_messages = status == "interrupted"
        await self._stop()
        if status != "interrupted" and any(one.decision is None for one in active.request.user_messages):
            # One write for all, because a cancelled run has little time to end.
            is_cancelled = status == "cancelled"
            decision = MessageDecision(
                "dropped" if is_cancelled else "next_run", _CANCELLED if is_cancelled else _ENDED
            )
            await self.driver.store_request(active, active.request.with_rest_decided(decision))
        if not active.is_streaming:  # the first event of a recovered run was its end
            await self._catch_up()
        for message in active.request.user_messages:
            await self._show_decision(message.message_id, message.decision)
        active.is_streaming = False

    async def _decide_all(self) -> None:
        messages = self.active.messages
        while True:
            message = await messages.next()
            # Unless it is decided, the message becomes the next run: it is not lost, and the end of this run
            # does not wait for it.
            decision = MessageDecision("next_run", _ENDED)
            try:
                decision = await self._decide(message)
            except Exception:  # noqa: BLE001 - no failure here may end the run
                _LOG.exception("A message to the run could not be decided.")
                self.active.request = self.active.request.with_decision(message, decision)
            messages.decide(message.message_id, decision)
            try:
                await self._show_decision(message.message_id, decision)
            except Exception:  # noqa: BLE001 - a lost event fails the run at the next event of its own stream
                _LOG.exception("The decision about a message to the run could not be recorded.")

    async def _decide(self, message: UserMessage) -> MessageDecision:
        steering = await self._ask_lead(message)
        await self._log(message, steering)
        for change in steering.changes:
            with suppress(ValueError):
                self.active.plan_edits.put(change)
        return steering.decision

    async def _ask_lead(self, message: UserMessage) -> Steering:
        driver, active = self.driver, self.active
        team, record = driver.team, active.record
        state = await thread_state(team, record.thread_id)
        progress = progress_of(state.values)
        if progress is None:
            return Steering(MessageDecision("next_run", _ENDED))
        members = _allowed_members(team, active.request)
        progress = apply_changes(
            _current_plan(active, progress, members), active.request.plan_changes, members
        )
        earlier, begun = active.messages.decided, active.messages.begun_steps

        async def decide(_: object) -> Steering:
            values = cast("State", state.values)
            case = MessageCase(message, earlier, values, progress, members, begun)
            return await team.message_lead.decide(case)

        usage = _UsageOfCalls()
        config: RunnableConfig = {
            "run_name": "user message",
            "callbacks": [
                *active.meter.callbacks,
                usage,
                *driver.telemetry.callbacks(record.run_id, record.thread_id),
            ],
            "configurable": {SCOPE_KEY: RunScope(record.run_id, meter=active.meter)},
            "metadata": {RUN_MARK: record.run_id},
        }
        try:
            return await RunnableLambda(decide).ainvoke(None, config)
        finally:
            for event in usage.events:
                await active.record_event(event, driver.recorder)

    async def _log(self, message: UserMessage, steering: Steering) -> None:
        """Store a decision together with its changes of the plan, before they take effect."""
        request = self.active.request.with_decision(message, steering.decision)
        await self.driver.store_request(self.active, request.with_changes(steering.changes))

    async def _show_decision(self, message_id: str, decision: MessageDecision | None) -> None:
        if decision is None or message_id in self._shown:
            return
        self._shown.add(message_id)
        event = UserMessageAnswered(
            message_id=message_id,
            disposition=decision.disposition,
            content=decision.reply,
            run_id=message_id if decision.disposition == "next_run" else None,
        )
        await self.active.record_event(event, self.driver.recorder)


async def add_next_runs(
    store: Store, redactor: Redactor, record: RunRecord, request: RunRequest, status: RunStatus
) -> list[RunRecord]:
    """Store the runs that messages to a run become when it ends with `status`; return the new ones.

    A run has the id of its message, so that repeated calls create it only once.
    """
    if status in ("interrupted", "cancelled"):
        return []
    added: list[RunRecord] = []
    for message in request.user_messages:
        is_due = message.decision is None or message.decision.disposition == "next_run"
        if is_due and await store.runs.get(message.message_id) is None:
            next_run = RunRequest(
                [HumanMessage(message.text, id=message.message_id)],
                options=request.options,
                budget=request.budget,
                approval=request.approval,
            )
            new = RunRecord(
                run_id=message.message_id,
                thread_id=record.thread_id,
                owner=record.owner,
                kind=record.kind,
                process=store.process,
                status="queued",
                request=next_run.without_secrets(redactor),
                created_at=time.time(),
            )
            added.append(await store.runs.add(new))
    return added


class _UsageOfCalls(AsyncCallbackHandler):
    """Reports the model calls of the lead, which are made beside the graph."""

    def __init__(self) -> None:
        self.events: list[UsageReported] = []
        self._begun: dict[UUID, float] = {}

    async def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        self._begun[run_id] = time.monotonic()

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        seconds = time.monotonic() - self._begun.pop(run_id, time.monotonic())
        generation = response.generations[0][0] if response.generations and response.generations[0] else None
        if isinstance(generation, ChatGeneration) and isinstance(generation.message, AIMessage):
            self.events.append(report_usage("supervisor", generation.message, seconds))
