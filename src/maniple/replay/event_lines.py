"""A run's events as JSON lines for a replay file, without the earlier messages of the conversation."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, get_origin

from maniple.events import EVENT_TYPES, Event
from maniple.store import EventRecord
from maniple.text import fix_surrogates

MAX_EVENT_LENGTH = 1_000_000
"""Characters of one event's data; the texts in a longer one are cut at `MAX_TEXT_LENGTH`."""
MAX_TEXT_LENGTH = 200_000
MAX_WORK = 16_000_000
"""Characters of all tool inputs and results. Events of other scopes are written without this limit."""


class EventLines:
    """Writes the events of one run in order.

    `left_out` counts the events that did not fit. `has_math` is set if a message may contain TeX.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self.has_math = False
        self._work = MAX_WORK

    def lines(self, events: Iterable[EventRecord]) -> bytes:
        """Return a JSON line for each event, safe inside of a script element. Blocks."""
        return b"".join(self._line(event) for event in events)

    def _line(self, event: EventRecord) -> bytes:
        event_type = EVENT_TYPES.get(event.type)
        scope = event_type.scope if event_type else "run"
        is_emptied = event_type is not None and scope == "conversation"
        data = _emptied(event_type) if is_emptied else _fitting(event.marked_data)
        is_work = scope == "work"
        if data is None or (is_work and len(data) > self._work):
            self.left_out += 1
            return b""
        self._work -= len(data) if is_work else 0
        # TeX delimiters may be split across messages, so look for a dollar sign or a backslash (two in JSON).
        self.has_math |= event.type == "message" and ("$" in data or "\\\\" in data)
        at = "" if event.at is None else f'"at":{event.at},'
        line = f'{{"id":{event.number},"type":{json.dumps(event.type)},{at}"data":{data}}}'
        return escape_for_script(line) + b"\n"


def escape_for_script(text: str) -> bytes:
    """Return JSON as bytes that cannot close a script element or open another one."""
    return fix_surrogates(text.replace("<", "\\u003c")).encode()


@cache
def _emptied(event_type: type[Event]) -> str:
    """Return an event's data without the conversation: its lists are empty, other keys are omitted."""
    fields = event_type.model_fields.items()
    return _compact({name: [] for name, one in fields if get_origin(one.annotation) is list})


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _fitting(data: str) -> str | None:
    """Return an event's data with its long texts cut; None if it is still too long, or no JSON."""
    if len(data) <= MAX_EVENT_LENGTH:
        return data
    try:
        short = json.dumps(_cut(json.loads(data)), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return short if len(short) <= MAX_EVENT_LENGTH else None


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT_LENGTH else f"{value[: MAX_TEXT_LENGTH - 1]}…"
    if isinstance(value, list):
        return [_cut(one) for one in value]
    return {name: _cut(one) for name, one in value.items()} if isinstance(value, dict) else value
