"""What capabilities provide to workers: tools, middleware, services and notices."""

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
    from maniple.agents.middleware.item_pictures import ItemPictureReader
    from maniple.agents.middleware.tool_availability import DynamicTools

S = TypeVar("S")
Middleware = AgentMiddleware[Any, Any]


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """The worker that middleware and tools are built for."""

    name: Worker
    model: BaseChatModel
    tools: Sequence[BaseTool]
    """The static tools of the worker."""
    settings: TeamSettings
    pictures: ItemPictureReader | None = None
    """Reads the pictures of a thread, and has them described by the team's models."""

    def has_tool(self, name: str) -> bool:
        """Return whether the worker has a tool of this name."""
        return any(tool.name == name for tool in self.tools)


WorkerMiddleware = Callable[[WorkerContext], Sequence[Middleware]]
"""Returns the middleware for a worker; empty if the worker needs none."""
BindTool = Callable[[BaseTool, WorkerContext], BaseTool]
"""Returns the tool bound to one worker, for example to that worker's model."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What one capability, or all of them together, provide to the team. Every field may be empty."""

    tools_by_role: Mapping[Worker, Sequence[BaseTool]] = field(
        default_factory=dict[Worker, Sequence[BaseTool]]
    )
    """The main tools of a built-in worker. The prompt of a coder without tools states that no code runs."""
    unavailable: Mapping[Worker, str] = field(default_factory=dict[Worker, str])
    """Why a worker's main tools are unavailable, and what to do about it."""
    extra_tools: Mapping[Worker, Sequence[BaseTool]] = field(default_factory=dict[Worker, Sequence[BaseTool]])
    """Additional tools. Workers of a small model (profile: compact) do not get them."""
    dynamic_tools: Mapping[Worker, DynamicTools] = field(default_factory=dict[Worker, "DynamicTools"])
    """Tools that change while the program runs, such as those of MCP servers."""
    middleware: Sequence[WorkerMiddleware] = ()
    """Middleware around the worker's tool calls and model calls, from the outside in."""
    tool_filters: Sequence[WorkerMiddleware] = ()
    """Outermost middleware that hides tools while they are useless."""
    bind_tools: Mapping[str, BindTool] = field(default_factory=dict[str, BindTool])
    """By tool name: binds the tool to one worker."""
    direct_workers: Collection[Worker] = ()
    """Workers whose step is one call of their only tool, without a model call."""
    instructions: Mapping[Worker, str] = field(default_factory=dict[Worker, str])
    """Text that is appended to a worker's system prompt."""
    abilities: Mapping[Worker, str] = field(default_factory=dict[Worker, str])
    """What a worker can or cannot do here beside its role, in a sentence for the planner."""
    services: Mapping[type[Any], Any] = field(default_factory=dict[type[Any], Any])
    """Objects for later capabilities and for the application, by type."""
    notices: tuple[str, ...] = ()
    """One sentence for the operator about each thing that is unavailable or unsafe."""

    def tools_of(self, worker: Worker) -> list[BaseTool]:
        """Return the main tools of a worker."""
        return list(self.tools_by_role.get(worker, ()))

    @property
    def tool_names(self) -> set[str]:
        """The names of all tools that do not change while the program runs."""
        offered = [*self.tools_by_role.values(), *self.extra_tools.values()]
        return {tool.name for tools in offered for tool in tools}

    def tool(self, worker: Worker, name: str) -> BaseTool | None:
        """Return one of a worker's main tools by name."""
        return next((tool for tool in self.tools_of(worker) if tool.name == name), None)

    def service(self, kind: type[S]) -> S | None:
        """Return the service of this type; None when no capability provides it."""
        return self.services.get(kind)


def merge_offers(offers: Iterable[Offer]) -> Offer:
    """Return all `offers` as one. Sequences are joined; for equal keys, the later entry counts."""
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
            abilities=join_abilities(merged.abilities, offer.abilities),
            services={**merged.services, **offer.services},
            notices=(*merged.notices, *offer.notices),
        )
    return merged


def join_abilities(*abilities: Mapping[Worker, str]) -> dict[Worker, str]:
    """Return the descriptions of each worker, joined with spaces in the order of the arguments."""
    workers = dict.fromkeys(worker for one in abilities for worker in one)
    return {worker: " ".join(one[worker] for one in abilities if one.get(worker)) for worker in workers}


def _joined(
    first: Mapping[Worker, Sequence[BaseTool]], second: Mapping[Worker, Sequence[BaseTool]]
) -> dict[Worker, Sequence[BaseTool]]:
    workers = dict.fromkeys((*first, *second))
    return {worker: [*first.get(worker, ()), *second.get(worker, ())] for worker in workers}
