"""What capabilities offer to the workers: tools, middleware, services, notices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from maniple.config import TeamSettings
from maniple.types import Worker

if TYPE_CHECKING:
    from maniple.agents.middleware.tool_availability import DynamicTools

S = TypeVar("S")
Middleware = AgentMiddleware[Any, Any]


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """The worker that middleware and tools are made for."""

    name: Worker
    model: BaseChatModel
    tools: Sequence[BaseTool]
    """All tools that the worker always has."""
    settings: TeamSettings

    def has_tool(self, name: str) -> bool:
        """Return whether the worker has a tool of this name."""
        return any(tool.name == name for tool in self.tools)


WorkerMiddleware = Callable[[WorkerContext], Sequence[Middleware]]
"""Returns the middleware that a worker gets; nothing for a worker that it does not concern."""
BindTool = Callable[[BaseTool, WorkerContext], BaseTool]
"""Returns a tool as one worker uses it, for example with that worker's own model."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What one capability, or all of them together, give to the team. Every part may be empty."""

    tools_by_role: Mapping[Worker, Sequence[BaseTool]] = field(default_factory=dict)
    """What a built-in worker does its own work with. A coder without any is told that no code runs."""
    unavailable: Mapping[Worker, str] = field(default_factory=dict)
    """Why a worker lacks what it works with, and what to do about it."""
    extra_tools: Mapping[Worker, Sequence[BaseTool]] = field(default_factory=dict)
    """Tools beside those. Workers of a small model (profile: compact) do without them."""
    dynamic_tools: Mapping[Worker, DynamicTools] = field(default_factory=dict)
    """Tools that come and go while the program runs, such as those of MCP servers."""
    middleware: Sequence[WorkerMiddleware] = ()
    """Middleware around the worker's tool calls and model calls, from the outside in."""
    tool_filters: Sequence[WorkerMiddleware] = ()
    """Outermost middleware that holds tools back while they are of no use."""
    bind_tools: Mapping[str, BindTool] = field(default_factory=dict)
    """By tool name: makes the tool for one worker."""
    direct_workers: Collection[Worker] = ()
    """Workers whose step is one call of their only tool, without a model around it."""
    instructions: Mapping[Worker, str] = field(default_factory=dict)
    """Text behind a worker's system prompt."""
    services: Mapping[type[Any], Any] = field(default_factory=dict)
    """Objects for later capabilities and for the application, by their type."""
    notices: tuple[str, ...] = ()
    """One sentence for people about each thing that is absent or unsafe."""

    def tools_of(self, worker: Worker) -> list[BaseTool]:
        """Return the tools that a worker does its own work with."""
        return list(self.tools_by_role.get(worker, ()))

    def tool(self, worker: Worker, name: str) -> BaseTool | None:
        """Return one of a worker's own tools by name."""
        return next((tool for tool in self.tools_of(worker) if tool.name == name), None)

    def service(self, kind: type[S]) -> S | None:
        """Return the service of this type; None when no capability provides it."""
        return self.services.get(kind)


def merge_offers(offers: Iterable[Offer]) -> Offer:
    """Return all `offers` as one. Sequences are joined; of two entries of one key the later counts."""
    merged = Offer()
    for offer in offers:
        merged = Offer(
            tools_by_role=_joined(merged.tools_by_role, offer.tools_by_role),
            unavailable={**merged.unavailable, **offer.unavailable},
            extra_tools=_joined(merged.extra_tools, offer.extra_tools),
            dynamic_tools={**merged.dynamic_tools, **offer.dynamic_tools},
            middleware=[*merged.middleware, *offer.middleware],
            tool_filters=[*merged.tool_filters, *offer.tool_filters],
            bind_tools={**merged.bind_tools, **offer.bind_tools},
            direct_workers={*merged.direct_workers, *offer.direct_workers},
            instructions={**merged.instructions, **offer.instructions},
            services={**merged.services, **offer.services},
            notices=(*merged.notices, *offer.notices),
        )
    return merged


def _joined(
    first: Mapping[Worker, Sequence[BaseTool]], second: Mapping[Worker, Sequence[BaseTool]]
) -> dict[Worker, Sequence[BaseTool]]:
    workers = dict.fromkeys((*first, *second))
    return {worker: [*first.get(worker, ()), *second.get(worker, ())] for worker in workers}
