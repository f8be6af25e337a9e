"""A tool as its server defines it: bounded, and with the hash by which a change is seen."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mcp_types import ToolAnnotations

from maniple.redaction import Redactor

MAX_TOOLS = 200
MAX_SERVER_NAME_CHARACTERS = 200
MAX_DESCRIPTION_CHARACTERS = 2_000
"""Of what a model is shown; the hash is of the whole."""


class SdkTool(Protocol):
    """What the SDK makes of an entry of `tools/list`."""

    name: str
    description: str | None
    input_schema: dict[str, Any]
    annotations: ToolAnnotations | None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What a model is told of a tool: its name at the server, what it does, its arguments."""

    name: str
    description: str
    schema: dict[str, Any]
    digest: str
    """Of name, description and schema as the server sent them."""
    only_reads: bool = False
    """What the server says of it; a hint, and no part of the digest."""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """What a server offers: the tools that can be used, and why others cannot, by name."""

    tools: tuple[ToolDefinition, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)

    def without_secrets(self, redactor: Redactor) -> "ToolListing":
        """Return it with nothing in it that `redactor` masks; the digests stay."""
        masked = (
            replace(one, description=redactor.text(one.description), schema=redactor.value(one.schema))
            for one in self.tools
        )
        return ToolListing(tuple(masked), self.left_out)


def read_listing(offered: Iterable[SdkTool], only: Iterable[str] = ()) -> ToolListing:
    """Take what a server offers, or `only` the tools of these names; of two namesakes the first."""
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
    left_out |= dict.fromkeys(wanted - tools.keys() - left_out.keys(), "the server has no such tool")
    return ToolListing(tuple(tools.values()), left_out)


def _rejection_reason(one: SdkTool, number: int) -> str:
    if not one.name.strip() or len(one.name) > MAX_SERVER_NAME_CHARACTERS:
        return f"its name has not 1 to {MAX_SERVER_NAME_CHARACTERS} characters"
    return f"the server has more than {MAX_TOOLS} tools" if number >= MAX_TOOLS else ""


def _definition(one: SdkTool) -> ToolDefinition:
    whole = one.description or ""
    schema = argument_schema(one.input_schema)
    sent = json.dumps([one.name, whole, one.input_schema], sort_keys=True, ensure_ascii=True)
    cut = whole if len(whole) <= MAX_DESCRIPTION_CHARACTERS else whole[:MAX_DESCRIPTION_CHARACTERS] + " […]"
    only_reads = one.annotations is not None and one.annotations.read_only_hint is True
    return ToolDefinition(one.name, cut, schema, hashlib.sha256(sent.encode()).hexdigest(), only_reads)


MAX_SCHEMA_BYTES = 32_768
MAX_SCHEMA_DEPTH = 40
_ANYTHING: dict[str, Any] = {}
_LEFT_OUT = frozenset({"$defs", "definitions", "$schema", "$id", "$comment", "examples"})


class UnusableSchema(ValueError):
    """Says why a tool's arguments cannot be described to a model."""


def argument_schema(schema: Any) -> dict[str, Any]:
    """Return `schema` without references, as an object with properties; raises `UnusableSchema`.

    What refers to itself becomes "anything" there. At most `MOST_BYTES` parts are looked at.
    """
    if not isinstance(schema, Mapping):
        raise UnusableSchema("its arguments are not described by a JSON Schema")
    if schema.get("type", "object") != "object":
        raise UnusableSchema("its arguments are no object")
    written = _Writer(schema).written({**schema, "type": "object"})
    properties = written.get("properties")
    if properties is None:
        written["properties"] = {}
    elif not isinstance(properties, dict) or not all(isinstance(one, dict) for one in properties.values()):
        raise UnusableSchema("the properties of its arguments are not described")
    required = written.get("required", [])
    if not (isinstance(required, list) and all(isinstance(one, str) for one in required)):
        raise UnusableSchema("which of its arguments are required is not a list of names")
    return written


class _Writer:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MAX_SCHEMA_BYTES

    def written(self, part: Any, above: tuple[str, ...] = (), level: int = 0) -> Any:
        self._left -= 1
        if level > MAX_SCHEMA_DEPTH:
            raise UnusableSchema(f"its arguments are nested deeper than {MAX_SCHEMA_DEPTH} levels")
        if self._left < 0:
            raise UnusableSchema(
                f"the description of its arguments is longer than {MAX_SCHEMA_BYTES} characters"
            )
        if isinstance(part, list):
            return [self.written(one, above, level + 1) for one in part]
        if not isinstance(part, Mapping):
            self._pay(part)
            return part
        if "$ref" in part:
            return self._referred(part, above, level)
        whole: dict[str, Any] = {}
        for key, value in part.items():
            # Below `properties` the same words are names of arguments.
            if key in _LEFT_OUT and _is_schema(part):
                continue
            self._pay(key)
            whole[key] = self.written(value, above, level + 1)
        return whole

    def _referred(self, part: Mapping[str, Any], above: tuple[str, ...], level: int) -> Any:
        reference = part["$ref"]
        if isinstance(reference, Mapping):  # an argument of that name
            return {key: self.written(value, above, level + 1) for key, value in part.items()}
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise UnusableSchema("its arguments are described elsewhere")
        self._pay(reference)
        if reference in above or reference in ("#", "#/"):
            return dict(_ANYTHING)
        found = self.written(self._at(reference), (*above, reference), level + 1)
        beside = {key: value for key, value in part.items() if key != "$ref"}
        return {**found, **self.written(beside, above, level + 1)} if isinstance(found, dict) else found

    def _at(self, reference: str) -> Any:
        found: Any = self._root
        for name in reference.removeprefix("#/").split("/"):
            name = name.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or name not in found:
                raise UnusableSchema("its arguments refer to what is not there")
            found = found[name]
        return found

    def _pay(self, piece: Any) -> None:
        """Count what is about to be written; who has none left hears of it at the next part."""
        self._left -= len(json.dumps(piece, ensure_ascii=False)) + 2


def _is_schema(part: Mapping[str, Any]) -> bool:
    """Whether the keys of `part` are words of JSON Schema, and not names of arguments."""
    return any(
        isinstance(part.get(word), str | list | bool) for word in ("type", "$schema", "anyOf", "oneOf")
    )


MAX_NAME_CHARACTERS = 64
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


class ToolNames:
    """Gives each tool of each server its name, once: it stays the same until it is forgotten.

    What endpoints do not take becomes `_`. A name that is too long, or taken by another tool, ends in a few
    letters that are drawn from both names, and so are the same in every program.
    """

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def of(self, server: str, tool: str) -> str:
        """Return the name of a server's `tool`, at most 64 letters, digits, `_` and `-`."""
        key = (server, tool)
        if key not in self._given:
            name = self._free(key)
            self._taken.add(name)
            self._given[key] = name
        return self._given[key]

    def forget(self, server: str, tool: str) -> None:
        """Let others have the name of a tool that is gone for good."""
        self._taken.discard(self._given.pop((server, tool), ""))

    def _free(self, key: tuple[str, str]) -> str:
        name = "__".join(_FOREIGN.sub("_", part) for part in key)
        if len(name) <= MAX_NAME_CHARACTERS and name not in self._taken:
            return name
        drawn = hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()
        # More letters than the first eight are needed only by who looks for names that collide.
        tails = (f"_{drawn[:length]}" for length in range(8, 48))
        return next(
            one
            for tail in tails
            if (one := name[: MAX_NAME_CHARACTERS - len(tail)] + tail) not in self._taken
        )
