"""Middleware: no secret of the settings reaches a model, or the record, by what a tool returns."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from maniple.redaction import Redactor


class SecretResults(AgentMiddleware[Any, Any]):
    """Masks secrets in results, such as a key that a server repeats in its error."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        answer = await handler(request)
        if not isinstance(answer, ToolMessage):
            return answer
        masked = self._redactor.value(answer.content)
        return answer if masked is answer.content else answer.model_copy(update={"content": masked})
