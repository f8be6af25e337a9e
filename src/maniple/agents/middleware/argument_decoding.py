"""Decodes the arguments of calls by the tool's JSON schema: models write lists and numbers as text."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from maniple.llms import read_json
from maniple.types import is_dict, is_list, is_mapping

_MAX_ENCODINGS = 3
_MAX_LEVELS = 20
_FENCE = re.compile(r"\A```\w*\s*(?P<inside>.*?)\s*```\Z", re.DOTALL)
_WRAPPERS = frozenset({"arguments", "args", "parameters", "input", "tool_input", "kwargs"})
_INTEGER = re.compile(r"[+-]?\d{1,40}(?:\.0{1,20})?")
_NUMBER = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?")
_WORDS: Mapping[str, tuple[str, Any]] = {
    "true": ("boolean", True),
    "false": ("boolean", False),
    "null": ("null", None),
    "none": ("null", None),
}


def decode_arguments(schema: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with each text decoded where `schema` wants another type and the text is one of it.

    Everything else stays as it is, so that the tool describes what does not fit.
    """
    decoded = _decode(schema, _unwrap(schema, arguments), _MAX_LEVELS)
    return decoded if is_dict(decoded) else dict(arguments)


def _unwrap(schema: Any, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments inside of a wrapper such as `{"arguments": {…}}`, if the tool does not take it."""
    known = schema.get("properties") if is_mapping(schema) else None
    if not is_mapping(known) or len(arguments) != 1:
        return arguments
    [(name, value)] = arguments.items()
    if name not in _WRAPPERS or name in known:
        return arguments
    inside = _decode_json(value) if isinstance(value, str) else value
    return inside if is_dict(inside) and inside.keys() <= known.keys() else arguments


def _decode(schema: Any, value: Any, levels: int) -> Any:
    if not is_mapping(schema) or levels == 0:
        return value
    if isinstance(value, str):
        kinds = set(_kinds(schema, levels))
        value = value if kinds & {"string", "any"} else _decode_text(value, kinds)
    if is_list(value):
        items = _find(schema, "items", levels)
        return [_decode(items, one, levels - 1) for one in value]
    if is_dict(value):
        properties = _find(schema, "properties", levels)
        known: Mapping[str, Any] = properties if is_mapping(properties) else {}
        return {name: _decode(known.get(name), one, levels - 1) for name, one in value.items()}
    return value


def _branches(schema: Mapping[str, Any], levels: int) -> Iterator[Mapping[str, Any]]:
    """Yield a schema without alternatives, else the alternatives."""
    words = [word for word in ("anyOf", "oneOf", "allOf") if is_list(schema.get(word))]
    if not words or levels == 0:
        yield schema
    for word in words:
        for one in schema[word]:
            yield from _branches(one, levels - 1) if is_mapping(one) else ()


def _kinds(schema: Mapping[str, Any], levels: int) -> Iterator[str]:
    """Yield the JSON types that a schema allows; `any` where that is not said."""
    for one in _branches(schema, levels):
        kind = one.get("type")
        if isinstance(kind, str):
            yield kind
        elif is_list(kind):
            yield from (str(each) for each in kind)
        else:
            yield "any"


def _find(schema: Mapping[str, Any], word: str, levels: int) -> Any:
    """Return the value of a keyword, if exactly one alternative has it."""
    found = [one[word] for one in (schema, *_branches(schema, levels)) if one.get(word) is not None]
    return found[0] if found and all(one == found[0] for one in found) else None


def _decode_text(text: str, kinds: set[str]) -> Any:
    """Return the value of a text as one of these JSON types; the text if it is none."""
    shown = text.strip()
    kind, value = _WORDS.get(shown.casefold(), ("", None))
    if kind in kinds:
        return value
    if "integer" in kinds and _INTEGER.fullmatch(shown):
        return int(shown.partition(".")[0])
    if "number" in kinds and _NUMBER.fullmatch(shown):
        number = float(shown)
        return int(shown) if _INTEGER.fullmatch(shown) and "." not in shown else number
    value = _decode_json(shown) if kinds & {"array", "object"} else None
    is_wanted = (is_list(value) and "array" in kinds) or (is_dict(value) and "object" in kinds)
    return value if is_wanted else text


def _decode_json(text: str) -> Any:
    """Return the list or object in a text that is nothing else, encoded once or more; None for anything else.

    It may be in a fence, and in Python's form.
    """
    value: Any = text
    for _ in range(_MAX_ENCODINGS):
        if not isinstance(value, str):
            break
        shown = value.strip()
        fenced = _FENCE.match(shown)
        shown = fenced["inside"] if fenced else shown
        if not shown.startswith(("{", "[", '"')) or not shown.endswith(("}", "]", '"')):
            return None
        try:
            value = read_json(shown)
        except ValueError:
            return None
    return value if is_list(value) or is_dict(value) else None
