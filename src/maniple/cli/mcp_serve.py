"""`maniple mcp serve`: the team as tools of other programs."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from maniple.cli.options import (
    ConfigOption,
    HostOption,
    InsecureOption,
    PortOption,
    finish,
    read_settings,
    served_at,
)

if TYPE_CHECKING:
    from maniple.config import Settings


def serve_mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve at --host and --port instead of on input and output.")
    ] = False,
    host: HostOption = None,
    port: PortOption = None,
    insecure: InsecureOption = False,
    config: ConfigOption = None,
) -> None:
    """Offer the team to an MCP host, as the tools ask_team, plan and get_run.

    \b
    Examples:
      maniple mcp serve                     what a host starts: docs/mcp.md has its JSON
      maniple mcp serve --http --port 9000  streamable HTTP, at http://127.0.0.1:9000/mcp

    \b
    Runs are kept as those of maniple serve and maniple chat: what was under way when this
    program ended goes on when it is started again, and get_run tells of it. Beyond this
    machine --http needs an API key: maniple keys add NAME.

    \b
    Exit status: 0 stopped, 1 the team cannot be opened, 2 wrong usage or settings,
    such as a port that is taken.
    """
    settings = read_settings(config)
    if not http and (host is not None or port is not None or insecure):
        raise typer.BadParameter("there is no address without it.", param_hint="--http")
    settings = served_at(settings, host, port, insecure)
    finish(_at_an_address(settings) if http else _on_stdio(settings))


async def _on_stdio(settings: "Settings") -> int:
    from maniple.cli.listening import configure_service_logs
    from maniple.cli.loading import loading
    from maniple.cli.screens import Screens

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


async def _at_an_address(settings: "Settings") -> int:
    from maniple.cli import listening
    from maniple.cli.loading import loading
    from maniple.cli.opening import announce
    from maniple.cli.screens import Screens

    _require_sdk()
    await listening.refuse_strangers(settings)
    screens = Screens.of_this_process()
    progress = screens.progress()
    with await asyncio.to_thread(listening.bind, settings.server) as listener:
        try:
            progress.step("starting the service")
            with loading():
                from maniple.api.state import open_service
                from maniple.mcp_server import TeamServer, create_mcp_app

            listening.configure_service_logs(settings)
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
                    where = listening.address_of(listener, settings.server)
                    screens.note(f"Serving MCP on {where}/mcp. Ctrl-C stops.")
                    listening.say_to_whom(await service.store.keys.list(), settings.server, screens)
                    await listening.Server(listening.configuration(app), leave).serve(sockets=[listener])
        finally:
            progress.close()
    return 0


def _require_sdk() -> None:
    from importlib.util import find_spec

    from maniple.errors import McpError
    from maniple.types import installing

    if find_spec("mcp") is None:
        raise McpError(f"To be an MCP server takes a package that is not there: {installing('mcp')}.")
