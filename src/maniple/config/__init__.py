from maniple.config.browser_settings import BrowserSettings, BrowsingSettings
from maniple.config.fetch_settings import FetchSettings
from maniple.config.load import load_settings
from maniple.config.mcp_settings import McpServerSettings, McpSettings
from maniple.config.model_settings import (
    CapabilityOverrides,
    EmbeddedSettings,
    ModelSettings,
    ModelsSettings,
)
from maniple.config.role_settings import RoleSettings
from maniple.config.run_settings import BudgetSettings, RunsSettings, StoreSettings
from maniple.config.sandbox_settings import SandboxSettings
from maniple.config.search_settings import SearchSettings
from maniple.config.settings import ServerSettings, Settings
from maniple.config.team_settings import TeamSettings
from maniple.config.tool_settings import ToolSettings

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
