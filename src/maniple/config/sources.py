"""Read settings from files and the environment, remembering where each value stands."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from dotenv.parser import Original, parse_stream

from maniple.errors import ConfigError

Keys = tuple[str | int, ...]

ALIASES: Mapping[str, Keys] = {
    **{
        f"{prefix}_{name}": ("models", kind, key)
        for prefix, kind in (("BASIC", "basic"), ("REASONING", "reasoning"), ("VL", "vision"))
        for name, key in (
            ("MODEL", "model"),
            ("BASE_URL", "base_url"),
            ("API_KEY", "api_key"),
            ("PROVIDER", "provider"),
            ("API_VERSION", "api_version"),
        )
    },
    "TAVILY_API_KEY": ("search", "tavily_api_key"),
    "JINA_API_KEY": ("fetch", "jina_api_key"),
    "BROWSER_EXECUTABLE": ("browser", "executable"),
    "CHROME_INSTANCE_PATH": ("browser", "executable"),
    "CHROME_HEADLESS": ("browser", "headless"),
    "CHROME_PROXY_SERVER": ("browser", "proxy_server"),
    "CHROME_PROXY_USERNAME": ("browser", "proxy_username"),
    "CHROME_PROXY_PASSWORD": ("browser", "proxy_password"),
}
"""LangManus's variable names, and where each belongs."""

PREFIX = "MANIPLE_"
_LIST_KEYS = {"members", "allow_private", "cors_origins"}


@dataclass(frozen=True, slots=True)
class Source:
    """A tree of values, and where each of them is written: `conf.yaml, line 12` and so on."""

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[Keys, str] = field(default_factory=dict)

    def put(self, keys: Keys, value: Any, place: str) -> None:
        """Set one value, making the levels above it; a level set to a plain value gives way."""
        level = self.values
        for key in keys[:-1]:
            below = level.get(str(key))
            if not isinstance(below, dict):
                below = level[str(key)] = {}
            level = below
        level[str(keys[-1])] = value
        self.places[keys] = place

    def over(self, below: "Source") -> "Source":
        """Return this source laid over `below`: dictionaries merge, anything else replaces."""
        return Source(_merge(below.values, self.values), {**below.places, **self.places})


def read_yaml(path: Path) -> Source:
    """Read a YAML file; an absent one is empty. Raises `ConfigError` naming line and column."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Source()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(
            f"{path}{_yaml_place(error)}: this is not valid YAML: {_yaml_problem(error)}"
        ) from error
    if values is None:
        return Source()
    if not isinstance(values, dict):
        raise ConfigError(f"{path}, line 1: the file must hold keys with values, such as `models:`")
    # A section whose keys are all commented out reads as nothing: it is as good as absent.
    present = {key: value for key, value in values.items() if value is not None}
    return Source(present, dict(_places(root, path, ())))


def read_dotenv(path: Path) -> Source:
    """Read a `.env` file; an absent one is empty."""
    try:
        with path.open(encoding="utf-8") as stream:
            bindings = list(parse_stream(stream))
    except FileNotFoundError:
        return Source()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    source = Source()
    for binding in bindings:
        place = f"{path}, line {_line_of(binding.original)}"
        if binding.error:
            raise ConfigError(f"{place}: this is not NAME=value")
        if binding.key is not None:
            _put_variable(source, binding.key, binding.value or "", place)
    return source


def read_environment(environment: Mapping[str, str]) -> Source:
    """Take the variables that are ours from `environment`."""
    source = Source()
    for name, value in environment.items():
        _put_variable(source, name, value, f"environment variable {name}")
    return source


def _line_of(original: Original) -> int:
    """Return the line of a binding's name; the blank lines before it belong to it, too."""
    text = original.string
    return original.line + text[: len(text) - len(text.lstrip())].count("\n")


def _put_variable(source: Source, name: str, value: str, place: str) -> None:
    if not value:
        return  # `NAME=` in .env.example means: not set
    if keys := ALIASES.get(name):
        source.put(keys, value, f"{place} ({name})" if name not in place else place)
    elif name.startswith(PREFIX):
        parts = tuple(part.lower() for part in name.removeprefix(PREFIX).split("__"))
        parsed = _parse_list(value) if parts[-1] in _LIST_KEYS else value
        source.put(parts, parsed, f"{place} ({name})" if name not in place else place)


def _parse_list(value: str) -> list[str]:
    return [item for item in re.split(r"[,\s]+", value) if item]


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = _merge(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return merged


def _places(node: yaml.Node | None, path: Path, keys: Keys) -> Iterator[tuple[Keys, str]]:
    """Yield where each key of a YAML tree stands; lists are addressed by position."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = (*keys, key.value)
            yield below, f"{path}, line {key.start_mark.line + 1}"
            yield from _places(value, path, below)
    elif isinstance(node, yaml.SequenceNode):
        for position, value in enumerate(node.value):
            below = (*keys, position)
            yield below, f"{path}, line {value.start_mark.line + 1}"
            yield from _places(value, path, below)


def _yaml_place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _yaml_problem(error: yaml.YAMLError) -> str:
    return getattr(error, "problem", None) or str(error).splitlines()[0]
