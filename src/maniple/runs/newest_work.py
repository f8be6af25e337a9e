"""What the steps at work have so far: the newest words and tool calls of their members, from a run's log."""

import asyncio
from collections.abc import Iterable, Mapping

from maniple.agents.task import truncate_middle
from maniple.events import (
    INTERRUPTED_RESULT,
    NO_RESULT,
    Event,
    MessageChunk,
    MessageReplaced,
    PlanChanged,
    ToolCalled,
    ToolReturned,
    event_of,
)
from maniple.store import EventRecord, EventTable, read_event_pages
from maniple.text import shorten
from maniple.tools.interaction import ASK_USER

MAX_PARTS = 8
"""The number of texts and calls of a step that are shown, the newest ones."""
_TEXT_CHARACTERS = 1_500
_CALL_CHARACTERS = 300
_TYPES = frozenset(one.type for one in (PlanChanged, MessageChunk, MessageReplaced, ToolCalled, ToolReturned))


async def read_newest_work(events: EventTable, run_id: str) -> "NewestWork":
    """Return what the steps of a run have that are not done; raises `StoreError`."""
    work = NewestWork()
    async for page in read_event_pages(events, run_id, types=_TYPES):
        await asyncio.to_thread(work.feed, page)
    return work


class NewestWork:
    """The texts and calls of the steps that are not done. Feed it the log, then read what is shown.

    A turn that ended with its run, or with the program, has not ended its step, which goes on in another
    turn. So it is the plan that says which steps are done, and which begin again after they failed.
    """

    def __init__(self) -> None:
        self.begun_at: dict[int, float] = {}
        """When the steps began, by their ids, in seconds since the epoch."""
        self._steps: dict[int, _StepWork] = {}
        self._failed: set[int] = set()

    def feed(self, records: Iterable[EventRecord]) -> None:
        """Take the next events into account."""
        for record in records:
            if record.type not in _TYPES:
                continue
            event = event_of(record)
            if isinstance(event, PlanChanged) and not event.draft:
                self._follow(event)
            elif record.step_id is not None:
                self._steps.setdefault(record.step_id, _StepWork()).add(event)
                if record.at is not None:
                    self.begun_at.setdefault(record.step_id, record.at)

    def _follow(self, plan: PlanChanged) -> None:
        failed = {step.id for step in plan.steps if step.status == "failed"}
        done = {step.id for step in plan.steps if step.status == "completed"}
        for step_id in done | (self._failed - failed):
            self._steps.pop(step_id, None)
            self.begun_at.pop(step_id, None)
        self._failed = failed

    def shown(self) -> Mapping[int, list[str]]:
        """Return the newest parts of each step, by its id."""
        return {step_id: parts for step_id, one in self._steps.items() if (parts := one.shown())}


class _StepWork:
    """The texts and calls of one step, by the ids of messages and calls, in order."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        self._order: list[tuple[dict[str, str], str]] = []

    def add(self, event: Event) -> None:
        match event:
            case MessageChunk():
                self._append(self._texts, event.message_id, event.delta.content or "")
            case MessageReplaced():
                self._texts[event.message_id] = ""
            case ToolCalled() | ToolReturned() if event.tool_name == ASK_USER:
                pass  # the user's answers are known in another way
            case ToolCalled():
                call = f"{event.tool_name}({shorten(str(event.tool_input), _CALL_CHARACTERS)})"
                self._append(self._calls, event.tool_call_id, f"called {call}")
            case ToolReturned() if event.tool_result in (NO_RESULT, INTERRUPTED_RESULT):
                self._append(self._calls, event.tool_call_id, ", which was cut off")
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
        return [truncate_middle(text, _TEXT_CHARACTERS) for text in texts if text][-MAX_PARTS:]
