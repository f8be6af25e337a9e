"""`maniple mcp`: the MCP servers whose tools the team uses."""

import asyncio
import difflib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from maniple.mcp import McpServers, Pinned, ServerState

mcp = typer.Typer(
    name="mcp", no_args_is_help=True, help="MCP servers: tools from elsewhere, and the team as one."
)

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


@mcp.command("serve")
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
    from maniple.cli.services import serve_mcp_http, serve_mcp_stdio

    finish(serve_mcp_http(settings) if http else serve_mcp_stdio(settings))


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
            _say(settings, _server_lines(state, settings, pins_folder(settings), first_use=first))
    return 1 if any(state.obstacle for state in states) else 0


async def _test(settings: "Settings", server: str, tool: str, arguments: str) -> int:
    from maniple.runtime.mcp import open_one_by_one, pins_folder

    given = _parsed(arguments)
    _check(settings, server)
    keep_quiet()
    async with open_one_by_one(settings, [server]) as servers:
        state = servers.states()[0]
        if not tool or state.obstacle:
            _say(settings, _server_lines(state, settings, pins_folder(settings), first_use=True))
            return 1 if state.obstacle else 0
        return await _try(settings, servers, state, tool, given)


async def _try(
    settings: "Settings", servers: "McpServers", state: "ServerState", tool: str, given: dict[str, Any]
) -> int:
    from maniple.cli.exit_status import WrongUsage

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
        said = list(_change_lines(state, accepted))
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
    from maniple.cli.exit_status import WrongUsage

    known = settings.mcp.servers
    if server not in known:
        raise WrongUsage(f"There is no MCP server {server}; there are {', '.join(known) or 'none'}.")
    if known[server].disabled:
        raise WrongUsage(f"The MCP server {server} is disabled in the settings.")


def _parsed(arguments: str) -> dict[str, Any]:
    from maniple.cli.exit_status import WrongUsage

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
    from maniple.cli.text import exposed

    for line in lines:
        print("\n".join(map(exposed, _hide(settings, line).split("\n"))))


def _hide(settings: "Settings", text: str) -> str:
    from maniple.config.secrets import redactor_of

    return redactor_of(settings).text(text)


@mcp.command("login")
def login_to_server(
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

    from maniple.cli.exit_status import WrongUsage
    from maniple.cli.text import exposed
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


def keep_quiet() -> None:
    """Log nothing of servers; without a handler Python would print it beside what is told."""
    logging.getLogger("maniple").addHandler(logging.NullHandler())
    logging.getLogger("mcp").setLevel(logging.CRITICAL)


_SHORT = 100


def _server_lines(
    state: "ServerState", settings: "Settings", pins: Path, *, first_use: bool
) -> Iterator[str]:
    """Yield lines on a server and its tools; `first_use`: what was never seen may be used, too."""
    from maniple.mcp import Pins

    if state.obstacle:
        yield f"✘ {state.name} ({state.transport}): {state.obstacle}"
        return
    workers = [one for one in settings.team.workers if state.name in settings.mcp.servers_of(one)]
    yield f"✔ {state.name} ({state.transport}), for: {', '.join(workers) or 'nobody; see mcp.workers'}"
    known = Pins(pins).of(state.name)
    for tool in state.tools:
        new = tool.definition.name not in known
        mark = "  " if not tool.obstacle or (new and first_use) else "! "
        note = f" ({tool.obstacle})" if mark == "! " else ""
        yield f"  {mark}{tool.name}{note}: {_short_line(tool.definition.description)}"
    for name, reason in state.left_out.items():
        yield f"  ✘ {name[:_SHORT]} is left out: {reason}"


def _change_lines(state: "ServerState", accepted: Mapping[str, "Pinned"]) -> Iterator[str]:
    """Yield what would be accepted beside what was: new tools, changed ones, and those that are gone."""
    from maniple.mcp import Pinned

    for tool in state.tools:
        now = Pinned(tool.definition.digest, tool.definition.description, tool.definition.schema)
        before = accepted.get(tool.definition.name)
        if before is None:
            yield f"+ {tool.definition.name} is new:\n{_indented(_written(now))}"
        elif before.digest != now.digest:
            lines = difflib.unified_diff(
                _written(before).splitlines(), _written(now).splitlines(), "accepted", "now", lineterm="", n=2
            )
            changed = "\n".join(lines) or "beyond what is kept of it"
            yield f"! {tool.definition.name} changed:\n{_indented(changed)}"
    for name in sorted(accepted.keys() - {tool.definition.name for tool in state.tools}):
        yield f"- {name} is gone"


def _written(pinned: "Pinned") -> str:
    return f"{pinned.description}\n{json.dumps(pinned.schema, indent=1, ensure_ascii=False, sort_keys=True)}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _short_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[:_SHORT]}…"
