"""Middleware: tools for files are offered from when there is a file.

Each tool's schema is a part of every prompt, and in an empty workspace there is nothing to read or to search.
"""

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse

from maniple.agents.wrapping import ModelHandler


class FileTools(AgentMiddleware[Any, Any]):
    """Keeps the tools of these `names` back while the current thread's workspace is empty."""

    def __init__(self, names: Collection[str], has_files: Callable[[], Awaitable[bool]]) -> None:
        super().__init__()
        self._names = frozenset(names)
        self._has_files = has_files

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        """Send the request with the tools that are of use now."""
        if await self._has_files():
            return await handler(request)
        tools = [tool for tool in request.tools if isinstance(tool, dict) or tool.name not in self._names]
        return await handler(request.override(tools=tools))
