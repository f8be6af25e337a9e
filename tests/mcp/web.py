"""The official SDK's server over HTTP, in this process, and what it was sent."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.mcp.open_servers import until


@dataclass
class Site:
    """A server at `url`. `headers` are those of the last request; `token` is wanted of each, if it is set."""

    server: MCPServer
    port: int
    transport: Literal["http", "sse"]
    headers: dict[str, str] = field(default_factory=dict)
    token: str = ""
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    running: asyncio.Event = field(default_factory=asyncio.Event)
    is_old: bool = False
    """Whether it knows only the protocols of before 2026, which have sessions."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when somebody says that a session ends; with `is_deaf` there is no answer to that."""
    is_deaf: bool = False
    _serving: list[tuple[uvicorn.Server, asyncio.Task[None]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{'sse' if self.transport == 'sse' else 'mcp'}"

    async def start(self) -> None:
        app = self.server.sse_app() if self.transport == "sse" else self.server.streamable_http_app()
        config = uvicorn.Config(self._guarded(app), port=self.port, log_config=None, ws="none")
        config.timeout_graceful_shutdown = 1
        server = uvicorn.Server(config)
        task = asyncio.create_task(server._serve())  # `serve` would take the signals of this process
        self._serving.append((server, task))
        await until(lambda: server.started)

    async def stop(self) -> None:
        server, task = self._serving.pop()
        server.should_exit = server.force_exit = True
        await task

    def _guarded(self, app: ASGIApp) -> ASGIApp:
        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return await app(scope, receive, send)
            request = Request(scope, receive)
            answer = await self._answer(request)
            if answer is None:
                self.headers = dict(request.headers)
                return await app(scope, receive, send)
            await answer(scope, receive, send)

        return guarded

    async def _answer(self, request: Request) -> Response | None:
        """Be the authorization server, too."""
        if self.is_old and request.headers.get("mcp-protocol-version", "") > "2026":
            return Response(status_code=400)
        if request.method == "DELETE":
            self.ended.set()
            while self.is_deaf and (await request.receive())["type"] != "http.disconnect":
                pass
        here = f"http://127.0.0.1:{self.port}"
        if request.url.path.startswith("/.well-known/oauth-protected-resource"):
            return JSONResponse({"resource": self.url, "authorization_servers": [here]})
        if request.url.path.startswith("/.well-known/oauth-authorization-server"):
            return JSONResponse(
                {
                    "issuer": here,
                    "authorization_endpoint": f"{here}/authorize",
                    "token_endpoint": f"{here}/token",
                    "response_types_supported": ["code"],
                    "grant_types_supported": ["client_credentials"],
                    "token_endpoint_auth_methods_supported": ["client_secret_basic"],
                }
            )
        if request.url.path == "/token":
            self.headers["token-request"] = request.headers.get("authorization", "")
            return JSONResponse({"access_token": self.token, "token_type": "Bearer", "expires_in": 3600})
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return Response(status_code=401)
        return None


def _with_tools(site: Site) -> None:
    server = site.server

    @server.tool()
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    async def wait() -> str:
        """Wait for ever."""
        site.running.set()
        try:
            await asyncio.Event().wait()
        finally:
            site.cancelled.set()
        return ""

    @server.tool()
    async def long(characters: int) -> str:
        """Say much."""
        return "x" * characters

    @server.tool()
    async def grow(ctx: Context) -> str:
        """Have one more tool from now on."""

        def grown() -> str:
            """Is new."""
            return "grown"

        server.add_tool(grown)
        await ctx.notify_tools_changed()
        return "done"


@asynccontextmanager
async def site(transport: Literal["http", "sse"] = "http", **more: Any) -> AsyncIterator[Site]:
    """Serve until the end of the context."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = Site(MCPServer("web"), port, transport, **more)
    _with_tools(found)
    await found.start()
    try:
        yield found
    finally:
        while found._serving:
            await found.stop()
