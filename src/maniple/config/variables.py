"""`${VARIABLE}` in what is set of MCP servers: filled from `.env` and the environment, and then secret."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import SecretStr

from maniple.config.mcp_settings import Filled, McpServerSettings, McpSettings, plain
from maniple.errors import ConfigError

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def filled(mcp: McpSettings, environment: Mapping[str, str], env_file: Path) -> McpSettings:
    """Return the same settings with every `${NAME}` and `${NAME:-DEFAULT}` filled in.

    Raises `ConfigError` for a variable that is not set and has no default. Reads `env_file` if there is need.
    """
    if not mcp.servers or "${" not in _everything(mcp):
        return mcp
    from dotenv import dotenv_values

    known = {**dotenv_values(env_file, interpolate=False), **environment}

    def value_of(server: str, name: str, default: str | None) -> str:
        value = known.get(name) or default
        if value is None:
            raise ConfigError(
                f"mcp.servers.{server}: ${{{name}}} is not set. Put {name}=… into .env, "
                f"or write ${{{name}:-}} where it may be empty."
            )
        return value

    servers = {
        name: _filled_server(one, lambda variable, default, name=name: value_of(name, variable, default))
        for name, one in mcp.servers.items()
    }
    return mcp.model_copy(update={"servers": servers})


def _filled_server(
    server: McpServerSettings, value_of: Callable[[str, str | None], str]
) -> McpServerSettings:
    if server.disabled:
        return server

    def fill(text: Filled) -> Filled:
        if isinstance(text, SecretStr) or "${" not in text:
            return text
        return SecretStr(_VARIABLE.sub(lambda found: value_of(found[1], found[2]), text))

    return server.model_copy(
        update={
            "command": plain(fill(server.command)) if server.command else None,
            "url": fill(server.url) if server.url else None,
            "args": tuple(fill(one) for one in server.args),
            "env": {name: fill(value) for name, value in server.env.items()},
            "headers": {name: fill(value) for name, value in server.headers.items()},
        }
    )


def _everything(mcp: McpSettings) -> str:
    return "\n".join(
        plain(text)
        for one in mcp.servers.values()
        for text in (one.command, one.url, *one.args, *one.env.values(), *one.headers.values())
    )
