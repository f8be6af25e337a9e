"""Middleware: a tool that gives no result in its time is stopped, and the model is told."""

import asyncio
import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.tools import StructuredTool

from maniple.agents.wrapping import ToolAnswer, ToolHandler
from maniple.errors import ToolFailure
from maniple.tools.guests import in_thread

TIMEOUT_KEY = "timeout_seconds"
"""What a tool's `metadata` may say; `None` is for one that bounds itself, as the sandbox does."""


class ToolTimeouts(AgentMiddleware[Any, Any]):
    """Cancels a call after the seconds that its tool's `metadata` says, else after `default_seconds`.

    The call's result is then a `ToolFailure`. A tool that blocks in a thread is left there: Python cannot end
    it.
    """

    def __init__(self, default_seconds: float) -> None:
        super().__init__()
        self._default_seconds = default_seconds

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        tool = request.tool
        seconds = (tool.metadata or {}).get(TIMEOUT_KEY, self._default_seconds) if tool else None
        if seconds is None:
            return await handler(request)
        if isinstance(tool, StructuredTool):
            return await handler(request.override(tool=_bounded(tool, seconds)))
        async with _at_most(seconds):
            return await handler(request)


def _bounded(tool: StructuredTool, seconds: float) -> StructuredTool:
    """Return the tool with the bound inside: what fails in there, LangChain tells as the end of the call."""
    run, blocking = tool.coroutine, tool.func
    if run is None and blocking is not None:
        run = in_thread(blocking)
    if run is None:
        return tool
    unbounded = run

    @functools.wraps(unbounded)
    async def bounded(*args: Any, **kwargs: Any) -> Any:
        async with _at_most(seconds):
            return await unbounded(*args, **kwargs)

    return tool.model_copy(update={"coroutine": bounded})


@asynccontextmanager
async def _at_most(seconds: float) -> AsyncIterator[None]:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise  # the tool's own
        words = f"It gave no result within {seconds:g} seconds and was stopped."
        raise ToolFailure(f"{words} What it did until then is unknown.") from None
