"""One server: connected by a task of its own, which connects again when it is lost.

The SDK's contexts hold cancel scopes, which must be left in the task that entered them; so one task owns the
whole life of a connection, while calls are made from any.
"""

import asyncio
import logging
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
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

from maniple.config.mcp_settings import McpServerSettings, plain
from maniple.errors import McpError, ToolFailure
from maniple.mcp.definitions import Listing, read_listing
from maniple.mcp.http import http_transport
from maniple.mcp.login import Login, Logins
from maniple.mcp.results import Outcome, outcome_of
from maniple.mcp.stdio import Start, stdio_transport
from maniple.mcp.stream import WatchedStream
from maniple.mcp.words import fetching, reason_of

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
_LOG = logging.getLogger(__name__)


class Connection:
    """Speaks with one server as long as `run` runs; `heard` is told what it offers, at each listing."""

    def __init__(
        self,
        name: str,
        server: McpServerSettings,
        start: Start,
        heard: Callable[[str, Listing], Awaitable[None]],
        refresh_seconds: float,
        logins: Logins,
    ) -> None:
        self.name = name
        self._server = server
        self._start = start
        self._heard = heard
        self._refresh_seconds = refresh_seconds
        self._logins = logins
        self._login: Login | None = None
        self._client: Client | None = None
        self._changed = asyncio.Event()
        self._is_current = asyncio.Event()
        """Set while nothing is known to have changed since the last listing."""
        self._is_lost = False
        self.obstacle = "it is being connected"
        """Why it cannot be called now; "" when it can."""
        self.settled = asyncio.Event()
        """Set when the first try to connect has ended, one way or the other."""

    async def run(self) -> None:
        """Connect, stay connected, connect again; until cancelled."""
        delay = _FIRST_DELAY_SECONDS
        while True:
            began = asyncio.get_running_loop().time()
            told = self.obstacle
            try:
                await self._live()
            except Exception as error:  # noqa: BLE001 - whatever is wrong with a server concerns it alone
                self.obstacle = self._reason(error) + fetching(self._server)
            # A task group that has errors of its own to tell loses a cancellation beside them.
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError
            if self.obstacle != told:
                _LOG.warning("The MCP server %s is not there: %s", self.name, self.obstacle)
            self.settled.set()
            if asyncio.get_running_loop().time() - began > _SOUND_SECONDS:
                delay = _FIRST_DELAY_SECONDS
            await asyncio.sleep(delay * random.uniform(0.75, 1.25))
            delay = min(2 * delay, _LONGEST_DELAY_SECONDS)

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout_seconds: float) -> Outcome:
        """Call a tool by the server's name for it; the server is told when the caller does not wait any more.

        Raises `McpError` with words for the model: of a server that is not there, does not answer or refuses.
        """
        client = self._client
        if client is None:
            raise McpError(f"The MCP server {self.name} cannot be used now: {self.obstacle}")
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

    def _masked(self, outcome: Outcome) -> Outcome:
        login = self._login
        return replace(outcome, text=login.redactor.text(outcome.text)) if login is not None else outcome

    def _must_log_in(self) -> bool:
        return self._login is not None and self._login.is_needed

    def _reason(self, error: BaseException) -> str:
        if (login := self._login) is None:
            return reason_of(error)
        return login.words if login.is_needed else login.redactor.text(reason_of(error))

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
                self._client, self.obstacle = client, ""
                if not self._changed.is_set():
                    self._is_current.set()
                self.settled.set()
                try:
                    await self._stay(client)
                finally:
                    self._client = None
                    self._is_current.set()
                    self.obstacle = "the connection was lost"
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
            yield WatchedStream(read, self._lose), write

    async def _kept_login(self) -> Login | None:
        """Return what a person's login came to, where there has to be one; raises `McpError` without it."""
        if self._server.auth is None:
            return None
        self._login = self._logins.of(self.name, plain(self._server.url))
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
            _LOG.debug("The MCP server %s does not say when its tools change: %s", self.name, error)

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


async def _called(client: Client, tool: str, arguments: dict[str, Any], timeout_seconds: float) -> Outcome:
    # Not `client.call_tool`: it checks results against schemas that are the server's own, with regular
    # expressions of its own, on the event loop.
    request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
    result = await client.session.send_request(
        request, _RESULTS, request_read_timeout_seconds=timeout_seconds
    )
    if not isinstance(result, CallToolResult):
        raise ToolFailure("It asks for input in the middle of the call, which nobody here can give.")
    return await asyncio.to_thread(outcome_of, result)
