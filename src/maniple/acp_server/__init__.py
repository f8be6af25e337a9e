"""The team as an agent of editors that speak the Agent Client Protocol. Sessions are threads, prompts runs.

Only `maniple acp` imports it, because the protocol's package is optional.
Source: https://agentclientprotocol.com
"""

from maniple.acp_server.agent import TeamAgent, serve_acp

__all__ = ["TeamAgent", "serve_acp"]
