"""A person logs in at a server: shown where, and waited for."""

from collections.abc import Awaitable, Callable

from mcp.client import Client

from maniple.config.mcp_settings import McpServerSettings, plain
from maniple.errors import McpError
from maniple.mcp.callback import open_callback
from maniple.mcp.http import http_transport
from maniple.mcp.login import Logins, Person
from maniple.mcp.words import reason_of


async def log_in(
    name: str, server: McpServerSettings, logins: Logins, show: Callable[[str], Awaitable[None]]
) -> None:
    """Have a person log in at the address that is shown, and keep what comes of it in an older login's place.

    Raises `McpError` when that was refused, nobody came, or the server wants no login at all.
    """
    async with open_callback() as callback:
        person = Person(callback.url, show, callback.result)
        login = logins.of(name, plain(server.url), person)
        try:
            async with Client(http_transport(server, login)) as client:
                await client.list_tools()
        except Exception as error:  # whatever it is, it is told in one line
            why = callback.refusal or login.redactor.text(reason_of(error))
            raise McpError(f"There was no login at {name}: {why}") from error
    if login.context.current_tokens is None:
        raise McpError(f"{name} lets everybody in without a login: take auth: oauth out.")
