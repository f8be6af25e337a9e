"""The arguments of a tool as its server describes them, made harmless for who reads the description.

A schema goes into prompts, and LangChain writes every `$ref` out: a few lines can stand for billions.
"""

import json
from collections.abc import Mapping
from typing import Any

MOST_BYTES = 32_768
MOST_LEVELS = 40
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
        self._left = MOST_BYTES

    def written(self, part: Any, above: tuple[str, ...] = (), level: int = 0) -> Any:
        self._left -= 1
        if level > MOST_LEVELS:
            raise UnusableSchema(f"its arguments are nested deeper than {MOST_LEVELS} levels")
        if self._left < 0:
            raise UnusableSchema(f"the description of its arguments is longer than {MOST_BYTES} characters")
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
