"""The events of a run as those of AG-UI 1.0, and what a run waits for as its interrupts.

Source: https://docs.ag-ui.com
"""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ag_ui.core import (
    BaseEvent,
    Interrupt,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from maniple.events import (
    EVENT_TYPES,
    AgentEnded,
    AgentStarted,
    Event,
    MessageChunk,
    PlanChanged,
    RunInterrupted,
    RunView,
    ToolCalled,
    ToolReturned,
    describe_question,
    event_of,
)
from maniple.scope.client_tools import ClientCall
from maniple.service.answer_pieces import AnswerPieces
from maniple.store import EventRecord

_TEXT = {"type": "string"}
_SCHEMAS: Mapping[str, dict[str, Any]] = {
    "question": {"type": "object", "properties": {"answer": _TEXT}, "required": ["answer"]},
    "plan_review": {
        "type": "object",
        "properties": {"answer": {**_TEXT, "description": "accept, or what to change"}},
        "required": ["answer"],
    },
    "tool_approval": {
        "type": "object",
        "properties": {
            "type": {"enum": ["approve", "always", "edit", "reject"]},
            "args": {"type": "object"},
            "message": _TEXT,
        },
        "required": ["type"],
    },
}


class AgUiEvents:
    """Turns the events of one segment of a run into AG-UI's, between the start and the end of its run."""

    def __init__(self, answer_id: str, functions: Collection[str] = ()) -> None:
        """Begin with an answer whose message has an id; `functions` are the names of the client's."""
        self.pieces = AnswerPieces(has_forms=True)
        self._functions = functions
        self._answer_id = answer_id
        self._is_open = False
        self._thought = ""
        """The message whose thoughts are being sent."""
        self._steps: dict[str, str] = {}
        """The names of the steps at work, by turn."""
        self._state: dict[str, Any] = {"plan": None}

    @property
    def view(self) -> RunView:
        """The run so far."""
        return self.pieces.view

    def restore(self, record: EventRecord) -> None:
        """Take the state from a record of the log before the segment."""
        _ = [*self._events(event_of(record))]

    def begin(self) -> Iterator[BaseEvent]:
        """Yield the state at the beginning."""
        yield StateSnapshotEvent(snapshot=self._state)

    def feed(self, record: EventRecord) -> Iterator[BaseEvent]:
        """Yield the events that follow from the next record of the log."""
        if record.type not in EVENT_TYPES:
            return
        event = event_of(record)
        for piece in self.pieces.take(event):
            if piece.kind == "answer":
                yield from self.answer(piece.text)
        yield from self._events(event)

    def answer(self, text: str) -> Iterator[BaseEvent]:
        """Yield the next piece of the answer, which is one message."""
        yield from self._end_thought()
        if not self._is_open:
            self._is_open = True
            yield TextMessageStartEvent(message_id=self._answer_id, role="assistant")
        yield TextMessageContentEvent(message_id=self._answer_id, delta=text)

    def end(self) -> Iterator[BaseEvent]:
        """Yield the ends of what is open."""
        yield from self._end_thought()
        if self._is_open:
            self._is_open = False
            yield TextMessageEndEvent(message_id=self._answer_id)
        while self._steps:
            yield StepFinishedEvent(step_name=self._steps.popitem()[1])

    def call_client(self, call: ClientCall) -> Iterator[BaseEvent]:
        """Yield the events of a call that the client is asked to run; its next input has the result."""
        yield from _tool_call(call.call_id, call.name, call.arguments)

    def _events(self, event: Event) -> Iterator[BaseEvent]:
        match event:
            case PlanChanged(draft=False):
                yield from self._plan(event)
            case AgentStarted() if event.turn and event.turn.step_id is not None:
                name = self._step_name(event, event.turn.step_id)
                self._steps[event.agent_id] = name
                yield StepStartedEvent(step_name=name)
            case AgentEnded() if event.agent_id in self._steps:
                yield StepFinishedEvent(step_name=self._steps.pop(event.agent_id))
            case MessageChunk() if event.delta.reasoning_content:
                yield from self._think(event.message_id, event.delta.reasoning_content)
            case ToolCalled() | ToolReturned() if event.tool_name not in self._functions:
                yield from self._tool(event)
            case _:
                pass

    def _tool(self, event: ToolCalled | ToolReturned) -> Iterator[BaseEvent]:
        name = event.tool_call_id
        if isinstance(event, ToolReturned):
            yield ToolCallResultEvent(
                message_id=f"{name}-result", tool_call_id=name, content=event.tool_result, role="tool"
            )
            return
        yield from _tool_call(name, event.tool_name, event.tool_input)

    def _think(self, message_id: str, text: str) -> Iterator[BaseEvent]:
        if self._thought != message_id:
            yield from self._end_thought()
            self._thought = message_id
            yield ReasoningStartEvent(message_id=f"{message_id}-thoughts")
            yield ReasoningMessageStartEvent(message_id=f"{message_id}-thoughts")
        yield ReasoningMessageContentEvent(message_id=f"{message_id}-thoughts", delta=text)

    def _end_thought(self) -> Iterator[BaseEvent]:
        if self._thought:
            name, self._thought = f"{self._thought}-thoughts", ""
            yield ReasoningMessageEndEvent(message_id=name)
            yield ReasoningEndEvent(message_id=name)

    def _step_name(self, event: AgentStarted, step_id: int) -> str:
        step = self.view.active_step(event.agent_name, step_id)
        title = step.title if step else event.agent_name
        name = f"{step_id}. {title}"
        return name if name not in self._steps.values() else f"{name} ({event.agent_id})"

    def _plan(self, event: PlanChanged) -> Iterator[BaseEvent]:
        plan = {"title": event.title, "steps": [one.model_dump(mode="json") for one in event.worked_steps]}
        changes = _differences(self._state["plan"], plan)
        self._state = {**self._state, "plan": plan}
        if changes:
            yield StateDeltaEvent.model_validate({"delta": changes})


def _tool_call(call_id: str, name: str, arguments: Mapping[str, Any]) -> Iterator[BaseEvent]:
    yield ToolCallStartEvent(tool_call_id=call_id, tool_call_name=name)
    yield ToolCallArgsEvent(tool_call_id=call_id, delta=json.dumps(arguments, ensure_ascii=False))
    yield ToolCallEndEvent(tool_call_id=call_id)


def _differences(before: dict[str, Any] | None, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the JSON Patch from one plan to the next: of the same steps, only what changed."""
    whole = [{"op": "replace", "path": "/plan", "value": plan}]
    if before is None or len(before["steps"]) != len(plan["steps"]) or before["title"] != plan["title"]:
        return whole
    changes: list[dict[str, Any]] = []
    for place, (old, new) in enumerate(zip(before["steps"], plan["steps"], strict=True)):
        if old["id"] != new["id"] or old["title"] != new["title"]:
            return whole
        if old != new:
            changes.append({"op": "replace", "path": f"/plan/steps/{place}", "value": new})
    return changes


def describe_interrupt(pause: RunInterrupted) -> Interrupt:
    """Return what the run waits for, with the form of its answer."""
    call = pause.payload.get("tool_call_id")
    return Interrupt(
        id=pause.interrupt_id,
        reason=pause.kind,
        message=describe_question(pause) or "Review the plan.",
        tool_call_id=call if isinstance(call, str) else None,
        response_schema=_SCHEMAS[pause.kind],
        metadata={"payload": pause.payload, "options": pause.options},
    )


def describe_usage(view: RunView) -> list[TokenUsage]:
    """Return the tokens of a run by model."""
    totals: dict[str, list[int]] = {}
    for one in view.usage.by_model.values():
        counts = totals.setdefault(one.model, [0, 0, 0])
        for place, count in enumerate((one.input_tokens, one.output_tokens, one.cached_tokens)):
            counts[place] += count
    return [
        TokenUsage(model=model, input_tokens=read, output_tokens=written, cached_input_tokens=cached)
        for model, (read, written, cached) in totals.items()
    ]
