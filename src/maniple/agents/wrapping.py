"""What middleware wraps: the calls of a model, those of tools, and what tools return."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

ToolAnswer = ToolMessage | Command[Any]
ModelHandler = Callable[[ModelRequest], Awaitable[ModelResponse]]
ToolHandler = Callable[[ToolCallRequest], Awaitable[ToolAnswer]]


class ChangedResults(AgentMiddleware[Any, Any]):
    """Changes what tools return, before anybody further out sees it."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        answer = await handler(request)
        return await self.changed(answer, request) if isinstance(answer, ToolMessage) else answer

    @abstractmethod
    async def changed(self, result: ToolMessage, request: ToolCallRequest) -> ToolMessage:
        """Return what takes the place of a call's result, or the result."""
