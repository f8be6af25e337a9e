"""Connections to MCP servers, and the check of their tools before use.

The package is imported only if servers are configured, because the MCP SDK is an optional and slow import.
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
