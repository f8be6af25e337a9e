"""The events of a run as the parts of a stream of LangGraph's server."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from maniple.api.protocols.langgraph.interrupts import INTERRUPT, describe_interrupts
from maniple.api.protocols.langgraph.transcripts import Message, RunTranscript
from maniple.events import (
    AgentEnded,
    AgentStarted,
    Event,
    MessageChunk,
    PlanChanged,
    RunInterrupted,
    RunStatusChanged,
    SessionState,
    ToolCalled,
    ToolReturned,
    WorkflowStarted,
)
from maniple.service.answer_pieces import AnswerPieces
from maniple.store import EventRecord, RunRecord

WITHOUT_CUSTOM = frozenset(
    one.type for one in (MessageChunk, RunStatusChanged, SessionState, WorkflowStarted, RunInterrupted)
)
"""Events that other parts have, or that repeat the whole conversation."""


@dataclass(frozen=True, slots=True)
class StreamPart:
    """One server-sent event: `id` is a position in the run's log, the same in each replay."""

    event: str
    data: Any
    id: str = ""

    def encode(self) -> bytes:
        """Return the frame."""
        number = f"id: {self.id}\n" if self.id else ""
        data = json.dumps(self.data, ensure_ascii=False)
        return f"{number}event: {self.event}\ndata: {data}\n\n".encode()


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """A place in a run's stream: after part `part` of the event `event`."""

    event: int = 0
    part: int = 0

    @classmethod
    def read(cls, given: str, start: int) -> "StreamPosition":
        """Return the place that a `Last-Event-ID` names; the one after event `start` if it names none."""
        event, _, part = given.strip().partition("-")
        if event.isascii() and event.isdigit() and part.isascii() and part.isdigit() and len(given) < 40:
            return cls(int(event), int(part))
        return cls(start, 0)

    def is_before(self, event: int, part: int) -> bool:
        """Return whether a part comes after this place; the whole event of a place without a part is sent."""
        return event > self.event or (event == self.event and self.part > 0 and part > self.part)


@dataclass(slots=True)
class StreamParts:
    """Turns the log of a run, from its first event, into parts of the chosen stream modes.

    The answer is a message of the graph itself; the work of members is that of subgraphs. `earlier` is the
    conversation before the run.
    """

    modes: Collection[str]
    has_subgraphs: bool
    transcript: RunTranscript
    earlier: Sequence[Message]
    earlier_plan: dict[str, Any] | None
    pieces: AnswerPieces = field(default_factory=lambda: AnswerPieces(has_forms=True))
    _texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The pieces of the texts of the members at work, by turn."""
    _answering: str = "reporter"
    """The agent whose text was sent last as the answer."""
    _names: dict[str, str] = field(default_factory=dict[str, str])
    """The names of the agents at work, by turn."""

    @property
    def run(self) -> RunRecord:
        """The run."""
        return self.transcript.run

    @property
    def values(self) -> dict[str, Any]:
        """The state of the thread so far."""
        values: dict[str, Any] = {
            "messages": [*self.earlier, *self.transcript.messages],
            "plan": self.transcript.plan or self.earlier_plan,
        }
        is_waiting = self.transcript.status is not None and self.transcript.status.status == "interrupted"
        if is_waiting and self.transcript.pauses:
            values[INTERRUPT] = describe_interrupts(self.transcript.pauses.values())
        return values

    def feed(self, record: EventRecord) -> Iterator[StreamPart]:
        """Yield the parts that follow from the next event."""
        event = self.transcript.feed(record)
        if event is None:
            return
        for number, (name, data) in enumerate(self._parts(event, record), start=1):
            yield StreamPart(name, data, f"{record.number}-{number}")

    def _parts(self, event: Event, record: EventRecord) -> Iterator[tuple[str, Any]]:
        answer = "".join(piece.text for piece in self.pieces.take(event) if piece.kind == "answer")
        if answer:
            yield from self._message(answer)
        match event:
            case MessageChunk() if event.delta.content:
                yield from self._member_message(event)
            case AgentStarted():
                self._names[event.agent_id] = event.agent_name
                yield from self._event("on_chain_start", event.agent_name, event.agent_id, {"input": {}})
            case AgentEnded():
                yield from self._agent_end(event)
            case ToolCalled() | ToolReturned():
                yield from self._tool(event)
            case _:
                pass
        if "custom" in self.modes and record.type not in WITHOUT_CUSTOM:
            yield "custom", {"type": record.type, **json.loads(record.marked_data)}
        yield from self._state(event)

    def _state(self, event: Event) -> Iterator[tuple[str, Any]]:
        match event:
            case WorkflowStarted():
                yield from self._values()
            case PlanChanged(draft=False):
                if "updates" in self.modes:
                    node = self._names.get(event.turn_id, "supervisor")
                    yield "updates", {node: {"plan": self.transcript.plan}}
                yield from self._values()
            case SessionState():
                yield from self._end()
            case _:
                pass

    def _end(self) -> Iterator[tuple[str, Any]]:
        if unsent := self.pieces.unsent:
            yield from self._message(unsent)
        values = self.values
        if "updates" in self.modes:
            answers = [one for one in values["messages"] if one["id"] == self.transcript.answer_id]
            if INTERRUPT in values:
                yield "updates", {INTERRUPT: values[INTERRUPT]}
            elif answers:
                yield "updates", {self._answering: {"messages": answers}}
        yield from self._values()

    def _values(self) -> Iterator[tuple[str, Any]]:
        if "values" in self.modes:
            yield "values", self.values

    def _message(self, text: str) -> Iterator[tuple[str, Any]]:
        self._answering = self.pieces.view.agent_name or self._answering
        yield from self._chunk("messages", self.transcript.answer_id, text, self._answering)

    def _member_message(self, event: MessageChunk) -> Iterator[tuple[str, Any]]:
        name = self._names.get(event.turn_id, "")
        text = event.delta.content or ""
        self._texts.setdefault(event.turn_id, []).append(text)
        if self.has_subgraphs and name not in ("reporter", ""):
            yield from self._chunk(f"messages|{name}:{event.turn_id}", event.message_id, text, name)

    def _chunk(self, place: str, message_id: str, text: str, name: str) -> Iterator[tuple[str, Any]]:
        chunk: dict[str, Any] = {
            "type": "AIMessageChunk",
            "id": message_id,
            "content": text,
            "name": None,
            "additional_kwargs": {},
            "response_metadata": {},
            "tool_calls": [],
            "invalid_tool_calls": [],
            "tool_call_chunks": [],
            "usage_metadata": None,
        }
        if "messages-tuple" in self.modes or "messages" in self.modes:
            yield place, [chunk, self._metadata(name)]
        yield from self._event("on_chat_model_stream", name, message_id, {"chunk": chunk})

    def _metadata(self, name: str) -> dict[str, Any]:
        thread_id = self.run.thread_name
        return {"langgraph_node": name, "run_id": self.run.run_id, "thread_id": thread_id, "tags": []}

    def _agent_end(self, event: AgentEnded) -> Iterator[tuple[str, Any]]:
        name = self._names.pop(event.agent_id, event.agent_name)
        text = "".join(self._texts.pop(event.agent_id, ()))
        if "updates" in self.modes and self.has_subgraphs and text and name != "reporter":
            message = {"type": "ai", "id": f"{event.agent_id}-text", "content": text, "name": name}
            yield f"updates|{name}:{event.agent_id}", {name: {"messages": [message]}}
        yield from self._event("on_chain_end", name, event.agent_id, {"output": text})

    def _tool(self, event: ToolCalled | ToolReturned) -> Iterator[tuple[str, Any]]:
        name, call_id = event.tool_name, event.tool_call_id
        if isinstance(event, ToolCalled):
            yield from self._event("on_tool_start", name, call_id, {"input": event.tool_input}, event.turn_id)
        else:
            yield from self._event("on_tool_end", name, call_id, {"output": event.tool_result}, event.turn_id)

    def _event(
        self, kind: str, name: str, part_id: str, data: dict[str, Any], turn_id: str = ""
    ) -> Iterator[tuple[str, Any]]:
        if "events" in self.modes:
            metadata = self._metadata(self._names.get(turn_id, name))
            base: dict[str, Any] = {
                "event": kind,
                "name": name,
                "run_id": part_id,
                "tags": [],
                "parent_ids": [],
            }
            yield "events", {**base, "metadata": metadata, "data": data}
