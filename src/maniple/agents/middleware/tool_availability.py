"""Middleware for tools that are not always available, take time to start, or end a step.

An agent is built once with its static tools. Dynamic tools, such as those of MCP servers, are requested from
a `ToolSource`. Endpoints cache the beginning of a prompt, and tools come first in it: which tools there are
is decided at the first model call of a step; later ones may only follow at the end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import takewhile
from typing import Any, Protocol

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import BaseTool

from maniple.agents.middleware.base import ModelHandler, ToolAnswer, ToolHandler
from maniple.agents.middleware.call_records import AUTHOR_KEY
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.step_state import enter_step_state, step_state
from maniple.llms.streams import receive_calls
from maniple.text import without_thoughts
from maniple.tools.items import STORED_RESULT
from maniple.tools.registry import PreparedTool
from maniple.types import STEP_FAILED, STEP_NEEDS, STEP_PARTIAL


class _Decisions(dict[int, Any]):
    """What the middleware decided in a step, by its identity."""


def keep_tools() -> AbstractContextManager[None]:
    """Return a context in which all model calls are one step, whose tools stay the same."""
    return enter_step_state(_Decisions())


class ToolSource(Protocol):
    """A source of tools that change while the program runs."""

    def list_tools(self) -> Sequence[BaseTool]:
        """Return the tools that can be called now."""
        ...

    def find(self, name: str) -> BaseTool | None:
        """Return a current or former tool; calling a former tool reports that it is gone."""
        ...


class DynamicTools(AgentMiddleware[Any, Any]):
    """Adds the tools of `source` to each request; outermost, so that all other middleware sees them.

    Within a step they do not change, but those that a server adds meanwhile follow at the end. A tool that is
    gone stays in the list until the step has ended; its calls fail with the reason.
    """

    def __init__(self, source: ToolSource) -> None:
        super().__init__()
        self._source = source

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        """Send the request with the step's tools."""
        decided = step_state(_Decisions)
        earlier: list[BaseTool] = decided.get(id(self), []) if decided is not None else []
        known = {tool.name for tool in earlier}
        tools = [*earlier, *(tool for tool in self._source.list_tools() if tool.name not in known)]
        if decided is not None:
            decided[id(self)] = tools
        return await handler(request.override(tools=[*request.tools, *tools]))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        """Run the call of a tool that the agent was not built with."""
        if request.tool is None and (tool := self._source.find(request.tool_call["name"])):
            request = request.override(tool=tool)
        return await handler(request)


class HiddenTools(AgentMiddleware[Any, Any]):
    """Hides the tools in `names` in a step at whose first request `has_files()` returns False.

    A result that is stored in a file, because it was too long for the model, makes them available.
    """

    def __init__(self, names: Collection[str], has_files: Callable[[], Awaitable[bool]]) -> None:
        super().__init__()
        self._names = frozenset(names)
        self._has_files = has_files

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        """Send the request without the hidden tools."""
        if await self._is_available(request):
            return await handler(request)
        tools = [tool for tool in request.tools if isinstance(tool, dict) or tool.name not in self._names]
        return await handler(request.override(tools=tools))

    async def _is_available(self, request: ModelRequest) -> bool:
        decided = step_state(_Decisions)
        if decided is None:
            return await self._has_files()
        if id(self) not in decided:
            decided[id(self)] = await self._has_files()
        decided[id(self)] = decided[id(self)] or _has_stored_result(request.messages)
        return decided[id(self)]


class SearchlessTools(AgentMiddleware[Any, Any]):
    """Replaces and hides tools in a step at whose first request the web search does not answer.

    `replacements` have the names of the tools whose place they take, and `hidden` are left out.
    """

    def __init__(
        self,
        replacements: Mapping[str, BaseTool],
        hidden: Collection[str],
        find_outage: Callable[[], Awaitable[str]],
    ) -> None:
        super().__init__()
        self._replacements = replacements
        self._hidden = frozenset(hidden)
        self._find_outage = find_outage

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        """Send the request with the tools that work now."""
        decided = step_state(_Decisions)
        is_out: bool | None = decided.get(id(self)) if decided is not None else None
        if is_out is None:
            is_out = bool(await self._find_outage())
        if decided is not None:
            decided[id(self)] = is_out
        if not is_out:
            return await handler(request)
        named = [(tool, None if isinstance(tool, dict) else tool.name) for tool in request.tools]
        tools = [self._replacements.get(name or "", tool) for tool, name in named if name not in self._hidden]
        return await handler(request.override(tools=tools))


def _has_stored_result(messages: Sequence[AnyMessage]) -> bool:
    return any(isinstance(one, ToolMessage) and STORED_RESULT in one.text for one in messages)


_OFFERED = 0
"""The key of the names of the offered tools in `_Decisions`; identities are never 0."""


class ToolNameRecorder(AgentMiddleware[Any, Any]):
    """Records the names of the tools of each request for `UnknownTools`.

    It follows the middleware that changes the tools of a request.
    """

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        if (decided := step_state(_Decisions)) is not None:
            decided[_OFFERED] = [tool.name for tool in request.tools if not isinstance(tool, dict)]
        return await handler(request)


class UnknownTools(AgentMiddleware[Any, Any]):
    """Answers the call of a tool that does not exist with the tools that are offered now.

    LangGraph's answer names the hidden ones, too.
    """

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        offered = (step_state(_Decisions) or _Decisions()).get(_OFFERED)
        if request.tool is not None or offered is None:
            return await handler(request)
        name, call_id = request.tool_call["name"], request.tool_call["id"]
        text = f"Error: {name} is not a valid tool, try one of [{', '.join(offered)}]."
        return ToolMessage(text, name=name, tool_call_id=call_id, status="error")


class ToolPreparation(AgentMiddleware[Any, Any]):
    """Prepares each `PreparedTool` as soon as the model begins to write a call of it."""

    def __init__(self) -> None:
        super().__init__()
        self._tasks: set[asyncio.Task[None]] = set()

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        prepared = {tool.name: tool.prepare for tool in request.tools if isinstance(tool, PreparedTool)}
        if not prepared:
            return await handler(request)

        def start(name: str) -> None:
            if (prepare := prepared.pop(name, None)) is not None:
                task = asyncio.ensure_future(prepare())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        with receive_calls(start):
            return await handler(request)


class TerminalTools(AgentMiddleware[Any, Any]):
    """Returns the result of a terminal tool as the agent's answer, unless the call failed.

    LangChain's `return_direct` does not end a step if the answer has another call, and does end it after
    invalid arguments.
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
                if is_trusted:
                    text = _with_text(text, _last_text(request.messages))
                answer = AIMessage(text if is_trusted else fence_untrusted(text))
                return ModelResponse(result=[answer])
        return await handler(request)


def _with_text(result: str, last: str) -> str:
    """Return the result of a terminal tool, with the agent's last text if it has none but labels."""
    head = STEP_FAILED if result.startswith(STEP_FAILED) else ""
    labels = result.removeprefix(head).strip()
    parts = labels.split("\n\n") if labels else []
    if not all(part.startswith((STEP_PARTIAL, STEP_NEEDS)) for part in parts):
        return result
    return "\n\n".join(filter(None, (f"{head} {last}".strip(), labels)))


def _last_text(messages: Sequence[AnyMessage]) -> str:
    """Return the agent's last text, in the answer with the call or an earlier one; "" if there is none."""
    texts = (without_thoughts(one.text) for one in reversed(messages) if isinstance(one, AIMessage))
    return next((text for text in texts if text), "")


def _latest_results(messages: Sequence[AnyMessage]) -> Iterator[ToolMessage]:
    """Yield the results of the last answer's calls, last one first."""
    results = takewhile(lambda message: not isinstance(message, AIMessage), reversed(messages))
    return (one for one in results if isinstance(one, ToolMessage))
