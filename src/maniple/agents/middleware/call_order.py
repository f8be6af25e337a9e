"""The calls that a model makes in one answer keep their order, but those that only read beside each other.

LangGraph begins all of them at once, and whichever comes first through what it waits for would be the first.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp, GraphInterrupt

from maniple.agents.middleware.base import ModelHandler, ToolAnswer, ToolHandler
from maniple.agents.task import set_in_context

_GATHERING_SECONDS = 0.2
"""How long a call waits for those before it in an answer that is gone through again."""


def is_ordered(tool: BaseTool | None) -> bool:
    """Say whether a tool's calls wait for those before them, by its `metadata`.

    `mode` is "ordered" or "parallel". Without it, what is `idempotent` runs in parallel.
    """
    said = (tool.metadata or {}) if tool else {"mode": "parallel"}
    return said["mode"] == "ordered" if "mode" in said else not said.get("idempotent")


@dataclass(slots=True)
class _Call:
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    keeps_order: bool = False
    is_paused: bool = False


class _Order:
    """The calls of one step's latest answer, by their ids."""

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._expects_all = False

    def begin(self, ids: Sequence[str]) -> None:
        """Expect all calls of a new answer."""
        self._calls = {one: _Call() for one in ids}
        self._expects_all = True

    def call(self, one: str) -> _Call:
        return self._calls.setdefault(one, _Call())

    async def turn(self, before: Sequence[str], *, is_approved: bool) -> None:
        """Wait until the calls `before` have ended. Behind one that ends the run, that is never.

        Behind one that waits for people, this one does, too, unless people want it first.
        """
        if not self._expects_all and any(one not in self._calls for one in before):
            # After a pause those that had ended do not come again. Nobody says which; the others come now.
            await asyncio.sleep(_GATHERING_SECONDS)
        for call in [self._calls[one] for one in before if one in self._calls]:
            await call.arrived.wait()
            if call.keeps_order:
                await call.ended.wait()
                if call.is_paused and not is_approved:
                    raise GraphInterrupt(())


_ORDER: ContextVar[_Order | None] = ContextVar("maniple_call_order", default=None)


def keep_call_order() -> AbstractContextManager[None]:
    """Keep the calls that are made within in order, answer by answer."""
    return set_in_context(_ORDER, _Order())


async def wait_for_turn(request: ToolCallRequest, is_approved: bool) -> None:
    """Wait for the turn of a call; raises `GraphInterrupt` when that does not come before people answer."""
    order = _ORDER.get()
    if order is not None and is_ordered(request.tool):
        await order.turn(preceding_calls(request), is_approved=is_approved)


def preceding_calls(request: ToolCallRequest) -> list[str]:
    """Return the ids of the calls that come before this one in the answer that makes it."""
    for message in reversed(request.state["messages"]):
        if isinstance(message, AIMessage):
            ids = [str(call["id"]) for call in message.tool_calls]
            mine = str(request.tool_call["id"])
            return ids[: ids.index(mine)] if mine in ids else []
    return []


class CallOrder(AgentMiddleware[Any, Any]):
    """Notes which calls there are, when each is over, and which one waits for people."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        response = await handler(request)
        if (order := _ORDER.get()) is not None:
            calls = [call for one in response.result if isinstance(one, AIMessage) for call in one.tool_calls]
            order.begin([str(call["id"]) for call in calls])
        return response

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        if (order := _ORDER.get()) is None:
            return await handler(request)
        call = order.call(str(request.tool_call["id"]))
        call.keeps_order = is_ordered(request.tool)
        call.arrived.set()
        try:
            answer = await handler(request)
        except GraphBubbleUp:
            call.is_paused = True
            call.ended.set()
            raise
        call.ended.set()
        return answer


MAX_CONCURRENT_CALLS = 5
"""How many calls of one step are run together; the others wait."""
_PLACES: ContextVar[asyncio.Semaphore | None] = ContextVar("maniple_tool_places", default=None)


def limit_concurrency() -> AbstractContextManager[None]:
    """Give what is done within its own places for `TOOLS_AT_ONCE` calls."""
    return set_in_context(_PLACES, asyncio.Semaphore(MAX_CONCURRENT_CALLS))


class ConcurrencyLimit(AgentMiddleware[Any, Any]):
    """Let a call wait for one of the `tool_places`; where nobody gave any, it need not wait.

    Those that keep their order run one by one anyway.

    LangGraph's own `max_concurrency` also holds back the writing of checkpoints, and a cancel leaves
    behind the coroutines that wait for it, which Python then warns of.
    """

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        if is_ordered(request.tool):
            return await handler(request)
        async with _PLACES.get() or nullcontext():
            return await handler(request)
