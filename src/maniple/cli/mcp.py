"""`maniple mcp`: the MCP servers whose tools the team uses, and the team as an MCP server."""

import asyncio
import difflib
import json
import logging
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maniple.cli.options import (
    ConfigOption,
    HostOption,
    InsecureOption,
    PortOption,
    finish,
    finish_service,
    read_settings,
    served_at,
)

if TYPE_CHECKING:
    from maniple.config import Settings
    from maniple.mcp import McpServers, ServerState, ToolPin

mcp = typer.Typer(name="mcp", no_args_is_help=True, help="Manage MCP servers, or offer the team as one.")

NO_SERVERS = "No MCP server is configured. Set mcp.servers in conf.yaml, as docs/mcp.md describes."
ServerName = Annotated[str, typer.Argument(metavar="SERVER", help="A name in mcp.servers of conf.yaml.")]


@mcp.command("list")
def list_servers(
    as_json: Annotated[bool, typer.Option("--json", help="Print the servers and tools as JSON.")] = False,
    config: ConfigOption = None,
) -> None:
    """Connect to every MCP server and list its tools under the names that the team uses.

    \b
    Examples:
      maniple mcp list
      maniple mcp list --json | jq -r '.[].tools[].name'

    \b
    Set mcp.workers in conf.yaml to choose which agents get a server's tools. docs/mcp.md has
    the details.

    \b
    Exit status: 0 all servers answer, or none is configured, 1 one does not, 2 wrong settings.
    """
    finish(_list(read_settings(config), as_json=as_json))


@mcp.command("serve")
def serve_mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve at --host and --port instead of on stdin and stdout.")
    ] = False,
    host: HostOption = None,
    port: PortOption = None,
    insecure: InsecureOption = False,
    config: ConfigOption = None,
) -> None:
    """Offer the team to an MCP host, as the tools ask_team, plan, get_run and cancel_run.

    \b
    Examples:
      maniple mcp serve                     started by an MCP host; see docs/mcp.md for its JSON
      maniple mcp serve --http --port 9000  streamable HTTP, at http://127.0.0.1:9000/mcp

    \b
    Runs are stored like those of maniple serve and maniple chat: a run in progress when this
    program ends continues at the next start, and get_run reports it. To serve other machines
    with --http, first create an API key: maniple keys add NAME.

    \b
    Exit status: 0 stopped, 1 the team cannot be opened, 2 wrong usage or settings, for
    example a port that is in use.
    """
    settings = read_settings(config, opens_team=True)
    if not http and (host is not None or port is not None or insecure):
        raise typer.BadParameter("is required with --host, --port and --insecure.", param_hint="--http")
    settings = served_at(settings, host, port, insecure)
    from maniple.cli.services import serve_mcp_http, serve_mcp_stdio

    finish_service(serve_mcp_http(settings) if http else serve_mcp_stdio(settings))


@mcp.command("test")
def test_server(
    server: ServerName,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Tool to call.", show_default=False)] = "",
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="Arguments of the call.")] = "{}",
    config: ConfigOption = None,
) -> None:
    """Connect to one MCP server and, optionally, call one of its tools.

    \b
    Examples:
      maniple mcp test time
      maniple mcp test time get_current_time '{"timezone": "Europe/Berlin"}'

    \b
    Exit status: 0 it works, 1 it fails, 2 no such server or tool, or wrong settings.
    """
    finish(_test(read_settings(config), server, tool, arguments))


@mcp.command("accept")
def accept_server(
    server: ServerName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    config: ConfigOption = None,
) -> None:
    """Show what changed in a server's tools since you accepted them, and accept the changes.

    A tool whose name, description or arguments changed is not used until you accept it, because
    models read this text.

    \b
    Examples:
      maniple mcp accept github
      maniple mcp accept github --yes

    \b
    A running team uses the tools within seconds.

    \b
    Exit status: 0 accepted, or nothing to accept, 1 unreachable, or not accepted, 2 no such server.
    """
    finish(_accept(read_settings(config), server, yes=yes))


async def _list(settings: "Settings", *, as_json: bool) -> int:
    names = [name for name, one in settings.mcp.servers.items() if not one.disabled]
    if not names:
        disabled = ", ".join(settings.mcp.servers)
        off = f"All MCP servers are disabled: {disabled}." if disabled else ""
        _print_lines(settings, ["[]" if as_json else off or NO_SERVERS])
        return 0
    from maniple.capabilities.mcp import open_one_by_one

    silence_server_logs()
    async with open_one_by_one(settings, names) as servers:
        states = servers.states()
    if as_json:
        print(
            _redact(
                settings,
                json.dumps([_state_to_dict(state) for state in states], ensure_ascii=False, indent=2),
            )
        )
    else:
        for state in states:
            await _print_server(settings, state, first_use=settings.mcp.trust == "first_use")
    return 1 if any(state.unavailable_reason for state in states) else 0


async def _test(settings: "Settings", server: str, tool: str, arguments: str) -> int:
    from maniple.capabilities.mcp import open_one_by_one

    given = _parse_arguments(arguments)
    _require_enabled(settings, server)
    silence_server_logs()
    async with open_one_by_one(settings, [server]) as servers:
        state = servers.states()[0]
        if not tool or state.unavailable_reason:
            await _print_server(settings, state, first_use=True)
            return 1 if state.unavailable_reason else 0
        return await _call_tool(settings, servers, state, tool, given)


async def _call_tool(
    settings: "Settings", servers: "McpServers", state: "ServerState", tool: str, given: dict[str, Any]
) -> int:
    from maniple.cli.process import WrongUsage

    found = next((one for one in state.tools if tool in (one.definition.name, one.name)), None)
    if found is None:
        known = ", ".join(one.definition.name for one in state.tools) or "none"
        raise WrongUsage(f"{state.name} has no tool {tool}. Its tools: {known}.")
    outcome = await servers.try_out(found, given)
    _print_lines(settings, [outcome.text or "[no output]"])
    _print_lines(settings, [f"[{one.media_type}, {len(one.content)} bytes]" for one in outcome.pictures])
    return 1 if outcome.is_error else 0


async def _accept(settings: "Settings", server: str, *, yes: bool) -> int:
    from maniple.capabilities.mcp import open_one_by_one
    from maniple.errors import McpError
    from maniple.mcp import PinStore
    from maniple.store.shared_state import open_state

    _require_enabled(settings, server)
    silence_server_logs()
    async with open_state(settings) as shared, open_one_by_one(settings, [server]) as servers:
        state = servers.states()[0]
        if state.unavailable_reason:
            raise McpError(f"{server} is unreachable: {state.unavailable_reason}")
        pins = PinStore(shared.accepted_tools)
        accepted = await asyncio.to_thread(pins.of, server)
        changes = list(_change_lines(state, accepted))
        _print_lines(settings, changes or [f"The tools of {server} have not changed."])
        if not changes:
            return 0
        if not yes and not await asyncio.to_thread(typer.confirm, f"Accept these tools of {server}?"):
            return 1
        # What was shown, even if the server has sent changes since.
        await asyncio.to_thread(pins.accept, server, [tool.definition for tool in state.tools])
    _print_lines(settings, [f"Accepted {len(state.tools)} tools of {server}."])
    return 0


def _require_enabled(settings: "Settings", server: str) -> None:
    from maniple.cli.process import WrongUsage

    known = settings.mcp.servers
    if server not in known:
        raise WrongUsage(f"There is no MCP server {server}. Configured: {', '.join(known) or 'none'}.")
    if known[server].disabled:
        raise WrongUsage(f"The MCP server {server} is disabled in mcp.servers.")


def _parse_arguments(arguments: str) -> dict[str, Any]:
    from maniple.cli.process import WrongUsage

    try:
        given = json.loads(arguments)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise WrongUsage('The arguments must be a JSON object, for example \'{"name": "value"}\'.')
    return given


def _state_to_dict(state: "ServerState") -> dict[str, Any]:
    tools = [
        {
            "name": tool.name,
            "tool": tool.definition.name,
            "description": tool.definition.description,
            "arguments": tool.definition.schema,
            "obstacle": tool.unavailable_reason,
        }
        for tool in state.tools
    ]
    return {
        "name": state.name,
        "transport": state.transport,
        "obstacle": state.unavailable_reason,
        "tools": tools,
        "left_out": dict(state.left_out),
    }


def _print_lines(settings: "Settings", lines: Iterable[str]) -> None:
    from maniple.cli.text import escape_invisible

    for line in lines:
        print("\n".join(map(escape_invisible, _redact(settings, line).split("\n"))))


def _redact(settings: "Settings", text: str) -> str:
    from maniple.config.secrets import redactor_of

    return redactor_of(settings).text(text)


@mcp.command("login")
def login_to_server(
    server: ServerName,
    browser: Annotated[bool, typer.Option(help="Open the login page in a browser.")] = True,
    config: ConfigOption = None,
) -> None:
    """Log in to an MCP server that has auth: oauth, in a browser on this machine.

    The token is stored in data_dir, readable only for you, or encrypted in PostgreSQL, and refreshed
    automatically. Running teams connect within seconds.

    \b
    Examples:
      maniple mcp login github
      maniple mcp login github --no-browser   only print the address

    \b
    Exit status: 0 logged in, 1 refused, unreachable, or not confirmed within 5 minutes, 2 no such
    server, or wrong settings.
    """
    finish(_login(read_settings(config), server, opens=browser))


async def _login(settings: "Settings", name: str, *, opens: bool) -> int:
    from importlib.util import find_spec

    from maniple.cli.process import WrongUsage
    from maniple.cli.text import escape_invisible
    from maniple.errors import McpError
    from maniple.installation import installing

    server = settings.mcp.servers.get(name)
    if server is None or server.auth is None:
        known = [one for one, its in settings.mcp.servers.items() if its.auth is not None]
        raise WrongUsage(
            f"{name} is not a server with auth: oauth. Such servers: {', '.join(known) or 'none'}."
        )
    if find_spec("mcp") is None:
        raise McpError(f"MCP servers need a package that is not installed. Run {installing('mcp')}.")
    from maniple.mcp import LoginStore
    from maniple.mcp.http_transport import log_in
    from maniple.store.shared_state import open_state

    async def show(address: str) -> None:
        print(f"Open this address to log in:\n{escape_invisible(address)}", flush=True)
        if opens:
            import webbrowser

            await asyncio.to_thread(webbrowser.open, address)

    silence_server_logs()
    async with open_state(settings) as shared:
        await log_in(name, server, LoginStore(shared.logins), show)
    print(f"Logged in to {name}.")
    return 0


def silence_server_logs() -> None:
    """Log nothing about servers: the command prints it. Without a handler Python would print logs too."""
    logging.getLogger("maniple").addHandler(logging.NullHandler())
    logging.getLogger("mcp").setLevel(logging.CRITICAL)


_LINE_CHARACTERS = 100


async def _print_server(settings: "Settings", state: "ServerState", *, first_use: bool) -> None:
    from maniple.mcp import PinStore
    from maniple.store.shared_state import open_state

    async with open_state(settings) as shared:
        accepted = await asyncio.to_thread(PinStore(shared.accepted_tools).of, state.name)
    _print_lines(settings, _server_lines(state, settings, accepted.keys(), first_use=first_use))


def _server_lines(
    state: "ServerState", settings: "Settings", known: Container[str], *, first_use: bool
) -> Iterator[str]:
    """Yield lines about a server and its tools; with `first_use` unknown tools need no approval."""
    if state.unavailable_reason:
        yield f"✘ {state.name} ({state.transport}): {state.unavailable_reason}"
        return
    workers = [one for one in settings.team.workers if state.name in settings.mcp.servers_of(one)]
    yield f"✔ {state.name} ({state.transport}), for: {', '.join(workers) or 'no agent; set mcp.workers'}"
    for tool in state.tools:
        is_new = tool.definition.name not in known
        mark = "  " if not tool.unavailable_reason or (is_new and first_use) else "! "
        note = f" ({tool.unavailable_reason})" if mark == "! " else ""
        yield f"  {mark}{tool.name}{note}: {_short_line(tool.definition.description)}"
    for name, reason in state.left_out.items():
        yield f"  ✘ {name[:_LINE_CHARACTERS]} is not used: {reason}"


def _change_lines(state: "ServerState", accepted: Mapping[str, "ToolPin"]) -> Iterator[str]:
    """Yield the differences to the accepted tools: new, changed and removed ones."""
    from maniple.mcp import ToolPin

    for tool in state.tools:
        now = ToolPin(tool.definition.digest, tool.definition.description, tool.definition.schema)
        before = accepted.get(tool.definition.name)
        if before is None:
            yield f"+ {tool.definition.name} is new:\n{_indented(_format_tool(now))}"
        elif before.digest != now.digest:
            texts = (_format_tool(before).splitlines(), _format_tool(now).splitlines())
            lines = difflib.unified_diff(*texts, "accepted", "now", lineterm="", n=2)
            changed = "\n".join(lines) or "in a part that is not shown"
            yield f"! {tool.definition.name} changed:\n{_indented(changed)}"
    for name in sorted(accepted.keys() - {tool.definition.name for tool in state.tools}):
        yield f"- {name} was removed"


def _format_tool(pinned: "ToolPin") -> str:
    return f"{pinned.description}\n{json.dumps(pinned.schema, indent=1, ensure_ascii=False, sort_keys=True)}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _short_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]}…"
