"""The keywords of the JSON schemas in a request, and requests without some of them."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

Json = dict[str, Any]

# Without these a schema describes nothing.
_NEEDED = frozenset({"type", "properties", "items", "required", "description", "enum", "name", "parameters"})
_DEFINITIONS = ("$defs", "definitions")
_CHOICES = ("anyOf", "oneOf", "allOf")
# Their values are names or data, not schemas.
_MAPS = ("properties", "patternProperties", *_DEFINITIONS)
_DATA = ("enum", "const", "default", "examples", "example", "required")
# What endpoints write for a keyword without naming it.
_PARAPHRASES: Mapping[str, str] = {
    "$ref": r"\$?\bref(?:erence)?s?\b|\$?defs\b",
    "format": r"date-time|\bformat for (?:string|schema)",
}


def keywords_in(body: Json) -> set[str]:
    """Return the keywords of all schemas of a request that it can do without."""
    return {word for schema in _schemas(body) for word in _keywords(schema)} - _NEEDED


def named_keyword(text: str, keywords: Collection[str]) -> str | None:
    """Return the first of `keywords` that a refusal names, in quotes if it is an ordinary word."""
    found: list[tuple[int, str]] = []
    for word in keywords:
        escaped = re.escape(word)
        plain = word.isalpha() and word.islower()
        pattern = (
            rf"[\"'`]{escaped}[\"'`]|(?:keyword|key|field|property|parameter|argument|name|unsupported)\W{{1,3}}"
            rf"{escaped}\b|\b{escaped} (?:is|are|not)\b"
            if plain
            else rf"(?<![\w$]){escaped}(?!\w)"
        )
        if word in _PARAPHRASES:
            pattern += f"|{_PARAPHRASES[word]}"
        if match := re.search(pattern, text, re.I):
            found.append((match.start(), word))
    word = min(found)[1] if found else None
    return "$ref" if word in _DEFINITIONS else word


def remove_keywords(body: Json, keywords: Collection[str]) -> None:
    """Remove keywords from all schemas of a request: references become what they refer to."""
    for tool in body.get("tools") or ():
        _replace(tool, "function", lambda function: _without_strict(function, keywords))
        _replace(tool.get("function"), "parameters", lambda schema: _without(schema, keywords, schema))
    match body.get("response_format"):
        case {"type": "json_schema", "json_schema": dict(wrapper)} as wanted:
            _replace(wanted, "json_schema", lambda inner: _without_strict(inner, keywords))
            wrapper = wanted["json_schema"]
            _replace(wrapper, "schema", lambda schema: _without(schema, keywords, schema))


def _replace(holder: Any, name: str, change: Callable[[Json], Any]) -> None:
    if isinstance(holder, dict) and isinstance(holder.get(name), dict):
        holder[name] = change(holder[name])


def _without_strict(holder: Json, keywords: Collection[str]) -> Json:
    return {name: value for name, value in holder.items() if name != "strict" or "strict" not in keywords}


def _schemas(body: Json) -> Iterator[Json]:
    """Yield the schemas of a request, each with the `strict` beside it."""
    for tool in body.get("tools") or ():
        function = tool.get("function") or {}
        yield {"strict": True} if "strict" in function else {}
        yield function.get("parameters") or {}
    match body.get("response_format"):
        case {"type": "json_schema", "json_schema": dict(wrapper)}:
            yield {"strict": True} if "strict" in wrapper else {}
            yield wrapper.get("schema") or {}


def _keywords(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for one in schema:
            yield from _keywords(one)
    if not isinstance(schema, dict):
        return
    for name, value in schema.items():
        yield name
        if name in _MAPS and isinstance(value, dict):
            for one in value.values():
                yield from _keywords(one)
        elif name not in _DATA:
            yield from _keywords(value)


def _without(schema: Any, keywords: Collection[str], root: Json, above: frozenset[str] = frozenset()) -> Any:
    """Return a schema without `keywords`; `above` are the references within which it is."""
    if isinstance(schema, list):
        return [_without(one, keywords, root, above) for one in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and "$ref" in keywords:
        if reference in above:
            return {"type": "object"}  # a definition within itself has no other end
        above |= {reference}
        rest = {name: value for name, value in schema.items() if name not in ("$ref", *_DEFINITIONS)}
        schema = {**_referred(reference, root), **rest}
    for word in _CHOICES:
        if word in keywords and word in schema:
            schema = _first_choice(schema, word)
    if "const" in keywords and "const" in schema:
        schema = {"enum": [schema["const"]], **schema}
    removed = {*keywords, *_DEFINITIONS} if "$ref" in keywords else keywords
    return {
        name: _value_without(name, value, keywords, root, above)
        for name, value in schema.items()
        if name not in removed
    }


def _value_without(
    name: str, value: Any, keywords: Collection[str], root: Json, above: frozenset[str]
) -> Any:
    if name in _DATA:
        return value
    if name in _MAPS and isinstance(value, dict):
        return {key: _without(one, keywords, root, above) for key, one in value.items()}
    return _without(value, keywords, root, above)


def _referred(reference: Any, root: Json) -> Json:
    found: Any = root
    for name in str(reference).removeprefix("#/").split("/"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _first_choice(schema: Json, word: str) -> Json:
    """Return a schema with the first choice that is not null in its place."""
    rest = {name: value for name, value in schema.items() if name != word}
    choices = [one for one in schema[word] if isinstance(one, dict) and one.get("type") != "null"]
    if word == "allOf":
        return {**{name: value for one in choices for name, value in one.items()}, **rest}
    return {**(choices[0] if choices else {}), **rest}
