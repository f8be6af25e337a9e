"""Paths in conf.yaml that begin at its folder, since what they name belongs to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def anchored(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return those sections of conf.yaml in which such paths stand, with the whole paths.

    What has not the form that it should have is left to the check of the settings.
    """
    team = values.get("team")
    if not isinstance(team, Mapping) or not isinstance(team.get("roles"), list):
        return {}
    return {"team": {**team, "roles": [_with_path(role, "prompt", folder) for role in team["roles"]]}}


def _with_path(entry: Any, key: str, folder: Path) -> Any:
    path = entry.get(key) if isinstance(entry, Mapping) else None
    if not isinstance(path, str) or not path or path.startswith("~"):
        return entry
    return {**entry, key: str(folder / path)}
