"""Read a YAML file of settings, refusing what YAML lets pass in silence."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from maniple.config.sources import Keys, Source, text_of
from maniple.errors import ConfigError

MAX_KEYS = 10_000
"""Anchors can make a few lines mean billions of keys; conf.yaml has some hundred."""

_WORDS = frozenset({"tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"})


def read_yaml(path: Path) -> Source:
    """Read a YAML file; an absent one is empty. Raises `ConfigError` naming file, line and key."""
    text = text_of(path)
    if text is None:
        return Source()
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        places = _places(root, path)
        values = loader.construct_document(root) if root is not None else None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}{_place(error)}: this is not valid YAML: {_problem(error)}") from None
    except RecursionError:
        raise ConfigError(
            f"{path}: this is nested too deeply; settings are five levels deep at most."
        ) from None
    if values is None:
        return Source()
    if not isinstance(values, dict):
        raise ConfigError(f"{path}, line 1: the file must hold keys with values, such as `models:`")
    # A section whose keys are all commented out reads as nothing: it is as good as absent.
    return Source({key: value for key, value in values.items() if value is not None}, places)


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which knows the line also of a value that only looks like a date or a number."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError, KeyError):
            # The value is not repeated: it may be a secret.
            problem = "a value that is neither a date nor a number, but looks like one; put it in quotes"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


def _places(root: yaml.Node | None, path: Path) -> dict[Keys, str]:
    places: dict[Keys, str] = {}
    for keys, place in _walk(root, path, (), ()):
        places[keys] = place
        if len(places) > MAX_KEYS:
            raise ConfigError(f"{place}: the anchors of this file make more than {MAX_KEYS} keys of it.")
    return places


def _walk(
    node: yaml.Node | None, path: Path, keys: Keys, above: tuple[yaml.Node, ...]
) -> Iterator[tuple[Keys, str]]:
    """Yield where each key of a YAML tree stands; lists are addressed by position."""
    if not isinstance(node, yaml.MappingNode | yaml.SequenceNode):
        return
    for key, at, value in _entries(node, path, keys):
        place = f"{path}, line {_line(at)}"
        if any(value is one for one in (*above, node)):
            name = _name((*keys, key))
            raise ConfigError(f"{place}: {name}: this holds itself by an alias (*name); write the value out.")
        yield (*keys, key), place
        yield from _walk(value, path, (*keys, key), (*above, node))


def _entries(
    node: yaml.MappingNode | yaml.SequenceNode, path: Path, keys: Keys
) -> Iterator[tuple[str | int, yaml.Node, yaml.Node]]:
    """Yield each key, where it stands, and its value; the keys of a mapping must be words, each once."""
    if isinstance(node, yaml.SequenceNode):
        yield from ((position, value, value) for position, value in enumerate(node.value))
        return
    seen: dict[str, yaml.Node] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag not in _WORDS:
            raise ConfigError(f"{path}, line {_line(key)}: a key must be a word, such as `models:`")
        if key.value in seen:
            raise ConfigError(
                f"{path}, line {_line(key)}: {_name((*keys, key.value))}: this key stands already in line "
                f"{_line(seen[key.value])}; keep one of the two."
            )
        seen[key.value] = key
        yield key.value, key, value


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _name(keys: Keys) -> str:
    return ".".join(map(str, keys))


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _problem(error: yaml.YAMLError) -> str:
    return getattr(error, "problem", None) or str(error).splitlines()[0]
