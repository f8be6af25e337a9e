"""The one reducer of a run's events: feed it each event in order, then read the state of the run."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from maniple.agents.budget import clamp_tokens
from maniple.events.base import EVENT_TYPES, Event, read_event
from maniple.events.model import (
    AgentEnded,
    AgentStarted,
    BrowserStateChanged,
    ChatMessage,
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
    SessionState,
    ToolCalled,
    ToolOutput,
    ToolReturned,
    UsageReported,
    WorkflowEnded,
    WorkflowStarted,
)
from maniple.store import EventRecord, EventTable, read_event_pages
from maniple.types import GENERAL, RunStatus

INTERRUPTED_RESULT = "The program stopped while this ran."
"""The result of a tool call that a crash cut off."""
ANSWERING_AGENTS = ("coordinator", "reporter", GENERAL)
"""The agents whose text is the run's answer."""
OUTPUT_CHARACTERS = 4_000
"""The length of the newest output that is stored of a running tool call."""


@dataclass(slots=True)
class StreamState:
    """The position of the newest segment of a run's stream: what is open, and what was sent.

    A segment lasts from `run` to `final_session_state`; a run that is answered begins another one.
    `status` is None until `run_status` was sent; `failure` is the reason for `failed`. `turn_counts` holds
    the number of turns by agent id.
    """

    has_started: bool = False
    has_workflow_started: bool = False
    has_workflow_ended: bool = False
    has_ended: bool = False
    status: RunStatus | None = None
    failure: ErrorOccurred | None = None
    gaps: list[RunGap] = field(default_factory=list[RunGap])
    plan: PlanChanged | None = None
    turn_counts: Counter[str] = field(default_factory=Counter[str])
    _turn: AgentStarted | None = None
    _model_call: ModelStarted | None = None
    _had_model_call: bool = False
    _tool_calls: dict[str, ToolCalled] = field(default_factory=dict[str, ToolCalled])

    @classmethod
    def of(cls, events: Iterable[Event]) -> "StreamState":
        """Return the state after all events of a run, from its first one."""
        state = cls()
        for event in events:
            state = state.after(event)
        return state

    def after(self, event: Event) -> "StreamState":
        """Return the state after the next event: the same object, or that of a new segment."""
        if isinstance(event, RunStarted):
            return StreamState(has_started=True)
        if not self._apply_inside_turn(event):
            self._apply_to_workflow(event)
        return self

    def closing_events(self) -> Iterator[Event]:
        """Yield the events that end the open tool calls, model call and turn, so that a turn can follow."""
        for call in self._tool_calls.values():
            yield ToolReturned(
                tool_call_id=call.tool_call_id, tool_name=call.tool_name, tool_result=INTERRUPTED_RESULT
            )
        if self._turn is None:
            return
        name = self._turn.agent_name
        if not self._had_model_call:
            yield ModelStarted(agent_name=name)
        if not self._had_model_call or self._model_call is not None:
            yield ModelEnded(agent_name=name)
        yield AgentEnded(agent_name=name, agent_id=self._turn.agent_id)

    def _apply_inside_turn(self, event: Event) -> bool:
        """Apply an event of an agent's turn; return whether it was one."""
        match event:
            case AgentStarted():
                self._turn, self._had_model_call = event, False
                self.turn_counts[event.agent_id] += 1
            case AgentEnded():
                self._turn, self._model_call, self._tool_calls = None, None, {}
            case ModelStarted():
                self._model_call, self._had_model_call = event, True
            case ModelEnded():
                self._model_call = None
            case ToolCalled():
                self._tool_calls[event.tool_call_id] = event
            case ToolReturned():
                self._tool_calls.pop(event.tool_call_id, None)
            case _:
                return False
        return True

    def _apply_to_workflow(self, event: Event) -> None:
        match event:
            case WorkflowStarted():
                self.has_workflow_started = True
            case PlanChanged():
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

    def with_call(self, call: UsageReported) -> "ModelTotals":
        """Return the totals with one call more."""
        return replace(
            self,
            calls=self.calls + 1,
            input_tokens=self.input_tokens + clamp_tokens(call.input_tokens),
            output_tokens=self.output_tokens + clamp_tokens(call.output_tokens),
            seconds=self.seconds + call.seconds,
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
        """The steps of both plans whose status, or its reason, has changed. A new plan has none."""
        if self.previous is None or self.is_new:
            return []
        before = {_identity(step): (step.status, step.reason) for step in self.previous.steps}
        return [
            step
            for step in self.plan.steps
            if before.get(_identity(step), (step.status, step.reason)) != (step.status, step.reason)
        ]


@dataclass(slots=True)
class ToolCallView:
    """A tool call that is running. Times are Unix seconds; `output` is the newest of both streams."""

    tool_call_id: str
    tool_name: str
    tool_input: dict[str, Any]
    started_at: float
    output: str = ""


@dataclass(slots=True)
class RunView:
    """The state of a run after its events so far.

    Segments are folded into one view: usage, answer and plan stay when an answered run goes on, pauses and
    status begin again.
    """

    stream: StreamState = field(default_factory=StreamState)
    usage: UsageTotals = field(default_factory=UsageTotals)
    event_number: int = 0
    """The number of the newest stored event."""
    workflow_input: list[ChatMessage] = field(default_factory=list[ChatMessage])
    """The conversation that the newest workflow was given."""
    agent_name: str = ""
    """The agent whose turn it is, or was last."""
    message_text: str = ""
    """The newest message of the present turn; stored only for `ANSWERING_AGENTS`."""
    answer: str = ""
    """The text of the newest message that an answering agent finished."""
    is_answer_streamed: bool = True
    """Whether the answer was sent as messages, and not only as the end of the conversation."""
    is_message_replaced: bool = False
    """Whether the newest `message` begins an answer that replaces a broken one of the same model call."""
    plan_update: PlanUpdate | None = None
    running_calls: dict[str, ToolCallView] = field(default_factory=dict[str, ToolCallView])
    """By tool call id. The call that printed last is the last one."""
    pauses: list[RunInterrupted] = field(default_factory=list[RunInterrupted])
    """What the run waits for."""
    browser: BrowserStateChanged | None = None
    _message_id: str = ""
    _message_id_of_call: str = ""

    @property
    def status(self) -> RunStatus | None:
        """How the newest segment ended; None while it goes on."""
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
    def plan(self) -> PlanChanged | None:
        """The newest plan."""
        return self.plan_update.plan if self.plan_update else None

    @property
    def has_failed_plan(self) -> bool:
        """Whether every step of the plan has failed."""
        return self.plan is not None and all(step.status == "failed" for step in self.plan.steps)

    @property
    def is_answering(self) -> bool:
        """Whether the messages of the present turn are the answer."""
        return self.agent_name in ANSWERING_AGENTS

    def active_step(self, agent_name: str) -> PlanStepView | None:
        """Return the step of the plan that an agent works on."""
        steps = self.plan.steps if self.plan else []
        return next(
            (one for one in steps if one.status == "in_progress" and one.agent_name == agent_name), None
        )

    def apply_records(self, records: Iterable[EventRecord]) -> None:
        """Apply stored events.

        Messages outside the answer are not parsed: a run has thousands. Events of unknown types are skipped.
        """
        for record in records:
            self.event_number = record.number
            if record.type in EVENT_TYPES and (record.type != MessageChunk.type or self.is_answering):
                self.apply(read_event(record.type, record.data), at=record.at)

    def apply(self, event: Event, *, at: float | None = None) -> None:
        """Take the next event into account; `at` is when it happened, if that is not `event.at`."""
        self.stream = self.stream.after(event)
        self.usage.apply(event)
        match event:
            case RunStarted():
                self.pauses = []
            case WorkflowStarted():
                self.workflow_input = event.input
            case PlanChanged():
                self.plan_update = PlanUpdate(event, self.plan)
            case RunInterrupted():
                self.pauses.append(event)
            case BrowserStateChanged():
                self.browser = event
            case SessionState():
                self._apply_conversation(event)
            case ToolCalled() | ToolOutput() | ToolReturned():
                self._apply_to_tool_call(event, event.at if at is None else at)
            case _:
                self._apply_to_text(event)

    def _apply_to_tool_call(self, event: ToolCalled | ToolOutput | ToolReturned, at: float) -> None:
        # Removed in any case: the call that printed last moves to the end.
        call = self.running_calls.pop(event.tool_call_id, None)
        if isinstance(event, ToolCalled):
            call = ToolCallView(event.tool_call_id, event.tool_name, event.tool_input, at)
        elif isinstance(event, ToolOutput) and call is not None:
            call.output = (call.output + event.text)[-OUTPUT_CHARACTERS:]
        if call is not None and not isinstance(event, ToolReturned):
            self.running_calls[event.tool_call_id] = call

    def _apply_to_text(self, event: Event) -> None:
        match event:
            case AgentStarted():
                self.agent_name, self.message_text = event.agent_name, ""
            case ModelStarted():
                self._message_id_of_call = ""
            case MessageChunk():
                self._apply_message(event)
            case AgentEnded():
                self.running_calls = {}
                if self.is_answering and self.message_text.strip():
                    self.answer = self.message_text
            case _:
                pass

    def _apply_message(self, event: MessageChunk) -> None:
        self.is_message_replaced = False
        content = event.delta.content
        if not content:  # a repeated call reasons under an id of its own
            return
        # Within a model call the text keeps the id of the first try as long as later tries continue it.
        self.is_message_replaced = self._message_id_of_call not in ("", event.message_id)
        self._message_id_of_call = event.message_id
        if self.is_answering:
            if event.message_id != self._message_id:
                self._message_id, self.message_text = event.message_id, ""
            self.message_text += content

    def _apply_conversation(self, event: SessionState) -> None:
        """Take the assistant's last message: a tool's result, or the reason why nothing was done."""
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
    async for page in read_event_pages(events, run_id):
        view.apply_records(record for record in page if names is None or record.type in names)
    return view


def _identities(plan: PlanChanged) -> set[tuple[int, str]]:
    return {_identity(step) for step in plan.steps}


def _identity(step: PlanStepView) -> tuple[int, str]:
    return step.id, step.title
