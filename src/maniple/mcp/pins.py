"""Which tools were accepted, by the hash of what their servers said of them: a file of JSON for each server.

A server that is trusted today may say something else of the same tool tomorrow ("rug pull"), and what it says
is read by models. Such a tool is not used until a person has accepted it. What one server says, and how much,
changes nothing for the others.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from maniple.config.mcp_settings import prefix_of
from maniple.errors import McpError
from maniple.locks import file_lock_within
from maniple.mcp.tool_definitions import ToolDefinition

MAX_PINNED_TOOLS = 400
"""Of one server, those that it has no more among them: a server that renames its tools has only so many."""
MAX_PIN_BYTES = 8_000_000
"""Of one server's file."""
_LOCK_SECONDS = 10.0

Trust = Literal["first_use", "accepted"]
PinStamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ToolPin:
    """What was accepted of a tool."""

    digest: str
    description: str
    schema: Mapping[str, Any]


class PinStore:
    """The files in `folder`. Each method blocks; raises `McpError` where one cannot be read or written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def stamp(self, server: str) -> PinStamp:
        """Return what changes with what is kept of a server."""
        try:
            found = self._file(server).stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino

    def judge(self, server: str, tools: Iterable[ToolDefinition], trust: Trust) -> dict[str, str]:
        """Return why tools may not be used, by name; with `first_use`, accept those that were never seen.

        Of these as many as there is room for.
        """
        # Who only looks writes nothing, not even a lock.
        with self._alone(server) if trust == "first_use" else nullcontext():
            known = self._read(server)
            room = _Room(known)
            reasons: dict[str, str] = {}
            for tool in tools:
                pin = known.get(tool.name)
                if pin is not None and pin["digest"] != tool.digest:
                    reasons[tool.name] = f"it changed since it was accepted: maniple mcp accept {server}"
                elif pin is None and trust == "accepted":
                    reasons[tool.name] = f"it was not accepted yet: maniple mcp accept {server}"
                elif pin is None and (reason := room.take(tool)):
                    reasons[tool.name] = f"{reason}; look at them: maniple mcp accept {server}"
            if room.taken:
                self._write(server, {**known, **room.taken})
            return reasons

    def accept(self, server: str, tools: Iterable[ToolDefinition]) -> None:
        """Accept exactly these tools of a server, as they are."""
        room = _Room({})
        for tool in tools:
            if reason := room.take(tool):
                raise McpError(
                    f"The tools of {server} cannot be accepted: {reason}. Name the wanted in tools."
                )
        with self._alone(server):
            self._write(server, room.taken)

    def of(self, server: str) -> dict[str, ToolPin]:
        """Return what was accepted of a server, by the names of its tools."""
        found = self._read(server)
        return {
            name: ToolPin(one["digest"], one["description"], one["schema"]) for name, one in found.items()
        }

    def _file(self, server: str) -> Path:
        return self._folder / f"{prefix_of(server)}.json"

    @contextmanager
    def _alone(self, server: str) -> Iterator[None]:
        """Keep others from what is read and then written here, be it in this program or in another one."""
        lock = self._file(server).with_suffix(".lock")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with file_lock_within(lock, _LOCK_SECONDS):
                yield
        except TimeoutError as error:
            raise McpError(f"Another program holds {lock}, and with it what was accepted.") from error
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
            raise _damaged(path, "it has entries that are none of ours")
        return known

    def _write(self, server: str, known: Mapping[str, Any]) -> None:
        path = self._file(server)
        try:
            descriptor, name = tempfile.mkstemp(prefix=".pins-", dir=self._folder)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(known, file, ensure_ascii=True, indent=1)
            Path(name).replace(path)
        except OSError as error:
            raise McpError(f"{path} cannot be written: {error.strerror}") from error


class _Room:
    """What there is place for beside the tools that are known, with those that took theirs."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._names = MAX_PINNED_TOOLS - len(known)
        self._bytes = MAX_PIN_BYTES - sum(_size(one) for one in known.values())
        self.taken: dict[str, Any] = {}

    def take(self, tool: ToolDefinition) -> str:
        """Give `tool` its place; return why it gets none."""
        written = _written(tool)
        size = _size(written)
        if self._names < 1:
            return f"its server has had more than {MAX_PINNED_TOOLS} tools"
        if self._bytes < size:
            return f"the tools of its server take more than {MAX_PIN_BYTES} bytes to describe"
        self._names, self._bytes = self._names - 1, self._bytes - size
        self.taken[tool.name] = written
        return ""


def _damaged(path: Path, why: object) -> McpError:
    # Not begun anew: a changed tool would pass as one that was never seen.
    return McpError(
        f"{path}, which says what was accepted of MCP tools, cannot be read ({why}). "
        "Restore it, or remove it and look at every tool anew: maniple mcp list."
    )


def _size(pin: Mapping[str, Any]) -> int:
    return len(json.dumps(pin, ensure_ascii=True, indent=1))


def _written(tool: ToolDefinition) -> dict[str, Any]:
    return {"digest": tool.digest, "description": tool.description, "schema": tool.schema}


def _is_pin(one: Any) -> bool:
    return isinstance(one, dict) and {"digest", "description", "schema"} <= one.keys()
