"""JSON Schema in the words of a table's cells."""

import json
import textwrap
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

COLUMNS = 118

_ANY_JSON = "JsonValue"
"""Pydantic's definition of any value, which has no fields of its own."""
_FORMATS = {"path": "path", "password": "secret", "binary": "file"}
_LIMITS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "maxLength": "at most",
}


def describe_type(schema: Schema) -> str:
    """Return the type and the limits of a value, such as `integer, more than 0`."""
    if "$ref" in schema:
        return _describe_reference(schema["$ref"].rpartition("/")[2])
    if "enum" in schema or "const" in schema:
        return (
            " or ".join(f"`{one}`" for one in schema.get("enum", [schema.get("const")]) if one != "")
            or "text"
        )
    if "anyOf" in schema:
        kinds = [describe_type(one) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    match schema.get("type"):
        case "array":
            return f"list of {describe_type(schema.get('items', {}))}"
        case "object":
            inside = schema.get("additionalProperties")
            return f"mapping to {describe_type(inside)}" if isinstance(inside, dict) and inside else "mapping"
        case "string":
            return _FORMATS.get(schema.get("format", ""), "text")
        case None:
            return "any"
        case kind:
            return ", ".join([kind, *_limits(schema)])


def _describe_reference(name: str) -> str:
    return "any" if name == _ANY_JSON else f"[{name}](#{name.lower()})"


def describe_default(schema: Schema) -> str:
    """Return the default as code; "" if there is none."""
    default = schema.get("default")
    return "" if default is None else f"`{json.dumps(default, ensure_ascii=False)}`"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table; line breaks and bars in cells are made harmless."""
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) for row in rows]
    return "".join(f"| {line} |\n" for line in lines)


def wrap(text: str) -> str:
    """Return the paragraphs of a text in lines that fit into the repository's Markdown."""
    paragraphs = (" ".join(one.split()) for one in text.split("\n\n"))
    return "\n".join(f"{textwrap.fill(one, COLUMNS, break_on_hyphens=False)}\n" for one in paragraphs)


def _limits(schema: Schema) -> list[str]:
    return [
        f"{words} {schema[key]:g}"
        for key, words in _LIMITS.items()
        if key in schema and abs(schema[key]) < 10**15
    ]
