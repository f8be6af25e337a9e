from maniple.config.load import load_settings
from maniple.config.settings import (
    BrowserSettings,
    EmbeddedSettings,
    FetchSettings,
    ModelSettings,
    ModelsSettings,
    SandboxSettings,
    SearchSettings,
    ServerSettings,
    Settings,
    TeamSettings,
)

__all__ = [
    "BrowserSettings",
    "EmbeddedSettings",
    "FetchSettings",
    "ModelSettings",
    "ModelsSettings",
    "SandboxSettings",
    "SearchSettings",
    "ServerSettings",
    "Settings",
    "TeamSettings",
    "load_settings",
]
