"""How many of the calls that a model makes in one answer are run together."""

import asyncio
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest

from maniple.agents.call_order import keeps_order
from maniple.agents.step_values import held
from maniple.agents.wrapping import ToolAnswer, ToolHandler

TOOLS_AT_ONCE = 5
"""How many calls of one step are run together; the others wait."""
_PLACES: ContextVar[asyncio.Semaphore | None] = ContextVar("maniple_tool_places", default=None)


def tool_places() -> AbstractContextManager[None]:
    """Give what is done within its own places for `TOOLS_AT_ONCE` calls."""
    return held(_PLACES, asyncio.Semaphore(TOOLS_AT_ONCE))


class ToolsAtOnce(AgentMiddleware[Any, Any]):
    """Let a call wait for one of the `tool_places`; where nobody gave any, it need not wait.

    Those that keep their order run one by one anyway.

    LangGraph's own `max_concurrency` also holds back the writing of checkpoints, and a cancel leaves
    behind the coroutines that wait for it, which Python then warns of.
    """

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        if keeps_order(request.tool):
            return await handler(request)
        async with _PLACES.get() or nullcontext():
            return await handler(request)
