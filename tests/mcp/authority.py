"""An MCP server that wants people to log in, and its authorization server, both the official SDK's."""

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.mcp.open_servers import until


class _ClientOfDocument(OAuthClientInformationFull):
    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        assert redirect_uri is not None
        assert (redirect_uri.host, redirect_uri.path) == ("127.0.0.1", "/callback")
        return redirect_uri


@dataclass
class Authority(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Accepts every login, or with `refuses` none; tokens expire after `lifetime_seconds`.

    With a `document`, the only client that it knows is the one whose id is this address; none can register.
    """

    lifetime_seconds: int = 3_600
    document: str = ""
    refuses: bool = False
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)
    refresh_owner: int = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if self.document and client_id == self.document:
            # As it does with what it has read there: a redirect to this machine may have any port (RFC 8252).
            return _ClientOfDocument(
                client_id=client_id,
                redirect_uris=[AnyUrl("http://127.0.0.1/callback")],
                token_endpoint_auth_method="none",
            )
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.refuses:
            return construct_redirect_uri(str(params.redirect_uri), error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_hex(20),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: Any, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._given(authorization_code.client_id, authorization_code.resource)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: Any, refresh_token: RefreshToken, scopes: Any
    ) -> OAuthToken:
        del self.refresh[refresh_token.token]
        self.refresh_owner += 1
        return self._given(client.client_id, self._resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: Any) -> None:
        self.forget()

    def forget(self) -> None:
        """Revoke everything."""
        self.access.clear()
        self.refresh.clear()

    def _given(self, client_id: str, resource: str | None) -> OAuthToken:
        self._resource = resource
        access, refresh = f"access-{secrets.token_hex(20)}", f"refresh-{secrets.token_hex(20)}"
        ends = int(time.time()) + self.lifetime_seconds
        self.access[access] = AccessToken(
            token=access, client_id=client_id, scopes=[], expires_at=ends, resource=resource
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=[])
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.lifetime_seconds)


@asynccontextmanager
async def closed_site(authority: Authority) -> AsyncIterator[str]:
    """Serve a server that requires a login; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = MCPServer(
            "closed",
            auth=AuthSettings(
                issuer_url=AnyHttpUrl(here),
                resource_server_url=AnyHttpUrl(f"{here}/mcp"),
                client_registration_options=ClientRegistrationOptions(enabled=not authority.document),
                validate_token_resource=True,
            ),
            auth_server_provider=authority,
        )

        @server.tool()
        async def tokens() -> str:
            """Tell every token that was given."""
            return " ".join([*authority.access, *authority.refresh])

        app = server.streamable_http_app()
        if authority.document:
            _advertise_documents(app)
        config = uvicorn.Config(app, log_config=None, ws="none")
        config.timeout_graceful_shutdown = 1
        serving = uvicorn.Server(config)
        task = asyncio.create_task(serving._serve(sockets=[listener]))
        await until(lambda: serving.started)
        try:
            yield f"{here}/mcp"
        finally:
            serving.should_exit = True
            await task


def _advertise_documents(app: Starlette) -> None:
    """Say in the metadata that documents' addresses are ids of clients, which the SDK's server cannot yet."""
    here = "/.well-known/oauth-authorization-server"
    [known] = [route for route in app.routes if isinstance(route, Route) and route.path == here]

    async def read(request: Request) -> JSONResponse:
        base = str(request.base_url)
        return JSONResponse(
            {
                "issuer": base,
                "authorization_endpoint": f"{base}authorize",
                "token_endpoint": f"{base}token",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "client_id_metadata_document_supported": True,
            }
        )

    app.router.routes[app.router.routes.index(known)] = Route(here, read)
