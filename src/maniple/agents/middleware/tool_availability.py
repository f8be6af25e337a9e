"""Middleware: tools that come and go while the program runs, such as those of MCP servers.

An agent is built once, with the tools that it always has; what there is beside them is asked at each call.
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
    """Where the tools come from."""

    def offered(self) -> Sequence[BaseTool]:
        """The tools that can be called now."""
        ...

    def find(self, name: str) -> BaseTool | None:
        """A tool that there is or was; calling one that is gone says so."""
        ...


class DynamicTools(AgentMiddleware[Any, Any]):
    """Adds what is on `offer` to each request; the outermost, so that all others see those tools, too."""

    def __init__(self, offer: ToolSource) -> None:
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


class HiddenTools(AgentMiddleware[Any, Any]):
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


_BARE = ("", "STEP FAILED:")
"""An end whose words the agent has said before."""


class TerminalTools(AgentMiddleware[Any, Any]):
    """Takes the result of a terminal tool for the agent's answer, unless the call failed.

    LangChain's `return_direct` ends no step beside another call, and ends it when the arguments were wrong.
    """

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        terminal = {
            tool.name: tool
            for tool in request.tools
            if not isinstance(tool, dict) and (tool.metadata or {}).get("is_terminal")
        }
        for result in _latest(request.messages) if terminal else ():
            tool = terminal.get(result.name or "")
            if tool is not None and result.status != "error":
                ours = AUTHOR_KEY in result.additional_kwargs or AUTHOR_KEY in (tool.metadata or {})
                words = result.text
                if ours and words in _BARE:
                    words = f"{words} {_last_words(request.messages)}".strip()
                answer = AIMessage(words if ours else fence_untrusted(words))
                return ModelResponse(result=[answer])
        return await handler(request)


def _last_words(messages: Sequence[AnyMessage]) -> str:
    """Return what the agent said last, beside a call or before it; "" if it said nothing."""
    said = (without_thoughts(one.text) for one in reversed(messages) if isinstance(one, AIMessage))
    return next((words for words in said if words), "")


def _latest(messages: Sequence[AnyMessage]) -> Iterator[ToolMessage]:
    """Yield the results of the last answer's calls, the last one first."""
    results = takewhile(lambda message: not isinstance(message, AIMessage), reversed(messages))
    return (one for one in results if isinstance(one, ToolMessage))
