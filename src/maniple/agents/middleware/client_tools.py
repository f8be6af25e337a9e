"""Offers an agent the functions of the run's client beside its own tools."""

from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest

from maniple.agents.middleware.base import ModelHandler, ToolAnswer, ToolHandler
from maniple.agents.middleware.call_order import preceding_calls
from maniple.tools.client_tools import make_client_function, offered_client_tools


class ClientTools(AgentMiddleware[Any, Any]):
    """Adds them to each request; outermost, so that all other middleware sees them."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        """Send the request with the functions behind the agent's own tools."""
        if not (offered := offered_client_tools()):
            return await handler(request)
        functions = [make_client_function(one) for one in offered]
        return await handler(request.override(tools=[*request.tools, *functions]))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        """Run a call of a function."""
        name = request.tool_call["name"]
        found = next((one for one in offered_client_tools() if one.name == name), None)
        if request.tool is None and found is not None:
            request = request.override(tool=make_client_function(found, len(preceding_calls(request))))
        return await handler(request)
