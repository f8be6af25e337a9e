"""The MCP server at `/mcp` of the HTTP service, opened at its first request."""

import asyncio
from typing import TYPE_CHECKING, Any

from maniple.cli.process import pause_garbage_collection
from maniple.installation import installing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from maniple.service import Service

PATH = "/mcp"
_HEADERS = [(b"content-type", b"application/json")]


class McpPath:
    """An ASGI app: passes requests of `/mcp` to the MCP server, and all others to `app`.

    The MCP server is opened at the first of them, because its SDK takes a second and 20 MB. Without the SDK,
    the answer is a 503 that says how to install it.
    """

    def __init__(self, app: Any, service: "Service") -> None:
        self._app = app
        self._service = service
        self._opening: asyncio.Task[Any] | None = None
        self._closing = asyncio.Event()
        self._holding: asyncio.Task[None] | None = None

    async def __call__(
        self, scope: Any, receive: "Callable[[], Awaitable[Any]]", send: "Callable[[Any], Awaitable[None]]"
    ) -> None:
        if scope["type"] != "http" or scope["path"].rstrip("/") != PATH:
            await self._app(scope, receive, send)
            return
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(), name="open the MCP server")
        try:
            mcp = await asyncio.shield(self._opening)
        except ModuleNotFoundError:
            text = f'{{"detail": "MCP needs a package. Run {installing("mcp")}.", "code": "not_installed"}}'
            await send({"type": "http.response.start", "status": 503, "headers": _HEADERS})
            await send({"type": "http.response.body", "body": text.encode()})
            return
        await mcp({**scope, "path": PATH}, receive, send)

    async def close(self) -> None:
        """End the sessions of the MCP server, if it was opened."""
        self._closing.set()
        if self._holding is not None:
            await asyncio.wait((self._holding,))

    async def _open(self) -> Any:
        create = await asyncio.to_thread(_load)
        opened = asyncio.get_running_loop().create_future()
        opened.set_result(self._service)
        app = create(self._service, opened)
        is_ready = asyncio.Event()
        # Its task group is closed by the task that opened it.
        self._holding = asyncio.create_task(self._hold(app, is_ready), name="MCP sessions")
        ready = asyncio.create_task(is_ready.wait())
        await asyncio.wait((ready, self._holding), return_when=asyncio.FIRST_COMPLETED)
        if self._holding.done():
            ready.cancel()
            self._holding.result()
        return app

    async def _hold(self, app: Any, is_ready: asyncio.Event) -> None:
        async with app.router.lifespan_context(app):
            is_ready.set()
            await self._closing.wait()


def _load() -> "Callable[[Service, asyncio.Future[Service]], Any]":
    with pause_garbage_collection():
        from maniple.mcp_server import TeamServer, create_mcp_app

    def create(service: "Service", opened: "asyncio.Future[Service]") -> Any:
        return create_mcp_app(service, TeamServer(service.settings, opened))

    return create
