"""The transports of the MCP server: streamable HTTP with the HTTP API's authentication, and stdio."""

import asyncio
import logging
import os
import signal
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from mcp.client._transport import TransportStreams
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from maniple.api.auth import KeyGate
from maniple.api.browser_guard import SecurityHeaders
from maniple.config import ServerSettings, Settings
from maniple.config.service_settings import LOOPBACK_HOSTS
from maniple.errors import McpError
from maniple.llms.embedded import Progress
from maniple.mcp.stdio import ThrottledStream, read_messages, write_messages
from maniple.mcp_server.server import TeamServer
from maniple.service import Service, open_service

PATH = "/mcp"
SESSION_LIMIT = 1_000


def create_mcp_app(service: Service, server: TeamServer) -> Starlette:
    """Return the app that serves `server` at `PATH`; its lifespan keeps the sessions."""
    settings = service.settings.server
    app = server.protocol.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=settings.max_body_bytes,
        max_sessions=SESSION_LIMIT,
        # The middleware below checks Host and Origin, as the HTTP API does.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.state.service = service
    # The middleware that is added last comes first.
    app.add_middleware(_SessionOwner)
    app.add_middleware(KeyGate, server=settings)
    app.add_middleware(_OriginGate, server=settings)
    if settings.is_loopback:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK_HOSTS, "[::1]", settings.host])
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["mcp-session-id", "www-authenticate"],
        )
    app.add_middleware(SecurityHeaders)
    return app


class _OriginGate:
    """Rejects requests from web pages whose origin is not in `server.cors_origins`."""

    def __init__(self, app: ASGIApp, server: ServerSettings) -> None:
        self._app = app
        self._allowed = frozenset(server.cors_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = Headers(scope=scope).get("origin") if scope["type"] == "http" else None
        if origin is None or origin in self._allowed:
            await self._app(scope, receive, send)
            return
        message = "This web page's origin is not allowed. Add it to server.cors_origins."
        await JSONResponse({"detail": message, "code": "forbidden"}, status_code=403)(scope, receive, send)


class _SessionOwner:
    """Binds a session to the API key that started it. For other keys the session does not exist."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (caller := scope["state"]["caller"]) is not None and caller.owner:
            token = AccessToken(token="", client_id=caller.owner, scopes=[])
            scope["user"] = AuthenticatedUser(token)
        await self._app(scope, receive, send)


MESSAGE_BYTES = 8_000_000
"""The size of one message."""
_DRAIN_SECONDS = 1.0
"""Short, because MCP hosts kill a server that does not end quickly."""
_NO_HOST = (
    "An MCP host starts this command and speaks with it over pipes, but standard input or output is a file "
    "or /dev/null. Register the command with a host (docs/mcp.md), or serve a port with --http."
)
_LOG = logging.getLogger(__name__)


async def serve_stdio(settings: Settings, progress: Progress) -> None:
    """Serve the parent process until the input ends or SIGINT, SIGTERM or SIGHUP arrives.

    Runs in progress stop at a checkpoint and continue when the team is served again. If the team cannot be
    opened, each call returns the `ManipleError`, which is raised at the end.
    """
    runs = settings.runs
    soon = runs.model_copy(update={"drain_seconds": min(runs.drain_seconds, _DRAIN_SECONDS)})
    settings = settings.model_copy(update={"runs": soon})
    async with _own_pipes() as (reader, writer), _opening(settings, progress) as opened:
        server = TeamServer(settings, opened)
        async with _streams(reader, writer) as (read, write):
            protocol = server.protocol
            serving = protocol.run(read, write, protocol.create_initialization_options())
            await _until_signal(asyncio.create_task(serving, name="mcp server"))


@asynccontextmanager
async def _opening(settings: Settings, progress: Progress) -> AsyncIterator[asyncio.Future[Service]]:
    """Open the service in a separate task; yield its future, and close it at the end."""
    opened: asyncio.Future[Service] = asyncio.get_running_loop().create_future()
    closing = asyncio.Event()

    async def hold_open() -> None:
        try:
            async with open_service(settings, progress, alone=False) as service:
                opened.set_result(service)
                await closing.wait()
        except Exception as error:
            if opened.done():
                raise
            # Every error is passed to the calls that wait for the team.
            _LOG.error("The team cannot be opened: %s", error)
            opened.set_exception(error)

    holding = asyncio.create_task(hold_open(), name="team")
    try:
        yield opened
    finally:
        closing.set()
        if not opened.done():
            holding.cancel()
        await asyncio.wait({holding})
    if not holding.cancelled():
        holding.result()
        opened.result()


async def _until_signal(serving: asyncio.Task[None]) -> None:
    """Wait for the end of the input. A signal ends the calls immediately."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, serving.cancel)
    with suppress(asyncio.CancelledError):
        await serving


@asynccontextmanager
async def _streams(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> AsyncIterator[TransportStreams]:
    """Yield the SDK's streams."""
    read_writer, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, write_reader = anyio.create_memory_object_stream[SessionMessage](0)

    async def reading() -> None:
        async with read_writer:
            reason = await read_messages(reader, read_writer)
            _LOG.info("The client has disconnected: %s.", reason)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reading)
            tasks.start_soon(write_messages, writer, write_reader)
            try:
                yield ThrottledStream(read), write
            finally:
                tasks.cancel_scope.cancel()
    finally:
        for stream in (read, write, read_writer, write_reader):
            stream.close()


def _is_connection(file: int) -> bool:
    """Return whether the event loop can wait for a file: a pipe, a socket or a terminal."""
    mode = os.fstat(file).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(file)


@asynccontextmanager
async def _own_pipes() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Reserve standard input and output for the protocol; prints go to standard error meanwhile."""
    if not all(_is_connection(file) for file in (0, 1)):
        raise McpError(_NO_HOST)
    loop = asyncio.get_running_loop()
    given = (os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    source, target = os.fdopen(os.dup(given[0]), "rb", 0), os.fdopen(os.dup(given[1]), "wb", 0)
    try:
        reader = asyncio.StreamReader(limit=MESSAGE_BYTES)
        incoming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        outgoing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, target)
        yield reader, asyncio.StreamWriter(outgoing, protocol, None, loop)
        incoming.close()
        outgoing.close()
    finally:
        for own, file in enumerate(given):
            os.set_blocking(file, True)  # the shell shares the terminal
            os.dup2(file, own)
            os.close(file)
