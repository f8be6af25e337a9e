"""All servers together: which tools there are now, and which of them may be used."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from maniple.config.mcp_settings import McpServerSettings, McpSettings, Transport
from maniple.errors import McpError
from maniple.mcp.connection import Connection
from maniple.mcp.definitions import Definition, Listing
from maniple.mcp.login import Logins
from maniple.mcp.names import Names
from maniple.mcp.pins import Pins, Stamp
from maniple.mcp.results import Outcome
from maniple.mcp.stdio import Start

_LOOK_SECONDS = 2.0
"""How soon it is noticed that a person has accepted something."""
_MOST_GONE = 200
"""Of a server, so many tools that it has no more are remembered, those that went last."""


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool of a server; `name` is what models call it by, `definition.name` what the server does."""

    name: str
    server: str
    definition: Definition
    timeout_seconds: float
    approval: bool = False
    parallel: bool = False
    """Whether its calls run beside others of the same answer."""
    obstacle: str = ""
    """Why it may not be used, for the model or a person; "" when it may."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """What is known of a server; `obstacle` says why it is not connected."""

    name: str
    transport: Transport
    obstacle: str
    tools: tuple[RemoteTool, ...]
    left_out: Mapping[str, str]


@dataclass(slots=True)
class _Server:
    settings: McpServerSettings
    connection: Connection
    listing: Listing = field(default_factory=Listing)
    tools: dict[str, RemoteTool] = field(default_factory=dict)
    """By the server's names, those that it has had and has no more among them, which come first."""
    stamp: Stamp = (0, 0)
    hearing: asyncio.Lock = field(default_factory=asyncio.Lock)


class McpServers:
    """The servers of the settings while they are open; `open_servers` makes it."""

    def __init__(self, settings: McpSettings, pins: Pins, start: Start, logins: Logins) -> None:
        self._settings = settings
        self._pins = pins
        self._names = Names()
        self._by_name: dict[str, RemoteTool] = {}
        self._servers = {
            name: _Server(one, Connection(name, one, start, self._hear, settings.refresh_seconds, logins))
            for name, one in settings.servers.items()
            if not one.disabled
        }

    def offered(self, servers: Sequence[str]) -> list[RemoteTool]:
        """Return the tools of these servers that can be called now."""
        return [
            tool
            for name in servers
            if (server := self._servers.get(name)) is not None and not server.connection.obstacle
            for tool in server.tools.values()
            if not tool.obstacle
        ]

    def find(self, name: str, servers: Sequence[str]) -> RemoteTool | None:
        """Return a tool of these servers by the name that models know, also one that cannot be called now."""
        tool = self._by_name.get(name)
        return tool if tool is not None and tool.server in servers else None

    async def call(self, tool: RemoteTool, arguments: Mapping[str, Any]) -> Outcome:
        """Call a tool; raises `McpError` with words for the model."""
        now = self._by_name.get(tool.name, tool)
        if now.obstacle:
            raise McpError(f"{tool.name} cannot be used: {now.obstacle}")
        return await self.try_out(tool, arguments)

    async def try_out(self, tool: RemoteTool, arguments: Mapping[str, Any]) -> Outcome:
        """Call a tool also when it was not accepted, for a person who looks at it."""
        connection = self._servers[tool.server].connection
        return await connection.call(tool.definition.name, arguments, tool.timeout_seconds)

    def states(self) -> list[ServerState]:
        """Return what is known of every server that is not disabled."""
        return [
            ServerState(
                name,
                one.settings.transport,
                one.connection.obstacle,
                tuple(one.tools.values()),
                one.listing.left_out,
            )
            for name, one in self._servers.items()
        ]

    async def settled(self, seconds: float) -> None:
        """Wait until every server was tried once, that long at most."""
        waits = [asyncio.ensure_future(one.connection.settled.wait()) for one in self._servers.values()]
        try:
            if waits:
                await asyncio.wait(waits, timeout=seconds)
        finally:
            for wait in waits:
                wait.cancel()

    async def run(self) -> None:
        """Keep every server connected, and look for what people accept; until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for name, one in self._servers.items():
                tasks.create_task(one.connection.run(), name=f"mcp-{name}")
            while True:
                await asyncio.sleep(_LOOK_SECONDS)
                for name, one in self._servers.items():
                    await self._look(name, one)

    async def _look(self, name: str, server: _Server) -> None:
        """Judge the tools of a server again, when somebody has accepted something of it."""
        stamp = await asyncio.to_thread(self._pins.stamp, name)
        if stamp != server.stamp:
            server.stamp = stamp
            async with server.hearing:
                await self._judge(name, server, server.listing)

    async def _hear(self, name: str, listing: Listing) -> None:
        """Take what a server offers now."""
        server = self._servers[name]
        # One after the other: what was listed before must not take the place of what is listed now.
        async with server.hearing:
            await self._judge(name, server, listing)

    async def _judge(self, name: str, server: _Server, listing: Listing) -> None:
        """Find out what may be used; what is not offered any more stays known for a while, with words."""
        try:
            obstacles = await asyncio.to_thread(self._pins.judge, name, listing.tools, self._settings.trust)
        except McpError as error:
            obstacles = {tool.name: str(error) for tool in listing.tools}
        now = {tool.name: self._remote(name, tool, obstacles.get(tool.name, "")) for tool in listing.tools}
        gone = [
            (key, replace(tool, obstacle=f"the MCP server {name} has it no more"))
            for key, tool in server.tools.items()
            if key not in now
        ]
        forgotten, remembered = gone[:-_MOST_GONE], gone[-_MOST_GONE:]
        for key, tool in forgotten:
            del self._by_name[tool.name]
            self._names.forget(name, key)
        server.listing = listing
        server.tools = dict(remembered) | now
        self._by_name |= {tool.name: tool for tool in server.tools.values()}

    def _remote(self, server: str, definition: Definition, obstacle: str) -> RemoteTool:
        own = self._settings.servers[server]
        seconds = own.timeout_seconds or self._settings.timeout_seconds
        name = self._names.of(server, definition.name)
        parallel = own.mode == "parallel" if own.mode else definition.only_reads
        return RemoteTool(name, server, definition, seconds, own.approval, parallel, obstacle)


@asynccontextmanager
async def open_servers(
    settings: McpSettings, pins: Pins, start: Start, logins: Logins
) -> AsyncIterator[McpServers]:
    """Connect to the servers in the background, and give those that answer soon the time to."""
    servers = McpServers(settings, pins, start, logins)
    keeping = asyncio.create_task(servers.run(), name="mcp")
    try:
        await servers.settled(settings.start_seconds)
        yield servers
    finally:
        keeping.cancel()
        await asyncio.wait({keeping})
