"""`maniple mcp login`: a person's login at an MCP server."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from maniple.cli.options import ConfigOption, finish, read_settings

if TYPE_CHECKING:
    from maniple.config import Settings


def login(
    server: Annotated[str, typer.Argument(metavar="SERVER", help="As mcp.servers in conf.yaml names it.")],
    browser: Annotated[bool, typer.Option(help="Open the address in a browser, too.")] = True,
    config: ConfigOption = None,
) -> None:
    """Log in at a server that has auth: oauth, in a browser on this machine.

    What the server gives is kept in data_dir, for you alone, and refreshed; a team that
    runs connects within a minute.

    \b
    Examples:
      maniple mcp login github
      maniple mcp login github --no-browser   only print the address

    \b
    Exit status: 0 logged in, 1 refused, not there, or nobody came within 5 minutes,
    2 no such server, or wrong settings.
    """
    finish(_login(read_settings(config), server, opens=browser))


async def _login(settings: "Settings", name: str, *, opens: bool) -> int:
    from importlib.util import find_spec

    from maniple.cli.ending import WrongUsage
    from maniple.cli.mcp_quiet import keep_quiet
    from maniple.cli.untrusted import exposed
    from maniple.errors import McpError
    from maniple.types import installing

    server = settings.mcp.servers.get(name)
    if server is None or server.auth is None:
        known = [one for one, its in settings.mcp.servers.items() if its.auth is not None]
        raise WrongUsage(f"{name} is no MCP server with auth: oauth; those are {', '.join(known) or 'none'}.")
    if find_spec("mcp") is None:
        raise McpError(f"MCP servers take a package that is not there: {installing('mcp')}.")
    from maniple.mcp import Logins
    from maniple.mcp.new_login import log_in
    from maniple.runtime.mcp import logins_folder

    async def show(address: str) -> None:
        print(f"Log in here:\n{exposed(address)}", flush=True)
        if opens:
            import webbrowser

            await asyncio.to_thread(webbrowser.open, address)

    keep_quiet()
    await log_in(name, server, Logins(logins_folder(settings)), show)
    print(f"Logged in to {name}.")
    return 0
