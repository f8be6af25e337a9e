"""Settings of MCP servers: which workers use their tools, and how far they are trusted.

Servers are also read from other programs' files: `{"mcpServers": {NAME: {"command": …}}}`. Every
`${VARIABLE}` of a server is filled from `.env` and the environment, and is a secret then.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SecretStr,
    model_validator,
)

from maniple.config.sandbox_settings import AllowedHost
from maniple.config.values import OptionalText, Section, UserPath
from maniple.errors import ConfigError
from maniple.types import GENERAL, Worker

InterpolatedText = str | SecretStr
"""A text; it becomes a secret if a `${VARIABLE}` in it was replaced."""
Transport = Literal["stdio", "http", "sse"]

_TRANSPORTS = {
    **dict.fromkeys(("streamable-http", "streamable_http", "streamableHttp", "http"), "http"),
    "sse": "sse",
    "stdio": "stdio",
}
_MAX_NAME_LENGTH = 40
_SEPARATOR = "__"
"""Stands between server and tool in the names of tools."""
MCP_TOOL_NAME = re.compile(rf"(?=.{{4,64}}$)[A-Za-z0-9_-]+?{_SEPARATOR}[A-Za-z0-9_-]+")
"""SERVER__TOOL: `Settings` checks that there is such a server; which tools it has, it alone knows."""
_OTHER_NAMES = ("serverUrl", "httpUrl", "transport")
"""The names of `url` and `type` in configuration files of other programs."""


_MAX_BYTES = 1_000_000
_HOLDERS = ("mcpServers", "servers")


_NEAR = 0.75
_FOREIGN = frozenset({"disabledtools", "transporttype", "isdisabled"})
"""Keys of other programs that are not misspelt, although they are similar."""


_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def read_servers(given: Any) -> Any:
    """Return the servers by name; `given` is the mapping itself, the content of a file, or its path.

    Raises `ValueError` with what is wrong with the file. Blocks on disk.
    """
    if isinstance(given, str | Path):
        given = _load_servers_file(Path(given))
    if given is None:
        return {}
    for holder in _HOLDERS:
        if isinstance(given, dict) and _holds_servers(given.get(holder)):
            return given[holder]
    return given


def _holds_servers(value: Any) -> bool:
    """Return whether `value` maps names to servers, and is not itself a server of that name."""
    return isinstance(value, dict) and all(isinstance(one, dict) for one in value.values())


def _load_servers_file(path: Path) -> Any:
    try:
        path = path.expanduser()
        with path.open("rb") as file:
            written = file.read(_MAX_BYTES)
        content = json.loads(written.decode("utf-8-sig"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RuntimeError, RecursionError):
        raise ValueError(f"{path} is not valid JSON") from None
    if isinstance(content, dict):
        return content
    raise ValueError(f'{path} must hold {{"mcpServers": {{…}}}}')


def find_near_misses(written: Iterable[object], known: Iterable[str]) -> dict[str, str]:
    """Return the `written` keys that are not `known` but similar to a known one, with that key."""
    ours = {_normalize_key(name): name for name in known}
    found: dict[str, str] = {}
    for key in written:
        if not isinstance(key, str) or key in ours.values() or _normalize_key(key) in _FOREIGN:
            continue
        if near := difflib.get_close_matches(_normalize_key(key)[:40], ours, n=1, cutoff=_NEAR):
            found[key] = ours[near[0]]
    return found


def _normalize_key(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def _texts(values: object) -> object:
    """Convert numbers and booleans to text as programs expect them in their environment."""
    if not isinstance(values, dict):
        return values
    return {name: _text(value) for name, value in values.items()}


def _listed_texts(values: object) -> object:
    return [_text(value) for value in values] if isinstance(values, list | tuple) else values


def _text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _transport(name: object) -> object:
    return _TRANSPORTS.get(name, name) if isinstance(name, str) else name


def _is_confined(where: object) -> object:
    if where is False or where in ("none", "off", "local"):
        raise ValueError(
            "the server would run unprotected, with your own rights: if that is meant, write unsafe"
        )
    return where


def _is_address(url: InterpolatedText | None) -> InterpolatedText | None:
    if isinstance(url, str) and "${" not in url and not re.match(r"https?://[^/\s]", url):
        raise ValueError("this is not the address of a server. Write it as https://host/mcp")
    return url


Texts = Annotated[dict[str, InterpolatedText], BeforeValidator(_texts)]


def _is_document_address(given: str | None) -> str | None:
    found = urlsplit(given or "https://host/document")
    if found.scheme != "https" or not found.hostname or found.path in ("", "/"):
        raise ValueError("must be an https address with a path")
    return given


class McpOAuthSettings(Section):
    """The client credentials for servers that require OAuth."""

    issuer: str = Field(min_length=1)
    """The issuer of tokens. The secret is sent only there, even if the server names another issuer."""
    client_id: str = Field(min_length=1)
    client_secret: SecretStr
    scope: OptionalText = None
    token_endpoint_auth_method: Literal["client_secret_basic", "client_secret_post"] = "client_secret_basic"


class McpServerSettings(Section):
    """One server: a `command` that uses standard input and output, or a `url`.

    Keys that other programs know (`autoApprove` and so on) are let through, and have no effect.
    `near_misses` are those that are nearly one of ours, with what was meant.
    """

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    command: OptionalText = None
    args: Annotated[tuple[InterpolatedText, ...], BeforeValidator(_listed_texts)] = ()
    env: Texts = Field(default_factory=dict)
    """The environment variables of the server, beside PATH, HOME and LANG."""
    cwd: UserPath | None = None
    """The working directory of the command; default: the server's own folder."""
    url: Annotated[InterpolatedText | None, AfterValidator(_is_address)] = Field(
        default=None, validation_alias=AliasChoices("url", "serverUrl", "httpUrl")
    )
    type: Annotated[Transport | None, BeforeValidator(_transport)] = Field(
        default=None, validation_alias=AliasChoices("type", "transport")
    )
    headers: Texts = Field(default_factory=dict)
    oauth: McpOAuthSettings | None = None
    """The client credentials for an automatic login."""
    auth: Literal["oauth"] | None = None
    """`oauth`: a user logs in with a browser by `maniple mcp login SERVER`."""
    client_id_document: Annotated[OptionalText, AfterValidator(_is_document_address)] = None
    """The https address of a document that describes the client of such a login, and is its id; default: the
    server registers the client."""
    disabled: bool = False
    tools: tuple[str, ...] = ()
    """Names of the tools that are used; empty: all."""
    timeout_seconds: float | None = Field(default=None, gt=0)
    """The time limit of one call; default: `mcp.timeout_seconds`."""
    approval: bool = False
    """Whether each call of its tools needs the user's approval; `runs.approval` names single tools."""
    mode: Literal["ordered", "parallel"] | None = None
    """Whether the calls of one answer run in order or in parallel; default: parallel for tools that only
    read, as the server declares."""
    sandbox: Annotated[Literal["bubblewrap", "unsafe"], BeforeValidator(_is_confined)] = "bubblewrap"
    """Where the command runs; `unsafe`: with the user's own rights, files and network."""
    reads: tuple[UserPath, ...] = ()
    """Files and folders of this machine that the sandboxed command can read, beside its own folder."""
    writes: tuple[UserPath, ...] = ()
    """Files and folders that it can also change."""
    allow_hosts: tuple[AllowedHost, ...] = ()
    """The hosts that the sandboxed command can reach: `api.github.com`, `*.example.org`, `host:port`."""
    memory_mb: int = Field(default=512, gt=0)
    disk_mb: int = Field(default=500, gt=0)
    processes: int = Field(default=64, gt=0)
    _near_misses: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def near_misses(self) -> Mapping[str, str]:
        return self._near_misses

    @model_validator(mode="wrap")
    @classmethod
    def _notes_near_misses(
        cls, written: object, validate: ModelWrapValidatorHandler["McpServerSettings"]
    ) -> "McpServerSettings":
        made = validate(written)
        if isinstance(written, dict):
            made._near_misses = find_near_misses(written, (*cls.model_fields, *_OTHER_NAMES))
        return made

    @model_validator(mode="after")
    def _check_transport(self) -> "McpServerSettings":
        if (self.command is None) == (self.url is None):
            raise ValueError("an MCP server needs either command or url")
        if self.type is not None and (self.type == "stdio") != (self.command is not None):
            raise ValueError(
                f"type {self.type} cannot be combined with {'command' if self.command else 'url'}"
            )
        if self.auth is not None and (self.command is not None or self.oauth is not None):
            raise ValueError("auth: oauth needs a url, and cannot be combined with oauth")
        if self.client_id_document is not None and self.auth is None:
            raise ValueError("client_id_document is for a login by a person: set auth: oauth")
        return self

    @property
    def transport(self) -> Transport:
        """The transport; a url that ends in /sse without a type means the older SSE transport."""
        if self.type is not None:
            return self.type
        if self.command is not None:
            return "stdio"
        return "sse" if reveal_text(self.url).split("?")[0].rstrip("/").endswith("/sse") else "http"


def prefix_of(server: str) -> str:
    """Return the prefix of the names of a server's tools, without the two underscores."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", server)


def join_tool_name(server: str, tool: str) -> str:
    """Return the name of a server's tool for models, SERVER__TOOL."""
    return f"{prefix_of(server)}{_SEPARATOR}{prefix_of(tool)}"


def is_of_server(name: str, servers: Iterable[str] | None = None) -> bool:
    """Return whether a name is that of a tool of an MCP server, of any or of one of `servers`."""
    if servers is None:
        return _SEPARATOR in name
    return name.startswith(tuple(f"{prefix_of(one)}{_SEPARATOR}" for one in servers))


def server_part(name: str) -> str:
    """Return the prefix in the name of a server's tool."""
    return name.partition(_SEPARATOR)[0]


def _check_names(servers: dict[str, McpServerSettings]) -> dict[str, McpServerSettings]:
    seen: dict[str, str] = {}
    for name in servers:
        known = prefix_of(name)
        if not name.strip() or len(name) > _MAX_NAME_LENGTH:
            raise ValueError(f"a server's name must have 1 to {_MAX_NAME_LENGTH} characters")
        if known in seen:
            raise ValueError(f"{name!r} and {seen[known]!r} would give their tools the same names")
        seen[known] = name
    return servers


class McpSettings(Section):
    """The MCP servers, and which workers get their tools."""

    servers: Annotated[
        dict[str, McpServerSettings], BeforeValidator(read_servers), AfterValidator(_check_names)
    ] = Field(default_factory=dict)
    """The servers by name, or the path of a JSON file with the key `mcpServers`."""
    workers: dict[Worker, tuple[str, ...]] = Field(default_factory=dict)
    """The servers whose tools each worker gets; default: the researcher gets all."""
    trust: Literal["first_use", "accepted"] = "first_use"
    """Whether an unknown tool may be used at its first use, or only after `maniple mcp accept`."""
    timeout_seconds: float = Field(default=60, gt=0)
    """The time limit of one call."""
    start_seconds: float = Field(default=5, ge=0)
    """How long the start of the team waits for servers; they continue to connect afterwards."""
    refresh_seconds: float = Field(default=300, gt=0)
    """The interval at which a server's tools are listed again, in addition to its notifications."""

    @model_validator(mode="after")
    def _workers_get_servers(self) -> "McpSettings":
        for worker, names in self.workers.items():
            if unknown := [name for name in names if name not in self.servers]:
                raise ValueError(f"workers.{worker} names {unknown[0]!r}, which is not in servers")
            if worker == "reporter" and names:
                raise ValueError("the reporter cannot use tools. Remove it")
        return self

    def servers_of(self, worker: Worker) -> tuple[str, ...]:
        """Return the names of the servers whose tools `worker` gets."""
        if not self.workers:
            return tuple(self.servers) if worker in ("researcher", GENERAL) else ()
        return self.workers.get(worker, ())


def reveal_text(text: InterpolatedText | None) -> str:
    """Return the plain text of a value, which may be a secret."""
    return text.get_secret_value() if isinstance(text, SecretStr) else text or ""


def fill_variables(mcp: McpSettings, environment: Mapping[str, str], env_file: Path | None) -> McpSettings:
    """Return the settings with every `${NAME}` and `${NAME:-DEFAULT}` replaced by the environment variable.

    Raises `ConfigError` for a variable that is not set and has no default. Reads `env_file`, if
    there is one and if there is need.
    """
    if not mcp.servers or "${" not in _all_texts(mcp):
        return mcp
    from dotenv import dotenv_values

    in_file = dotenv_values(env_file, interpolate=False) if env_file else {}
    known = {**in_file, **environment}

    def value_of(server: str, name: str, default: str | None) -> str:
        value = known.get(name) or default
        if value is None:
            raise ConfigError(
                f"mcp.servers.{server}: ${{{name}}} is not set. Put {name}=… into .env, "
                f"or write ${{{name}:-}} where it may be empty."
            )
        return value

    servers = {
        name: _fill_server(one, lambda variable, default, name=name: value_of(name, variable, default))
        for name, one in mcp.servers.items()
    }
    return mcp.model_copy(update={"servers": servers})


def _fill_server(server: McpServerSettings, value_of: Callable[[str, str | None], str]) -> McpServerSettings:
    if server.disabled:
        return server

    def fill(text: InterpolatedText) -> InterpolatedText:
        if isinstance(text, SecretStr) or "${" not in text:
            return text
        return SecretStr(_VARIABLE.sub(lambda found: value_of(found[1], found[2]), text))

    return server.model_copy(
        update={
            "command": reveal_text(fill(server.command)) if server.command else None,
            "url": fill(server.url) if server.url else None,
            "args": tuple(fill(one) for one in server.args),
            "env": {name: fill(value) for name, value in server.env.items()},
            "headers": {name: fill(value) for name, value in server.headers.items()},
        }
    )


def _all_texts(mcp: McpSettings) -> str:
    return "\n".join(
        reveal_text(text)
        for one in mcp.servers.values()
        for text in (one.command, one.url, *one.args, *one.env.values(), *one.headers.values())
    )
