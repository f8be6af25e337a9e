"""Handler types of middleware, and `MiddlewareChain`, which joins several middlewares into one."""

import types
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from maniple.types import is_dict

ToolAnswer = ToolMessage | Command[Any]
ModelHandler = Callable[[ModelRequest], Awaitable[ModelResponse]]
ToolHandler = Callable[[ToolCallRequest], Awaitable[ToolAnswer]]


class ResultMiddleware(AgentMiddleware[Any, Any]):
    """Changes the results of tools before outer middleware sees them."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        answer = await handler(request)
        return await self.transform(answer, request) if isinstance(answer, ToolMessage) else answer

    @abstractmethod
    async def transform(self, result: ToolMessage, request: ToolCallRequest) -> ToolMessage:
        """Return the replacement of a call's result, or the result itself."""


def artifact_fields(result: ToolMessage) -> Mapping[str, Any]:
    """Return the artifact of a result, which tools choose freely; empty if it is not a `dict`."""
    artifact: Any = result.artifact
    return artifact if is_dict(artifact) else {}


_NODES = ("before_agent", "before_model", "after_model", "after_agent")


class MiddlewareChain(AgentMiddleware[Any, Any]):
    """Several middlewares that wrap calls, as one middleware; the first is the outermost.

    `create_agent` (LangChain 1.4) traces every wrapper separately, with two thread switches and a task per
    call, even if tracing is off. With ten middlewares that took a quarter of a run's time.
    """

    def __init__(self, middleware: Sequence[AgentMiddleware[Any, Any]]) -> None:
        super().__init__()
        self._middleware = tuple(middleware)
        self.tools = [tool for one in middleware for tool in getattr(one, "tools", ())]
        self.state_schema = _merge_schemas([one.state_schema for one in middleware])
        self._around_model = [one for one in middleware if _overrides(one, "awrap_model_call")]
        self._around_tool = [one for one in middleware if _overrides(one, "awrap_tool_call")]

    @property
    def name(self) -> str:
        """The names of all middlewares, for traces."""
        return "+".join(one.name for one in self._middleware)

    async def awrap_model_call(
        self, request: ModelRequest, handler: ModelHandler
    ) -> ModelResponse | ExtendedModelResponse:
        updates: dict[AgentMiddleware[Any, Any], Command[Any]] = {}
        for one in reversed(self._around_model):
            handler = partial(_call_model_middleware, one, handler, updates)
        response = await handler(request)
        if not updates:
            return response
        return ExtendedModelResponse(model_response=response, command=_merge_commands(list(updates.values())))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        for one in reversed(self._around_tool):
            handler = partial(one.awrap_tool_call, handler=handler)
        return await handler(request)


def chain_middleware(middleware: Sequence[AgentMiddleware[Any, Any]]) -> list[AgentMiddleware[Any, Any]]:
    """Return `middleware` with neighbours that only wrap calls joined into one `MiddlewareChain`."""
    rows: list[AgentMiddleware[Any, Any]] = []
    for wraps_only, row in groupby(middleware, _wraps_only):
        found = list(row)
        rows.extend([MiddlewareChain(found)] if wraps_only and len(found) > 1 else found)
    return rows


async def _call_model_middleware(
    one: AgentMiddleware[Any, Any],
    handler: ModelHandler,
    updates: dict[AgentMiddleware[Any, Any], Command[Any]],
    request: ModelRequest,
) -> ModelResponse:
    result = await one.awrap_model_call(request, handler)
    if isinstance(result, ExtendedModelResponse):
        if result.command is not None:
            # An outer middleware may repeat the call; the last answer counts.
            updates[one] = result.command
        return result.model_response
    return ModelResponse(result=[result]) if isinstance(result, AIMessage) else result


def _merge_commands(updates: Sequence[Command[Any]]) -> Command[Any]:
    if len(updates) == 1:
        return updates[0]
    merged: dict[str, Any] = {}
    for one in updates:
        given = one.update
        if one != Command(update=given) or not isinstance(given, dict) or merged.keys() & given.keys():
            raise TypeError("Only one middleware of a chain may update a key of the agent's state in a call.")
        merged |= given
    return Command(update=merged)


def _merge_schemas(schemas: Sequence[type]) -> type:
    """Return a state class with the keys of all `schemas`."""
    kinds = tuple(dict.fromkeys(schemas))
    return kinds[0] if len(kinds) == 1 else types.new_class("ChainedState", kinds)


def _wraps_only(one: AgentMiddleware[Any, Any]) -> bool:
    blocking = any(
        _overrides(one, f"wrap_{of}_call") > _overrides(one, f"awrap_{of}_call") for of in ("model", "tool")
    )
    return not blocking and not any(_overrides(one, node) or _overrides(one, f"a{node}") for node in _NODES)


def _overrides(one: AgentMiddleware[Any, Any], method: str) -> bool:
    return getattr(type(one), method) is not getattr(AgentMiddleware, method)


def reading_tools(request: ModelRequest) -> frozenset[str]:
    """Return the names of tools whose metadata declares that they only read."""
    tools = (tool for tool in request.tools if isinstance(tool, BaseTool))
    return frozenset(tool.name for tool in tools if (tool.metadata or {}).get("only_reads"))
