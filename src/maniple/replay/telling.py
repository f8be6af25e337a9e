"""A run's events as a file tells them: one a line, and nothing of what else was said in the conversation."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, get_origin

from maniple.events import EVENT_TYPES, Event
from maniple.store import EventRecord
from maniple.text import fix_surrogates

LONGEST_EVENT = 1_000_000
"""Characters of one event's data; the texts in a longer one are cut at `LONGEST_TEXT`."""
LONGEST_TEXT = 200_000
MOST_WORK = 16_000_000
"""Characters of all that tools were told and gave. What speaks, plans and ends is told in any case."""


class Telling:
    """Writes the events of one run in order.

    `left_out` counts those for which there was no room; `has_math` says whether TeX may have been said.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self.has_math = False
        self._work = MOST_WORK

    def lines(self, events: Iterable[EventRecord]) -> bytes:
        """Return a line of JSON for each event, harmless within a script element. Blocks."""
        return b"".join(self._line(event) for event in events)

    def _line(self, event: EventRecord) -> bytes:
        event_type = EVENT_TYPES.get(event.type)
        scope = event_type.scope if event_type else "run"
        data = _emptied(event_type) if event_type and scope == "conversation" else _fitting(event.data)
        is_work = scope == "work"
        if data is None or (is_work and len(data) > self._work):
            self.left_out += 1
            return b""
        self._work -= len(data) if is_work else 0
        # Its marks, which come in pieces: a dollar, or the backslash (two in JSON) of `\\(` and `\\[`.
        self.has_math |= event.type == "message" and ("$" in data or "\\\\" in data)
        at = "" if event.at is None else f'"at":{event.at},'
        line = f'{{"id":{event.number},"type":{json.dumps(event.type)},{at}"data":{data}}}'
        return embedded(line) + b"\n"


def embedded(text: str) -> bytes:
    """Return JSON that ends no script element and begins no other."""
    return fix_surrogates(text.replace("<", "\\u003c")).encode()


@cache
def _emptied(event_type: type[Event]) -> str:
    """Return an event's data without the conversation: its lists are empty, its other keys are left out."""
    fields = event_type.model_fields.items()
    return _compact({name: [] for name, one in fields if get_origin(one.annotation) is list})


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _fitting(data: str) -> str | None:
    """Return an event's data with its long texts cut; None for what is too long all the same, or no JSON."""
    if len(data) <= LONGEST_EVENT:
        return data
    try:
        short = json.dumps(_cut(json.loads(data)), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return short if len(short) <= LONGEST_EVENT else None


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[: LONGEST_TEXT - 1]}…"
    if isinstance(value, list):
        return [_cut(one) for one in value]
    return {name: _cut(one) for name, one in value.items()} if isinstance(value, dict) else value
