"""Paths in conf.yaml that begin at its folder, since what they name belongs to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def anchored(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return those sections of conf.yaml in which such paths stand, with the whole paths.

    What has not the form that it should have is left to the check of the settings.
    """
    found: dict[str, Any] = {}
    team, skills = values.get("team"), values.get("skills")
    if isinstance(team, Mapping) and isinstance(team.get("roles"), list):
        found["team"] = {**team, "roles": [_with_path(role, "prompt", folder) for role in team["roles"]]}
    if isinstance(skills, list):
        entries = ({"folder": one} if isinstance(one, str) else one for one in skills)
        found["skills"] = [_with_path(one, "folder", folder) for one in entries]
    return found


def _with_path(entry: Any, key: str, folder: Path) -> Any:
    path = entry.get(key) if isinstance(entry, Mapping) else None
    if not isinstance(path, str) or not path or path.startswith("~"):
        return entry
    return {**entry, key: str(folder / path)}
