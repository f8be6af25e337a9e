"""The transports of the MCP server: streamable HTTP with the HTTP API's authentication, and stdio."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

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
from maniple.service import Service
from maniple.service.host_pipes import open_in_background, own_pipes, until_signal

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
    async with (
        own_pipes(McpError(_NO_HOST)) as (reader, writer),
        open_in_background(settings, progress) as opened,
    ):
        server = TeamServer(settings, opened)
        async with _streams(reader, writer) as (read, write):
            protocol = server.protocol
            serving = protocol.run(read, write, protocol.create_initialization_options())
            await until_signal(asyncio.create_task(serving, name="mcp server"))


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
