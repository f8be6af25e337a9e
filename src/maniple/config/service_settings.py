"""Settings of the service: the HTTP server, the store, runs and their budgets, logs and traces."""

import re
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from maniple.config.values import (
    HARMLESS,
    ApiKey,
    EndpointUrl,
    OptionalSecret,
    OptionalText,
    Section,
    UserPath,
    is_loopback,
)
from maniple.types import UnknownResultPolicy

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
"""The usual names of this machine; `ServerSettings.is_loopback` knows all of them."""

_FOLDER_URL = re.compile(r"file://(?P<path>/[^?#]+)")
_BUCKET_URL = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?P<prefix>/[^?#]*)?")


def _are_networks(networks: tuple[str, ...]) -> tuple[str, ...]:
    for network in networks:
        try:
            ip_network(network, strict=False)
        except ValueError:
            raise ValueError(
                f"'{network}' is not an address or a network; write it as 10.0.0.5 or 10.0.0.0/24"
            ) from None
    return networks


class ServerSettings(Section):
    """The HTTP service."""

    host: str = "127.0.0.1"
    port: Annotated[int, HARMLESS] = Field(default=8000, ge=0, le=65535)
    cors_origins: tuple[str, ...] = ()
    max_body_bytes: int = Field(default=1_000_000, gt=0)
    max_upload_bytes: int = Field(default=25_000_000, gt=0)
    """Of the files that one request puts into a conversation; each waits on disk meanwhile."""
    ping_seconds: Annotated[float, HARMLESS] = Field(default=15, gt=0)
    max_runs: int = Field(default=100, gt=0)
    """Runs that work at once; more of them wait for a place."""
    max_waiting_runs: int = Field(default=1_000, ge=0)
    max_runs_per_key: int | None = Field(default=None, gt=0)
    """Runs of one API key that work or wait."""
    header_seconds: float = Field(default=15, gt=0)
    """In which the head of a request must have arrived."""
    body_seconds: float = Field(default=30, gt=0)
    """In which its body must have arrived; one that arrives faster than 10 kB a second may take longer."""
    max_connections: int = Field(default=2_000, gt=0)
    """Open connections, and never more than half of the descriptors that the process may open."""
    max_connections_per_address: int = Field(default=200, gt=0)
    """Of one IPv4 address or one IPv6 network of 64 bits; this machine and `proxies` have no such limit."""
    proxies: Annotated[tuple[str, ...], AfterValidator(_are_networks)] = ()
    """Addresses or networks of reverse proxies, whose `X-Forwarded-For` and `X-Forwarded-Proto` are used."""
    stream_rate: float = Field(default=25, ge=0)
    """The pieces of each answer that are read in a second after the first one.

    The pieces are larger then, which saves processor time. 0 reads each as soon as it has arrived.
    """
    insecure: bool = False
    """Serve beyond this machine although there is no login."""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host)


class StoreSettings(Section):
    """Where threads, runs, their events and checkpoints are kept."""

    backend: Literal["sqlite", "memory", "postgres"] = "sqlite"
    """`memory` uses a database in a temporary folder, which is deleted at exit.

    `postgres` needs the extra `maniple[postgres]`, and a database that `maniple db migrate` has prepared.
    """
    path: UserPath | None = None
    """The SQLite file; without one, `maniple.db` in the data directory."""
    url: OptionalSecret = None
    """The PostgreSQL database, as `postgresql://user:password@host/name`."""
    pool: int = Field(default=8, ge=2, le=200)
    """How many connections to PostgreSQL this process keeps."""

    @model_validator(mode="after")
    def _names_a_database(self) -> "StoreSettings":
        if self.backend == "postgres" and not self.database_url:
            raise ValueError(
                "backend postgres needs a database: set store.url to postgresql://user@host/name"
            )
        return self

    @property
    def database_url(self) -> str:
        """The URL of the PostgreSQL database; "" when none is set."""
        return self.url.get_secret_value() if self.url is not None else ""


class ArtifactSettings(Section):
    """Where the contents of artifacts are kept: the files that runs make."""

    url: OptionalText = None
    """`file:///folder`, or `s3://bucket/prefix` (the extra `maniple[s3]`); one for each database.

    Without one, the folder `artifacts` in the data directory.
    """
    endpoint: EndpointUrl = None
    """The address of a service that speaks S3's protocol; without one, AWS."""
    region: OptionalText = None
    """The bucket's region; without one, that of `AWS_REGION`, else us-east-1."""
    access_key_id: OptionalText = None
    """The id of the key for the bucket; without one, AWS's own variables and the machine's role count."""
    secret_access_key: OptionalSecret = None
    """The secret of that key."""

    @model_validator(mode="after")
    def _names_a_folder_or_a_bucket(self) -> "ArtifactSettings":
        if self.url is not None and self.folder is None and not self.bucket[0]:
            raise ValueError("url is neither file:///folder with a whole path, nor s3://bucket/prefix")
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise ValueError("access_key_id and secret_access_key belong together; set both or none")
        given = {"endpoint": self.endpoint, "region": self.region, "access_key_id": self.access_key_id}
        unused = [name for name, value in given.items() if value is not None]
        if unused and not self.is_in_bucket:
            raise ValueError(f"{unused[0]} is only for a bucket; set url to s3://bucket/prefix, or remove it")
        return self

    @property
    def is_in_bucket(self) -> bool:
        """Whether `url` names a bucket."""
        return (self.url or "").startswith("s3://")

    @property
    def folder(self) -> Path | None:
        """The folder that `url` names; None for a bucket, and without a URL."""
        found = _FOLDER_URL.fullmatch(self.url or "")
        return Path(unquote(found["path"])) if found else None

    @property
    def bucket(self) -> tuple[str, str]:
        """The name of the bucket and the prefix of its objects' keys; both "" without a bucket."""
        found = _BUCKET_URL.fullmatch(self.url or "")
        return (found["bucket"], unquote(found["prefix"] or "").strip("/")) if found else ("", "")


class BudgetSettings(Section):
    """What one run may use up; a limit left out is none."""

    tokens: Annotated[int | None, HARMLESS] = Field(default=None, gt=0)
    seconds: Annotated[float | None, HARMLESS] = Field(default=None, gt=0)
    model_calls: Annotated[int | None, HARMLESS] = Field(default=None, gt=0)
    tool_calls: Annotated[int | None, HARMLESS] = Field(default=None, gt=0)
    cost: Annotated[float | None, HARMLESS] = Field(default=None, gt=0)


class RunsSettings(Section):
    """How runs are driven."""

    approval: tuple[str, ...] = ()
    """Tools that run only after a person has approved their exact arguments, such as `bash_tool`."""
    budget: BudgetSettings = BudgetSettings()
    on_unknown: dict[str, UnknownResultPolicy] = Field(default_factory=dict[str, UnknownResultPolicy])
    """By tool, what is done about a call that a crash cut off: `ask` the user, `rerun` it, or let it `fail`.

    By default a tool that only reads, or may be repeated, runs again; for others the user is asked.
    """
    drain_seconds: float = Field(default=5, ge=0)
    """How long a stopping server waits for its runs to come to a checkpoint."""
    worker_concurrency: int | None = Field(default=None, ge=1)
    """How many runs a process drives at once with `store.backend: postgres`; else `server.max_runs`."""
    lease_seconds: float = Field(default=5, ge=3, le=600)
    """With `store.backend: postgres`, after how long without a sign of life a process counts as dead.

    Then others go on with its runs.
    """
    outage_seconds: float = Field(default=3_600, ge=0, le=7 * 86_400)
    """How long a run waits for a model or a SQLite file that is away before it fails; 0: not at all."""


def _headers_of_a_line(value: Any) -> Any:
    """Read `name=value,name=value`, as OTEL_EXPORTER_OTLP_HEADERS has it."""
    if not isinstance(value, str):
        return value
    pairs = (pair.partition("=") for pair in value.split(",") if pair.strip())
    return {name.strip(): unquote(text.strip()) for name, _, text in pairs}


Headers = Annotated[dict[str, SecretStr], BeforeValidator(_headers_of_a_line)]
UpperLevel = Annotated[
    Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"],
    BeforeValidator(lambda level: level.upper() if isinstance(level, str) else level),
]


class LoggingSettings(Section):
    """The log on stderr; `maniple chat` writes it to `chat.log` in the data directory."""

    level: Annotated[UpperLevel, HARMLESS] = "INFO"
    format: Annotated[Literal["auto", "console", "json"], HARMLESS] = "auto"
    """`auto` is `console` on a terminal and for `maniple chat`, and `json` elsewhere.

    If it is set, `maniple chat` logs to stderr, too, where that is no terminal.
    """


class LangSmithSettings(Section):
    """Traces to LangSmith; its own variables are read as well (LANGSMITH_TRACING and so on)."""

    enabled: bool = False
    api_key: ApiKey = None
    endpoint: EndpointUrl = None
    project: str = Field(default="maniple", min_length=1)

    @model_validator(mode="after")
    def _has_a_key(self) -> "LangSmithSettings":
        if self.enabled and self.api_key is None:
            raise ValueError("LangSmith needs a key: set LANGSMITH_API_KEY in .env, or enabled: false")
        return self


class TelemetrySettings(Section):
    """Traces to a collector of OpenTelemetry."""

    otlp_endpoint: EndpointUrl = None
    """The collector's address (OTLP over HTTP), such as `http://127.0.0.1:4318`; none: no such traces."""
    otlp_headers: Headers = Field(default_factory=dict)
    service_name: str = Field(default="maniple", min_length=1)
    contents: bool = False
    """Whether OpenTelemetry's spans contain inputs and outputs of models and tools; LangSmith's always do."""
    langsmith: LangSmithSettings = LangSmithSettings()
