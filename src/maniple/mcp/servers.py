"""The connections to all MCP servers, and the tools that they offer now."""

import asyncio
import logging
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
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

from maniple.config.mcp_settings import McpServerSettings, McpSettings, Transport
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
"""The interval of checks whether the user has accepted tools or logged in, here or on another node."""
_MAX_GONE = 200
"""The number of removed tools of a server that stay known, the latest ones."""


class ServerConnection:
    """The connection to one server while `run` runs; `on_listing` is called with each list of its tools."""

    def __init__(
        self,
        name: str,
        server: McpServerSettings,
        start: StartProgram,
        on_listing: Callable[[str, ToolListing], Awaitable[None]],
        refresh_seconds: float,
        logins: LoginStore,
    ) -> None:
        self.name = name
        self._server = server
        self._start = start
        self._on_listing = on_listing
        self._refresh_seconds = refresh_seconds
        self._logins = logins
        self._login: OAuthLogin | None = None
        self._client: Client | None = None
        self._login_changed = asyncio.Event()
        self._changed = asyncio.Event()
        self._is_current = asyncio.Event()
        """Set while no change since the last listing is known."""
        self._is_lost = False
        self.unavailable_reason = "it is being connected"
        """Why the server cannot be called now; "" if it can."""
        self.wait_for_first_attempts = asyncio.Event()
        """Set when the first attempt to connect has ended, successfully or not."""

    async def run(self) -> None:
        """Connect, and reconnect after failures, until cancelled."""
        delay = _FIRST_DELAY_SECONDS
        while True:
            began = asyncio.get_running_loop().time()
            previous_reason = self.unavailable_reason
            try:
                await self._run_connection()
            except Exception as error:  # noqa: BLE001 - an error of one server must not affect others
                self.unavailable_reason = self._reason(error) + missing_network_hint(self._server)
            # A task group that raises its own errors drops a simultaneous cancellation.
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError
            if self.unavailable_reason != previous_reason:
                _log.warning("The MCP server %s is unavailable: %s", self.name, self.unavailable_reason)
            self.wait_for_first_attempts.set()
            if asyncio.get_running_loop().time() - began > _SOUND_SECONDS:
                delay = _FIRST_DELAY_SECONDS
            self._login_changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._login_changed.wait(), delay * random.uniform(0.75, 1.25))
            delay = min(2 * delay, _MAX_DELAY_SECONDS)

    def notice_login(self) -> None:
        """Connect at once if the connection waits for its next attempt: a user may have logged in."""
        self._login_changed.set()

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout_seconds: float) -> ToolOutcome:
        """Call a tool by its name at the server; if the caller is cancelled, the server is notified.

        Raises `McpError` with a text for the model if the server is unavailable, does not answer, or refuses.
        """
        client = self._client
        if client is None:
            raise McpError(f"The MCP server {self.name} cannot be used now: {self.unavailable_reason}")
        try:
            # The SDK's own limit starts when the server has accepted the message, which may never happen.
            async with asyncio.timeout(timeout_seconds + 1):
                outcome = self._mask_secrets(await _call_tool(client, tool, dict(arguments), timeout_seconds))
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
        # Wait for a new listing if the call changed the server's tools.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_current.wait(), _CURRENT_SECONDS)
        return outcome

    def _mask_secrets(self, outcome: ToolOutcome) -> ToolOutcome:
        login = self._login
        return replace(outcome, text=login.redactor.text(outcome.text)) if login is not None else outcome

    def _must_log_in(self) -> bool:
        return self._login is not None and self._login.is_needed

    def _reason(self, error: BaseException) -> str:
        if (login := self._login) is None:
            return describe_error(error)
        return login.login_hint if login.is_needed else login.redactor.text(describe_error(error))

    def _too_slow(self, seconds: float) -> McpError:
        return McpError(
            f"The MCP server {self.name} did not answer within {seconds:g} seconds; the call was cancelled."
        )

    async def _run_connection(self) -> None:
        self._is_lost = False
        self._changed.clear()
        with anyio.CancelScope(deadline=anyio.current_time() + CONNECT_SECONDS) as scope:
            async with Client(
                self._transport(),
                cache=None,
                client_info=Implementation(name="maniple", version=version("maniple")),
                message_handler=self._on_message,
                read_timeout_seconds=_LIST_SECONDS,
            ) as client:
                await self._list(client)
                scope.deadline = math.inf
                self._client, self.unavailable_reason = client, ""
                if not self._changed.is_set():
                    self._is_current.set()
                self.wait_for_first_attempts.set()
                try:
                    await self._list_on_changes(client)
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
                self._login = await self._load_login()
                transport = http_transport(self._server, self._login)
            read, write = await stack.enter_async_context(transport)
            yield ThrottledStream(read, self._lose), write

    async def _load_login(self) -> OAuthLogin | None:
        """Return the stored login, if the settings require one; raises `McpError` if there is none."""
        if self._server.auth is None:
            return None
        self._login = self._logins.of(self.name, self._server)
        await self._login.load()
        return self._login

    async def _list_on_changes(self, client: Client) -> None:
        """List the tools whenever they may have changed; raises `McpError` if the connection is lost."""
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
        """Subscribe to changes of the tools, for servers of the newest protocol.

        Older ones notify without it.
        """
        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._expire()
        except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError) as error:
            _log.debug("The MCP server %s does not report changes of its tools: %s", self.name, error)

    async def _on_message(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._expire()

    def _expire(self) -> None:
        self._changed.set()
        self._is_current.clear()

    async def _list(self, client: Client) -> None:
        offered: list[Any] = []
        cursor = None
        for _ in range(_MAX_PAGES if client.server_capabilities.tools else 0):
            page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            offered += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        listing = await asyncio.to_thread(read_listing, offered, self._server.tools)
        if self._login is not None:
            listing = listing.without_secrets(self._login.redactor)
        await self._on_listing(self.name, listing)

    def _lose(self) -> None:
        self._is_lost = True
        self._changed.set()


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool of a server. `name` is its name for models, `definition.name` its name at the server."""

    name: str
    server: str
    definition: ToolDefinition
    timeout_seconds: float
    approval: bool = False
    parallel: bool = False
    """Whether its calls run concurrently with other calls of the same answer."""
    unavailable_reason: str = ""
    """Why it may not be used, for the model or the user; "" if it may."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of a server; `unavailable_reason` is why it is not connected."""

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
    """By the names at the server; removed tools come first."""
    stamp: PinStamp = None
    login_stamp: Hashable = None
    listing_lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class McpServers:
    """The configured servers while they are open. Use `open_servers`."""

    def __init__(
        self, settings: McpSettings, pins: PinStore, start: StartProgram, logins: LoginStore
    ) -> None:
        self._settings = settings
        self._pins = pins
        self._logins = logins
        self._names = ToolNames()
        self._by_name: dict[str, RemoteTool] = {}
        self._servers = {
            name: _Server(
                one, ServerConnection(name, one, start, self._store_listing, settings.refresh_seconds, logins)
            )
            for name, one in settings.servers.items()
            if not one.disabled
        }

    def list_tools(self, servers: Sequence[str]) -> list[RemoteTool]:
        """Return the tools of these servers that can be called now."""
        return [
            tool
            for name in servers
            if (server := self._servers.get(name)) is not None and not server.connection.unavailable_reason
            for tool in server.tools.values()
            if not tool.unavailable_reason
        ]

    def find(self, name: str, servers: Sequence[str]) -> RemoteTool | None:
        """Return a tool of these servers by its name for models, also if it cannot be called now."""
        tool = self._by_name.get(name)
        return tool if tool is not None and tool.server in servers else None

    async def call(self, tool: RemoteTool, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Call a tool; raises `McpError` with a text for the model."""
        now = self._by_name.get(tool.name, tool)
        if now.unavailable_reason:
            raise McpError(f"{tool.name} cannot be used: {now.unavailable_reason}")
        return await self.try_out(tool, arguments)

    async def try_out(self, tool: RemoteTool, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Call a tool even if it was not accepted, for a user who examines it."""
        connection = self._servers[tool.server].connection
        return await connection.call(tool.definition.name, arguments, tool.timeout_seconds)

    def states(self) -> list[ServerState]:
        """Return the state of every server that is not disabled."""
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

    async def wait_for_first_attempts(self, seconds: float) -> None:
        """Wait until each server has been tried once, for at most `seconds`."""
        waits = [
            asyncio.ensure_future(one.connection.wait_for_first_attempts.wait())
            for one in self._servers.values()
        ]
        try:
            if waits:
                await asyncio.wait(waits, timeout=seconds)
        finally:
            for wait in waits:
                wait.cancel()

    async def run(self) -> None:
        """Keep all servers connected and watch for accepted tools, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for name, one in self._servers.items():
                tasks.create_task(one.connection.run(), name=f"mcp-{name}")
            while True:
                await asyncio.sleep(_LOOK_SECONDS)
                for name, one in self._servers.items():
                    with suppress(McpError):  # the database is away; the next check follows
                        await self._check_login(name, one)
                        await self._check_accepted(name, one)

    async def _check_login(self, name: str, server: _Server) -> None:
        """Connect to a server if the login at it has changed."""
        if server.settings.auth is None:
            return
        stamp = await asyncio.to_thread(self._logins.stamp, name)
        if stamp != server.login_stamp:
            server.login_stamp = stamp
            server.connection.notice_login()

    async def _check_accepted(self, name: str, server: _Server) -> None:
        """Check the tools of a server again if its accepted tools have changed."""
        stamp = await asyncio.to_thread(self._pins.stamp, name)
        if stamp != server.stamp:
            server.stamp = stamp
            async with server.listing_lock:
                await self._judge(name, server, server.listing)

    async def _store_listing(self, name: str, listing: ToolListing) -> None:
        """Store a new list of a server's tools."""
        server = self._servers[name]
        # One listing after the other, so that an older one cannot replace a newer one.
        async with server.listing_lock:
            await self._judge(name, server, listing)

    async def _judge(self, name: str, server: _Server, listing: ToolListing) -> None:
        """Determine which tools may be used.

        Removed tools stay known, with the reason, for calls that name them.
        """
        try:
            reasons = await asyncio.to_thread(self._pins.judge, name, listing.tools, self._settings.trust)
        except McpError as error:
            reasons = {tool.name: str(error) for tool in listing.tools}
        now = {
            tool.name: self._make_remote_tool(name, tool, reasons.get(tool.name, ""))
            for tool in listing.tools
        }
        gone = [
            (key, replace(tool, unavailable_reason=f"the MCP server {name} has it no more"))
            for key, tool in server.tools.items()
            if key not in now
        ]
        forgotten, remembered = gone[:-_MAX_GONE], gone[-_MAX_GONE:]
        for key, tool in forgotten:
            del self._by_name[tool.name]
            self._names.forget(name, key)
        server.listing = listing
        server.tools = dict(remembered) | now
        self._by_name |= {tool.name: tool for tool in server.tools.values()}

    def _make_remote_tool(
        self, server: str, definition: ToolDefinition, unavailable_reason: str
    ) -> RemoteTool:
        own = self._settings.servers[server]
        seconds = own.timeout_seconds or self._settings.timeout_seconds
        name = self._names.of(server, definition.name)
        parallel = own.mode == "parallel" if own.mode else definition.only_reads
        return RemoteTool(name, server, definition, seconds, own.approval, parallel, unavailable_reason)


@asynccontextmanager
async def open_servers(
    settings: McpSettings, pins: PinStore, start: StartProgram, logins: LoginStore
) -> AsyncIterator[McpServers]:
    """Connect to the servers in the background.

    Wait at most `start_seconds` for them before the body starts.
    """
    servers = McpServers(settings, pins, start, logins)
    running = asyncio.create_task(servers.run(), name="mcp")
    try:
        await servers.wait_for_first_attempts(settings.start_seconds)
        yield servers
    finally:
        running.cancel()
        await asyncio.wait({running})


CONNECT_SECONDS = 60.0
"""The limit for a program to start and list its tools; some programs install themselves first."""
_LIST_SECONDS = 30.0
_PAUSE_SECONDS = 0.2
"""The minimal pause between two listings, even if a server reports changes more often."""
_FIRST_DELAY_SECONDS, _MAX_DELAY_SECONDS = 0.5, 60.0
_SOUND_SECONDS = 30.0
"""A connection that lasted this long resets the delay before the next attempt."""
_CURRENT_SECONDS = 1.0
_MAX_PAGES = 50
_RESULTS: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(
    CallToolResult | InputRequiredResult
)
_log = logging.getLogger(__name__)


async def _call_tool(
    client: Client, tool: str, arguments: dict[str, Any], timeout_seconds: float
) -> ToolOutcome:
    # `client.call_tool` would validate results against the server's schemas, including its regular
    # expressions, on the event loop.
    request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
    result = await client.session.send_request(
        request, _RESULTS, request_read_timeout_seconds=timeout_seconds
    )
    if not isinstance(result, CallToolResult):
        raise ToolFailure("It requests input during the call, which is not supported.")
    return await asyncio.to_thread(parse_result, result)
