"""What was learned about model endpoints, kept between runs of the program."""

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path

KEPT_SECONDS = 7 * 24 * 3600
"""An endpoint may be upgraded: after a week it is found out anew."""


class CapabilityCache:
    """A small JSON file: `{"URL MODEL": {"at": seconds, "features": {name: bool}}}`.

    It is a cache: a file that cannot be read or written costs a few repeated calls, so neither is an error.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries = _fresh(_read(path))

    def of(self, url: str, model: str) -> dict[str, bool]:
        """Return the known features of a model at an endpoint."""
        return dict(self._entries.get(f"{url} {model}", {}).get("features", {}))

    def learned(self, url: str, model: str, features: Mapping[str, bool]) -> asyncio.Future[None]:
        """Remember them; the future is done when they are on disk."""
        known = {**self.of(url, model), **features}
        self._entries[f"{url} {model}"] = {"at": time.time(), "features": known}
        text = json.dumps(self._entries, indent=1)
        return asyncio.get_running_loop().run_in_executor(None, _write, self._path, text)


def _read(path: Path) -> dict[str, dict]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return entries if isinstance(entries, dict) else {}


def _fresh(entries: dict[str, dict]) -> dict[str, dict]:
    now = time.time()
    return {
        name: entry
        for name, entry in entries.items()
        if isinstance(entry, dict)
        and isinstance(entry.get("features"), dict)
        and isinstance(entry.get("at"), int | float)
        # Nor one of the future: the clock was wrong, and it would stay for as long.
        and now - KEPT_SECONDS < entry["at"] < now + KEPT_SECONDS
    }


def _write(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError:
        return
