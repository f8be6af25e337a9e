"""Where a value does not have the structure that a JSON Schema describes.

Kinds, names and enumerations alone are looked at: a schema may be a stranger's, and its patterns can take for
ever. What is no schema describes anything. The time grows with the schema times the value.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_KINDS: Mapping[Any, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int | float) and not _is_flag(value) and value % 1 == 0,
    "number": lambda value: isinstance(value, int | float) and not _is_flag(value),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
    "null": lambda value: value is None,
}


def schema_misfits(schema: Any, value: Any, at: str = "") -> Iterator[str]:
    """Yield what is wrong as `items.0.count: should be integer`; of alternatives, of what fits best."""
    if not isinstance(schema, Mapping):
        return
    kinds = _listed(schema.get("type"))
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield f"{_place(at)}should be {' or '.join(map(str, kinds))}"
        return
    if (known := _listed(schema.get("enum"))) and value not in known:
        yield f"{_place(at)}should be one of {json.dumps(known, ensure_ascii=False, default=str)}"
    yield from _in_alternatives(schema, value, at)
    if isinstance(value, Mapping):
        yield from _in_object(schema, value, at)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from schema_misfits(schema.get("items"), one, _beneath(at, number))


def _in_alternatives(schema: Mapping[str, Any], value: Any, at: str) -> Iterator[str]:
    for word in ("anyOf", "oneOf"):
        each = [list(schema_misfits(one, value, at)) for one in _listed(schema.get(word))]
        if each and all(each):
            yield from min(each, key=len)


def _in_object(schema: Mapping[str, Any], value: Mapping[str, Any], at: str) -> Iterator[str]:
    known = schema.get("properties")
    known = known if isinstance(known, Mapping) else {}
    required = [name for name in _listed(schema.get("required")) if isinstance(name, str)]
    if missing := [name for name in required if name not in value]:
        yield f"{_place(at)}missing: {', '.join(missing)}"
    unknown = [str(name) for name in value if name not in known]
    if unknown and schema.get("additionalProperties") is False:
        yield f"{_place(at)}unknown: {', '.join(unknown)}"
    for name, one in value.items():
        yield from schema_misfits(known.get(name), one, _beneath(at, name))


def _place(at: str) -> str:
    return f"{at}: " if at else ""


def _beneath(at: str, name: object) -> str:
    return f"{at}.{name}" if at else str(name)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if isinstance(value, str) else []


def _is(value: Any, kind: Any) -> bool:
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    return known is None or known(value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)
