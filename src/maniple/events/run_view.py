"""The one reducer of a run's events: feed it each event in order, then read the state of the run."""

import json
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from maniple.agents.task import names_missing
from maniple.events.base import EVENT_TYPES, Event, TurnMark, event_of
from maniple.events.model import (
    AgentEnded,
    AgentStarted,
    BrowserStateChanged,
    ChatMessage,
    ClaimsChecked,
    ErrorOccurred,
    MessageChunk,
    ModelEnded,
    ModelStarted,
    PlanChanged,
    PlanStepView,
    RunGap,
    RunInterrupted,
    RunStarted,
    RunStatusChanged,
    RunWaiting,
    SessionState,
    StepInterrupted,
    StepResumed,
    ToolCalled,
    ToolOutput,
    ToolReturned,
    UsageReported,
    UserAnswered,
    UserMessageAnswered,
    UserMessageReceived,
    WorkflowEnded,
    WorkflowStarted,
)
from maniple.scope.budget import clamp_tokens
from maniple.store import EventRecord, EventTable, read_event_pages
from maniple.tools.questions import interrupt_of
from maniple.types import GENERAL, RunStatus

INTERRUPTED_RESULT = "The program stopped while this ran."
"""The result of a tool call that a crash cut off."""
ANSWERING_AGENTS = ("coordinator", "reporter", GENERAL)
"""The agents whose text is the run's answer."""
OUTPUT_CHARACTERS = 4_000
"""The length of the newest output that is stored of a running tool call."""


@dataclass(slots=True)
class _OpenTurn:
    """A turn, and what is open in it."""

    start: AgentStarted
    mark: TurnMark | None
    model_call: ModelStarted | None = None
    had_model_call: bool = False
    tool_calls: dict[str, ToolCalled] = field(default_factory=dict[str, ToolCalled])

    def apply(self, event: Event) -> None:
        match event:
            case ModelStarted():
                self.model_call, self.had_model_call = event, True
            case ModelEnded():
                self.model_call = None
            case ToolCalled():
                self.tool_calls[event.tool_call_id] = event
            case ToolReturned():
                self.tool_calls.pop(event.tool_call_id, None)
            case _:
                pass

    def closing_events(self) -> Iterator[Event]:
        for call in self.tool_calls.values():
            yield ToolReturned(
                tool_call_id=call.tool_call_id, tool_name=call.tool_name, tool_result=INTERRUPTED_RESULT
            ).in_turn(self.mark)
        name = self.start.agent_name
        if not self.had_model_call:
            yield ModelStarted(agent_name=name).in_turn(self.mark)
        if not self.had_model_call or self.model_call is not None:
            yield ModelEnded(agent_name=name).in_turn(self.mark)
        yield AgentEnded(agent_name=name, agent_id=self.start.agent_id).in_turn(self.mark)


@dataclass(slots=True)
class StreamState:
    """The position of the newest segment of a run's stream: what is open, and what was sent.

    A segment lasts from `run` to `final_session_state`; a run that is answered begins another one.
    `status` is None until `run_status` was sent; `failure` is the reason for `failed`. `turn_ids` are the
    `agent_id`s of all turns.
    """

    has_started: bool = False
    has_workflow_started: bool = False
    has_workflow_ended: bool = False
    has_ended: bool = False
    status: RunStatus | None = None
    failure: ErrorOccurred | None = None
    gaps: list[RunGap] = field(default_factory=list[RunGap])
    plan: PlanChanged | None = None
    turn_ids: set[str] = field(default_factory=set[str])
    _turns: dict[str, _OpenTurn] = field(default_factory=dict[str, _OpenTurn])
    """By agent id: the turns of concurrent agents are open at the same time."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> "StreamState":
        """Return the state after all events of a run, from its first one."""
        state = cls()
        for event in events:
            state = state.after(event)
        return state

    def after(self, event: Event) -> "StreamState":
        """Return the state after the next event: the same object, or that of a new segment."""
        match event:
            case RunStarted():
                return StreamState(has_started=True)
            case AgentStarted():
                # A mark comes from the store's record; the event itself names the turn as well.
                self._turns[event.agent_id] = _OpenTurn(event, event.turn or TurnMark(event.agent_id))
                self.turn_ids.add(event.agent_id)
            case AgentEnded():
                self._turns.pop(event.agent_id, None)
            case ModelStarted() | ModelEnded() | ToolCalled() | ToolReturned():
                if (turn := self._turn_of(event)) is not None:
                    turn.apply(event)
            case _:
                self._apply_to_workflow(event)
        return self

    @property
    def awaits_model(self) -> bool:
        """Whether an agent is at work, and none of its tools."""
        return any(not turn.tool_calls for turn in self._turns.values())

    def closing_events(self) -> Iterator[Event]:
        """Yield the events that end the open tool calls, model calls and turns, so that turns can follow."""
        for turn in self._turns.values():
            yield from turn.closing_events()

    def _turn_of(self, event: Event) -> _OpenTurn | None:
        if event.turn is not None:
            return self._turns.get(event.turn_id)
        # One agent at a time: a view, or the log of a version that did not mark turns.
        return next(reversed(self._turns.values()), None)

    def _apply_to_workflow(self, event: Event) -> None:
        match event:
            case WorkflowStarted():
                self.has_workflow_started = True
            case PlanChanged(draft=False):
                self.plan = event
            case ErrorOccurred():
                self.failure = event
            case RunStatusChanged():
                self.status, self.gaps = event.status, list(event.gaps or ())
                # An error whose status was cut off is not the reason for another outcome.
                self.failure = self.failure if event.status == "failed" else None
            case WorkflowEnded():
                self.has_workflow_ended = True
            case SessionState():
                self.has_ended = True
            case _:
                pass


@dataclass(frozen=True, slots=True)
class ModelTotals:
    """The calls of one agent to one model. `seconds` is their duration, `tokens` are those of the answers."""

    agent_name: str
    model: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cached_tokens: int = 0
    """Those of `input_tokens` that the endpoint had in its cache."""

    def with_call(self, call: UsageReported) -> "ModelTotals":
        """Return the totals with one call more."""
        return replace(
            self,
            calls=self.calls + 1,
            input_tokens=self.input_tokens + clamp_tokens(call.input_tokens),
            output_tokens=self.output_tokens + clamp_tokens(call.output_tokens),
            seconds=self.seconds + call.seconds,
            cached_tokens=self.cached_tokens + clamp_tokens(call.cached_tokens),
        )


@dataclass(slots=True)
class UsageTotals:
    """The model calls and tool calls of a run. `by_model` has the order of the first calls."""

    tool_calls: int = 0
    by_model: dict[tuple[str, str], ModelTotals] = field(default_factory=dict[tuple[str, str], ModelTotals])
    """By the agent's and the model's name."""

    def apply(self, event: Event) -> None:
        """Take the next event into account."""
        if isinstance(event, ToolCalled):
            self.tool_calls += 1
        elif isinstance(event, UsageReported):
            key = event.agent_name, event.model
            self.by_model[key] = self.by_model.get(key, ModelTotals(*key)).with_call(event)

    def copy(self) -> "UsageTotals":
        """Return totals that change on their own."""
        return UsageTotals(self.tool_calls, dict(self.by_model))

    @property
    def model_calls(self) -> int:
        """The number of model calls."""
        return sum(one.calls for one in self.by_model.values())

    @property
    def input_tokens(self) -> int:
        """The number of tokens that the models read."""
        return sum(one.input_tokens for one in self.by_model.values())

    @property
    def cached_tokens(self) -> int:
        """The number of the read tokens that the endpoints had in their caches."""
        return sum(one.cached_tokens for one in self.by_model.values())

    @property
    def output_tokens(self) -> int:
        """The number of tokens that the models wrote."""
        return sum(one.output_tokens for one in self.by_model.values())


@dataclass(frozen=True, slots=True)
class PlanUpdate:
    """A plan and the one before it."""

    plan: PlanChanged
    previous: PlanChanged | None = None

    @property
    def is_new(self) -> bool:
        """Whether this is another plan: it lacks a step of the one before. Added steps do not make it new."""
        return self.previous is None or not _identities(self.previous) <= _identities(self.plan)

    @property
    def has_added_steps(self) -> bool:
        """Whether it has a step that the plan before lacks."""
        return self.previous is None or not _identities(self.plan) <= _identities(self.previous)

    @property
    def changed_steps(self) -> list[PlanStepView]:
        """The worked steps of both plans whose status, or its reason, has changed. A new plan has none."""
        if self.previous is None or self.is_new:
            return []
        before = {_identity(step): (step.status, step.reason) for step in self.previous.steps}
        return [
            step
            for step in self.plan.worked_steps
            if before.get(_identity(step), (step.status, step.reason)) != (step.status, step.reason)
        ]

    @property
    def reopened_steps(self) -> list[int]:
        """The ids of steps that are done again although they were done or being done."""
        before = {step.id: step.status for step in self.previous.steps} if self.previous else {}
        return [
            step.id
            for step in self.plan.steps
            if (before.get(step.id), step.status)
            in (("completed", "not_started"), ("completed", "in_progress"), ("in_progress", "not_started"))
        ]


@dataclass(slots=True)
class ToolCallView:
    """A tool call that is running. Times are Unix seconds; `output` is the newest of both streams."""

    tool_call_id: str
    tool_name: str
    tool_input: dict[str, Any]
    started_at: float
    output: str = ""
    agent_id: str = ""
    """The turn in which it was called."""


Replacement = Literal["broken_off", "outdated"]
"""Which text is replaced: one that broke off, or the answer of a step that is done again."""


@dataclass(slots=True)
class TurnView:
    """The turn of an agent. `message_text` is its newest message, stored only for `ANSWERING_AGENTS`."""

    agent_id: str = ""
    agent_name: str = ""
    step_id: int | None = None
    """The step of the plan; None where there is none, and in the log of an earlier version."""
    message_text: str = ""
    message_id: str = ""
    message_id_of_call: str = ""
    has_answered: bool = False
    """Whether its newest model call has written text and called no tool."""
    claims: ClaimsChecked | None = None
    """The check of its newest report."""

    @property
    def is_answering(self) -> bool:
        """Whether its messages are the answer."""
        return self.agent_name in ANSWERING_AGENTS


@dataclass(slots=True)
class Exchange:
    """A message of the user to a running run, and its answer; None while it is unanswered."""

    message: str = ""
    answer: UserMessageAnswered | None = None
    is_resuming: bool = False
    """Whether the message was the answer to what the run waited for, such as a question about its plan."""


@dataclass(slots=True)
class RunView:
    """The state of a run after its events so far.

    Segments are folded into one view: when an answered run continues, usage, answer and plan are retained;
    pauses and status are reset.
    """

    stream: StreamState = field(default_factory=StreamState)
    usage: UsageTotals = field(default_factory=UsageTotals)
    event_number: int = 0
    """The number of the newest stored event."""
    workflow_input: list[ChatMessage] = field(default_factory=list[ChatMessage])
    """The conversation that the newest workflow was given."""
    turns: dict[str, TurnView] = field(default_factory=dict[str, TurnView])
    """The open turns by agent id, the oldest first. Concurrent steps have one each."""
    turn: TurnView = field(default_factory=TurnView)
    """The turn of the newest event that belongs to one; it may have ended."""
    answer: str = ""
    """The text of the newest message that an answering agent finished."""
    claims: ClaimsChecked | None = None
    """The check of the claims in that text; None if nothing in it was checked."""
    is_answer_streamed: bool = True
    """Whether the answer was sent as messages, and not only as the end of the conversation."""
    replacement: Replacement | None = None
    """What the newest text replaces; None if it is not the first piece of a text that replaces another."""
    reopened_steps: set[int] = field(default_factory=set[int])
    """The steps that are done again and whose member has not written anything yet."""
    """Whether the newest `message` begins an answer that replaces a broken one of the same model call."""
    plan_update: PlanUpdate | None = None
    plan_draft: PlanChanged | None = None
    """The plan that the planner is writing now."""
    running_calls: dict[str, ToolCallView] = field(default_factory=dict[str, ToolCallView])
    """By tool call id. The call that printed last is the last one."""
    pauses: list[RunInterrupted] = field(default_factory=list[RunInterrupted])
    """What the run waits for."""
    step_questions: dict[str, StepInterrupted] = field(default_factory=dict[str, StepInterrupted])
    """By interrupt id, oldest first: what steps wait for while others go on."""
    browser: BrowserStateChanged | None = None
    exchanges: dict[str, Exchange] = field(default_factory=dict[str, Exchange])
    """The messages that the user sent to the run while it worked, by id, with what became of each."""
    _resuming: str = ""
    """The newest text with which the user answered what the run waited for."""

    @property
    def status(self) -> RunStatus | None:
        """How the newest segment ended; None while it runs."""
        return self.stream.status

    @property
    def failure(self) -> ErrorOccurred | None:
        """The error that ended the run."""
        return self.stream.failure

    @property
    def gaps(self) -> list[RunGap]:
        """The steps whose results the answer of the newest segment lacks."""
        return self.stream.gaps

    @property
    def unstated_gaps(self) -> list[RunGap]:
        """The gaps that the answer itself does not name."""
        answer = self.answer if self.has_answer else ""
        return [gap for gap in self.gaps if not names_missing(answer, gap.step, gap.reason)]

    @property
    def has_answer(self) -> bool:
        """Whether the newest segment ended with an answer; that of a failed run is written by code."""
        has_ended = self.status in ("completed", "budget_exhausted")
        return bool(self.answer.strip()) and (has_ended or (self.status == "failed" and bool(self.gaps)))

    @property
    def plan(self) -> PlanChanged | None:
        """The newest plan."""
        return self.plan_update.plan if self.plan_update else None

    @property
    def next_runs(self) -> list[str]:
        """The ids of the runs that messages to this one become."""
        answers = (one.answer for one in self.exchanges.values())
        return [answer.run_id for answer in answers if answer is not None and answer.run_id is not None]

    @property
    def has_failed_plan(self) -> bool:
        """Whether every step of the plan has failed."""
        return self.plan is not None and all(step.status == "failed" for step in self.plan.steps)

    @property
    def agent_name(self) -> str:
        """The agent of `turn`."""
        return self.turn.agent_name

    @property
    def is_result_repeated(self) -> bool:
        """Whether `turn` only repeats the result of another step as the answer."""
        step = self.active_step(self.agent_name, self.turn.step_id)
        return step is not None and bool(step.repeats)

    def active_step(self, agent_name: str, step_id: int | None = None) -> PlanStepView | None:
        """Return the step of the plan that an agent works on: the one with this id, if it is known."""
        steps = self.plan.steps if self.plan else []
        if step_id is not None:
            return next((one for one in steps if one.id == step_id), None)
        return next(
            (one for one in steps if one.status == "in_progress" and one.agent_name == agent_name), None
        )

    def apply_records(self, records: Iterable[EventRecord]) -> None:
        """Apply stored events.

        Messages outside the answer are not parsed: a run has thousands. Events of unknown types are skipped.
        """
        for record in records:
            self.apply_record(record)

    def apply_record(self, record: EventRecord) -> Event | None:
        """Apply a stored event and return it; None if it is skipped (see `apply_records`)."""
        self.event_number = record.number
        if record.type not in EVENT_TYPES:
            return None
        if record.type == MessageChunk.type and not self._turn_of(record.turn_id).is_answering:
            return None
        event = event_of(record)
        self.apply(event)
        return event

    def apply(self, event: Event) -> None:
        """Take the next event into account."""
        self.stream = self.stream.after(event)
        self.turn = self._turn_of(event.turn_id)
        self.usage.apply(event)
        match event:
            case RunStarted():
                self.pauses, self.turns, self.step_questions = [], {}, {}
            case PlanChanged():
                self._apply_plan(event)
            case StepInterrupted():
                self.step_questions[event.interrupt_id] = event
            case RunInterrupted():
                self.pauses.append(event)
            case BrowserStateChanged():
                self.browser = event
            case WorkflowStarted() | SessionState():
                self._apply_conversation(event)
            case ToolCalled() | ToolOutput() | ToolReturned():
                self._apply_to_tool_call(event)
            case _:
                self._apply_to_text(event)

    def _apply_plan(self, event: PlanChanged) -> None:
        self.plan_draft = event if event.draft else None
        if not event.draft:
            self.plan_update = PlanUpdate(event, self.plan)
            self.reopened_steps.update(self.plan_update.reopened_steps)

    def _turn_of(self, turn_id: str) -> TurnView:
        """Return an open turn; without an id the newest one, as in the log of an earlier version."""
        return self.turns.get(turn_id, self.turn)

    def _apply_to_tool_call(self, event: ToolCalled | ToolOutput | ToolReturned) -> None:
        # Removed in any case: the call that printed last moves to the end.
        call = self.running_calls.pop(event.tool_call_id, None)
        if isinstance(event, ToolCalled):
            turn_id = self.turn.agent_id
            self.turn.has_answered = False
            call = ToolCallView(
                event.tool_call_id, event.tool_name, event.tool_input, event.at, agent_id=turn_id
            )
        elif isinstance(event, ToolOutput) and call is not None:
            call.output = (call.output + event.text)[-OUTPUT_CHARACTERS:]
        if call is not None and not isinstance(event, ToolReturned):
            self.running_calls[event.tool_call_id] = call

    def _apply_to_text(self, event: Event) -> None:
        match event:
            case AgentStarted():
                self._begin_turn(event)
            case ModelStarted():
                self.turn.message_id_of_call = ""
            case MessageChunk():
                self._apply_message(event)
            case ClaimsChecked():
                self.turn.claims = event
            case UserAnswered() | UserMessageReceived() | UserMessageAnswered():
                self._apply_to_exchange(event)
            case AgentEnded():
                self._end_turn(event.agent_id)
            case StepResumed():
                self.step_questions.pop(event.interrupt_id, None)
            case _:
                pass

    def _apply_to_exchange(self, event: UserAnswered | UserMessageReceived | UserMessageAnswered) -> None:
        if isinstance(event, UserAnswered):
            self._resuming = event.answer if isinstance(event.answer, str) else ""
        elif isinstance(event, UserMessageReceived):
            self.exchanges[event.message_id] = Exchange(event.content)
        else:
            resuming = Exchange(self._resuming, is_resuming=True)
            self.exchanges.setdefault(event.message_id, resuming).answer = event

    def _begin_turn(self, event: AgentStarted) -> None:
        if (self.agent_name, event.agent_name) == ("coordinator", "planner"):
            self.answer, self.claims = "", None  # it announced the hand-off
        step_id = event.turn.step_id if event.turn else None
        self.turn = self.turns[event.agent_id] = TurnView(event.agent_id, event.agent_name, step_id)

    def _end_turn(self, agent_id: str) -> None:
        turn = self.turns.pop(agent_id, self.turn)
        if turn.agent_name == "planner":
            self.plan_draft = None
        self.running_calls = {
            key: call for key, call in self.running_calls.items() if call.agent_id != turn.agent_id
        }
        self.step_questions = {
            key: asked for key, asked in self.step_questions.items() if asked.turn_id != turn.agent_id
        }
        if turn.is_answering and turn.message_text.strip():
            self.answer, self.claims = turn.message_text, turn.claims
        elif turn.claims is not None:  # a member alone, whose answer is only the end of the conversation
            self.claims = turn.claims

    def _apply_message(self, event: MessageChunk) -> None:
        self.replacement = None
        turn, content = self.turn, event.delta.content
        if not content:  # a repeated call reasons under an id of its own
            return
        self.replacement = self._replacement(turn, event.message_id)
        turn.has_answered = True
        turn.message_id_of_call = event.message_id
        if turn.is_answering:
            if event.message_id != turn.message_id:
                turn.message_id, turn.message_text = event.message_id, ""
            turn.message_text += content

    def _replacement(self, turn: TurnView, message_id: str) -> Replacement | None:
        if turn.message_id_of_call:
            # Within a model call the text keeps the id of the first try as long as later tries continue it.
            return "broken_off" if turn.message_id_of_call != message_id else None
        if turn.step_id is None:
            return None
        is_reopened = turn.step_id in self.reopened_steps
        self.reopened_steps.discard(turn.step_id)
        # A member whose answer calls no tool is asked again only if the user wrote meanwhile.
        return "outdated" if is_reopened or turn.has_answered else None

    def _apply_conversation(self, event: WorkflowStarted | SessionState) -> None:
        """Take the assistant's last message: a tool's result, or the reason why nothing was done."""
        if isinstance(event, WorkflowStarted):
            self.workflow_input = event.input
            return
        last = event.messages[-1] if event.messages else None
        if last is None or last.role != "assistant" or not isinstance(last.content, str):
            return
        if last.content.strip() != self.answer.strip():
            self.answer, self.is_answer_streamed = last.content, False


async def load_run_view(
    events: EventTable, run_id: str, types: Collection[type[Event]] | None = None
) -> RunView:
    """Return the state of a run from its stored events, or from those of the given types.

    Raises:
        StoreError: the events cannot be read.
    """
    names = None if types is None else {one.type for one in types}
    view = RunView()
    async for page in read_event_pages(events, run_id, types=names):
        view.apply_records(page)
    return view


async def read_outage(events: EventTable, run_id: str) -> RunWaiting | None:
    """Return what a run last waited for, and why.

    Raises:
        StoreError: the events cannot be read.
    """
    newest: RunWaiting | None = None
    async for page in read_event_pages(events, run_id, types={RunWaiting.type}):
        for record in page:
            if isinstance(event := event_of(record), RunWaiting):
                newest = event
    return newest


async def read_question_ids(events: EventTable, run_id: str) -> dict[str, str]:
    """Return the ids of the questions that a run asked, by the ids of LangGraph's interrupts, in their order.

    Raises:
        StoreError: the events cannot be read.
    """
    found: dict[str, str] = {}
    async for page in read_event_pages(events, run_id, types={RunInterrupted.type}):
        for question_id in [str(json.loads(record.data)["interrupt_id"]) for record in page]:
            interrupt_id = interrupt_of(question_id)
            found.pop(interrupt_id, None)  # of a question that is asked again, the newest place counts
            found[interrupt_id] = question_id
    return found


async def is_open_question(events: EventTable, run_id: str, question_id: str) -> bool:
    """Return whether a run has asked a question and nobody has answered it; raises `StoreError`.

    The question of a step ends with the step's turn, such as when the step is skipped.
    """
    is_open, turn_id = False, ""
    types = {RunInterrupted.type, StepInterrupted.type, UserAnswered.type, AgentEnded.type}
    async for page in read_event_pages(events, run_id, types=types):
        for record in page:
            if record.type == AgentEnded.type:
                is_open = is_open and record.turn_id != turn_id
            elif json.loads(record.data).get("interrupt_id") == question_id:
                is_open = record.type != UserAnswered.type
                turn_id = record.turn_id if record.type == StepInterrupted.type else ""
    return is_open


CACHED_RUNS = 256


class RunViewReader:
    """Returns the states of runs from their stored events of the given types.

    The states of the `CACHED_RUNS` runs that were requested last are cached; only newer events are read.
    """

    def __init__(self, events: EventTable, types: Collection[type[Event]]) -> None:
        self._events = events
        self._names = {one.type for one in types}
        self._cache: OrderedDict[str, tuple[RunView, int]] = OrderedDict()

    async def read(self, run_id: str) -> RunView:
        """Return the state of a run, which is valid until the caller awaits something.

        Raises `StoreError` if the events cannot be read.
        """
        # Taken out while it is changed: another request for the run then reads from the beginning.
        view, number = self._cache.pop(run_id, None) or (RunView(), 0)
        async for page in read_event_pages(self._events, run_id, number):
            view.apply_records(record for record in page if record.type in self._names)
            number = page[-1].number
        self._cache[run_id] = view, number
        if len(self._cache) > CACHED_RUNS:
            self._cache.popitem(last=False)
        return view


def _identities(plan: PlanChanged) -> set[tuple[int, str]]:
    return {_identity(step) for step in plan.steps}


def _identity(step: PlanStepView) -> tuple[int, str]:
    return step.id, step.title
