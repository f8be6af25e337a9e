"""Take secrets out of events, also out of a text that comes in pieces."""

from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel

from maniple.events.model import Delta, Event, Message, ToolPrinted, ToolReturned
from maniple.redaction import Redactor, StreamRedactor

_BESIDE_MESSAGES = frozenset({"plan", "usage", "artifact", "browser_state", "browser_step"})
"""Events that may stand between two pieces of one message: they do not end what was said."""
_NAMES = frozenset({"type", "status", "kind", "role", "code", "agent_name", "stream", "state"})
"""Fields whose words are the wire's own. Fields that end in `id` are left alone, too: they address things."""

_Model = TypeVar("_Model", bound=BaseModel)


class EventRedactor:
    """Redacts the events of one run in order; feed it each, then end it once."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._speaking: tuple[str, str] | None = None
        self._stream = StreamRedactor(redactor)
        self._prints: dict[tuple[str, str], StreamRedactor] = {}

    def feed(self, event: Event) -> Iterator[Event]:
        """Yield what can be told now: nothing, the event, or the rest of a message before it."""
        if isinstance(event, ToolPrinted):
            yield from self._printed(event)
            return
        if isinstance(event, ToolReturned):
            # What is held of its output is in its result.
            self._prints = {key: one for key, one in self._prints.items() if key[0] != event.tool_call_id}
        if not isinstance(event, Message):
            if event.type not in _BESIDE_MESSAGES:
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

    def _printed(self, event: ToolPrinted) -> Iterator[Event]:
        key = event.tool_call_id, event.stream
        stream = self._prints.setdefault(key, StreamRedactor(self._redactor))
        if text := stream.feed(event.text):
            yield redacted_event(event.model_copy(update={"text": text}), self._redactor)


def redacted_event(event: _Model, redactor: Redactor) -> _Model:
    """Return one whole event, or a part of it, without secrets; the same object when it holds none."""
    changed = {}
    for name, value in event:
        if name not in _NAMES and not name.endswith("id"):
            clean = _clean(value, redactor)
            if clean is not value:
                changed[name] = clean
    return event.model_copy(update=changed) if changed else event


def _clean(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, BaseModel):
        return redacted_event(value, redactor)
    if isinstance(value, list) and value and isinstance(value[0], BaseModel):
        ones = [redacted_event(one, redactor) for one in value]
        return value if all(new is old for new, old in zip(ones, value, strict=True)) else ones
    return redactor.value(value)


def _message(message_id: str, field: str, text: str) -> Message:
    return Message(message_id=message_id, delta=Delta(**{field: text}))
