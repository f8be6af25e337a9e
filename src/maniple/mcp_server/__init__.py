"""The team as tools of an MCP server: another front end to the service that the HTTP API uses.

Only `maniple mcp serve` imports it, because the import of the MCP SDK is slow, and the SDK is optional.
"""

from maniple.mcp_server.server import TeamServer
from maniple.mcp_server.transports import create_mcp_app, serve_stdio

__all__ = ["TeamServer", "create_mcp_app", "serve_stdio"]
