"""What runs did: events and tool calls."""

import time
from collections.abc import Sequence
from dataclasses import replace

from maniple.errors import StoreError
from maniple.store.lines import joined, numbered
from maniple.store.memory.content import Content
from maniple.store.records import EventRecord, ToolCallRecord
from maniple.text import whole


class MemoryEvents:
    """See `protocols.EventTable`."""

    def __init__(self, content: Content) -> None:
        self._content = content

    async def append(self, batches: Sequence[tuple[str, Sequence[EventRecord]]]) -> None:
        stored, added = self._content.events, dict[str, list[EventRecord]]()
        for run_id, records in batches:
            if not records or run_id not in self._content.runs:
                continue
            new = added.setdefault(run_id, [])
            first = records[0].number
            if first != len(stored.get(run_id, ())) + len(new) + 1:
                raise StoreError(f"Event {first} of run {run_id} does not follow its newest.")
            new += numbered(first, joined(records))
        for run_id, new in added.items():
            stored.setdefault(run_id, []).extend(new)

    async def read(self, run_id: str, after: int = 0, limit: int = 1000) -> list[EventRecord]:
        after = max(after, 0)
        return self._content.events.get(run_id, [])[after : after + max(limit, 0)]

    async def last(self, run_id: str) -> EventRecord | None:
        events = self._content.events.get(run_id)
        return events[-1] if events else None


class MemoryLedger:
    """See `protocols.Ledger`."""

    def __init__(self, content: Content) -> None:
        self._content = content

    async def begin(self, run_id: str, tool_call_id: str, tool_name: str, arguments: str) -> ToolCallRecord:
        if run_id not in self._content.runs:
            raise StoreError(f"Run {run_id} was deleted.")
        known = self._content.calls.get((run_id, tool_call_id))
        if known is None:
            call = ToolCallRecord(run_id, tool_call_id, tool_name, whole(arguments), None, time.time())
        else:
            call = replace(known, attempts=known.attempts + 1)
        self._content.calls[run_id, tool_call_id] = call
        return call

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        call = self._content.calls.get((run_id, tool_call_id))
        if call is not None and call.result is None:
            ended = replace(call, result=whole(result), ended_at=time.time())
            self._content.calls[run_id, tool_call_id] = ended

    async def of_run(self, run_id: str) -> list[ToolCallRecord]:
        return [call for call in self._content.calls.values() if call.run_id == run_id]
