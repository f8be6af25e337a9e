"""The log of MCP servers where a command itself tells what is wrong with them."""

import logging


def keep_quiet() -> None:
    """Log nothing of servers; without a handler Python would print it beside what is told."""
    logging.getLogger("maniple").addHandler(logging.NullHandler())
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
