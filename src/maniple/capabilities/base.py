"""The seam between what the team can use (search, sandbox, browser, …) and its workers."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from langchain_core.tools import BaseTool

from maniple.agents.offers import Offer, merge_offers
from maniple.config import Settings
from maniple.errors import Unavailable
from maniple.types import Worker

if TYPE_CHECKING:
    from maniple.browser import Browser
    from maniple.mcp import McpServers
    from maniple.tools.files import NamedFiles

T = TypeVar("T")


@dataclass(slots=True)
class CapabilityContext:
    """What a capability is opened with: the settings, and the offers of earlier capabilities."""

    settings: Settings
    stack: AsyncExitStack
    """Closes what a capability has opened when the team is closed."""
    offers: list[Offer] = field(default_factory=list[Offer])
    unavailable: dict[type[Any], Unavailable] = field(default_factory=dict[type[Any], Unavailable])
    """Why a service is absent, by its type."""

    @property
    def services(self) -> Mapping[type[Any], Any]:
        """The services of earlier capabilities by their type; for equal types, the later one counts."""
        return {kind: service for offer in self.offers for kind, service in offer.services.items()}

    def service(self, kind: type[T]) -> T | None:
        """Return the service of this type; None when it is absent."""
        return self.services.get(kind)

    def require(self, kind: type[T]) -> T:
        """Return the service of this type; raises `Unavailable` with why it is absent."""
        found = self.service(kind)
        if found is not None:
            return found
        default = Unavailable(f"{kind.__name__} is not there.", "open the capability that provides it.")
        raise self.unavailable.get(kind, default)

    def tools_of(self, worker: Worker) -> list[BaseTool]:
        """Return the tools that a worker has from earlier capabilities."""
        return [tool for offer in self.offers for tool in offer.tools_of(worker)]


class Capability(ABC):
    """One thing that the team can use.

    Packages add their own: a subclass under an entry point of the group `maniple.capabilities`, opened when
    `capabilities` in the settings names it.
    """

    name: ClassVar[str]
    roles: ClassVar[tuple[Worker, ...]] = ()
    """The workers that cannot do their work without it."""
    provides: ClassVar[tuple[type[Any], ...]] = ()
    """The types of the services in its offer."""
    tools: ClassVar[tuple[str, ...]] = ()
    """The names of its tools. `runs.approval` can name them, even on a machine where they are absent."""

    @abstractmethod
    async def open(self, context: CapabilityContext) -> Offer:
        """Open what is needed on `context` and return what the team gets.

        Raises `Unavailable` when it is absent on this machine: the team then works without it, and
        a notice gives the reason. Raises `ConfigError` for a mistake in the settings: the team does not open.
        """


async def open_all(capabilities: Iterable[Capability], context: CapabilityContext) -> Offer:
    """Open the capabilities in their order and return their merged offers."""
    reasons: dict[Worker, str] = {}
    notices: list[str] = []
    for capability in capabilities:
        try:
            offer = await capability.open(context)
        except Unavailable as error:
            notices.append(str(error))
            context.unavailable.update(dict.fromkeys(capability.provides, error))
            for worker in capability.roles:
                reasons.setdefault(worker, str(error))
        else:
            context.offers.append(offer)
            notices += offer.notices
    merged = merge_offers([*context.offers, Offer(unavailable=reasons)])
    return replace(merged, notices=tuple(dict.fromkeys(notices)))


# Services whose own type is a protocol, a function or an optional import.


@dataclass(frozen=True, slots=True)
class TeamBrowser:
    """The browser that the team works in. Each thread has tabs of its own."""

    browser: "Browser"


@dataclass(frozen=True, slots=True)
class UploadedFiles:
    """Names the files that the user put into the current thread's workspace."""

    names: "NamedFiles"


@dataclass(frozen=True, slots=True)
class McpConnections:
    """The configured MCP servers."""

    servers: "McpServers"
