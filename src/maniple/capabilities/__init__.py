"""The capabilities of the team, each with the tools, middleware and services that it offers."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from maniple.agents.claim_judge import JudgeChoice
from maniple.agents.offers import Offer
from maniple.capabilities.base import Capability, CapabilityContext, open_all
from maniple.capabilities.browsing import BrowserCapability
from maniple.capabilities.extensions import (
    BuiltInToolsCapability,
    GeneralCapability,
    OwnToolsCapability,
    SkillsCapability,
    document_loaders,
    load_capabilities,
)
from maniple.capabilities.mcp import McpCapability
from maniple.capabilities.research import CrawlCapability, SearchCapability
from maniple.capabilities.workspace import CodeCapability, FilesCapability, SandboxCapability, open_egress
from maniple.config import Settings
from maniple.config.secrets import redactor_of, secrets_of
from maniple.egress import EgressRoute
from maniple.llms import ChatModels
from maniple.outgoing import OutgoingGuard
from maniple.reading.fork_server import ForkServer
from maniple.redaction import Redactor
from maniple.search import FolderSearch
from maniple.tools.registry import check_approval
from maniple.tools.web import open_document_folder

__all__ = ["Capability", "CapabilityContext", "Offer", "model_services", "open_capabilities"]

# Each may use the services of those before it. Middleware of earlier ones wraps that of later ones.
BUILT_IN = (
    FilesCapability,
    SearchCapability,
    BrowserCapability,
    CrawlCapability,
    SandboxCapability,
    CodeCapability,
    BuiltInToolsCapability,
)
BEHIND_EXTENSIONS = (McpCapability, OwnToolsCapability, SkillsCapability, GeneralCapability)


async def open_capabilities(
    settings: Settings, stack: AsyncExitStack, models: ChatModels | None = None
) -> Offer:
    """Open all capabilities on `stack` and return what they offer together; `models` are the team's.

    A capability that is absent on this machine becomes a notice, and the reason why its workers lack it.
    Raises `ConfigError` for a mistake in the settings.
    """
    readers = ForkServer(await asyncio.to_thread(document_loaders, settings))
    stack.callback(readers.close)
    folder = await asyncio.to_thread(open_document_folder, settings, readers)
    context = CapabilityContext(settings, stack, [_shared_services(settings, readers, folder, models)])
    extensions = await asyncio.to_thread(load_capabilities, settings)
    capabilities = [
        *(make() for make in BUILT_IN),
        *extensions,
        *(make() for make in BEHIND_EXTENSIONS),
    ]
    offer = await open_all(capabilities, context)
    declared = [name for one in extensions for name in one.tools]
    await asyncio.to_thread(check_approval, settings, [*declared, *offer.tool_names])
    return offer


def _shared_services(
    settings: Settings, readers: ForkServer, folder: FolderSearch | None, models: ChatModels | None
) -> Offer:
    guard = OutgoingGuard(secrets_of(settings))
    return Offer(
        services={
            EgressRoute: open_egress(settings, guard),
            ForkServer: readers,
            Redactor: redactor_of(settings),
            OutgoingGuard: guard,
            **({FolderSearch: folder} if folder is not None else {}),
            **(model_services(settings, models) if models is not None else {}),
        }
    )


def model_services(settings: Settings, models: ChatModels) -> dict[type[Any], Any]:
    """Return the services that ask the team's models."""
    evidence = settings.evidence
    return {ChatModels: models, JudgeChoice: JudgeChoice(evidence.judge, models, evidence.llm)}
