"""What can be set of MCP servers: whose tools the workers use, and how far they are trusted."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

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

from maniple.config.foreign_keys import near_misses
from maniple.config.mcp_file import read_servers
from maniple.config.sandbox_settings import AllowedHost
from maniple.config.section import Section
from maniple.config.values import OptionalText, UserPath
from maniple.types import GENERAL, Worker

Filled = str | SecretStr
"""A text; what a `${VARIABLE}` of it was filled with makes it a secret."""
Transport = Literal["stdio", "http", "sse"]

_TRANSPORTS = {
    **dict.fromkeys(("streamable-http", "streamable_http", "streamableHttp", "http"), "http"),
    "sse": "sse",
    "stdio": "stdio",
}
_LONGEST_NAME = 40
_OTHER_NAMES = ("serverUrl", "httpUrl", "transport")
"""Of `url` and `type`, in the files of other programs."""


def _texts(values: object) -> object:
    """Write numbers and truth values as programs expect them in their environment."""
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


def _is_address(url: Filled | None) -> Filled | None:
    if isinstance(url, str) and "${" not in url and not re.match(r"https?://[^/\s]", url):
        raise ValueError("this is no address of a server; write it as https://host/mcp")
    return url


Texts = Annotated[dict[str, Filled], BeforeValidator(_texts)]


class McpOAuthSettings(Section):
    """How the client logs in by itself where a server wants OAuth: by a client's id and secret."""

    issuer: str = Field(min_length=1)
    """Who gives the tokens: the secret goes to nobody else, whatever the server says."""
    client_id: str = Field(min_length=1)
    client_secret: SecretStr
    scope: OptionalText = None
    token_endpoint_auth_method: Literal["client_secret_basic", "client_secret_post"] = "client_secret_basic"


class McpServerSettings(Section):
    """One server: a `command` that speaks on its standard input and output, or a `url`.

    Keys that other programs know (`autoApprove` and so on) are let through, and have no effect.
    `near_misses` are those that are nearly one of ours, with what was meant.
    """

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    command: OptionalText = None
    args: Annotated[tuple[Filled, ...], BeforeValidator(_listed_texts)] = ()
    env: Texts = Field(default_factory=dict)
    """Everything that the server finds in its environment, beside PATH, HOME and LANG."""
    cwd: UserPath | None = None
    """Where the command begins; without one in the server's own folder."""
    url: Annotated[Filled | None, AfterValidator(_is_address)] = Field(
        default=None, validation_alias=AliasChoices("url", "serverUrl", "httpUrl")
    )
    type: Annotated[Transport | None, BeforeValidator(_transport)] = Field(
        default=None, validation_alias=AliasChoices("type", "transport")
    )
    headers: Texts = Field(default_factory=dict)
    oauth: McpOAuthSettings | None = None
    """How the client logs in by itself."""
    auth: Literal["oauth"] | None = None
    """That a person logs in, in a browser, by `maniple mcp login SERVER`."""
    disabled: bool = False
    tools: tuple[str, ...] = ()
    """Names of the only tools that are used; without any, all are."""
    timeout_seconds: float | None = Field(default=None, gt=0)
    """Of one call; without one `mcp.timeout_seconds`."""
    approval: bool = False
    """Whether each call of its tools waits for a person's word; single tools are named in `runs.approval`."""
    mode: Literal["ordered", "parallel"] | None = None
    """Whether calls of one answer wait for those before them; without one, those of tools that only read, as
    the server says, do not."""
    sandbox: Annotated[Literal["bubblewrap", "unsafe"], BeforeValidator(_is_confined)] = "bubblewrap"
    """Where the command runs; `unsafe` is with your own rights, files and network."""
    reads: tuple[UserPath, ...] = ()
    """Files and folders of this machine that the sandboxed command sees, besides its own folder."""
    writes: tuple[UserPath, ...] = ()
    """Those that it may change, too."""
    allow_hosts: tuple[AllowedHost, ...] = ()
    """Whom the sandboxed command reaches: `api.github.com`, `*.example.org`, `host:port`."""
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
            made._near_misses = near_misses(written, (*cls.model_fields, *_OTHER_NAMES))
        return made

    @model_validator(mode="after")
    def _has_a_way(self) -> "McpServerSettings":
        if (self.command is None) == (self.url is None):
            raise ValueError("an MCP server needs either a command or a url")
        if self.type is not None and (self.type == "stdio") != (self.command is not None):
            raise ValueError(f"type {self.type} does not go with a {'command' if self.command else 'url'}")
        if self.auth is not None and (self.command is not None or self.oauth is not None):
            raise ValueError("auth: oauth is for a url, and without oauth: who logs in is a person")
        return self

    @property
    def transport(self) -> Transport:
        """How it is spoken to; a bare address that ends in /sse means the older transport."""
        if self.type is not None:
            return self.type
        if self.command is not None:
            return "stdio"
        return "sse" if plain(self.url).split("?")[0].rstrip("/").endswith("/sse") else "http"


def prefix_of(server: str) -> str:
    """Return how the names of a server's tools begin, before the two underscores."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", server)


def _are_distinct(servers: dict[str, McpServerSettings]) -> dict[str, McpServerSettings]:
    seen: dict[str, str] = {}
    for name in servers:
        known = prefix_of(name)
        if not name.strip() or len(name) > _LONGEST_NAME:
            raise ValueError(f"a server's name has 1 to {_LONGEST_NAME} characters")
        if known in seen:
            raise ValueError(f"{name!r} and {seen[known]!r} would give their tools the same names")
        seen[known] = name
    return servers


class McpSettings(Section):
    """The MCP servers, and which workers get their tools."""

    servers: Annotated[
        dict[str, McpServerSettings], BeforeValidator(read_servers), AfterValidator(_are_distinct)
    ] = Field(default_factory=dict)
    """By name; or the path of a JSON file that has them under `mcpServers`."""
    workers: dict[Worker, tuple[str, ...]] = Field(default_factory=dict)
    """Which worker gets which servers' tools; when nothing is said, the researcher gets all."""
    trust: Literal["first_use", "accepted"] = "first_use"
    """Whether a tool that was never seen may be used, or only after `maniple mcp accept`."""
    timeout_seconds: float = Field(default=60, gt=0)
    """Of one call."""
    start_seconds: float = Field(default=5, ge=0)
    """How long the start of the team waits for servers; they go on connecting afterwards."""
    refresh_seconds: float = Field(default=300, gt=0)
    """After how long a server is asked again for its tools, beside when it says that they changed."""

    @model_validator(mode="after")
    def _workers_get_servers(self) -> "McpSettings":
        for worker, names in self.workers.items():
            if unknown := [name for name in names if name not in self.servers]:
                raise ValueError(f"workers.{worker} names {unknown[0]!r}, which is no server")
            if worker == "reporter" and names:
                raise ValueError("the reporter writes from what the others found and uses no tools")
        return self

    def servers_of(self, worker: Worker) -> tuple[str, ...]:
        """Return the names of the servers whose tools `worker` gets."""
        if not self.workers:
            return tuple(self.servers) if worker in ("researcher", GENERAL) else ()
        return self.workers.get(worker, ())


def plain(text: Filled | None) -> str:
    """Return a text, secret or not, as programs and servers get it."""
    return text.get_secret_value() if isinstance(text, SecretStr) else text or ""
