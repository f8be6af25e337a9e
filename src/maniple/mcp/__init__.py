"""MCP servers: connected, kept connected, and their tools looked at before anybody uses them.

Imported only where servers are configured: the SDK below takes its time, and is no part of the core.
"""

from maniple.mcp.login import Login, Logins, Person
from maniple.mcp.pins import Pinned, Pins
from maniple.mcp.results import Outcome, Picture, cut
from maniple.mcp.servers import McpServers, RemoteTool, ServerState, open_servers
from maniple.mcp.stdio import Pipes, Start

__all__ = [
    "Login",
    "Logins",
    "McpServers",
    "Outcome",
    "Person",
    "Picture",
    "Pinned",
    "Pins",
    "Pipes",
    "RemoteTool",
    "ServerState",
    "Start",
    "cut",
    "open_servers",
]
