"""Tool definitions of servers: limited in size, with a hash that shows changes, and with names for models."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mcp_types import ToolAnnotations

from maniple.config.mcp_settings import join_tool_name
from maniple.redaction import Redactor

MAX_TOOLS = 200
MAX_SERVER_NAME_CHARACTERS = 200
MAX_DESCRIPTION_CHARACTERS = 2_000
"""The limit of the description that a model sees; the hash covers the whole description."""


class SdkTool(Protocol):
    """The SDK's type of an entry of `tools/list`."""

    name: str
    description: str | None
    input_schema: dict[str, Any]
    annotations: ToolAnnotations | None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool's name at the server, its description and its arguments, as a model sees them."""

    name: str
    description: str
    schema: dict[str, Any]
    digest: str
    """The SHA-256 (hex) of name, description and schema as the server sent them."""
    only_reads: bool = False
    """The server's hint that the tool only reads; not part of the digest."""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """A server's tools: the usable ones, and by name the reasons why others are not."""

    tools: tuple[ToolDefinition, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)

    def without_secrets(self, redactor: Redactor) -> "ToolListing":
        """Return the listing with secrets masked by `redactor`; digests do not change."""
        masked = (
            replace(one, description=redactor.text(one.description), schema=redactor.value(one.schema))
            for one in self.tools
        )
        return ToolListing(tuple(masked), self.left_out)


def read_listing(offered: Iterable[SdkTool], only: Iterable[str] = ()) -> ToolListing:
    """Convert the tools of a server, or `only` those of these names; of two with one name, the first."""
    wanted = frozenset(only)
    tools: dict[str, ToolDefinition] = {}
    left_out: dict[str, str] = {}
    for one in offered:
        name = one.name[:MAX_SERVER_NAME_CHARACTERS]
        if name in tools or (wanted and name not in wanted):
            continue
        if reason := _rejection_reason(one, len(tools)):
            left_out[name] = reason
            continue
        try:
            tools[name] = _definition(one)
        except UnusableSchema as error:
            left_out[name] = str(error)
    left_out |= dict.fromkeys(wanted - tools.keys() - left_out.keys(), "the server does not have this tool")
    return ToolListing(tuple(tools.values()), left_out)


def _rejection_reason(one: SdkTool, number: int) -> str:
    if not one.name.strip() or len(one.name) > MAX_SERVER_NAME_CHARACTERS:
        return f"its name is empty or longer than {MAX_SERVER_NAME_CHARACTERS} characters"
    return f"the server has more than {MAX_TOOLS} tools" if number >= MAX_TOOLS else ""


def _definition(one: SdkTool) -> ToolDefinition:
    description = one.description or ""
    schema = argument_schema(one.input_schema)
    sent = json.dumps([one.name, description, one.input_schema], sort_keys=True, ensure_ascii=True)
    cut = (
        description
        if len(description) <= MAX_DESCRIPTION_CHARACTERS
        else description[:MAX_DESCRIPTION_CHARACTERS] + " […]"
    )
    only_reads = one.annotations is not None and one.annotations.read_only_hint is True
    return ToolDefinition(one.name, cut, schema, hashlib.sha256(sent.encode()).hexdigest(), only_reads)


MAX_SCHEMA_BYTES = 32_768
MAX_SCHEMA_DEPTH = 40
_ANYTHING: dict[str, Any] = {}
_LEFT_OUT = frozenset({"$defs", "definitions", "$schema", "$id", "$comment", "examples"})


class UnusableSchema(ValueError):
    """A tool's arguments cannot be described to a model; the message has the reason."""


def argument_schema(schema: Any) -> dict[str, Any]:
    """Return `schema` with references replaced, as an object with properties; raises `UnusableSchema`.

    A recursive reference becomes a schema that accepts anything. The result has at most `MAX_SCHEMA_BYTES`.
    """
    if not isinstance(schema, Mapping):
        raise UnusableSchema("its arguments are not described by a JSON Schema")
    if schema.get("type", "object") != "object":
        raise UnusableSchema("its arguments are not a JSON object")
    resolved = _SchemaResolver(schema).resolve({**schema, "type": "object"})
    properties = resolved.get("properties")
    if properties is None:
        resolved["properties"] = {}
    elif not isinstance(properties, dict) or not all(isinstance(one, dict) for one in properties.values()):
        raise UnusableSchema("the properties of its arguments are not described")
    required = resolved.get("required", [])
    if not (isinstance(required, list) and all(isinstance(one, str) for one in required)):
        raise UnusableSchema("which of its arguments are required is not a list of names")
    return resolved


class _SchemaResolver:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MAX_SCHEMA_BYTES

    def resolve(self, part: Any, above: tuple[str, ...] = (), level: int = 0) -> Any:
        self._left -= 1
        if level > MAX_SCHEMA_DEPTH:
            raise UnusableSchema(f"its arguments are nested deeper than {MAX_SCHEMA_DEPTH} levels")
        if self._left < 0:
            raise UnusableSchema(
                f"the description of its arguments is longer than {MAX_SCHEMA_BYTES} characters"
            )
        if isinstance(part, list):
            return [self.resolve(one, above, level + 1) for one in part]
        if not isinstance(part, Mapping):
            self._count_size(part)
            return part
        if "$ref" in part:
            return self._resolve_reference(part, above, level)
        description: dict[str, Any] = {}
        for key, value in part.items():
            # Below `properties`, the same keys are names of arguments.
            if key in _LEFT_OUT and _is_schema(part):
                continue
            self._count_size(key)
            description[key] = self.resolve(value, above, level + 1)
        return description

    def _resolve_reference(self, part: Mapping[str, Any], above: tuple[str, ...], level: int) -> Any:
        reference = part["$ref"]
        if isinstance(reference, Mapping):  # an argument of that name
            return {key: self.resolve(value, above, level + 1) for key, value in part.items()}
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise UnusableSchema("its schema refers to another document")
        self._count_size(reference)
        if reference in above or reference in ("#", "#/"):
            return dict(_ANYTHING)
        found = self.resolve(self._look_up(reference), (*above, reference), level + 1)
        beside = {key: value for key, value in part.items() if key != "$ref"}
        return {**found, **self.resolve(beside, above, level + 1)} if isinstance(found, dict) else found

    def _look_up(self, reference: str) -> Any:
        found: Any = self._root
        for name in reference.removeprefix("#/").split("/"):
            name = name.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or name not in found:
                raise UnusableSchema("its schema refers to a definition that does not exist")
            found = found[name]
        return found

    def _count_size(self, piece: Any) -> None:
        """Subtract the size of `piece`; the next call of `resolve` raises if the limit is exceeded."""
        self._left -= len(json.dumps(piece, ensure_ascii=False)) + 2


def _is_schema(part: Mapping[str, Any]) -> bool:
    """Return whether the keys of `part` are keywords of JSON Schema rather than names of arguments."""
    return any(
        isinstance(part.get(word), str | list | bool) for word in ("type", "$schema", "anyOf", "oneOf")
    )


MAX_NAME_CHARACTERS = 64


class ToolNames:
    """Assigns a unique name for models to each tool of each server.

    Characters that endpoints reject become `_`. A name that is too long, or used by another tool, ends in a
    few characters of a hash of server and tool, so that it is the same in every process.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def of(self, server: str, tool: str) -> str:
        """Return the name of a server's `tool`, at most 64 letters, digits, `_` and `-`."""
        key = (server, tool)
        if key not in self._names:
            name = self._make_name(server, tool)
            self._taken.add(name)
            self._names[key] = name
        return self._names[key]

    def forget(self, server: str, tool: str) -> None:
        """Release the name of a tool that was removed."""
        self._taken.discard(self._names.pop((server, tool), ""))

    def _make_name(self, server: str, tool: str) -> str:
        name = join_tool_name(server, tool)
        if len(name) <= MAX_NAME_CHARACTERS and name not in self._taken:
            return name
        digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()
        # More than eight characters are needed only for names that were made to collide.
        tails = (f"_{digest[:length]}" for length in range(8, 48))
        return next(
            one
            for tail in tails
            if (one := name[: MAX_NAME_CHARACTERS - len(tail)] + tail) not in self._taken
        )
