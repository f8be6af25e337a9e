"""Take secrets out of events, also out of a text that comes in pieces."""

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar

from maniple.events.base import Event, EventPart, Verbatim
from maniple.events.model import MessageChunk, MessageDelta, ToolOutput, ToolReturned
from maniple.redaction import Redactor, StreamRedactor

_Model = TypeVar("_Model", bound=EventPart)


class EventRedactor:
    """Redacts the events of one run in order; feed it each, then end it once."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._speaking: tuple[str, str] | None = None
        self._stream = StreamRedactor(redactor)
        self._prints: dict[tuple[str, str], StreamRedactor] = {}

    def feed(self, event: Event) -> Iterator[Event]:
        """Yield what can be told now: nothing, the event, or the rest of a message before it."""
        if isinstance(event, ToolOutput):
            yield from self._printed(event)
            return
        if isinstance(event, ToolReturned):
            # What is held of its output is in its result.
            self._prints = {key: one for key, one in self._prints.items() if key[0] != event.tool_call_id}
        if not isinstance(event, MessageChunk):
            if event.ends_message:
                yield from self.end()
            yield redacted_event(event, self._redactor)
            return
        field = "content" if event.delta.reasoning_content is None else "reasoning_content"
        if self._speaking != (event.message_id, field):
            yield from self.end()
            self._speaking = event.message_id, field
        said = getattr(event.delta, field) or ""
        told = self._stream.feed(said)
        if told == said:
            yield event
        elif told:
            yield _message(event.message_id, field, told)

    def end(self) -> Iterator[Event]:
        """Yield what is left of the message that was being said."""
        rest, speaking = self._stream.end(), self._speaking
        self._speaking = None
        if rest and speaking:
            yield _message(*speaking, rest)

    def _printed(self, event: ToolOutput) -> Iterator[Event]:
        key = event.tool_call_id, event.stream
        stream = self._prints.setdefault(key, StreamRedactor(self._redactor))
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
        ones = [redacted_event(one, redactor) for one in value]
        return value if all(new is old for new, old in zip(ones, value, strict=True)) else ones
    return redactor.value(value)


def _message(message_id: str, field: str, text: str) -> MessageChunk:
    return MessageChunk(message_id=message_id, delta=MessageDelta(**{field: text}))
