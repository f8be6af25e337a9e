"""The order and the concurrency of the tool calls of one answer.

LangGraph starts all calls of an answer concurrently. Calls that change something run in the order of the
answer; calls that only read run in parallel.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp, GraphInterrupt

from maniple.agents.middleware.base import ModelHandler, ToolAnswer, ToolHandler
from maniple.agents.step_state import enter_step_state, set_in_context, step_state
from maniple.tools.evidence import EARLIER_CALLS

_GATHERING_SECONDS = 0.2
"""How long a call waits for earlier calls when an answer is processed again."""


def is_ordered(tool: BaseTool | None) -> bool:
    """Return whether a tool's calls wait for the calls before them, by its `metadata`.

    `mode` is "ordered" or "parallel". Without it, `idempotent` tools run in parallel.
    """
    metadata = (tool.metadata or {}) if tool else {"mode": "parallel"}
    return metadata["mode"] == "ordered" if "mode" in metadata else not metadata.get("idempotent")


@dataclass(slots=True)
class _Call:
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    is_ordered: bool = False
    is_paused: bool = False


class _CallSequence:
    """The calls of the latest answer of a step, by their ids."""

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._expects_all = False

    def begin(self, ids: Sequence[str]) -> None:
        """Register all calls of a new answer."""
        self._calls = {one: _Call() for one in ids}
        self._expects_all = True

    def call(self, one: str) -> _Call:
        return self._calls.setdefault(one, _Call())

    async def wait_for_turn_of(self, before: Sequence[str], *, begins: bool) -> None:
        """Wait until the calls `before` have ended; after a call that ends the run, wait forever.

        After a call that waits for the user, raise `GraphInterrupt` if the call `begins`, also if it is
        approved: effects keep their order. Otherwise it may still ask.
        """
        if not self._expects_all and any(one not in self._calls for one in before):
            # After a pause, LangGraph runs only the calls that had not ended. Which ones is unknown, so wait
            # until they have started.
            await asyncio.sleep(_GATHERING_SECONDS)
        for call in [self._calls[one] for one in before if one in self._calls]:
            await call.arrived.wait()
            if call.is_ordered:
                await call.ended.wait()
                if call.is_paused and begins:
                    raise GraphInterrupt(())

    async def wait_for_concurrent(self, before: Sequence[str]) -> None:
        """Wait until those of the calls `before` that run at the same time as this one have ended."""
        for call in [self._calls[one] for one in before if one in self._calls]:
            await call.arrived.wait()
            if not call.is_ordered:
                await call.ended.wait()


def preserve_call_order() -> AbstractContextManager[None]:
    """Return a context in which the calls of each answer keep their order."""
    return enter_step_state(_CallSequence())


async def wait_for_turn(request: ToolCallRequest, *, begins: bool = True) -> None:
    """Wait until a call may begin; raises `GraphInterrupt` if the user must answer an earlier call first.

    One that does not begin yet only waits until its approval can be asked for.
    """
    order = step_state(_CallSequence)
    if order is not None and is_ordered(request.tool):
        await order.wait_for_turn_of(preceding_calls(request), begins=begins)


def preceding_calls(request: ToolCallRequest) -> list[str]:
    """Return the ids of the calls before this one in its answer."""
    for message in reversed(request.state["messages"]):
        if isinstance(message, AIMessage):
            ids = [str(call["id"]) for call in message.tool_calls]
            mine = str(request.tool_call["id"])
            return ids[: ids.index(mine)] if mine in ids else []
    return []


class CallOrder(AgentMiddleware[Any, Any]):
    """Registers the calls of each answer, and when each ends or waits for the user."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        response = await handler(request)
        if (order := step_state(_CallSequence)) is not None:
            calls = [call for one in response.result if isinstance(one, AIMessage) for call in one.tool_calls]
            order.begin([str(call["id"]) for call in calls])
        return response

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        if (order := step_state(_CallSequence)) is None:
            return await handler(request)
        call = order.call(str(request.tool_call["id"]))
        call.is_ordered = is_ordered(request.tool)
        call.arrived.set()
        try:
            with set_in_context(EARLIER_CALLS, partial(order.wait_for_concurrent, preceding_calls(request))):
                answer = await handler(request)
        except GraphBubbleUp:
            call.is_paused = True
            call.ended.set()
            raise
        call.ended.set()
        return answer


MAX_CONCURRENT_CALLS = 5
"""The limit of concurrent calls in one step; further calls wait."""


class _CallSlots(asyncio.Semaphore):
    """The free places for concurrent calls of a step."""


def limit_concurrency() -> AbstractContextManager[None]:
    """Return a context that runs at most `MAX_CONCURRENT_CALLS` calls concurrently."""
    return enter_step_state(_CallSlots(MAX_CONCURRENT_CALLS))


class ConcurrencyLimit(AgentMiddleware[Any, Any]):
    """Limits the concurrent calls of a step (`limit_concurrency`); outside of a step there is no limit.

    Ordered calls run one by one anyway.

    LangGraph's own `max_concurrency` also delays the writing of checkpoints. After a cancellation it leaves
    unawaited coroutines, and Python warns about them.
    """

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        if is_ordered(request.tool):
            return await handler(request)
        async with step_state(_CallSlots) or nullcontext():
            return await handler(request)
