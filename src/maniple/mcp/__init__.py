"""MCP servers: connected, kept connected, and their tools looked at before anybody uses them.

Imported only where servers are configured: the SDK below takes its time, and is no part of the core.
"""

from maniple.mcp.http_transport import InteractiveUser, LoginStore, OAuthLogin
from maniple.mcp.pins import PinStore, ToolPin
from maniple.mcp.results import ToolOutcome, ToolPicture, truncate_text
from maniple.mcp.servers import McpServers, RemoteTool, ServerState, open_servers
from maniple.mcp.stdio import ProgramPipes, StartProgram

__all__ = [
    "InteractiveUser",
    "LoginStore",
    "McpServers",
    "OAuthLogin",
    "PinStore",
    "ProgramPipes",
    "RemoteTool",
    "ServerState",
    "StartProgram",
    "ToolOutcome",
    "ToolPicture",
    "ToolPin",
    "open_servers",
    "truncate_text",
]
