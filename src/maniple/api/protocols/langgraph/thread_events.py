"""The events of a run as those of LangGraph's second streaming protocol, numbered within their thread.

Source: the package `langchain_protocol`.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from maniple.api.protocols.langgraph.interrupts import INTERRUPT, describe_interrupt
from maniple.api.protocols.langgraph.stream_parts import WITHOUT_CUSTOM
from maniple.api.protocols.langgraph.transcripts import Message, RunTranscript
from maniple.events import (
    AgentEnded,
    AgentStarted,
    Event,
    MessageChunk,
    PlanChanged,
    RunInterrupted,
    RunStarted,
    SessionState,
    StepInterrupted,
    ToolCalled,
    ToolOutput,
    ToolReturned,
    WorkflowStarted,
)
from maniple.service.answer_pieces import AnswerPieces
from maniple.store import EventRecord

RUN_NUMBERS = 10_000_000_000
"""The numbers that a run has for its events: those of run N of a thread begin at N times this."""
EVENT_NUMBERS = 1_000
"""The numbers that a record of the log has for its events."""
_ENDS = {"interrupted": "interrupted", "cancelled": "failed", "failed": "failed"}
"""The ends of a run in the protocol, which has none for a cancelled run."""


def number_of(place: int, event: int) -> int:
    """Return the newest number that the event `event` of the run at `place` (from 1) of a thread can have."""
    return place * RUN_NUMBERS + event * EVENT_NUMBERS + (EVENT_NUMBERS - 1 if event else 0)


@dataclass(frozen=True, slots=True)
class ThreadEvent:
    """One event: `namespace` is empty for the graph itself, and names the turn of a member otherwise."""

    method: str
    data: Any
    namespace: Sequence[str] = ()
    seq: int = 0
    at: float = 0.0

    def encode(self, run_id: str) -> bytes:
        """Return the frame."""
        params: dict[str, Any] = {
            "namespace": [*self.namespace],
            "timestamp": int(self.at * 1000),
            "run_id": run_id,
            "data": self.data,
        }
        event = {"type": "event", "event_id": str(self.seq), "seq": self.seq, "method": self.method}
        data = json.dumps({**event, "params": params}, ensure_ascii=False)
        return f"id: {self.seq}\nevent: {self.method}\ndata: {data}\n\n".encode()


@dataclass(slots=True)
class _OpenMessage:
    """A message that is being written in a namespace."""

    message_id: str
    namespace: list[str]
    text: str = ""


@dataclass(slots=True)
class RunEvents:
    """Turns the log of the run at `place` (from 1) of a thread, from its first event, into events.

    The answer is a message of the graph itself, the texts of members are those of subgraphs. `earlier` is the
    conversation before the run.
    """

    place: int
    transcript: RunTranscript
    earlier: Sequence[Message]
    earlier_plan: dict[str, Any] | None
    _pieces: AnswerPieces = field(default_factory=lambda: AnswerPieces(has_forms=True))
    _open: dict[str, _OpenMessage] = field(default_factory=dict[str, _OpenMessage])
    """The open messages by namespace; that of the graph itself is ""."""
    _turns: dict[str, str] = field(default_factory=dict[str, str])
    """The names of the agents at work, by turn."""

    def feed(self, record: EventRecord) -> Iterator[ThreadEvent]:
        """Yield the events that follow from the next record of the log."""
        event = self.transcript.feed(record)
        if event is None:
            return
        base = self.place * RUN_NUMBERS + record.number * EVENT_NUMBERS
        for number, one in enumerate(self._events(event, record)):
            yield ThreadEvent(one.method, one.data, one.namespace, base + number, record.at or 0.0)

    def _events(self, event: Event, record: EventRecord) -> Iterator[ThreadEvent]:
        answer = "".join(piece.text for piece in self._pieces.take(event) if piece.kind == "answer")
        if answer:
            yield from self._write("", self.transcript.answer_id, answer)
        match event:
            case RunStarted():
                yield ThreadEvent("lifecycle", {"event": "running", "graph_name": "maniple"})
            case MessageChunk() if event.delta.content:
                yield from self._member_message(event)
            case AgentStarted() | AgentEnded():
                yield from self._turn(event)
            case ToolCalled() | ToolOutput() | ToolReturned():
                yield from self._tool(event)
            case RunInterrupted() if not isinstance(event, StepInterrupted):
                asked = describe_interrupt(event)
                data = {"interrupt_id": asked["id"], "payload": asked["value"], "value": asked["value"]}
                yield ThreadEvent("input.requested", data)
            case _:
                pass
        if record.type not in WITHOUT_CUSTOM:
            payload = {"type": record.type, **json.loads(record.marked_data)}
            yield ThreadEvent("custom", {"name": record.type, "payload": payload})
        yield from self._state(event)

    def _state(self, event: Event) -> Iterator[ThreadEvent]:
        match event:
            case WorkflowStarted():
                yield self._values()
            case PlanChanged(draft=False):
                node = self._turns.get(event.turn_id, "supervisor")
                yield ThreadEvent("updates", {"node": node, "values": {"plan": self.transcript.plan}})
                yield self._values()
            case SessionState():
                yield from self._end()
            case _:
                pass

    def _end(self) -> Iterator[ThreadEvent]:
        if unsent := self._pieces.unsent:
            yield from self._write("", self.transcript.answer_id, unsent)
        for place in [*self._open]:
            yield from self._close(place)
        yield self._values()
        status = self.transcript.status.status if self.transcript.status else "completed"
        data: dict[str, Any] = {"event": _ENDS.get(status, "completed"), "graph_name": "maniple"}
        if status == "cancelled":
            data["error"] = "The run was cancelled."
        elif status == "failed":
            failure = self._pieces.view.failure
            if self._pieces.view.has_answer:
                data["event"] = "completed"
            else:
                data["error"] = failure.message if failure else "The run failed."
        yield ThreadEvent("lifecycle", data)

    def _values(self) -> ThreadEvent:
        values: dict[str, Any] = {
            "messages": [*self.earlier, *self.transcript.messages],
            "plan": self.transcript.plan or self.earlier_plan,
        }
        status = self.transcript.status
        if status is not None and status.status == "interrupted" and self.transcript.pauses:
            values[INTERRUPT] = [describe_interrupt(one) for one in self.transcript.pauses.values()]
        return ThreadEvent("values", values)

    def _turn(self, event: AgentStarted | AgentEnded) -> Iterator[ThreadEvent]:
        if isinstance(event, AgentEnded):
            place = self._place(event.agent_id)
            yield from self._close(place)
            self._turns.pop(event.agent_id, None)
            data = {"event": "completed", "graph_name": event.agent_name}
            yield ThreadEvent("lifecycle", data, [f"{event.agent_name}:{event.agent_id}"])
        else:
            self._turns[event.agent_id] = event.agent_name
            data = {"event": "started", "graph_name": event.agent_name}
            yield ThreadEvent("lifecycle", data, [self._place(event.agent_id)])

    def _place(self, turn_id: str) -> str:
        return f"{self._turns.get(turn_id, 'agent')}:{turn_id}"

    def _member_message(self, event: MessageChunk) -> Iterator[ThreadEvent]:
        if self._turns.get(event.turn_id) not in ("reporter", None):
            yield from self._write(self._place(event.turn_id), event.message_id, event.delta.content or "")

    def _tool(self, event: ToolCalled | ToolOutput | ToolReturned) -> Iterator[ThreadEvent]:
        data: dict[str, Any] = {"tool_call_id": event.tool_call_id}
        match event:
            case ToolCalled():
                more = {"event": "tool-started", "tool_name": event.tool_name, "input": event.tool_input}
            case ToolOutput():
                more = {"event": "tool-output-delta", "delta": event.text}
            case _:
                more = {"event": "tool-finished", "output": event.tool_result}
        yield ThreadEvent("tools", {**data, **more}, [self._place(event.turn_id)])

    def _write(self, place: str, message_id: str, text: str) -> Iterator[ThreadEvent]:
        """Yield the next piece of a message, which is opened if it is new in its namespace.

        The text of a member is that of a node within its subgraph: clients count what is one level deep as
        the conversation.
        """
        opened = self._open.get(place)
        if opened is None or opened.message_id != message_id:
            yield from self._close(place)
            namespace = [place, f"model:{message_id}"] if place else []
            opened = self._open[place] = _OpenMessage(message_id, namespace)
            metadata = {"run_id": self.transcript.run.run_id}
            start = {"event": "message-start", "role": "ai", "id": message_id, "metadata": metadata}
            yield ThreadEvent("messages", start, namespace)
            empty = {"type": "text", "text": ""}
            block = {"event": "content-block-start", "index": 0, "content": empty}
            yield ThreadEvent("messages", block, namespace)
        opened.text += text
        delta = {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": text}}
        yield ThreadEvent("messages", delta, opened.namespace)

    def _close(self, place: str) -> Iterator[ThreadEvent]:
        opened = self._open.pop(place, None)
        if opened is not None:
            content = {"type": "text", "text": opened.text}
            block = {"event": "content-block-finish", "index": 0, "content": content}
            yield ThreadEvent("messages", block, opened.namespace)
            yield ThreadEvent("messages", {"event": "message-finish"}, opened.namespace)
