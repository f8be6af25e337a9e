"""The TypeScript types of all events: `python -m maniple.events.typescript FILE` writes them to a file."""

import importlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from maniple.events.base import EVENT_TYPES, Event

_HEAD = """\
/** Generated from `src/maniple/events` by `make types`. Do not edit.
 *
 * A field with a default in Python is optional here: events of earlier versions may lack it.
 */
"""
_PRIMITIVES = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}

_Schema = Mapping[str, Any]


def typescript_types(event_types: Iterable[type[Event]]) -> str:
    """Return the module that declares these events, their parts, and `EventData`, the union of the events."""
    by_name = {one.__name__: one for one in event_types}
    _, schema = models_json_schema(
        [(one, "validation") for one in by_name.values()], ref_template="{model}", title="events"
    )
    declared = [
        _interface(name, one, by_name[name].type if name in by_name else "")
        for name, one in schema.get("$defs", {}).items()
    ]
    union = "".join(f"\n  | {name}" for name in by_name)
    return "\n".join([_HEAD, *declared, f"export type EventData ={union};\n"])


def _interface(name: str, schema: _Schema, wire_name: str) -> str:
    comment = schema.get("description", "").replace("\n", "\n * ").replace(" * \n", " *\n")
    required = schema.get("required", ())
    fields = [f'  type: "{wire_name}";'] if wire_name else []
    fields += [
        f"  {field}{'' if field in required else '?'}: {_type(one)};"
        for field, one in schema.get("properties", {}).items()
    ]
    body = "\n".join([f"export interface {name} {{", *fields, "}"])
    return f"/** {comment} */\n{body}\n" if comment else f"{body}\n"


def _type(schema: _Schema) -> str:
    if "tsType" in schema:
        return schema["tsType"]
    if "$ref" in schema:
        return schema["$ref"]
    if "const" in schema or "enum" in schema:
        return " | ".join(f'"{one}"' for one in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " | ".join(_type(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        item = _type(schema["items"])
        return f"({item})[]" if " | " in item else f"{item}[]"
    if schema.get("type") == "object":
        inside: _Schema | bool = schema.get("additionalProperties", True)
        return f"Record<string, {'unknown' if isinstance(inside, bool) else _type(inside)}>"
    return _PRIMITIVES.get(schema.get("type", ""), "unknown")


def main() -> None:
    """Write the types of the built-in events to the file that the command line names."""
    importlib.import_module("maniple.events.model")  # its classes register themselves
    Path(sys.argv[1]).write_text(typescript_types(EVENT_TYPES.values()), encoding="utf-8")


if __name__ == "__main__":
    main()
