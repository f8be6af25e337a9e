"""`maniple mcp`: the MCP servers whose tools the team uses."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maniple.cli.mcp_login import login
from maniple.cli.mcp_quiet import keep_quiet
from maniple.cli.mcp_serve import serve_mcp
from maniple.cli.options import ConfigOption, finish, read_settings

if TYPE_CHECKING:
    from maniple.config import Settings
    from maniple.mcp import McpServers, ServerState

mcp = typer.Typer(
    name="mcp", no_args_is_help=True, help="MCP servers: tools from elsewhere, and the team as one."
)
mcp.command("serve")(serve_mcp)
mcp.command("login")(login)

NO_SERVERS = "No MCP server is configured; docs/mcp.md says how (mcp.servers in conf.yaml)."
ServerName = Annotated[str, typer.Argument(metavar="SERVER", help="As mcp.servers in conf.yaml names it.")]


@mcp.command("list")
def list_servers(
    as_json: Annotated[bool, typer.Option("--json", help="Print the servers and tools as JSON.")] = False,
    config: ConfigOption = None,
) -> None:
    """Connect to every server and list its tools, with what the team calls them.

    \b
    Examples:
      maniple mcp list
      maniple mcp list --json | jq -r '.[].tools[].name'

    \b
    Which worker gets which server's tools: mcp.workers in conf.yaml. docs/mcp.md says more.

    \b
    Exit status: 0 all are there (none is configured, too), 1 one is not, 2 wrong settings.
    """
    finish(_list(read_settings(config), as_json=as_json))


@mcp.command("test")
def test_server(
    server: ServerName,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Call this one, too.", show_default=False)] = "",
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="The call's arguments.")] = "{}",
    config: ConfigOption = None,
) -> None:
    """Connect to one server, and call one of its tools.

    \b
    Examples:
      maniple mcp test time
      maniple mcp test time get_current_time '{"timezone": "Europe/Berlin"}'

    \b
    Exit status: 0 it works, 1 it does not, 2 no such server or tool, or wrong settings.
    """
    finish(_test(read_settings(config), server, tool, arguments))


@mcp.command("accept")
def accept_server(
    server: ServerName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigOption = None,
) -> None:
    """Show what a server says of its tools beside what was accepted, and accept it.

    A tool whose name, description or arguments changed is not used until then: what a server
    writes there is read by the models.

    \b
    Examples:
      maniple mcp accept github
      maniple mcp accept github --yes

    \b
    A team that runs uses the tools within seconds.

    \b
    Exit status: 0 accepted or nothing to accept, 1 it is not there, or not accepted, 2 no such server.
    """
    finish(_accept(read_settings(config), server, yes=yes))


async def _list(settings: "Settings", *, as_json: bool) -> int:
    names = [name for name, one in settings.mcp.servers.items() if not one.disabled]
    if not names:
        off = f"All are disabled: {', '.join(settings.mcp.servers)}." if settings.mcp.servers else ""
        _say(settings, ["[]" if as_json else off or NO_SERVERS])
        return 0
    from maniple.cli.mcp_text import told
    from maniple.runtime.mcp import open_one_by_one, pins_folder

    keep_quiet()
    async with open_one_by_one(settings, names) as servers:
        states = servers.states()
    if as_json:
        print(
            _hide(settings, json.dumps([_as_data(state) for state in states], ensure_ascii=False, indent=2))
        )
    else:
        for state in states:
            first = settings.mcp.trust == "first_use"
            _say(settings, told(state, settings, pins_folder(settings), first_use=first))
    return 1 if any(state.obstacle for state in states) else 0


async def _test(settings: "Settings", server: str, tool: str, arguments: str) -> int:
    from maniple.cli.mcp_text import told
    from maniple.runtime.mcp import open_one_by_one, pins_folder

    given = _parsed(arguments)
    _check(settings, server)
    keep_quiet()
    async with open_one_by_one(settings, [server]) as servers:
        state = servers.states()[0]
        if not tool or state.obstacle:
            _say(settings, told(state, settings, pins_folder(settings), first_use=True))
            return 1 if state.obstacle else 0
        return await _try(settings, servers, state, tool, given)


async def _try(
    settings: "Settings", servers: "McpServers", state: "ServerState", tool: str, given: dict[str, Any]
) -> int:
    from maniple.cli.ending import WrongUsage

    found = next((one for one in state.tools if tool in (one.definition.name, one.name)), None)
    if found is None:
        known = ", ".join(one.definition.name for one in state.tools) or "no tool"
        raise WrongUsage(f"{state.name} has {known}; there is no {tool}.")
    outcome = await servers.try_out(found, given)
    _say(settings, [outcome.text or "[no output]"])
    _say(settings, [f"[{one.media_type}, {len(one.content)} bytes]" for one in outcome.pictures])
    return 1 if outcome.is_error else 0


async def _accept(settings: "Settings", server: str, *, yes: bool) -> int:
    import asyncio

    from maniple.cli.mcp_text import changes
    from maniple.errors import McpError
    from maniple.mcp import Pins
    from maniple.runtime.mcp import open_one_by_one, pins_folder

    _check(settings, server)
    keep_quiet()
    async with open_one_by_one(settings, [server]) as servers:
        state = servers.states()[0]
        if state.obstacle:
            raise McpError(f"{server} is not there: {state.obstacle}")
        pins = Pins(pins_folder(settings))
        accepted = await asyncio.to_thread(pins.of, server)
        said = list(changes(state, accepted))
        _say(settings, said or [f"Nothing of {server} changed since it was accepted."])
        if not said:
            return 0
        if not yes and not await asyncio.to_thread(typer.confirm, f"Accept the tools of {server} as above?"):
            return 1
    # What was shown, whatever the server has said since.
    await asyncio.to_thread(pins.accept, server, [tool.definition for tool in state.tools])
    _say(settings, [f"Accepted: {len(state.tools)} tools of {server}."])
    return 0


def _check(settings: "Settings", server: str) -> None:
    from maniple.cli.ending import WrongUsage

    known = settings.mcp.servers
    if server not in known:
        raise WrongUsage(f"There is no MCP server {server}; there are {', '.join(known) or 'none'}.")
    if known[server].disabled:
        raise WrongUsage(f"The MCP server {server} is disabled in the settings.")


def _parsed(arguments: str) -> dict[str, Any]:
    from maniple.cli.ending import WrongUsage

    try:
        given = json.loads(arguments)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise WrongUsage('The arguments must be a JSON object, such as \'{"name": "value"}\'.')
    return given


def _as_data(state: "ServerState") -> dict[str, Any]:
    tools = [
        {
            "name": tool.name,
            "tool": tool.definition.name,
            "description": tool.definition.description,
            "arguments": tool.definition.schema,
            "obstacle": tool.obstacle,
        }
        for tool in state.tools
    ]
    return {
        "name": state.name,
        "transport": state.transport,
        "obstacle": state.obstacle,
        "tools": tools,
        "left_out": dict(state.left_out),
    }


def _say(settings: "Settings", lines: Iterable[str]) -> None:
    from maniple.cli.untrusted import exposed

    for line in lines:
        print("\n".join(map(exposed, _hide(settings, line).split("\n"))))


def _hide(settings: "Settings", text: str) -> str:
    from maniple.config.secrets import redactor_of

    return redactor_of(settings).text(text)
