"""All servers together: which tools there are now, and which of them may be used."""

import asyncio
import logging
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import anyio
from mcp.client import Client
from mcp.client._transport import TransportStreams
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    InputRequiredResult,
    PaginatedRequestParams,
    ToolListChangedNotification,
)
from pydantic import TypeAdapter

from maniple.config.mcp_settings import McpServerSettings, McpSettings, Transport, reveal_text
from maniple.errors import McpError, ToolFailure
from maniple.mcp.http_transport import LoginStore, OAuthLogin, http_transport
from maniple.mcp.pins import PinStamp, PinStore
from maniple.mcp.results import ToolOutcome, parse_result
from maniple.mcp.stdio import (
    StartProgram,
    ThrottledStream,
    describe_error,
    missing_network_hint,
    stdio_transport,
)
from maniple.mcp.tool_definitions import ToolDefinition, ToolListing, ToolNames, read_listing

_LOOK_SECONDS = 2.0
"""How soon it is noticed that a person has accepted something."""
_MOST_GONE = 200
"""Of a server, so many tools that it has no more are remembered, those that went last."""


class ServerConnection:
    """Speaks with one server as long as `run` runs; `heard` is told what it offers, at each listing."""

    def __init__(
        self,
        name: str,
        server: McpServerSettings,
        start: StartProgram,
        heard: Callable[[str, ToolListing], Awaitable[None]],
        refresh_seconds: float,
        logins: LoginStore,
    ) -> None:
        self.name = name
        self._server = server
        self._start = start
        self._heard = heard
        self._refresh_seconds = refresh_seconds
        self._logins = logins
        self._login: OAuthLogin | None = None
        self._client: Client | None = None
        self._changed = asyncio.Event()
        self._is_current = asyncio.Event()
        """Set while nothing is known to have changed since the last listing."""
        self._is_lost = False
        self.unavailable_reason = "it is being connected"
        """Why it cannot be called now; "" when it can."""
        self.settled = asyncio.Event()
        """Set when the first try to connect has ended, one way or the other."""

    async def run(self) -> None:
        """Connect, stay connected, connect again; until cancelled."""
        delay = _FIRST_DELAY_SECONDS
        while True:
            began = asyncio.get_running_loop().time()
            told = self.unavailable_reason
            try:
                await self._live()
            except Exception as error:  # noqa: BLE001 - whatever is wrong with a server concerns it alone
                self.unavailable_reason = self._reason(error) + missing_network_hint(self._server)
            # A task group that has errors of its own to tell loses a cancellation beside them.
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError
            if self.unavailable_reason != told:
                _log.warning("The MCP server %s is not there: %s", self.name, self.unavailable_reason)
            self.settled.set()
            if asyncio.get_running_loop().time() - began > _SOUND_SECONDS:
                delay = _FIRST_DELAY_SECONDS
            await asyncio.sleep(delay * random.uniform(0.75, 1.25))
            delay = min(2 * delay, _LONGEST_DELAY_SECONDS)

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout_seconds: float) -> ToolOutcome:
        """Call a tool by the server's name for it; the server is told when the caller does not wait any more.

        Raises `McpError` with words for the model: of a server that is not there, does not answer or refuses.
        """
        client = self._client
        if client is None:
            raise McpError(f"The MCP server {self.name} cannot be used now: {self.unavailable_reason}")
        try:
            # The SDK's own limit begins when the server has taken the message, which it may never do.
            async with asyncio.timeout(timeout_seconds + 1):
                outcome = self._masked(await _called(client, tool, dict(arguments), timeout_seconds))
        except MCPError as error:
            if error.code == REQUEST_TIMEOUT:
                raise self._too_slow(timeout_seconds) from error
            if error.code == CONNECTION_CLOSED:
                self._lose()
                raise McpError(
                    f"The MCP server {self.name} went away during the call; whether it did its work "
                    "is not known."
                ) from error
            if str(error) == "Session terminated" or self._must_log_in():
                self._lose()
            raise McpError(f"The MCP server {self.name} refused: {self._reason(error)}") from error
        except TimeoutError as error:
            raise self._too_slow(timeout_seconds) from error
        except ValueError as error:
            raise McpError(f"The MCP server {self.name} answered with what is no result.") from error
        # What the call itself changed is to be there when its result is read.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_current.wait(), _CURRENT_SECONDS)
        return outcome

    def _masked(self, outcome: ToolOutcome) -> ToolOutcome:
        login = self._login
        return replace(outcome, text=login.redactor.text(outcome.text)) if login is not None else outcome

    def _must_log_in(self) -> bool:
        return self._login is not None and self._login.is_needed

    def _reason(self, error: BaseException) -> str:
        if (login := self._login) is None:
            return describe_error(error)
        return login.words if login.is_needed else login.redactor.text(describe_error(error))

    def _too_slow(self, seconds: float) -> McpError:
        return McpError(
            f"The MCP server {self.name} did not answer within {seconds:g} seconds; the call was cancelled."
        )

    async def _live(self) -> None:
        self._is_lost = False
        self._changed.clear()
        with anyio.CancelScope(deadline=anyio.current_time() + CONNECT_SECONDS) as scope:
            async with Client(
                self._transport(),
                cache=None,
                client_info=Implementation(name="maniple", version=version("maniple")),
                message_handler=self._take,
                read_timeout_seconds=_LIST_SECONDS,
            ) as client:
                await self._list(client)
                scope.deadline = math.inf
                self._client, self.unavailable_reason = client, ""
                if not self._changed.is_set():
                    self._is_current.set()
                self.settled.set()
                try:
                    await self._stay(client)
                finally:
                    self._client = None
                    self._is_current.set()
                    self.unavailable_reason = "the connection was lost"
        if scope.cancelled_caught:
            raise McpError(f"it did not answer within {CONNECT_SECONDS:g} seconds")

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[TransportStreams]:
        async with AsyncExitStack() as stack:
            transport: AbstractAsyncContextManager[TransportStreams]
            if self._server.transport == "stdio":
                transport = stdio_transport(await self._start(self.name, self._server))
            else:
                self._login = await self._kept_login()
                transport = http_transport(self._server, self._login)
            read, write = await stack.enter_async_context(transport)
            yield ThrottledStream(read, self._lose), write

    async def _kept_login(self) -> OAuthLogin | None:
        """Return what a person's login came to, where there has to be one; raises `McpError` without it."""
        if self._server.auth is None:
            return None
        self._login = self._logins.of(self.name, reveal_text(self._server.url))
        await self._login.load()
        return self._login

    async def _stay(self, client: Client) -> None:
        """List the tools whenever they may have changed; raises `McpError` when the connection is lost."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen, client)
            while True:
                with anyio.move_on_after(self._refresh_seconds):
                    await self._changed.wait()
                if self._is_lost:
                    raise McpError("the connection was lost")
                self._changed.clear()
                await self._list(client)
                if not self._changed.is_set():
                    self._is_current.set()
                await anyio.sleep(_PAUSE_SECONDS)

    async def _listen(self, client: Client) -> None:
        """Ask a server of the newest protocol to say when its tools change; older ones say it anyway."""
        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._expire()
        except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError) as error:
            _log.debug("The MCP server %s does not say when its tools change: %s", self.name, error)

    async def _take(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._expire()

    def _expire(self) -> None:
        self._changed.set()
        self._is_current.clear()

    async def _list(self, client: Client) -> None:
        offered: list[Any] = []
        cursor = None
        for _ in range(_MOST_PAGES if client.server_capabilities.tools else 0):
            page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            offered += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        listing = await asyncio.to_thread(read_listing, offered, self._server.tools)
        if self._login is not None:
            listing = listing.without_secrets(self._login.redactor)
        await self._heard(self.name, listing)

    def _lose(self) -> None:
        self._is_lost = True
        self._changed.set()


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool of a server; `name` is what models call it by, `definition.name` what the server does."""

    name: str
    server: str
    definition: ToolDefinition
    timeout_seconds: float
    approval: bool = False
    parallel: bool = False
    """Whether its calls run beside others of the same answer."""
    unavailable_reason: str = ""
    """Why it may not be used, for the model or a person; "" when it may."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """What is known of a server; `unavailable_reason` says why it is not connected."""

    name: str
    transport: Transport
    unavailable_reason: str
    tools: tuple[RemoteTool, ...]
    left_out: Mapping[str, str]


@dataclass(slots=True)
class _Server:
    settings: McpServerSettings
    connection: ServerConnection
    listing: ToolListing = field(default_factory=ToolListing)
    tools: dict[str, RemoteTool] = field(default_factory=dict)
    """By the server's names, those that it has had and has no more among them, which come first."""
    stamp: PinStamp = (0, 0)
    hearing: asyncio.Lock = field(default_factory=asyncio.Lock)


class McpServers:
    """The servers of the settings while they are open; `open_servers` makes it."""

    def __init__(
        self, settings: McpSettings, pins: PinStore, start: StartProgram, logins: LoginStore
    ) -> None:
        self._settings = settings
        self._pins = pins
        self._names = ToolNames()
        self._by_name: dict[str, RemoteTool] = {}
        self._servers = {
            name: _Server(
                one, ServerConnection(name, one, start, self._hear, settings.refresh_seconds, logins)
            )
            for name, one in settings.servers.items()
            if not one.disabled
        }

    def offered(self, servers: Sequence[str]) -> list[RemoteTool]:
        """Return the tools of these servers that can be called now."""
        return [
            tool
            for name in servers
            if (server := self._servers.get(name)) is not None and not server.connection.unavailable_reason
            for tool in server.tools.values()
            if not tool.unavailable_reason
        ]

    def find(self, name: str, servers: Sequence[str]) -> RemoteTool | None:
        """Return a tool of these servers by the name that models know, also one that cannot be called now."""
        tool = self._by_name.get(name)
        return tool if tool is not None and tool.server in servers else None

    async def call(self, tool: RemoteTool, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Call a tool; raises `McpError` with words for the model."""
        now = self._by_name.get(tool.name, tool)
        if now.unavailable_reason:
            raise McpError(f"{tool.name} cannot be used: {now.unavailable_reason}")
        return await self.try_out(tool, arguments)

    async def try_out(self, tool: RemoteTool, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Call a tool also when it was not accepted, for a person who looks at it."""
        connection = self._servers[tool.server].connection
        return await connection.call(tool.definition.name, arguments, tool.timeout_seconds)

    def states(self) -> list[ServerState]:
        """Return what is known of every server that is not disabled."""
        return [
            ServerState(
                name,
                one.settings.transport,
                one.connection.unavailable_reason,
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

    async def _hear(self, name: str, listing: ToolListing) -> None:
        """Take what a server offers now."""
        server = self._servers[name]
        # One after the other: what was listed before must not take the place of what is listed now.
        async with server.hearing:
            await self._judge(name, server, listing)

    async def _judge(self, name: str, server: _Server, listing: ToolListing) -> None:
        """Find out what may be used; what is not offered any more stays known for a while, with words."""
        try:
            reasons = await asyncio.to_thread(self._pins.judge, name, listing.tools, self._settings.trust)
        except McpError as error:
            reasons = {tool.name: str(error) for tool in listing.tools}
        now = {tool.name: self._remote(name, tool, reasons.get(tool.name, "")) for tool in listing.tools}
        gone = [
            (key, replace(tool, unavailable_reason=f"the MCP server {name} has it no more"))
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

    def _remote(self, server: str, definition: ToolDefinition, unavailable_reason: str) -> RemoteTool:
        own = self._settings.servers[server]
        seconds = own.timeout_seconds or self._settings.timeout_seconds
        name = self._names.of(server, definition.name)
        parallel = own.mode == "parallel" if own.mode else definition.only_reads
        return RemoteTool(name, server, definition, seconds, own.approval, parallel, unavailable_reason)


@asynccontextmanager
async def open_servers(
    settings: McpSettings, pins: PinStore, start: StartProgram, logins: LoginStore
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


CONNECT_SECONDS = 60.0
"""For a program to start and a server to say what it has: some install themselves first."""
_LIST_SECONDS = 30.0
_PAUSE_SECONDS = 0.2
"""Between two listings, however often a server says that its tools changed."""
_FIRST_DELAY_SECONDS, _LONGEST_DELAY_SECONDS = 0.5, 60.0
_SOUND_SECONDS = 30.0
"""After that long a connection was sound: the next try comes soon again."""
_CURRENT_SECONDS = 1.0
_MOST_PAGES = 50
_RESULTS: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(
    CallToolResult | InputRequiredResult
)
_log = logging.getLogger(__name__)


async def _called(
    client: Client, tool: str, arguments: dict[str, Any], timeout_seconds: float
) -> ToolOutcome:
    # Not `client.call_tool`: it checks results against schemas that are the server's own, with regular
    # expressions of its own, on the event loop.
    request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
    result = await client.session.send_request(
        request, _RESULTS, request_read_timeout_seconds=timeout_seconds
    )
    if not isinstance(result, CallToolResult):
        raise ToolFailure("It asks for input in the middle of the call, which nobody here can give.")
    return await asyncio.to_thread(parse_result, result)
