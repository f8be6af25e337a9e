"""A tool as its server defines it: bounded, and with the hash by which a change is seen."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mcp_types import ToolAnnotations

from maniple.mcp.schemas import UnusableSchema, argument_schema
from maniple.redaction import Redactor

MOST_TOOLS = 200
LONGEST_NAME = 200
LONGEST_DESCRIPTION = 2_000
"""Of what a model is shown; the hash is of the whole."""


class Offered(Protocol):
    """What the SDK makes of an entry of `tools/list`."""

    name: str
    description: str | None
    input_schema: dict[str, Any]
    annotations: ToolAnnotations | None


@dataclass(frozen=True, slots=True)
class Definition:
    """What a model is told of a tool: its name at the server, what it does, its arguments."""

    name: str
    description: str
    schema: dict[str, Any]
    digest: str
    """Of name, description and schema as the server sent them."""
    only_reads: bool = False
    """What the server says of it; a hint, and no part of the digest."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server offers: the tools that can be used, and why others cannot, by name."""

    tools: tuple[Definition, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)

    def without_secrets(self, redactor: Redactor) -> "Listing":
        """Return it with nothing in it that `redactor` masks; the digests stay."""
        masked = (
            replace(one, description=redactor.text(one.description), schema=redactor.value(one.schema))
            for one in self.tools
        )
        return Listing(tuple(masked), self.left_out)


def read_listing(offered: Iterable[Offered], only: Iterable[str] = ()) -> Listing:
    """Take what a server offers, or `only` the tools of these names; of two namesakes the first."""
    wanted = frozenset(only)
    tools: dict[str, Definition] = {}
    left_out: dict[str, str] = {}
    for one in offered:
        name = one.name[:LONGEST_NAME]
        if name in tools or (wanted and name not in wanted):
            continue
        if reason := _obstacle(one, len(tools)):
            left_out[name] = reason
            continue
        try:
            tools[name] = _definition(one)
        except UnusableSchema as error:
            left_out[name] = str(error)
    left_out |= dict.fromkeys(wanted - tools.keys() - left_out.keys(), "the server has no such tool")
    return Listing(tuple(tools.values()), left_out)


def _obstacle(one: Offered, number: int) -> str:
    if not one.name.strip() or len(one.name) > LONGEST_NAME:
        return f"its name has not 1 to {LONGEST_NAME} characters"
    return f"the server has more than {MOST_TOOLS} tools" if number >= MOST_TOOLS else ""


def _definition(one: Offered) -> Definition:
    whole = one.description or ""
    schema = argument_schema(one.input_schema)
    sent = json.dumps([one.name, whole, one.input_schema], sort_keys=True, ensure_ascii=True)
    cut = whole if len(whole) <= LONGEST_DESCRIPTION else whole[:LONGEST_DESCRIPTION] + " […]"
    only_reads = one.annotations is not None and one.annotations.read_only_hint is True
    return Definition(one.name, cut, schema, hashlib.sha256(sent.encode()).hexdigest(), only_reads)
