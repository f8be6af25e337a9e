"""Services that capabilities provide whose own type is a protocol, a function or an optional import."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from maniple.browser import Browser
from maniple.tools.files import NamedFiles

if TYPE_CHECKING:
    from maniple.mcp import McpServers


@dataclass(frozen=True, slots=True)
class TeamBrowser:
    """The browser that the team works in. Each thread has tabs of its own."""

    browser: Browser


@dataclass(frozen=True, slots=True)
class UploadedFiles:
    """Names the files that the user put into the current thread's workspace."""

    names: NamedFiles


@dataclass(frozen=True, slots=True)
class McpConnections:
    """The configured MCP servers."""

    servers: "McpServers"
