"""The server at an address: streamable HTTP behind the same door as the HTTP API."""

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from maniple.api.auth import KeyGate
from maniple.api.state import Service
from maniple.config import ServerSettings
from maniple.config.settings import LOOPBACK_HOSTS
from maniple.mcp_server.server import TeamServer

PATH = "/mcp"
MOST_SESSIONS = 1_000


def create_mcp_app(service: Service, server: TeamServer) -> Starlette:
    """Return the app that serves `server` at `PATH`; its lifespan keeps the sessions."""
    settings = service.settings.server
    app = server.protocol.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=settings.max_body_bytes,
        max_sessions=MOST_SESSIONS,
        # Host and Origin are looked at below, as the HTTP API does it.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.state.service = service
    # What is added last is asked first.
    app.add_middleware(_KeysSession)
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
    return app


class _OriginGate:
    """Refuses what a web page sends, unless `server.cors_origins` names the page's origin."""

    def __init__(self, app: ASGIApp, server: ServerSettings) -> None:
        self._app = app
        self._allowed = frozenset(server.cors_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = Headers(scope=scope).get("origin") if scope["type"] == "http" else None
        if origin is None or origin in self._allowed:
            await self._app(scope, receive, send)
            return
        words = "Web pages are not served, but those that server.cors_origins names."
        await JSONResponse({"detail": words, "code": "forbidden"}, status_code=403)(scope, receive, send)


class _KeysSession:
    """Ties a session to the API key that began it: to another key the SDK then answers that there is none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (caller := scope["state"]["caller"]) is not None and caller.owner:
            token = AccessToken(token="", client_id=caller.owner, scopes=[])
            scope["user"] = AuthenticatedUser(token)
        await self._app(scope, receive, send)
