"""What is wrong with a server, in one line."""

from pathlib import PurePath

from maniple.config.mcp_settings import McpServerSettings
from maniple.errors import ManipleError

_MOST_CHARACTERS = 1_000
_REGISTRIES = {
    **dict.fromkeys(("npx", "npm", "pnpm", "yarn", "bunx"), "registry.npmjs.org"),
    **dict.fromkeys(("uvx", "uv", "pipx"), "pypi.org, files.pythonhosted.org"),
}
"""What programs fetch from that run what is not installed."""


def reason_of(error: BaseException) -> str:
    """Return the first reason in `error`, also in a group of them, in at most 1,000 characters."""
    while isinstance(error, BaseExceptionGroup):
        # What the settings or the server said is worth more than that the connection closed.
        ours = next((one for one in error.exceptions if isinstance(one, ManipleError)), None)
        error = ours or error.exceptions[0]
    words = " ".join(str(error).split())[:_MOST_CHARACTERS]
    if isinstance(error, ManipleError) or type(error).__name__ == "MCPError":
        return words or "no further words"
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def fetching(server: McpServerSettings) -> str:
    """Return what to do for a command that fetches its server first, and is not allowed to; "" for others."""
    command = PurePath(server.command or "").name
    if command not in _REGISTRIES or server.sandbox == "unsafe" or server.allow_hosts:
        return ""
    return f" ({command} has no network: allow_hosts: [{_REGISTRIES[command]}], or install the server first)"
