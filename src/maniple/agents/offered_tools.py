"""Middleware: tools that come and go while the program runs, such as those of MCP servers.

An agent is built once, with the tools that it always has; what there is beside them is asked at each call.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.tools import BaseTool

from maniple.agents.wrapping import ModelHandler, ToolAnswer, ToolHandler


class Offer(Protocol):
    """Where the tools come from."""

    def offered(self) -> Sequence[BaseTool]:
        """The tools that can be called now."""
        ...

    def find(self, name: str) -> BaseTool | None:
        """A tool that there is or was; calling one that is gone says so."""
        ...


class OfferedTools(AgentMiddleware[Any, Any]):
    """Adds what is on `offer` to each request; the outermost, so that all others see those tools, too."""

    def __init__(self, offer: Offer) -> None:
        super().__init__()
        self._offer = offer

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        """Send the request with the tools that there are now."""
        return await handler(request.override(tools=[*request.tools, *self._offer.offered()]))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        """Run the call of a tool that the agent was not built with."""
        if request.tool is None and (tool := self._offer.find(request.tool_call["name"])):
            request = request.override(tool=tool)
        return await handler(request)
