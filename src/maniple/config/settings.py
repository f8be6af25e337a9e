"""The frozen tree of settings, with meaning, unit and default of each.

`conf.yaml` holds the same tree. Each key can also be set from the environment or `.env` as
`MANIPLE_SECTION__KEY` (two underscores between levels), and LangManus's own variable names work (see
`maniple.config.sources.ALIASES`).
"""

from base64 import urlsafe_b64decode
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from platformdirs import user_cache_path, user_data_path
from pydantic import Field, PrivateAttr, SecretStr, ValidationInfo, field_validator, model_validator

from maniple.config.mcp_settings import McpSettings, is_of_server, server_part
from maniple.config.model_settings import EmbeddedSettings, ModelsSettings
from maniple.config.sandbox_settings import SandboxSettings
from maniple.config.service_settings import (
    ArtifactSettings,
    LoggingSettings,
    RunsSettings,
    ServerSettings,
    StoreSettings,
    TelemetrySettings,
)
from maniple.config.sources import SettingsOrigin
from maniple.config.team_settings import (
    MAX_TOOLS,
    EvidenceSettings,
    ReportSettings,
    SkillSettings,
    TeamSettings,
    ToolSettings,
    check_known,
)
from maniple.config.values import OptionalSecret, Section, UserPath
from maniple.config.web_settings import (
    BrowserSettings,
    FetchSettings,
    ReaderSettings,
    SearchSettings,
    SuffixOrType,
)
from maniple.redaction import Redactor

SECRET_KEY_BYTES = 32
_MAKE_KEY = "set what `openssl rand -base64 32` prints"


class Settings(Section):
    """The settings."""

    models: ModelsSettings = ModelsSettings()
    embedded: EmbeddedSettings = EmbeddedSettings()
    team: TeamSettings = TeamSettings()
    evidence: EvidenceSettings = EvidenceSettings()
    report: ReportSettings = ReportSettings()
    tools: tuple[ToolSettings, ...] = Field(default=(), max_length=MAX_TOOLS)
    """The user's own tools."""
    skills: tuple[SkillSettings, ...] = Field(default=(), max_length=MAX_TOOLS)
    """Folders of skills."""
    capabilities: tuple[str, ...] = ()
    """Capabilities of installed packages to use, by the names of their entry points."""
    search: SearchSettings = SearchSettings()
    fetch: FetchSettings = FetchSettings()
    readers: dict[SuffixOrType, ReaderSettings] = Field(default_factory=dict, max_length=MAX_TOOLS)
    """Loaders of LangChain for uploaded and fetched files, by suffix (`.srt`) or media type. They take the
    place of maniple's own readers."""
    sandbox: SandboxSettings = SandboxSettings()
    browser: BrowserSettings = BrowserSettings()
    mcp: McpSettings = McpSettings()
    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    artifacts: ArtifactSettings = ArtifactSettings()
    runs: RunsSettings = RunsSettings()
    logging: LoggingSettings = LoggingSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    data_dir: UserPath = Field(default_factory=lambda: user_data_path("maniple", appauthor=False))
    """The folder of threads, runs, artifacts and workspaces; with `store.path`, they are beside that file."""
    cache_dir: UserPath = Field(default_factory=lambda: user_cache_path("maniple", appauthor=False))
    """The folder of the embedded model (1.1 GB) and of learned capabilities.

    It may be deleted at any time.
    """
    secret_key: OptionalSecret = None
    """With `store.backend: postgres`, encrypts logins at MCP servers: 32 bytes in base64.

    `openssl rand -base64 32` makes one. All processes need the same.
    """
    former_secret_key: OptionalSecret = None
    """Decrypts what a former `secret_key` has encrypted; it is encrypted again when it is next written."""
    _notices: tuple[str, ...] = PrivateAttr(())
    _origin: SettingsOrigin = PrivateAttr(default_factory=SettingsOrigin)

    @model_validator(mode="after")
    def _browser_has_defaults_of_other_sections(self) -> "Settings":
        given = {
            "allow_private": self.fetch.allow_private,
            "browser_use_dir": self.cache_dir / "browser-use",
        }
        missing = {key: value for key, value in given.items() if getattr(self.browser, key) is None}
        # The tree is frozen only after its construction.
        object.__setattr__(self, "browser", self.browser.model_copy(update=missing))
        return self

    @model_validator(mode="after")
    def _artifacts_last_no_longer_than_their_database(self) -> "Settings":
        if self.store.backend == "memory" and self.artifacts.url is not None:
            raise ValueError(
                "artifacts.url is set, and store.backend is memory, which deletes everything at exit; "
                "remove artifacts.url, or set store.backend to sqlite or postgres"
            )
        return self

    @field_validator("secret_key", "former_secret_key")
    @classmethod
    def _is_a_key(cls, key: SecretStr | None) -> SecretStr | None:
        try:
            if key is None or len(urlsafe_b64decode(key.get_secret_value())) == SECRET_KEY_BYTES:
                return key
        except ValueError:
            pass
        raise ValueError(f"this is not {SECRET_KEY_BYTES} bytes in base64; {_MAKE_KEY}")

    @model_validator(mode="after")
    def _stored_logins_are_encrypted(self) -> "Settings":
        servers = [
            name for name, one in self.mcp.servers.items() if one.auth is not None and not one.disabled
        ]
        if servers and self.store.backend == "postgres" and self.secret_key is None:
            raise ValueError(
                f"the login at the MCP server {servers[0]} is stored encrypted in PostgreSQL, which takes a "
                f"key; {_MAKE_KEY}, for all processes the same, as MANIPLE_SECRET_KEY"
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _takes_mcp_servers_as_they_are_written_elsewhere(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "mcpServers" not in values:
            return values
        servers = {"servers": {"mcpServers": values["mcpServers"]}}
        others = {key: value for key, value in values.items() if key != "mcpServers"}
        return {**others, "mcp": {**servers, **(values.get("mcp") or {})}}

    @model_validator(mode="after")
    def _approval_names_tools_of_servers(self) -> "Settings":
        own = self.own_tool_names
        for name in self.runs.approval:
            if is_of_server(name) and name not in own and not is_of_server(name, self.mcp.servers):
                server = server_part(name)
                raise ValueError(f"runs.approval names {name}, but mcp.servers does not have {server}")
        return self

    @property
    def secret_keys(self) -> tuple[str, ...]:
        """The keys for what is stored encrypted: the first encrypts, each decrypts."""
        keys = (self.secret_key, self.former_secret_key)
        return tuple(key.get_secret_value() for key in keys if key is not None)

    @property
    def own_tool_names(self) -> tuple[str, ...]:
        """The names of tools that are not built in; those of roles may be built in, too."""
        return (
            *(tool.name for tool in self.tools),
            *(name for role in self.team.roles for name in role.tools),
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """Warnings about valid settings for the operator, one sentence each."""
        return (*self._origin.skipped, *self._notices)

    @property
    def origin(self) -> SettingsOrigin:
        """The files that these settings come from."""
        return self._origin

    @property
    def redactor(self) -> Redactor:
        """The redactor that these settings share with their copies; `redactor_of` fills it."""
        return self._origin.redactor

    def with_notices(self, notices: Iterable[str], origin: SettingsOrigin) -> "Settings":
        """Return the settings with `notices` and their sources."""
        copy = self.model_copy()
        copy._notices, copy._origin = tuple(notices), origin
        return copy

    def without_skipped_notices(self) -> "Settings":
        """Return the settings without the notices about untrusted files, for a caller that has shown them."""
        return self.with_notices(self._notices, replace(self._origin, skipped=()))

    @field_validator("tools", "skills")
    @classmethod
    def _given_to_members(
        cls, given: tuple[ToolSettings | SkillSettings, ...], info: ValidationInfo
    ) -> tuple[ToolSettings | SkillSettings, ...]:
        if "team" in info.data:
            for place, one in enumerate(given):
                check_known(one.roles, info.data["team"].equipped, at=(place, "roles"))
        return given

    @field_validator("mcp")
    @classmethod
    def _offers_to_members(cls, mcp: McpSettings, info: ValidationInfo) -> McpSettings:
        if "team" in info.data:
            check_known(mcp.workers, (*info.data["team"].equipped, "reporter"), at=("workers",))
        return mcp
