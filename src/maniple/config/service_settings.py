"""Settings of the service: the HTTP server, the store, runs and their budgets, logs and traces."""

import re
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import BeforeValidator, Field, SecretStr, model_validator

from maniple.config.values import ApiKey, EndpointUrl, Section, UserPath, is_loopback

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
"""The usual names of this machine; `ServerSettings.is_loopback` knows all of them."""

MCP_TOOL_NAME = re.compile(r"(?=.{4,64}$)[A-Za-z0-9_-]+?__[A-Za-z0-9_-]+")
"""`SERVER__TOOL`: `Settings` checks that there is such a server; which tools it has, it alone knows."""


class ServerSettings(Section):
    """The HTTP service."""

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    cors_origins: tuple[str, ...] = ()
    max_body_bytes: int = Field(default=1_000_000, gt=0)
    max_upload_bytes: int = Field(default=25_000_000, gt=0)
    """Of the files that one request puts into a conversation; each waits on disk meanwhile."""
    ping_seconds: float = Field(default=15, gt=0)
    max_runs: int = Field(default=100, gt=0)
    """Runs that work at once; more of them wait for a place."""
    max_waiting_runs: int = Field(default=1_000, ge=0)
    max_runs_per_key: int | None = Field(default=None, gt=0)
    """Runs of one API key that work or wait."""
    insecure: bool = False
    """Serve beyond this machine although there is no login."""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host)


class StoreSettings(Section):
    """Where threads, runs, their events and checkpoints are kept."""

    backend: Literal["sqlite", "memory"] = "sqlite"
    """`memory` uses a database in a temporary folder, which is deleted at exit."""
    path: UserPath | None = None
    """The SQLite file; without one, `maniple.db` in the data directory."""


class BudgetSettings(Section):
    """What one run may use up; a limit left out is none."""

    tokens: int | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0)
    model_calls: int | None = Field(default=None, gt=0)
    tool_calls: int | None = Field(default=None, gt=0)
    cost: float | None = Field(default=None, gt=0)


class RunsSettings(Section):
    """How runs are driven."""

    approval: tuple[str, ...] = ()
    """Tools that run only after a person has approved their exact arguments, such as `bash_tool`."""
    budget: BudgetSettings = BudgetSettings()
    drain_seconds: float = Field(default=5, ge=0)
    """How long a stopping server waits for its runs to come to a checkpoint."""


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
    """The log on stderr; at a terminal `maniple chat` keeps it in `chat.log` in the data directory."""

    level: UpperLevel = "INFO"
    format: Literal["auto", "console", "json"] = "auto"
    """`auto` is `console` on a terminal and for `maniple chat`, and `json` elsewhere."""


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
    """Whether OpenTelemetry's spans hold what models and tools were told and answered; LangSmith's do."""
    langsmith: LangSmithSettings = LangSmithSettings()
