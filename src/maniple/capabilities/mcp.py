"""MCP servers: connect those of the settings where their programs may run, and offer their tools."""

import asyncio
import difflib
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from maniple.agents import Agent, ReactAgent
from maniple.agents.middleware.tool_availability import DynamicTools
from maniple.agents.middleware.tool_results import ReadPicture, ResultPictures, server_picture_source
from maniple.agents.offers import Middleware, Offer, WorkerContext
from maniple.capabilities.base import (
    Capability,
    CapabilityContext,
    McpConnections,
    open_all,
)
from maniple.capabilities.workspace import SandboxCapability, open_egress
from maniple.config import Settings
from maniple.config.mcp_settings import McpServerSettings, McpSettings, is_of_server, prefix_of, reveal_text
from maniple.config.secrets import secrets_of
from maniple.egress import EgressRoute
from maniple.errors import McpError, SandboxError, Unavailable
from maniple.installation import installing
from maniple.outgoing import OutgoingGuard
from maniple.sandbox import Sandbox
from maniple.sandbox.backends.local import start_unprotected
from maniple.sandbox.bubblewrap import ServiceLauncher, ServiceSpec, open_service_launcher
from maniple.store.shared_state import open_state
from maniple.tools.code import figure_reader
from maniple.tools.items import StoredResults
from maniple.types import GENERAL, Worker
from maniple.workspace import Workspaces

if TYPE_CHECKING:
    from maniple.mcp import McpServers, ProgramPipes

UNSAFE = (
    "The MCP server {name} has sandbox: unsafe, so its program runs unprotected, with this user's rights, "
    "files and network."
)
_FOLDER = "mcp"
_PATIENCE_SECONDS = 70.0
_LACKING = "MCP servers need a package that is not installed: {command}."


class McpCapability(Capability):
    """The tools of the configured MCP servers. One that does not answer is a notice and is tried again."""

    name: ClassVar = "mcp"
    provides: ClassVar = (McpConnections,)

    async def open(self, context: CapabilityContext) -> Offer:
        settings = context.settings
        wanted = _enabled(settings)
        if not wanted:
            return Offer()
        if find_spec("mcp") is None:
            return Offer(notices=(f"MCP servers are configured, which takes {installing('mcp')}.",))
        servers = await _open_servers(context, wanted)
        tools = await asyncio.to_thread(import_module, "maniple.tools.mcp")
        stored, workspaces = context.service(StoredResults), context.service(Workspaces)
        guard = context.service(OutgoingGuard) or OutgoingGuard()
        guards = {name: guard.without(secrets_of(one)) for name, one in wanted.items()}
        dynamic: dict[Worker, DynamicTools] = {
            worker: DynamicTools(tools.McpToolSource(servers, names, stored, guards))
            for worker in settings.team.workers
            if (names := [name for name in settings.mcp.servers_of(worker) if name in wanted])
        }
        pictures = (
            [] if workspaces is None else [partial(_pictures, figure_reader(workspaces), dynamic.keys())]
        )
        return Offer(
            dynamic_tools=dynamic,
            middleware=pictures,
            services={McpConnections: McpConnections(servers)},
            notices=(
                *_unsafe(settings.mcp),
                *_forgotten(settings),
                *_unavailable_servers(servers),
                *_unknown_approvals(settings, servers),
            ),
        )


def _pictures(read: ReadPicture, workers: Collection[Worker], worker: WorkerContext) -> list[Middleware]:
    return [ResultPictures(server_picture_source(read))] if worker.name in workers else []


def _enabled(settings: Settings) -> dict[str, McpServerSettings]:
    return {name: one for name, one in settings.mcp.servers.items() if not one.disabled}


async def _open_servers(context: CapabilityContext, wanted: Mapping[str, McpServerSettings]) -> "McpServers":
    settings = context.settings
    mcp = await asyncio.to_thread(import_module, "maniple.mcp")
    programs = await _open_programs(context, wanted)
    state = await context.stack.enter_async_context(open_state(settings))
    pins, logins = mcp.PinStore(state.accepted_tools), mcp.LoginStore(state.logins)
    return await context.stack.enter_async_context(
        mcp.open_servers(settings.mcp, pins, programs.start, logins)
    )


def abilities_of(settings: McpSettings, workers: Mapping[Worker, Agent]) -> dict[Worker, str]:
    """Return the text for the planner's prompt about workers with tools of servers."""
    found: dict[Worker, str] = {}
    for worker, agent in workers.items():
        names = [name for name in settings.servers_of(worker) if not settings.servers[name].disabled]
        if names and isinstance(agent, ReactAgent):
            found[worker] = f"Also has the tools of {', '.join(names)}."
    return found


def obstacles_of(settings: McpSettings, servers: "McpServers | None") -> dict[str, str]:
    """Return by name why each configured server is unavailable; "" if it is available."""
    if servers is not None:
        return {state.name: state.unavailable_reason for state in servers.states()}
    lacking = _LACKING.format(command=installing("mcp"))
    return {name: lacking for name, one in settings.servers.items() if not one.disabled}


@asynccontextmanager
async def open_one_by_one(
    settings: Settings, names: Collection[str], seconds: float = _PATIENCE_SECONDS
) -> AsyncGenerator["McpServers"]:
    """Open only these servers, for inspection: no tool is accepted, and each server is waited for.

    The wait lasts at most the given seconds. Raises `McpError` if the SDK is missing.
    """
    if find_spec("mcp") is None:
        raise McpError(_LACKING.format(command=installing("mcp")))
    servers = {name: one for name, one in settings.mcp.servers.items() if name in names}
    looking = {"servers": servers, "trust": "accepted", "start_seconds": seconds, "workers": {}}
    settings = settings.model_copy(update={"mcp": settings.mcp.model_copy(update=looking)})
    async with AsyncExitStack() as stack:
        context = CapabilityContext(settings, stack, [Offer(services={EgressRoute: open_egress(settings)})])
        context.unavailable[Sandbox] = Unavailable("The sandbox is not open.", "open it.")
        wanted = _enabled(settings)
        if not wanted:
            raise McpError("No MCP server is configured: see docs/mcp.md for mcp.servers in conf.yaml.")
        if any(one.transport == "stdio" and one.sandbox != "unsafe" for one in wanted.values()):
            await open_all([SandboxCapability()], context)
        yield await _open_servers(context, wanted)


@dataclass(frozen=True, slots=True)
class _Programs:
    """Starts the commands of servers: in the sandbox, or without it if set so."""

    folder: Path
    sandboxed: ServiceLauncher | None
    obstacle: str = ""

    async def start(self, name: str, server: McpServerSettings) -> "ProgramPipes":
        service = ServiceSpec(
            [server.command or "", *map(reveal_text, server.args)],
            self.folder / prefix_of(name),
            {variable: reveal_text(value) for variable, value in server.env.items()},
            cwd=server.cwd,
            reads=server.reads,
            writes=server.writes,
            allow_hosts=server.allow_hosts,
            memory_mb=server.memory_mb,
            disk_mb=server.disk_mb,
            processes=server.processes,
        )
        if server.sandbox == "unsafe":
            return await start_unprotected(service)
        if self.sandboxed is None:
            raise SandboxError(self.obstacle)
        return await self.sandboxed.start(service)


async def _open_programs(context: CapabilityContext, wanted: Mapping[str, McpServerSettings]) -> _Programs:
    settings = context.settings
    folder = settings.data_dir / _FOLDER / "servers"
    if not any(one.transport == "stdio" and one.sandbox != "unsafe" for one in wanted.values()):
        return _Programs(folder, None)
    try:
        sandbox = context.require(Sandbox)
    except Unavailable as error:
        return _Programs(folder, None, f"its program runs only in the sandbox. {error}")
    if sandbox.name != "bubblewrap":
        return _Programs(
            folder,
            None,
            f"its program runs only in bubblewrap, and sandbox.backend is {sandbox.name}. Set that to "
            "bubblewrap; or, if the program may have all of your rights, sandbox: unsafe at the server",
        )
    try:
        opening = open_service_launcher(settings.sandbox, context.require(EgressRoute).trusting())
        services = await context.stack.enter_async_context(opening)
    except (SandboxError, Unavailable) as error:
        return _Programs(folder, None, str(error))
    return _Programs(folder, services)


def _unsafe(settings: McpSettings) -> list[str]:
    return [
        UNSAFE.format(name=name)
        for name, one in settings.servers.items()
        if one.sandbox == "unsafe" and one.command is not None and not one.disabled
    ]


def _forgotten(settings: Settings) -> list[str]:
    """Return the notice that the general agent, which has all other tools, has none of MCP servers."""
    if GENERAL not in settings.team.members or GENERAL in settings.mcp.workers or not settings.mcp.workers:
        return []
    return [f"{GENERAL} has no tools of MCP servers: mcp.workers names servers, but none for {GENERAL}."]


def _unknown_approvals(settings: Settings, servers: "McpServers") -> list[str]:
    """Return notices about names in `runs.approval` that no tool of a connected server has."""
    notices: list[str] = []
    for state in servers.states():
        known = [tool.name for tool in state.tools]
        for name in settings.runs.approval:
            if state.unavailable_reason or name in known or not is_of_server(name, [state.name]):
                continue
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else "."
            notices.append(
                f"runs.approval names {name}, but the MCP server {state.name} does not have this tool{meant}"
            )
    return notices


def _unavailable_servers(servers: "McpServers") -> list[str]:
    """Return notices about servers that have not answered yet, and tools that the user has not accepted."""
    notices: list[str] = []
    for state in servers.states():
        if state.unavailable_reason:
            notices.append(
                f"The MCP server {state.name} and its tools are not available yet: {state.unavailable_reason}"
            )
        waiting = [tool.definition.name for tool in state.tools if tool.unavailable_reason]
        if waiting:
            notices.append(
                f"Tools of the MCP server {state.name} that are not accepted: {', '.join(waiting[:10])}. "
                f"To review and accept them: maniple mcp accept {state.name}"
            )
    return notices
