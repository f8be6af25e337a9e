"""What the user sends to a run at work: changes of its plan, messages to its team, answers to its steps."""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast
from uuid import UUID, uuid4

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from maniple.agents.turn_record import describe_request
from maniple.events import (
    EffortNotUsed,
    UsageReported,
    UserAnswered,
    UserMessageAnswered,
    UserMessageReceived,
    load_run_view,
    report_usage,
)
from maniple.graph import Plan, PlanProgress, Team, members_of
from maniple.graph.plan_edits import apply_change, apply_to_review
from maniple.graph.state import State, progress_of
from maniple.graph.steering import MessageCase, Steering
from maniple.graph.waiting_answers import answer_waiting
from maniple.llms.efforts import use_effort
from maniple.runs.active_run import ActiveRun, RunPhase, RunServices
from maniple.runs.beside_calls import call_beside_graph
from maniple.runs.ended_runs import DROPPED
from maniple.runs.engine import InvalidPlanEdit, PlanNotEditable, TooManyRuns
from maniple.runs.newest_work import read_newest_work
from maniple.runs.request import RunRequest
from maniple.runs.turn import thread_state
from maniple.scope.inbox import InputRefused, OpenQuestion
from maniple.scope.inputs import (
    Cancel,
    Message,
    MessageDisposition,
    PlanChange,
    ReceivedInput,
    Reply,
    Resume,
    Retry,
    StepAnswer,
    UserMessage,
)
from maniple.store import RunRecord, read_event_pages
from maniple.tools.questions import interrupt_of
from maniple.types import EFFORT_NOT_USED, RunStatus, Worker

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
MAX_POSSIBLE_RUNS = 20
"""The limit of messages to one run that become, or may become, runs. No other limit counts them."""
ENDED = "The run ended before the lead could answer this. It is the next request of the conversation."
ENDED_BEFORE = "The run had ended before."
_NOT_ASKED = "Its step ended without it."
_TAKEN = Reply("taken")
PLAN_NOT_EDITABLE = (
    "The plan cannot be changed now: the run is neither executing it nor waiting for its review."
)


def _current_plan(
    active: ActiveRun, values: Mapping[str, Any], members: Sequence[Worker]
) -> PlanProgress | None:
    """Return the plan with accepted changes that were not applied yet; a new change may refer to them."""
    progress = progress_of(values, active.inbox.changes, members)
    show_plan = active.inbox.show_plan
    return show_plan() if show_plan is not None and progress is not None else progress


async def request_plan_edit(services: RunServices, active: ActiveRun, change: PlanChange) -> dict[str, Any]:
    """Accept a change of a plan that is being executed; return the resulting plan.

    Raises `PlanNotEditable`, `InvalidPlanEdit` or `StoreError`.
    """
    team = services.team
    state = await thread_state(team, active.record.thread_id)
    members = _allowed_members(team, active.request)
    progress = _current_plan(active, state.values, members)
    if not active.inbox.is_open or progress is None:
        raise PlanNotEditable(PLAN_NOT_EDITABLE)
    try:
        preview = apply_change(progress, change, members)
    except ValueError as error:
        raise InvalidPlanEdit(str(error)) from error
    try:
        await active.inbox.put(ReceivedInput(change.change_id, change))
    except InputRefused as error:  # the plan was done in the meantime
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


async def accept_message(services: RunServices, active: ActiveRun, text: str) -> str:
    """Accept a message to a running run: store it, then show it and let the lead decide. Return its id.

    Raises `InputRefused` if the run has come to its end, `TooManyRuns` if too many messages may become runs,
    and `StoreError` if it could not be stored.
    """
    refuse_more_messages(active.inbox.messages)
    message_id = str(uuid4())
    await active.inbox.put(ReceivedInput(message_id, Message(services.config.redactor.text(text))))
    await show_inputs(services, active)
    return message_id


def refuse_more_messages(messages: Iterable[UserMessage]) -> None:
    """Raise `TooManyRuns` if so many messages to a run may become runs that no other is accepted."""
    if sum(one.may_become_run for one in messages) >= MAX_POSSIBLE_RUNS:
        raise TooManyRuns(
            f"{MAX_POSSIBLE_RUNS} messages to this run wait for its lead, or for a run of their own, "
            "which is the limit. Try again when the lead has replied, or when the run has ended."
        )


async def accept_step_answer(
    services: RunServices, active: ActiveRun, question: OpenQuestion, answer: Any
) -> None:
    """Accept the answer to the question of a step that waits while others go on.

    Raises `InputRefused` if the question is not open any more, and `StoreError` if the answer could not be
    stored; then the question stays open.
    """
    await active.inbox.answer(question, services.config.redactor.value(answer))
    await show_inputs(services, active)


async def show_inputs(services: RunServices, active: ActiveRun) -> None:
    """Record the events of inputs and replies that the run's stream lacks, while it is open."""
    if active.phase is not RunPhase.OPEN:
        return
    for one in active.inbox.received:
        if isinstance(one.content, Message):
            if one.input_id not in active.shown_inputs:
                active.shown_inputs.add(one.input_id)
                received = UserMessageReceived(message_id=one.input_id, content=one.content.text)
                await active.record_event(received, services.recorder)
            if one.reply is not None and one.input_id not in active.shown_replies:
                active.shown_replies.add(one.input_id)
                await active.record_event(_as_event(one.input_id, one.reply), services.recorder)
        elif isinstance(one.content, PlanChange):
            await _show_refusal(services, active, one)
        elif isinstance(one.content, Resume | StepAnswer) and one.input_id not in active.shown_inputs:
            active.shown_inputs.add(one.input_id)
            answered = UserAnswered(interrupt_id=one.content.interrupt_id, answer=one.content.answer)
            await active.record_event(answered, services.recorder)


async def _show_refusal(services: RunServices, active: ActiveRun, one: ReceivedInput) -> None:
    """Record that a change of the plan could not be made; one that was made is in the plan."""
    assert isinstance(one.content, PlanChange)
    if one.reply is None or one.reply.disposition != "refused" or one.input_id in active.shown_replies:
        return
    active.shown_replies.add(one.input_id)
    if one.input_id not in active.shown_inputs:
        active.shown_inputs.add(one.input_id)
        request = UserMessageReceived(message_id=one.input_id, content=describe_request(one.content))
        await active.record_event(request, services.recorder)
    await active.record_event(_as_event(one.input_id, one.reply), services.recorder)


def _as_event(message_id: str, reply: Reply) -> UserMessageAnswered:
    return UserMessageAnswered(
        message_id=message_id,
        disposition=cast("MessageDisposition", reply.disposition),
        content=reply.text,
        run_id=message_id if reply.disposition == "next_run" else None,
    )


def _is_drop(answer: UserMessageAnswered) -> bool:
    return answer.disposition == DROPPED.disposition


def answers_of(segment: Resume | Retry | None) -> Mapping[str, Any]:
    """Return the answer with which a run continues, by the id of LangGraph's interrupt."""
    return {interrupt_of(segment.interrupt_id): segment.answer} if isinstance(segment, Resume) else {}


@dataclass(slots=True)
class MessageDesk:
    """Lets the lead decide about the messages to one run while the run works."""

    services: RunServices
    active: ActiveRun
    _tasks: Sequence[asyncio.Task[None]] = ()

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None]:
        """Decide messages inside of the context, or until `close`."""
        run_id = self.active.record.run_id
        self._tasks = (
            asyncio.create_task(self._decide_all(), name=f"messages {run_id}"),
            asyncio.create_task(self._show_all(), name=f"replies {run_id}"),
        )
        try:
            yield
        finally:
            await self._stop()

    async def _stop(self) -> None:
        for one in self._tasks:
            one.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def resume(self) -> None:
        """Record the events of inputs and replies that an earlier process did not record."""
        if self.active.phase is RunPhase.NEW and self.active.status is None:
            await self._catch_up()

    async def _catch_up(self) -> None:
        active = self.active
        if active.inbox.received:
            await self._find_shown()
        active.enter(RunPhase.OPEN)
        await show_inputs(self.services, active)

    async def _find_shown(self) -> None:
        """Read which inputs and replies are recorded as events."""
        active, events = self.active, self.services.store.events
        types = [UserMessageReceived, UserMessageAnswered]
        view = await load_run_view(events, active.record.run_id, types)
        active.shown_inputs |= view.exchanges.keys()
        answers = {one: exchange.answer for one, exchange in view.exchanges.items()}
        # What was dropped before a retry is decided in it.
        active.shown_replies |= {one for one, answer in answers.items() if answer and not _is_drop(answer)}
        retries = [one.content.after for one in active.inbox.received if isinstance(one.content, Retry)]
        last = max(retries, default=0)
        async for page in read_event_pages(events, active.record.run_id, last, {UserMessageAnswered.type}):
            active.shown_replies |= {json.loads(one.data)["message_id"] for one in page}
        answered: Counter[str] = Counter()
        async for page in read_event_pages(events, active.record.run_id, 0, {UserAnswered.type}):
            answered.update(json.loads(one.data)["interrupt_id"] for one in page)
        for one in active.inbox.received:
            if isinstance(one.content, Resume | StepAnswer):
                # Those of an earlier version have no id, and were shown by it.
                if not one.content.interrupt_id or answered[one.content.interrupt_id]:
                    active.shown_inputs.add(one.input_id)
                answered[one.content.interrupt_id] -= 1

    async def close(self, status: RunStatus) -> None:
        """Stop deciding, and reply to all inputs that wait, before the run ends.

        In a run that waits for an answer they stay.
        """
        active = self.active
        await self._stop()
        await active.inbox.close(await self._settler(status))
        if active.phase is RunPhase.NEW:  # the first event of a recovered run was its end
            await self._catch_up()
        await show_inputs(self.services, active)
        if status == "cancelled":
            await self._show_dropped()
        active.enter(RunPhase.CLOSING)

    async def _show_dropped(self) -> None:
        """Record that the messages which the lead has not decided are dropped."""
        active = self.active
        for one in active.inbox.undecided:
            if one.message_id not in active.shown_replies:
                active.shown_replies.add(one.message_id)
                await active.record_event(_as_event(one.message_id, DROPPED), self.services.recorder)

    async def _settler(self, status: RunStatus) -> Callable[[ReceivedInput], Reply | None]:
        """Return what becomes of an input that waits when the run ends with `status`; None if it waits on."""
        inbox, applied = self.active.inbox, await self._settle_changes()

        def settle(one: ReceivedInput) -> Reply | None:
            match one.content:
                case Cancel():
                    return _TAKEN if status == "cancelled" else Reply("refused", ENDED_BEFORE)
                case PlanChange():
                    return _TAKEN if one.input_id in applied else None  # a retry applies it
                case StepAnswer() if inbox.is_taken(one.content) or status != "interrupted":
                    return _TAKEN if inbox.is_taken(one.content) else Reply("refused", _NOT_ASKED)
                case Message() if status not in ("interrupted", "cancelled"):
                    return Reply("next_run", ENDED)
                case _:
                    return None

        return settle

    async def _settle_changes(self) -> frozenset[str]:
        """Refuse the changes that the plan has refused; return the ids of all that it has dealt with."""
        inbox = self.active.inbox
        if not any(isinstance(one.content, PlanChange) and one.reply is None for one in inbox.received):
            return frozenset()
        state = await thread_state(self.services.team, self.active.record.thread_id)
        if (progress := progress_of(state.values)) is None:
            return frozenset()
        await inbox.refuse(progress.refused)
        return frozenset(progress.changes)

    async def _decide_all(self) -> None:
        inbox = self.active.inbox
        while True:
            message = await inbox.next_message()
            # Unless it is decided, the message becomes the next run: it is not lost, and the end of this run
            # does not wait for it.
            try:
                steering = await self._ask_lead(message)
                await inbox.decide(message.message_id, steering.reply, steering.changes)
            except Exception:  # noqa: BLE001 - no failure here may end the run
                _LOG.exception("A message to the run could not be decided.")
                inbox.decide_unsaved(message.message_id, Reply("next_run", ENDED))
            await self._show()

    async def _show_all(self) -> None:
        """Record replies as soon as they are given, such as that a change of the plan was refused."""
        while True:
            changed = self.active.inbox.changed()
            await self._show()
            await asyncio.wait({changed})

    async def _show(self) -> None:
        try:
            await show_inputs(self.services, self.active)
        except Exception:  # noqa: BLE001 - a lost event fails the run at the next event of its own stream
            _LOG.exception("What became of an input of the run could not be recorded.")

    async def _ask_lead(self, message: UserMessage) -> Steering:
        case = await self._case(message)
        if case is None:
            return Steering(Reply("next_run", ENDED))
        lead, calls = (self.active.team or self.services.team).message_lead, _LeadCalls()
        try:
            return await self._call(lambda: lead.decide(case), calls)
        finally:
            for event in calls.events:
                await self.active.record_event(event, self.services.recorder)

    async def answer_waiting(
        self, message: UserMessage, forms: Sequence[Mapping[str, Any]]
    ) -> tuple[Reply | None, Sequence[UsageReported | EffortNotUsed]]:
        """Let the lead answer a message to a run that waits for `forms`; the run does not go on.

        Return None for what is no question: it waits until the run goes on. The events are not recorded yet.
        Raises `UnconfiguredModel` if the model of the run is not configured any more.
        """
        case = await self._case(message)
        if case is None:
            return None, []
        calls = _LeadCalls()
        async with self.services.teams.use(self.active.request.model) as (team, source):
            await source.load()
            model = team.message_lead.model
            return await self._call(lambda: answer_waiting(model, case, forms), calls), calls.events

    async def _case(self, message: UserMessage) -> MessageCase | None:
        """Return a message with what the lead needs to know; None if there is no plan."""
        services, active = self.services, self.active
        team, record = services.team, active.record
        state = await thread_state(team, record.thread_id)
        members = _allowed_members(team, active.request)
        progress = _current_plan(active, state.values, members)
        if progress is None:
            return None
        work = (await read_newest_work(services.store.events, record.run_id)).shown()
        sources = await services.store.evidence(record.run_id).sources()
        inbox, values = active.inbox, cast("State", state.values)
        return MessageCase(
            message, inbox.decided, values, progress, members, inbox.begun_steps, work, sources
        )

    async def _call(self, work: Callable[[], Awaitable[T]], calls: "_LeadCalls") -> T:
        """Call the lead's model beside the graph, with the budget and the traces of the run."""
        active, telemetry = self.active, self.services.telemetry
        with use_effort(active.request.options.effort, active.effortless_models):
            return await call_beside_graph(
                "user message", work, active.record, active.meter, telemetry, calls
            )


def make_next_runs(
    services: RunServices,
    record: RunRecord,
    request: RunRequest,
    messages: Iterable[UserMessage],
    status: RunStatus,
) -> list[RunRecord]:
    """Return the runs that messages to a run become when it ends with `status`; they are not stored yet.

    They have the model, the options and the limits of that run.
    A run has the id of its message, so that it is never stored twice.
    """
    if status in ("interrupted", "cancelled"):
        return []
    made = list[RunRecord]()
    for message in messages:
        if message.may_become_run:
            # Its metadata is what a client wrote on the first run alone.
            question = HumanMessage(message.text, id=message.message_id)
            next_run = replace(request, messages=[question], metadata={})
            new = RunRecord(
                run_id=message.message_id,
                thread_id=record.thread_id,
                owner=record.owner,
                kind=record.kind,
                process=services.store.process,
                status="queued",
                request=next_run.without_secrets(services.config.redactor),
                created_at=time.time(),
            )
            made.append(new)
    return made


class _LeadCalls(AsyncCallbackHandler):
    """Reports the model calls of the lead, which are made beside the graph, and the models without effort."""

    def __init__(self) -> None:
        self.events: list[UsageReported | EffortNotUsed] = []
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

    async def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if name == EFFORT_NOT_USED:
            self.events.append(EffortNotUsed.model_validate(data))
