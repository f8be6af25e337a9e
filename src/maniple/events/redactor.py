"""Redaction of secrets in events, also in a text that is streamed in pieces."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

from maniple.events.base import Event, EventPart, Verbatim
from maniple.events.model import MessageChunk, MessageDelta, ToolOutput, ToolReturned
from maniple.redaction import Redactor, StreamRedactor

_Model = TypeVar("_Model", bound=EventPart)


@dataclass(slots=True)
class _OpenMessage:
    """The message that a turn writes: its newest piece, and what is held back of it."""

    piece: MessageChunk
    field: str
    stream: StreamRedactor

    def is_continued_by(self, chunk: MessageChunk, field: str) -> bool:
        return (self.piece.message_id, self.field) == (chunk.message_id, field)

    def with_text(self, text: str) -> MessageChunk:
        return self.piece.model_copy(update={"delta": MessageDelta(**{self.field: text})})


class EventRedactor:
    """Redacts the events of one run in order; feed it each, then end it once."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._open: dict[str, _OpenMessage] = {}
        """By the id of the turn: concurrent agents write at the same time."""
        self._outputs: dict[tuple[str, str], StreamRedactor] = {}

    def feed(self, event: Event) -> Iterator[Event]:
        """Yield what can be sent now: nothing, the event, or the rest of a message before it."""
        if isinstance(event, ToolOutput):
            yield from self._output(event)
            return
        if isinstance(event, ToolReturned):
            # The result contains the output that is held back.
            self._outputs = {key: one for key, one in self._outputs.items() if key[0] != event.tool_call_id}
        if not isinstance(event, MessageChunk):
            if event.ends_message:
                yield from self._end(event.turn_id) if event.turn else self.end()
            yield redacted_event(event, self._redactor)
            return
        field = "content" if event.delta.reasoning_content is None else "reasoning_content"
        message = self._open.get(event.turn_id)
        if message is None or not message.is_continued_by(event, field):
            yield from self._end(event.turn_id)
            message = self._open[event.turn_id] = _OpenMessage(event, field, StreamRedactor(self._redactor))
        message.piece = event
        text = getattr(event.delta, field) or ""
        clean = message.stream.feed(text)
        if clean == text:
            yield event
        elif clean:
            yield message.with_text(clean)

    def end(self) -> Iterator[Event]:
        """Yield the rests of all open messages."""
        for turn_id in list(self._open):
            yield from self._end(turn_id)

    def _end(self, turn_id: str) -> Iterator[Event]:
        if (message := self._open.pop(turn_id, None)) and (rest := message.stream.end()):
            yield message.with_text(rest)

    def _output(self, event: ToolOutput) -> Iterator[Event]:
        key = event.tool_call_id, event.stream
        stream = self._outputs.setdefault(key, StreamRedactor(self._redactor))
        if text := stream.feed(event.text):
            yield redacted_event(event.model_copy(update={"text": text}), self._redactor)


def redacted_event(event: _Model, redactor: Redactor) -> _Model:
    """Return one whole event, or a part of it, without secrets; the same object when it holds none."""
    changed: dict[str, Any] = {}
    verbatim = _verbatim_fields(type(event))
    for name, value in event:
        if name not in verbatim:
            clean = _clean(value, redactor)
            if clean is not value:
                changed[name] = clean
    return event.model_copy(update=changed) if changed else event


@cache
def _verbatim_fields(part: type[EventPart]) -> frozenset[str]:
    fields = part.model_fields.items()
    return frozenset(name for name, one in fields if any(isinstance(mark, Verbatim) for mark in one.metadata))


def _clean(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, EventPart):
        return redacted_event(value, redactor)
    if isinstance(value, list) and value and isinstance(value[0], EventPart):
        parts = cast("list[EventPart]", value)
        ones = [redacted_event(one, redactor) for one in parts]
        return parts if all(new is old for new, old in zip(ones, parts, strict=True)) else ones
    return redactor.value(value)
