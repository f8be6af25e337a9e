"""The team as tools of an MCP server: one more front end, over the service that the HTTP API opens.

Imported only by `maniple mcp serve`: the SDK below takes its time, and is no part of the core.
"""

from maniple.mcp_server.server import TeamServer
from maniple.mcp_server.transports import create_mcp_app, serve_stdio

__all__ = ["TeamServer", "create_mcp_app", "serve_stdio"]
