"""The accepted tools of MCP servers, by the hash of their definitions: one JSON file for each server.

Models read the descriptions of tools. A trusted server may change the description of a tool later ("rug
pull"). A changed tool is not used until the user has accepted it. The limits of one server do not affect
others.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from maniple.config.mcp_settings import prefix_of
from maniple.errors import McpError
from maniple.locks import file_lock_within
from maniple.mcp.tool_definitions import ToolDefinition
from maniple.private_files import private_draft

MAX_PINNED_TOOLS = 400
"""The limit of one server, including removed tools, so that renaming tools does not grow the file."""
MAX_PIN_BYTES = 8_000_000
"""The limit of one server's file."""
_LOCK_SECONDS = 10.0

Trust = Literal["first_use", "accepted"]
PinStamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ToolPin:
    """An accepted tool definition."""

    digest: str
    description: str
    schema: Mapping[str, Any]


class PinStore:
    """The accepted tools, stored in `folder`.

    Each method blocks, and raises `McpError` if a file cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def stamp(self, server: str) -> PinStamp:
        """Return a stamp that changes when the stored tools of a server change."""
        try:
            found = self._file(server).stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino

    def judge(self, server: str, tools: Iterable[ToolDefinition], trust: Trust) -> dict[str, str]:
        """Return why tools may not be used, by name.

        With `first_use`, unknown tools are accepted, within the limits of the file.
        """
        # Without `first_use` nothing is written, so no lock is needed.
        with self._lock(server) if trust == "first_use" else nullcontext():
            known = self._read(server)
            room = _Room(known)
            reasons: dict[str, str] = {}
            for tool in tools:
                pin = known.get(tool.name)
                if pin is not None and pin["digest"] != tool.digest:
                    reasons[tool.name] = f"it changed since it was accepted: maniple mcp accept {server}"
                elif pin is None and trust == "accepted":
                    reasons[tool.name] = f"it was not accepted yet: maniple mcp accept {server}"
                elif pin is None and (reason := room.add(tool)):
                    reasons[tool.name] = f"{reason}; look at them: maniple mcp accept {server}"
            if room.added:
                self._write(server, {**known, **room.added})
            return reasons

    def accept(self, server: str, tools: Iterable[ToolDefinition]) -> None:
        """Accept exactly these tools of a server, as they are."""
        room = _Room({})
        for tool in tools:
            if reason := room.add(tool):
                raise McpError(
                    f"The tools of {server} cannot be accepted: {reason}. Name the wanted in tools."
                )
        with self._lock(server):
            self._write(server, room.added)

    def of(self, server: str) -> dict[str, ToolPin]:
        """Return the accepted tools of a server, by name."""
        found = self._read(server)
        return {
            name: ToolPin(one["digest"], one["description"], one["schema"]) for name, one in found.items()
        }

    def _file(self, server: str) -> Path:
        return self._folder / f"{prefix_of(server)}.json"

    @contextmanager
    def _lock(self, server: str) -> Iterator[None]:
        """Lock the file of a server against other threads and processes within the body."""
        lock = self._file(server).with_suffix(".lock")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with file_lock_within(lock, _LOCK_SECONDS):
                yield
        except TimeoutError as error:
            raise McpError(f"Another process holds the lock {lock}. Try again when it has ended.") from error
        except OSError as error:
            raise McpError(f"{lock} cannot be written: {error.strerror}") from error

    def _read(self, server: str) -> dict[str, Any]:
        path = self._file(server)
        try:
            with path.open("rb") as file:
                known = json.loads(file.read(2 * MAX_PIN_BYTES))
            sound = all(map(_is_pin, known.values()))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError, AttributeError) as error:
            raise _damaged(path, error) from error
        if not sound:
            raise _damaged(path, "it has invalid entries")
        return known

    def _write(self, server: str, known: Mapping[str, Any]) -> None:
        path = self._file(server)
        try:
            with private_draft(path) as draft:
                draft.write_text(json.dumps(known, ensure_ascii=True, indent=1), encoding="utf-8")
        except OSError as error:
            raise McpError(f"{path} cannot be written: {error.strerror}") from error


class _Room:
    """The remaining space in a server's file, and the tools that were added."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._names = MAX_PINNED_TOOLS - len(known)
        self._bytes = MAX_PIN_BYTES - sum(_size(one) for one in known.values())
        self.added: dict[str, Any] = {}

    def add(self, tool: ToolDefinition) -> str:
        """Add `tool`; return the reason if it does not fit, else ""."""
        entry = _to_entry(tool)
        size = _size(entry)
        if self._names < 1:
            return f"its server has had more than {MAX_PINNED_TOOLS} tools"
        if self._bytes < size:
            return f"the tools of its server take more than {MAX_PIN_BYTES} bytes to describe"
        self._names, self._bytes = self._names - 1, self._bytes - size
        self.added[tool.name] = entry
        return ""


def _damaged(path: Path, why: object) -> McpError:
    # An empty start would accept changed tools as unknown ones.
    return McpError(
        f"{path}, which stores the accepted MCP tools, cannot be read ({why}). "
        "Restore it, or remove it and check every tool again: maniple mcp list."
    )


def _size(pin: Mapping[str, Any]) -> int:
    return len(json.dumps(pin, ensure_ascii=True, indent=1))


def _to_entry(tool: ToolDefinition) -> dict[str, Any]:
    return {"digest": tool.digest, "description": tool.description, "schema": tool.schema}


def _is_pin(one: Any) -> bool:
    return isinstance(one, dict) and {"digest", "description", "schema"} <= one.keys()
