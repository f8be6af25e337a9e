"""The HTTP service, the MCP server and the agent for editors as foreground programs."""

import asyncio
import signal
import socket
import sys
import webbrowser
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import uvicorn

from maniple.cli.connection_limits import (
    SOCKET_PING_SECONDS,
    limited_protocol,
    raise_descriptor_limit,
    trusted_proxies,
)
from maniple.cli.mcp_path import McpPath
from maniple.cli.options import require_queue
from maniple.cli.process import pause_garbage_collection
from maniple.cli.render import Consoles
from maniple.cli.store_admin import NO_VALID_KEY, has_valid_key
from maniple.config import ServerSettings, Settings
from maniple.errors import ConfigError
from maniple.store import ApiKey
from maniple.text import counted, format_host
from maniple.types import EngineRole

if TYPE_CHECKING:
    from maniple.llms.embedded import Progress
    from maniple.service import Service

_GRACE_SECONDS = 5
# For the last frames to reach the sockets: a stream is cut when the server begins to exit.
_FLUSH_SECONDS = 0.3
# Longer than clients and proxies keep an idle connection. A request fails if the server closes its connection
# at the same moment, which happens with uvicorn's default of 5 seconds.
_KEEP_ALIVE_SECONDS = 75
# Connections that may wait to be accepted: as many clients as arrive at the same moment. The event loop may
# accept all of them before the first is counted, so it is never more than a quarter of the descriptors.
_BACKLOG = 1_024
# What the kernel takes of an answer before its client reads, beyond what is on its way.
_UNSENT_BYTES = 131_072


@dataclass(frozen=True, slots=True)
class _OpenServer:
    """A server that is ready for requests."""

    app: object
    service: "Service"
    drain: Callable[[], Awaitable[None]]
    """Ends the streams of all clients."""
    greeting: str
    """With `{url}` for the URL of the service."""


_OpenServerAt = Callable[[Settings, "Progress"], AbstractAsyncContextManager[_OpenServer]]


async def serve(settings: Settings, *, opens_page: bool = False, role: EngineRole = "all") -> int:
    """Serve the HTTP API until SIGINT or SIGTERM; raises `ManipleError` if the team cannot be opened."""
    if role != "all":
        require_queue(settings)
    return await _serve_http(settings, partial(_open_api, role=role), opens_page=opens_page)


async def serve_mcp_http(settings: Settings) -> int:
    """Serve MCP over HTTP until SIGINT or SIGTERM."""
    _require_package("mcp", "The MCP server")
    return await _serve_http(settings, _open_mcp)


async def _serve_http(settings: Settings, open_server: _OpenServerAt, *, opens_page: bool = False) -> int:
    await require_access_control(settings)
    raise_descriptor_limit()  # before the service opens: it limits the sandboxes, too
    consoles = Consoles.of_this_process()
    progress = consoles.progress()
    with await asyncio.to_thread(bind_address, settings.server) as listener:
        try:
            progress.step("starting the service")
            async with open_server(settings, progress) as server:
                progress.close()
                service = server.service
                consoles.announce_model(service.runtime.answering, service.runtime.notices)
                url = server_url(listener, settings.server)
                consoles.note(f"{server.greeting.format(url=url)} Press Ctrl-C to stop.")
                announce_access(await service.store.keys.list(), settings.server, consoles)
                # The socket listens already: the browser's request waits until it is served.
                if opens_page and not await asyncio.to_thread(open_page, url):
                    consoles.note(f"No browser could be opened. Open {url} in one.")
                config = uvicorn_config(server.app, settings.server)
                await DrainingServer(config, server.drain).serve(sockets=[listener])
        finally:
            progress.close()
    return 0


@asynccontextmanager
async def _open_api(
    settings: Settings, progress: "Progress", role: EngineRole
) -> AsyncGenerator[_OpenServer]:
    with pause_garbage_collection():
        from maniple.api import create_app
        from maniple.replay.player import NOT_BUILT, is_built

    configure_service_logs(settings)
    app = create_app(settings, progress=progress, role=role)
    # Entered here because uvicorn would print a traceback instead of the error's message.
    async with app.router.lifespan_context(app):
        service: Service = app.state.service
        missing = "" if is_built() else f" {NOT_BUILT}"
        greeting = f"Serving on {{url}} (API documentation: /docs).{missing}"
        served = McpPath(app, service)
        try:
            yield _OpenServer(served, service, service.engine.drain, greeting)
        finally:
            await served.close()


@asynccontextmanager
async def _open_mcp(settings: Settings, progress: "Progress") -> AsyncGenerator[_OpenServer]:
    with pause_garbage_collection():
        from maniple.mcp_server import TeamServer, create_mcp_app
        from maniple.service import open_service

    configure_service_logs(settings)
    async with open_service(settings, progress, alone=False) as service:
        opened = asyncio.get_running_loop().create_future()
        opened.set_result(service)
        server = TeamServer(settings, opened)
        app = create_mcp_app(service, server)

        async with app.router.lifespan_context(app):
            yield _OpenServer(app, service, service.engine.drain, "Serving MCP on {url}/mcp.")


async def serve_mcp_stdio(settings: Settings) -> int:
    """Serve MCP on standard input and output until the client closes them."""
    _require_package("mcp", "The MCP server")
    with pause_garbage_collection():
        from maniple.mcp_server import serve_stdio
    return await _serve_pipes(settings, serve_stdio)


async def serve_acp_stdio(settings: Settings) -> int:
    """Serve an editor on standard input and output until it closes them."""
    _require_package("acp", "The agent for editors")
    with pause_garbage_collection():
        from maniple.acp_server import serve_acp
    return await _serve_pipes(settings, serve_acp)


async def _serve_pipes(
    settings: Settings, serve_host: Callable[[Settings, "Progress"], Awaitable[None]]
) -> int:
    configure_service_logs(settings)
    progress = Consoles.of_this_process().progress()
    try:
        await serve_host(settings, progress)
    finally:
        progress.close()
    return 0


def _require_package(extra: str, user: str) -> None:
    """Raise `Unavailable` if the package of an extra, which has its name, is not installed."""
    from importlib.util import find_spec

    from maniple.errors import Unavailable
    from maniple.installation import installing

    if find_spec(extra) is None:
        raise Unavailable(f"{user} needs a package, which is not installed.", installing(extra))


class DrainingServer(uvicorn.Server):
    """A uvicorn server that leaves signals to this program, which closes the team after the server."""

    def __init__(self, config: uvicorn.Config, drain: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._drain = drain
        self._stopping: asyncio.Task[None] | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)
        yield

    def _stop(self, number: int) -> None:
        """End every client's stream, then the server; a second signal ends the server immediately."""
        if self._stopping is not None:
            self.handle_exit(number, None)
            return
        self._stopping = asyncio.create_task(self._drain_and_exit(number))

    async def _drain_and_exit(self, number: int) -> None:
        await self._drain()
        await asyncio.sleep(_FLUSH_SECONDS)
        self.handle_exit(number, None)


def configure_service_logs(settings: Settings) -> None:
    """Log to stderr with the level and format of the settings."""
    from maniple.config.secrets import redactor_of
    from maniple.telemetry.logs import configure_logs

    chosen = settings.logging.format
    default = "console" if sys.stderr.isatty() else "json"
    configure_logs(settings.logging.level, default if chosen == "auto" else chosen, redactor_of(settings))


async def require_access_control(settings: Settings) -> None:
    """Raise `ConfigError` if other machines could use the service without a key."""
    server = settings.server
    if server.is_loopback or server.insecure or await has_valid_key(settings):
        return
    raise ConfigError(
        f"{server.host} can be reached from other machines, and there is no API key: everyone there could "
        "use your team and pay with your model keys. Create an API key with maniple keys add NAME, serve on "
        "127.0.0.1 behind a proxy that asks for a login, or pass --insecure."
    )


def bind_address(settings: ServerSettings) -> socket.socket:
    """Bind the address before the model is loaded; connections are accepted later."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # drop a client that never reads
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 90_000)
    if hasattr(
        socket, "TCP_NOTSENT_LOWAT"
    ):  # the kernel would take megabytes for a client that does not read
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"Cannot serve on {settings.host}, port {settings.port}: {error.strerror or error}. "
            "Set another address with --host and --port; port 0 selects a free port."
        ) from error
    return listener


def uvicorn_config(app: object, settings: ServerSettings) -> uvicorn.Config:
    """Return uvicorn's configuration for an app whose lifespan the caller enters."""
    descriptors = raise_descriptor_limit()
    return uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType] - only maniple.api imports FastAPI
        http=limited_protocol(settings, descriptors),
        backlog=min(_BACKLOG, descriptors // 4),
        forwarded_allow_ips=trusted_proxies(settings),
        lifespan="off",
        ws="websockets-sansio",
        ws_max_size=settings.max_body_bytes,
        ws_ping_interval=SOCKET_PING_SECONDS,
        ws_ping_timeout=None,  # a client of one thread answers a ping when it reads the next time
        ws_per_message_deflate=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )


def server_url(listener: socket.socket, server: ServerSettings) -> str:
    """Return the URL of the service."""
    return url_of(server.host, listener.getsockname()[1])


def url_of(host: str, port: int) -> str:
    """Return the URL of an HTTP server."""
    return f"http://{format_host(host)}:{port}"


def open_page(url: str) -> bool:
    """Open a page in the user's browser; return whether there is one. Blocks until it is started."""
    return webbrowser.open(url)


def announce_access(keys: Sequence[ApiKey], server: ServerSettings, consoles: Consoles) -> None:
    """Print whether clients need a key."""
    valid = sum(key.revoked_at is None for key in keys)
    if valid:
        consoles.note(f"Clients send one of {counted(valid, 'API key')} in the header X-API-Key.", "dim")
    elif keys:
        consoles.note(NO_VALID_KEY, "red")
    elif not server.is_loopback:
        consoles.note(
            "INSECURE: everyone who can reach this address can use the team and your model keys.", "red"
        )
