"""The HTTP service and the MCP server as foreground programs."""

import asyncio
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

import uvicorn

from maniple.cli.exit_status import loading
from maniple.cli.render import Screens, announce
from maniple.cli.store_admin import NO_VALID_KEY, has_valid_key
from maniple.cli.text import counted
from maniple.config import ServerSettings, Settings
from maniple.errors import ConfigError
from maniple.store import ApiKey


async def serve(settings: Settings) -> int:
    """Serve until SIGINT or SIGTERM; raises the `ManipleError` that keeps the team from opening."""
    await refuse_strangers(settings)
    screens = Screens.of_this_process()
    progress = screens.progress()
    with await asyncio.to_thread(bind, settings.server) as listener:
        try:
            progress.step("starting the service")
            with loading():
                from maniple.api import create_app

            configure_service_logs(settings)
            app = create_app(settings, progress=progress)
            # Entered here and not by uvicorn, which would print an error's stack instead of its sentence.
            async with app.router.lifespan_context(app):
                progress.close()
                service = app.state.service
                announce(service.runtime.answering, service.runtime.notices, screens)
                where = address_of(listener, settings.server)
                screens.note(f"Serving on {where} (documented at /docs). Ctrl-C stops.")
                say_to_whom(await service.store.keys.list(), settings.server, screens)
                await Server(configuration(app), service.engine.drain).serve(sockets=[listener])
        finally:
            progress.close()
    return 0


async def serve_mcp_stdio(settings: Settings) -> int:

    _require_sdk()
    with loading():
        from maniple.mcp_server import serve_stdio

    configure_service_logs(settings)
    progress = Screens.of_this_process().progress()
    try:
        await serve_stdio(settings, progress)
    finally:
        progress.close()
    return 0


async def serve_mcp_http(settings: Settings) -> int:

    _require_sdk()
    await refuse_strangers(settings)
    screens = Screens.of_this_process()
    progress = screens.progress()
    with await asyncio.to_thread(bind, settings.server) as listener:
        try:
            progress.step("starting the service")
            with loading():
                from maniple.api.state import open_service
                from maniple.mcp_server import TeamServer, create_mcp_app

            configure_service_logs(settings)
            async with open_service(settings, progress, alone=False) as service:
                opened = asyncio.get_running_loop().create_future()
                opened.set_result(service)
                server = TeamServer(settings, opened)
                app = create_mcp_app(service, server)

                async def leave() -> None:
                    server.leave()
                    await service.engine.drain()

                async with app.router.lifespan_context(app):
                    progress.close()
                    announce(service.runtime.answering, service.runtime.notices, screens)
                    where = address_of(listener, settings.server)
                    screens.note(f"Serving MCP on {where}/mcp. Ctrl-C stops.")
                    say_to_whom(await service.store.keys.list(), settings.server, screens)
                    await Server(configuration(app), leave).serve(sockets=[listener])
        finally:
            progress.close()
    return 0


def _require_sdk() -> None:
    from importlib.util import find_spec

    from maniple.errors import McpError
    from maniple.types import installing

    if find_spec("mcp") is None:
        raise McpError(f"To be an MCP server takes a package that is not there: {installing('mcp')}.")


_GRACE_SECONDS = 5
# The last frames are on their way to the sockets; a stream is cut when the server begins to exit.
_FLUSH_SECONDS = 0.3
# Longer than clients and proxies keep an idle connection: one that the server closes just as the next request
# comes fails that request. uvicorn's own 5 seconds do so now and then.
_KEEP_ALIVE_SECONDS = 75


class Server(uvicorn.Server):
    """uvicorn, which leaves signals to this program: the team has to be closed after it."""

    def __init__(self, config: uvicorn.Config, drain: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._drain = drain
        self._leaving: asyncio.Task[None] | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._leave, number)
        yield

    def _leave(self, number: int) -> None:
        """Let every client hear how its stream ends before the server does; a second signal hurries."""
        if self._leaving is not None:
            self.handle_exit(number, None)
            return
        self._leaving = asyncio.create_task(self._drain_and_exit(number))

    async def _drain_and_exit(self, number: int) -> None:
        await self._drain()
        await asyncio.sleep(_FLUSH_SECONDS)
        self.handle_exit(number, None)


def configure_service_logs(settings: Settings) -> None:
    """Log to stderr, as the settings want it."""
    from maniple.config.secrets import redactor_of
    from maniple.telemetry.logs import configure_logs

    chosen = settings.logging.format
    reading = "console" if sys.stderr.isatty() else "json"
    configure_logs(settings.logging.level, reading if chosen == "auto" else chosen, redactor_of(settings))


async def refuse_strangers(settings: Settings) -> None:
    """Raise `ConfigError` where everybody on the network could come in."""
    server = settings.server
    if server.is_loopback or server.insecure or await has_valid_key(settings):
        return
    raise ConfigError(
        f"{server.host} can be reached from other machines, and there is no API key: everyone there could "
        "use the team and your keys. Make one (maniple keys add NAME), serve on 127.0.0.1, behind a proxy "
        "that asks for a login, or say --insecure."
    )


def bind(settings: ServerSettings) -> socket.socket:
    """Take the address before the model is loaded; nobody is let in yet."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # a client that never reads is let go
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 90_000)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"Cannot serve on {settings.host}, port {settings.port}: {error.strerror or error}. "
            "Choose others with --host and --port; port 0 takes a free one."
        ) from error
    return listener


def configuration(app: object) -> uvicorn.Config:
    """Return how uvicorn serves an app whose lifespan is the caller's to enter."""
    return uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType] - FastAPI stays behind the api room's door
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )


def address_of(listener: socket.socket, server: ServerSettings) -> str:
    """Return where clients find it."""
    port = listener.getsockname()[1]
    shown = f"[{server.host}]" if ":" in server.host else server.host
    return f"http://{shown}:{port}"


def say_to_whom(keys: Sequence[ApiKey], server: ServerSettings, screens: Screens) -> None:
    """Tell whether clients need a key."""
    valid = sum(key.revoked_at is None for key in keys)
    if valid:
        screens.note(f"Clients need one of {counted(valid, 'API key')} (X-API-Key).", "dim")
    elif keys:
        screens.note(NO_VALID_KEY, "red")
    elif not server.is_loopback:
        screens.note("INSECURE: everyone who can reach this address can use the team and your keys.", "red")
