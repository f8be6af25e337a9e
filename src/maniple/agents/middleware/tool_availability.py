"""Middleware for tools that are not always available, and for tools that end a step.

An agent is built once with its static tools. Dynamic tools, such as those of MCP servers, are requested from
a
`ToolSource` at each model call.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from itertools import takewhile
from typing import Any, Protocol

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import BaseTool

from maniple.agents.middleware.base import ModelHandler, ToolAnswer, ToolHandler
from maniple.agents.middleware.call_records import AUTHOR_KEY
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.text import without_thoughts


class ToolSource(Protocol):
    """A source of tools that change while the program runs."""

    def list_tools(self) -> Sequence[BaseTool]:
        """Return the tools that can be called now."""
        ...

    def find(self, name: str) -> BaseTool | None:
        """Return a current or former tool; calling a former tool reports that it is gone."""
        ...


class DynamicTools(AgentMiddleware[Any, Any]):
    """Adds the tools of `source` to each request; outermost, so that all other middleware sees them."""

    def __init__(self, source: ToolSource) -> None:
        super().__init__()
        self._source = source

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        """Send the request with the tools that are available now."""
        return await handler(request.override(tools=[*request.tools, *self._source.list_tools()]))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        """Run the call of a tool that the agent was not built with."""
        if request.tool is None and (tool := self._source.find(request.tool_call["name"])):
            request = request.override(tool=tool)
        return await handler(request)


class HiddenTools(AgentMiddleware[Any, Any]):
    """Hides the tools in `names` while `has_files()` returns False."""

    def __init__(self, names: Collection[str], has_files: Callable[[], Awaitable[bool]]) -> None:
        super().__init__()
        self._names = frozenset(names)
        self._has_files = has_files

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        """Send the request without the hidden tools."""
        if await self._has_files():
            return await handler(request)
        tools = [tool for tool in request.tools if isinstance(tool, dict) or tool.name not in self._names]
        return await handler(request.override(tools=tools))


_WITHOUT_TEXT = ("", "STEP FAILED:")
"""Results of terminal tools without text; the agent's last text is the answer then."""


class TerminalTools(AgentMiddleware[Any, Any]):
    """Returns the result of a terminal tool as the agent's answer, unless the call failed.

    LangChain's `return_direct` does not end a step if the answer has another call, and does end it after
    invalid
    arguments.
    """

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        terminal = {
            tool.name: tool
            for tool in request.tools
            if not isinstance(tool, dict) and (tool.metadata or {}).get("is_terminal")
        }
        for result in _latest_results(request.messages) if terminal else ():
            tool = terminal.get(result.name or "")
            if tool is not None and result.status != "error":
                is_trusted = AUTHOR_KEY in result.additional_kwargs or AUTHOR_KEY in (tool.metadata or {})
                text = result.text
                if is_trusted and text in _WITHOUT_TEXT:
                    text = f"{text} {_last_text(request.messages)}".strip()
                answer = AIMessage(text if is_trusted else fence_untrusted(text))
                return ModelResponse(result=[answer])
        return await handler(request)


def _last_text(messages: Sequence[AnyMessage]) -> str:
    """Return the agent's last text, in the answer with the call or an earlier one; "" if there is none."""
    texts = (without_thoughts(one.text) for one in reversed(messages) if isinstance(one, AIMessage))
    return next((text for text in texts if text), "")


def _latest_results(messages: Sequence[AnyMessage]) -> Iterator[ToolMessage]:
    """Yield the results of the last answer's calls, last one first."""
    results = takewhile(lambda message: not isinstance(message, AIMessage), reversed(messages))
    return (one for one in results if isinstance(one, ToolMessage))
