"""What the members at work have so far, for the lead: their newest words and tool calls."""

from collections.abc import Iterable, Mapping

from maniple.events import (
    AgentEnded,
    AgentStarted,
    MessageChunk,
    ToolCalled,
    ToolReturned,
    event_of,
)
from maniple.store import EventRecord
from maniple.text import shorten

MAX_PARTS = 8
"""The number of texts and calls of a member that are shown, the newest ones."""
_TEXT_CHARACTERS = 1_500
_CALL_CHARACTERS = 300
_TYPES = frozenset(one.type for one in (AgentStarted, AgentEnded, MessageChunk, ToolCalled, ToolReturned))


def find_newest_work(records: Iterable[EventRecord]) -> Mapping[int, list[str]]:
    """Return the newest texts and calls of each member at work, by the id of its step.

    `records` are the newest events of the run. A step that has ended is left out: the plan has its result.
    """
    work: dict[int, _Work] = {}
    for record in records:
        if record.step_id is None or record.type not in _TYPES:
            continue
        event = event_of(record)
        if isinstance(event, AgentEnded):
            work.pop(record.step_id, None)
        elif isinstance(event, AgentStarted):
            work[record.step_id] = _Work()
        else:
            work.setdefault(record.step_id, _Work()).add(event)
    return {step_id: parts for step_id, one in work.items() if (parts := one.shown())}


class _Work:
    """The texts and calls of one turn, by the ids of messages and calls, in order."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        self._order: list[tuple[dict[str, str], str]] = []

    def add(self, event: object) -> None:
        match event:
            case MessageChunk():
                self._append(self._texts, event.message_id, event.delta.content or "")
            case ToolCalled():
                call = f"{event.tool_name}({shorten(str(event.tool_input), _CALL_CHARACTERS)})"
                self._append(self._calls, event.tool_call_id, f"called {call}")
            case ToolReturned():
                result = shorten(str(event.tool_result), _CALL_CHARACTERS)
                self._append(self._calls, event.tool_call_id, f", which returned: {result}")
            case _:
                pass

    def _append(self, parts: dict[str, str], key: str, text: str) -> None:
        if key not in parts:
            self._order.append((parts, key))
        parts[key] = parts.get(key, "") + text

    def shown(self) -> list[str]:
        texts = (parts[key].strip() for parts, key in self._order)
        return [shorten(text, _TEXT_CHARACTERS) for text in texts if text][-MAX_PARTS:]
