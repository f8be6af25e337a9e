"""The name under which pages are asked for."""

from importlib.metadata import version

TOKEN = "maniple"
"""What a robots.txt calls this agent."""


def agent_name(contact: str | None) -> str:
    """The `User-Agent` header; `contact` is where the owner of a site finds whoever runs this. Blocks.

    The words in front are those of every well-known robot: firewalls refuse names that begin otherwise.
    """
    where = f"; +{contact}" if contact else ""
    return f"Mozilla/5.0 (compatible; {TOKEN}/{version('maniple')}{where})"
