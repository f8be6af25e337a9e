"""The tool calls of a run that no engine drives: in memory, or in the checkpointer of the graph."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint

from maniple.langgraph_internals import Write, checkpoint_config, writes_of
from maniple.store.records import ToolCallRecord

_NAMESPACE = "maniple_calls"
"""Of the checkpoints that hold records of calls. No task of a graph has this name."""
_INTENT, _START, _RESULT = "maniple_call_intent", "maniple_call_start", "maniple_call_result"
"""The channels of a checkpoint's writes."""


class MemoryLedger:
    """The tool calls of one run, in memory; see `maniple.store.protocols.ToolCallLedger`."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCallRecord] = {}

    async def begin(self, run_id: str, tool_call_id: str, tool_name: str, arguments: str) -> ToolCallRecord:
        """Record the intent. A known call is returned with one more attempt."""
        known = self._calls.get(tool_call_id)
        new = ToolCallRecord(run_id, tool_call_id, tool_name, arguments, None, time.time())
        self._calls[tool_call_id] = new if known is None else replace(known, attempts=known.attempts + 1)
        return self._calls[tool_call_id]

    async def start(self, run_id: str, tool_call_id: str) -> None:
        """Record that the work of the call begins."""
        call = self._calls[tool_call_id]
        if call.started_at is None:
            self._calls[tool_call_id] = replace(call, started_at=time.time())

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        """Record the result, unless one is recorded already."""
        call = self._calls[tool_call_id]
        if call.result is None:
            self._calls[tool_call_id] = replace(call, result=result, ended_at=time.time())

    def clear(self) -> None:
        """Forget all calls."""
        self._calls.clear()

    async def list_by_run(self, run_id: str) -> list[ToolCallRecord]:
        """Return the calls in the order in which they began."""
        return list(self._calls.values())


class CheckpointLedger(MemoryLedger):
    """The tool calls of one run in the checkpointer with which the run is resumed.

    They are there when the process has died, wherever the graph is resumed, and they are deleted with the
    thread. They are the pending writes of one empty checkpoint in a namespace of their own, so that no graph
    of the thread reads them. A write is stored when `begin` or `end` returns.
    """

    def __init__(self, saver: BaseCheckpointSaver[Any], thread_id: str, run_id: str) -> None:
        super().__init__()
        self._saver = saver
        self._run = uuid5(NAMESPACE_URL, run_id)
        self._place = checkpoint_config(thread_id, f"{_NAMESPACE}:{self._run}")
        self._checkpoint = checkpoint_config(thread_id, f"{_NAMESPACE}:{self._run}", str(self._run))
        self._loading = asyncio.Lock()
        self._is_loaded = False

    async def begin(self, run_id: str, tool_call_id: str, tool_name: str, arguments: str) -> ToolCallRecord:
        """Store the intent. A known call is returned with one more attempt."""
        await self._load()
        record = await super().begin(run_id, tool_call_id, tool_name, arguments)
        intent = [len(self._calls), run_id, tool_call_id, tool_name, record.arguments, record.begun_at]
        await self._write(_INTENT, f"{record.attempts}:{tool_call_id}", intent)
        return record

    async def start(self, run_id: str, tool_call_id: str) -> None:
        """Store that the work of the call begins."""
        await self._load()
        await super().start(run_id, tool_call_id)
        await self._write(_START, tool_call_id, [tool_call_id, self._calls[tool_call_id].started_at])

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        """Store the result, unless one is stored already."""
        await self._load()
        await super().end(run_id, tool_call_id, result)
        record = self._calls[tool_call_id]
        await self._write(_RESULT, tool_call_id, [tool_call_id, record.result, record.ended_at])

    def clear(self) -> None:
        """Keep the calls: a run that has ended without all results can be resumed."""

    async def list_by_run(self, run_id: str) -> list[ToolCallRecord]:
        """Return the calls in the order in which they began."""
        await self._load()
        return await super().list_by_run(run_id)

    async def _load(self) -> None:
        async with self._loading:
            if self._is_loaded:
                return
            stored = await self._saver.aget_tuple(self._checkpoint)
            if stored is None:
                empty = empty_checkpoint()
                empty["id"] = str(self._run)
                await self._saver.aput(
                    self._place, empty, {"source": "update", "step": -1, "parents": {}}, {}
                )
            else:
                self._calls = _read(writes_of(stored))
            self._is_loaded = True

    async def _write(self, channel: str, name: str, value: list[Any]) -> None:
        # Savers ignore a second write of a task: the first result stays.
        await self._saver.aput_writes(
            self._checkpoint, [(channel, value)], str(uuid5(self._run, channel + name))
        )


def _read(writes: Iterable[Write]) -> dict[str, ToolCallRecord]:
    """Return the calls in the order in which they began; savers return writes in any order."""
    found = list(writes)
    calls: dict[str, ToolCallRecord] = {}
    for _, *call, begun_at in sorted(value for _, channel, value in found if channel == _INTENT):
        run_id, key, tool_name, arguments = call
        known = calls.get(key)
        new = ToolCallRecord(run_id, key, tool_name, arguments, None, begun_at)
        calls[key] = new if known is None else replace(known, attempts=known.attempts + 1)
    for key, started_at in (value for _, channel, value in found if channel == _START):
        calls[key] = replace(calls[key], started_at=started_at)
    for key, result, ended_at in (value for _, channel, value in found if channel == _RESULT):
        calls[key] = replace(calls[key], result=result, ended_at=ended_at)
    return calls
