from maniple.config.load import load_settings
from maniple.config.mcp_settings import McpServerSettings, McpSettings
from maniple.config.model_settings import (
    CapabilityOverrides,
    EmbeddedSettings,
    ModelSettings,
    ModelsSettings,
)
from maniple.config.sandbox_settings import SandboxSettings
from maniple.config.service_settings import BudgetSettings, RunsSettings, ServerSettings, StoreSettings
from maniple.config.settings import Settings
from maniple.config.team_settings import RoleSettings, TeamSettings, ToolSettings
from maniple.config.web_settings import BrowserSettings, BrowsingSettings, FetchSettings, SearchSettings

__all__ = [
    "BrowserSettings",
    "BrowsingSettings",
    "BudgetSettings",
    "CapabilityOverrides",
    "EmbeddedSettings",
    "FetchSettings",
    "McpServerSettings",
    "McpSettings",
    "ModelSettings",
    "ModelsSettings",
    "RoleSettings",
    "RunsSettings",
    "SandboxSettings",
    "SearchSettings",
    "ServerSettings",
    "Settings",
    "StoreSettings",
    "TeamSettings",
    "ToolSettings",
    "load_settings",
]
