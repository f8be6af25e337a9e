"""The accepted tools of MCP servers, by the hash of their definitions: one JSON text for each server.

Models read the descriptions of tools. A trusted server may change the description of a tool later ("rug
pull"). A changed tool is not used until the user has accepted it. The limits of one server do not affect
others.
"""

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from maniple.config.mcp_settings import prefix_of
from maniple.errors import ConfigError, McpError, StoreError
from maniple.mcp.tool_definitions import ToolDefinition
from maniple.shared_texts import SharedTexts

MAX_PINNED_TOOLS = 400
"""The limit of one server, including removed tools, so that renaming tools does not grow its text."""
MAX_PIN_BYTES = 8_000_000
"""The limit of one server's text."""

Trust = Literal["first_use", "accepted"]
PinStamp = Hashable


@dataclass(frozen=True, slots=True)
class ToolPin:
    """An accepted tool definition."""

    digest: str
    description: str
    schema: Mapping[str, Any]


class PinStore:
    """The accepted tools, stored in `texts`.

    Each method blocks, and raises `McpError` if a text cannot be used.
    """

    def __init__(self, texts: SharedTexts) -> None:
        self._texts = texts

    def stamp(self, server: str) -> PinStamp:
        """Return a stamp that changes when the stored tools of a server change."""
        with store_errors():
            return self._texts.stamp(prefix_of(server))

    def judge(self, server: str, tools: Iterable[ToolDefinition], trust: Trust) -> dict[str, str]:
        """Return why tools may not be used, by name.

        With `first_use`, unknown tools are accepted, within the limits of the text.
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

    @contextmanager
    def _lock(self, server: str) -> Iterator[None]:
        """Lock the text of a server against other threads and processes within the body."""
        with store_errors(), self._texts.locked(prefix_of(server)):
            yield

    def _read(self, server: str) -> dict[str, Any]:
        name = prefix_of(server)
        with store_errors():
            text = self._texts.read(name)
        if text is None:
            return {}
        try:
            known = json.loads(text)
            sound = all(map(_is_pin, known.values()))
        except (ValueError, RecursionError, AttributeError) as error:
            raise _damaged(self._texts.describe(name), error) from error
        if not sound:
            raise _damaged(self._texts.describe(name), "it has invalid entries")
        return known

    def _write(self, server: str, known: Mapping[str, Any]) -> None:
        with store_errors():
            self._texts.write(prefix_of(server), json.dumps(known, ensure_ascii=True, indent=1))


class _Room:
    """The remaining space in a server's text, and the tools that were added."""

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


@contextmanager
def store_errors() -> Iterator[None]:
    """Raise what the shared texts raise as `McpError`."""
    try:
        yield
    except (ConfigError, StoreError) as error:
        raise McpError(str(error)) from error


def _damaged(place: str, why: object) -> McpError:
    # An empty start would accept changed tools as unknown ones.
    return McpError(
        f"{place}, which stores the accepted MCP tools, cannot be read ({why}). "
        "Restore it, or remove it and check every tool again: maniple mcp list."
    )


def _size(pin: Mapping[str, Any]) -> int:
    return len(json.dumps(pin, ensure_ascii=True, indent=1))


def _to_entry(tool: ToolDefinition) -> dict[str, Any]:
    return {"digest": tool.digest, "description": tool.description, "schema": tool.schema}


def _is_pin(one: Any) -> bool:
    return isinstance(one, dict) and {"digest", "description", "schema"} <= one.keys()
