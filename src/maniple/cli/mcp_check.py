"""Are the MCP servers there? For `maniple doctor`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from maniple.cli.findings import Finding
from maniple.cli.mcp_quiet import keep_quiet
from maniple.cli.words import counted
from maniple.config import Settings
from maniple.config.secrets import redactor_of
from maniple.errors import McpError
from maniple.runtime.mcp import open_one_by_one
from maniple.types import installing

if TYPE_CHECKING:
    from maniple.mcp import ServerState

_PATIENCE_SECONDS = 15.0
_NAME = "MCP"


async def check_mcp(settings: Settings) -> Sequence[Finding]:
    """Connect to each configured server, all at once, and tell how it stands; nothing is accepted."""
    names = [name for name, one in settings.mcp.servers.items() if not one.disabled]
    if not names:
        return []
    keep_quiet()
    try:
        async with open_one_by_one(settings, names, _PATIENCE_SECONDS) as servers:
            states = servers.states()
    except McpError:
        lacking = f"the SDK is not installed for {', '.join(names)}"
        return [Finding(_NAME, "warning", lacking, f"Run {installing('mcp')}.")]
    hide = redactor_of(settings).text
    return [
        Finding(one.name, one.status, hide(one.detail), hide(one.remedy))
        for state in states
        for one in _found(state)
    ]


def _found(state: "ServerState") -> Iterator[Finding]:
    where = f"{state.name} ({state.transport})"
    if state.obstacle:
        detail = f"{where} is not there: {state.obstacle}"
        yield Finding(
            _NAME, "warning", detail, f"Correct mcp.servers; maniple mcp test {state.name} tries it."
        )
        return
    left_out = f"; left out: {', '.join(state.left_out)}" if state.left_out else ""
    yield Finding(_NAME, "ok", f"{where}: {counted(len(state.tools), 'tool')}{left_out}")
