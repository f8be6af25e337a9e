"""The base class of every event, and the registry of event types that subclassing fills.

A new kind of event is one class, anywhere:

    class SensorRead(Event, wire_name="sensor", scope="work", custom_event="sensor_read"):
        value: float

It is streamed, redacted, stored, replayed and typed without a line elsewhere.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, PrivateAttr

from maniple.store import EventRecord

EventScope = Literal["run", "conversation", "work"]
"""What an event is about.

`run` is the course of the run and its text. `conversation` holds messages of other runs or the conversation's
name, which a shared recording leaves out. `work` is what tools do; a recording bounds its size.
"""


@dataclass(frozen=True, slots=True)
class TurnMark:
    """The turn of an agent that an event belongs to, and the step of the plan that a worker does in it."""

    agent_id: str
    step_id: int | None = None


class Verbatim:
    """Marks a field that is never redacted: an identifier, or one of the wire's own words."""


Identifier = Annotated[str, Verbatim()]
"""An id, the name of an agent, or another word that clients compare: not redacted."""


class EventPart(BaseModel):
    """A part of an event."""

    model_config = ConfigDict(frozen=True)


class Event(EventPart):
    """Something that happened in a run. The fields are the event's data, in the wire's order of keys."""

    type: ClassVar[str] = ""
    """The name on the wire (`event:`)."""
    scope: ClassVar[EventScope] = "run"
    ends_message: ClassVar[bool] = True
    """Whether a message cannot continue after it. The redactor holds back the end of an open message."""
    custom_event: ClassVar[str] = ""
    """The LangChain custom event that becomes this event, with the same fields; "" for none."""

    _at: float = PrivateAttr(default_factory=time.time)
    _turn: TurnMark | None = PrivateAttr(default=None)

    def __init_subclass__(
        cls,
        *,
        wire_name: str,
        scope: EventScope = "run",
        ends_message: bool = True,
        custom_event: str = "",
        **config: Any,
    ) -> None:
        super().__init_subclass__(**config)
        known = _TYPES.get(wire_name)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise TypeError(
                f"The event name {wire_name!r} belongs to {known.__qualname__}. Choose another one."
            )
        cls.type, cls.scope = wire_name, scope
        cls.ends_message, cls.custom_event = ends_message, custom_event
        _TYPES[wire_name] = cls
        if custom_event:
            _CUSTOM[custom_event] = cls

    @property
    def at(self) -> float:
        """The time at which it happened, in Unix seconds. It is not part of the data."""
        return self._at

    @property
    def turn(self) -> TurnMark | None:
        """The turn that it belongs to; None for an event of the run. It is not part of the data."""
        return self._turn

    @property
    def turn_id(self) -> str:
        """The `agent_id` of the turn; "" for an event of the run."""
        return self._turn.agent_id if self._turn else ""

    def in_turn(self, turn: TurnMark | None, at: float | None = None) -> Self:
        """Mark the event with its turn, and with the time `at` if it is known; return the event."""
        self._turn = turn
        if at is not None:
            self._at = at
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        return (type(self), dict(self)) == (type(other), dict(other))

    def data(self) -> dict[str, Any]:
        """Return the event's data as JSON values."""
        return self.model_dump(mode="json")


_TYPES: dict[str, type[Event]] = {}
_CUSTOM: dict[str, type[Event]] = {}
EVENT_TYPES: Mapping[str, type[Event]] = MappingProxyType(_TYPES)
"""Every event class by its wire name, in the order of definition."""
CUSTOM_EVENT_TYPES: Mapping[str, type[Event]] = MappingProxyType(_CUSTOM)
"""The event classes that custom events become, by the custom event's name."""


class UnknownEventType(ValueError):
    """A stored event has a wire name that no imported class has."""


def as_json(event: Event) -> str:
    """Return an event's data as JSON in one line; scripts other than Latin are not escaped."""
    return json.dumps(event.data(), ensure_ascii=False)


def read_event(type_: str, data: str) -> Event:
    """Return the event whose `data` is this JSON text. Its `at` is the time of this call.

    Raises:
        UnknownEventType: no event class has this wire name.
        ValidationError: the data does not fit the class.
    """
    if (event_type := _TYPES.get(type_)) is None:
        raise UnknownEventType(f"No event type is called {type_!r}. Import the module that defines it.")
    return event_type.model_validate(json.loads(data))


def record_of(event: Event, number: int) -> EventRecord:
    """Return the record by which an event is stored."""
    turn = event.turn
    agent_id, step_id = (turn.agent_id, turn.step_id) if turn else ("", None)
    return EventRecord(number, event.type, as_json(event), round(event.at, 3), agent_id, step_id)


def event_of(record: EventRecord) -> Event:
    """Return the event of a record, with its time, if that is known, and its turn; raises as `read_event`."""
    turn = TurnMark(record.agent_id, record.step_id) if record.agent_id else None
    return read_event(record.type, record.data).in_turn(turn, record.at)
