"""Which tools were accepted, by the hash of what their servers said of them: a file of JSON.

A server that is trusted today may say something else of the same tool tomorrow ("rug pull"), and what it says
is read by models. Such a tool is not used until a person has accepted it.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from maniple.errors import McpError
from maniple.mcp.definitions import Definition

_MOST_BYTES = 50_000_000

Trust = Literal["first_use", "accepted"]
Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Pinned:
    """What was accepted of a tool."""

    digest: str
    description: str
    schema: Mapping[str, Any]


class Pins:
    """The file at `path`. Every method blocks, and raises `McpError` where it cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()

    def stamp(self) -> Stamp:
        """Return what changes with the file."""
        try:
            found = self._path.stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino

    def judge(self, server: str, tools: Iterable[Definition], trust: Trust) -> dict[str, str]:
        """Return why tools may not be used, by name; with `first_use`, accept those that were never seen."""
        with self._lock:
            known = self._read()
            of_server = known.get(server, {})
            obstacles: dict[str, str] = {}
            seen: dict[str, Any] = {}
            for tool in tools:
                pin = of_server.get(tool.name)
                if pin is None and trust == "first_use":
                    seen[tool.name] = _written(tool)
                elif pin is None:
                    obstacles[tool.name] = f"it was not accepted yet: maniple mcp accept {server}"
                elif pin["digest"] != tool.digest:
                    obstacles[tool.name] = f"it changed since it was accepted: maniple mcp accept {server}"
            if seen:
                self._write({**known, server: {**of_server, **seen}})
            return obstacles

    def accept(self, server: str, tools: Iterable[Definition]) -> None:
        """Accept exactly these tools of a server, as they are."""
        with self._lock:
            self._write({**self._read(), server: {tool.name: _written(tool) for tool in tools}})

    def of(self, server: str) -> dict[str, Pinned]:
        """Return what was accepted of a server, by the names of its tools."""
        with self._lock:
            found = self._read().get(server, {})
        return {name: Pinned(one["digest"], one["description"], one["schema"]) for name, one in found.items()}

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            with self._path.open("rb") as file:
                known = json.loads(file.read(_MOST_BYTES))
            sound = all(_is_pin(one) for server in known.values() for one in server.values())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            raise self._damaged(error) from error
        if not sound:
            raise self._damaged("it has entries that are none of ours")
        return known

    def _damaged(self, why: object) -> McpError:
        # Not begun anew: a changed tool would pass as one that was never seen.
        return McpError(
            f"{self._path}, which says what was accepted of MCP tools, cannot be read ({why}). "
            "Restore it, or remove it and look at every tool anew: maniple mcp list."
        )

    def _write(self, known: Mapping[str, Any]) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=".pins-", dir=self._path.parent)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(known, file, ensure_ascii=True, indent=1)
            Path(name).replace(self._path)
        except OSError as error:
            raise McpError(f"{self._path} cannot be written: {error.strerror}") from error


def _written(tool: Definition) -> dict[str, Any]:
    return {"digest": tool.digest, "description": tool.description, "schema": tool.schema}


def _is_pin(one: Any) -> bool:
    return isinstance(one, dict) and {"digest", "description", "schema"} <= one.keys()
