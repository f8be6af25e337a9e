"""Read settings from conf.yaml, `.env` and the environment, and record where each value is written."""

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from dotenv.parser import Original, parse_stream

from maniple.errors import ConfigError
from maniple.redaction import Redactor
from maniple.types import LLMType

Keys = tuple[str | int, ...]

MODEL_PREFIXES: Mapping[LLMType, str] = {"basic": "BASIC", "reasoning": "REASONING", "vision": "VL"}
"""What the variables of each model type begin with."""

EMBEDDING_PREFIX = "EMBEDDING"
"""What the variables of `models.embedding` begin with."""

ALIASES: Mapping[str, Keys] = {
    **{
        f"{prefix}_{name}": ("models", kind, key)
        for kind, prefix in MODEL_PREFIXES.items()
        for name, key in (
            ("MODEL", "model"),
            ("BASE_URL", "base_url"),
            ("API_KEY", "api_key"),
            ("PROVIDER", "provider"),
            ("API_VERSION", "api_version"),
        )
    },
    f"{EMBEDDING_PREFIX}_MODEL": ("models", "embedding", "model"),
    f"{EMBEDDING_PREFIX}_BASE_URL": ("models", "embedding", "base_url"),
    f"{EMBEDDING_PREFIX}_API_KEY": ("models", "embedding", "api_key"),
    "TAVILY_API_KEY": ("search", "tavily_api_key"),
    "BRAVE_API_KEY": ("search", "brave_api_key"),
    "SEARXNG_URL": ("search", "searxng_url"),
    "JINA_API_KEY": ("fetch", "jina_api_key"),
    "BROWSER_EXECUTABLE": ("browser", "executable"),
    "CHROME_INSTANCE_PATH": ("browser", "executable"),
    "CHROME_HEADLESS": ("browser", "headless"),
    "CHROME_PROXY_SERVER": ("browser", "proxy_server"),
    "CHROME_PROXY_USERNAME": ("browser", "proxy_username"),
    "CHROME_PROXY_PASSWORD": ("browser", "proxy_password"),
}
"""LangManus's variable names, and where each belongs."""

LIBRARY_VARIABLES: Mapping[str, Keys] = {
    **{
        f"{prefix}_{name}": ("telemetry", "langsmith", key)
        for prefix in ("LANGCHAIN", "LANGSMITH")
        for name, key in (
            ("TRACING", "enabled"),
            ("TRACING_V2", "enabled"),
            ("API_KEY", "api_key"),
            ("ENDPOINT", "endpoint"),
            ("PROJECT", "project"),
        )
    },
    "OTEL_EXPORTER_OTLP_ENDPOINT": ("telemetry", "otlp_endpoint"),
    "OTEL_EXPORTER_OTLP_HEADERS": ("telemetry", "otlp_headers"),
    "OTEL_SERVICE_NAME": ("telemetry", "service_name"),
    "DOCKER_HOST": ("sandbox", "docker_host"),
    "DAYTONA_API_KEY": ("sandbox", "daytona_api_key"),
    "DAYTONA_API_URL": ("sandbox", "daytona_api_url"),
    "E2B_API_KEY": ("sandbox", "e2b_api_key"),
}
"""Variables of libraries below us, which from `.env` alone would not reach them.

Apart from `ALIASES`: these libraries read many more, and none of those is a slip.
"""

PREFIX = "MANIPLE_"

TRUSTED_FOLDERS_VARIABLE = "MANIPLE_TRUSTED_FOLDERS"
"""Names trusted folders, separated as in PATH, for images and services; see `maniple.config.trust`.

It is no setting: a file must not make its own folder trusted.
"""

MAX_KEYS = 10_000
"""Anchors can make a few lines mean billions of keys; conf.yaml has some hundred."""

_KEY_TAGS = frozenset({"tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"})


# Kubernetes sets these in every container for a service named maniple; they are no settings. See
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables.
_SERVICE_PREFIX = r"MANIPLE(?:_[A-Z0-9]+)*"
_PORT_VARIABLE = rf"{_SERVICE_PREFIX}_PORT_\d+_(?:TCP|UDP|SCTP)"
_ADDRESS = r"(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:.]+)"
_URL = r"(?:tcp|udp|sctp)://(?:[\d.]+|\[[0-9a-f:.]+\]):\d+"
_KUBERNETES_VARIABLE = re.compile(
    rf"(?:{_SERVICE_PREFIX}_SERVICE_HOST|{_PORT_VARIABLE}_ADDR)={_ADDRESS}"
    rf"|(?:{_SERVICE_PREFIX}_SERVICE_PORT(?:_[A-Z0-9]+)*|{_PORT_VARIABLE}_PORT)=\d+"
    rf"|(?:{_SERVICE_PREFIX}_PORT|{_PORT_VARIABLE})={_URL}"
    rf"|{_PORT_VARIABLE}_PROTO=(?:tcp|udp|sctp)"
)


@dataclass(frozen=True, slots=True)
class SettingsOrigin:
    """The folder of conf.yaml, and the line of each key. Equal settings may stand anywhere."""

    folder: Path | None = field(default=None, compare=False)
    places: Mapping[Keys, str] = field(default_factory=dict, compare=False)
    is_trusted: bool = field(default=True, compare=False)
    """Whether modules in the folder may be imported."""
    skipped: tuple[str, ...] = field(default=(), compare=False)
    """Notices about settings of untrusted files, which have no effect."""
    skips_models: bool = field(default=False, compare=False)
    """Whether settings of models are among them."""
    redactor: Redactor = field(default_factory=Redactor, compare=False)
    """Masks the secrets of the settings, in every part of a program; see `redactor_of`."""
    settings_file: Path | None = field(default=None, compare=False)
    variables_file: Path | None = field(default=None, compare=False)
    """The `.env`, whose values win over those of the settings file."""
    are_variables_trusted: bool = field(default=True, compare=False)

    def place_of(self, keys: Keys) -> str:
        """Return where a key, or else its nearest parent, is set: `conf.yaml, line 12` and so on."""
        if place := self.places.get(keys):
            return place
        # A variable of an unknown section represents the section.
        if inside := next((p for below, p in self.places.items() if below[: len(keys)] == keys), None):
            return inside
        for length in range(len(keys) - 1, 0, -1):
            if place := self.places.get(keys[:length]):
                return place
        return "settings"

    def error(self, mistakes: Iterable[tuple[Keys, str]]) -> ConfigError:
        """Return the error that names each mistake with its file, line and key."""
        lines = (f"  {self.place_of(keys)}: {_dotted_name(keys)}: {text}" for keys, text in mistakes)
        return ConfigError("\n".join(["The settings are invalid:", *lines]))


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """A tree of values, and where each of them is written: `conf.yaml, line 12` and so on.

    `strangers` are the variables that are not ours, by name.
    """

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[Keys, str] = field(default_factory=dict)
    strangers: dict[str, str] = field(default_factory=dict)

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

    def over(self, below: "SettingsSource") -> "SettingsSource":
        """Return this source laid over `below`: dictionaries merge, anything else replaces."""
        return SettingsSource(
            _merge(below.values, self.values),
            {**below.places, **self.places},
            {**below.strangers, **self.strangers},
        )


def read_environment(environment: Mapping[str, str]) -> SettingsSource:
    """Take the variables that are ours from `environment`."""
    source = SettingsSource()
    for name, value in environment.items():
        if name == TRUSTED_FOLDERS_VARIABLE or is_kubernetes_variable(name, value):
            continue
        _put_variable(source, name, value, f"environment variable {name}")
    return source


def read_dotenv(path: Path) -> SettingsSource:
    """Read a `.env` file; an absent one is empty."""
    source = SettingsSource()
    for binding in parse_stream(io.StringIO(read_text(path) or "")):
        place = f"{path}, line {_binding_line(binding.original)}"
        if binding.error:
            raise ConfigError(f"{place}: this is not NAME=value")
        if binding.key is not None:
            _put_variable(source, binding.key, binding.value or "", place)
    return source


def read_yaml(path: Path) -> SettingsSource:
    """Read a YAML file; an absent one is empty. Raises `ConfigError` naming file, line and key."""
    text = read_text(path)
    if text is None:
        return SettingsSource()
    try:
        loader = _SettingsLoader(text)
        root = loader.get_single_node()
        places = _key_places(root, path)
        values = loader.construct_document(root) if root is not None else None
    except yaml.YAMLError as error:
        raise ConfigError(
            f"{path}{_error_position(error)}: this is not valid YAML: {_error_text(error)}"
        ) from None
    except RecursionError:
        raise ConfigError(
            f"{path}: this is nested too deeply; settings are five levels deep at most."
        ) from None
    if values is None:
        return SettingsSource()
    if not isinstance(values, dict):
        raise ConfigError(f"{path}, line 1: the file must hold keys with values, such as `models:`")
    # A section whose keys are all commented out reads as nothing: it is as good as absent.
    return SettingsSource({key: value for key, value in values.items() if value is not None}, places)


def resolve_paths(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the sections of conf.yaml that hold paths relative to its `folder`, with absolute paths.

    A value of another form is left to the validation of the settings.
    """
    found: dict[str, Any] = {}
    team, skills = values.get("team"), values.get("skills")
    if isinstance(team, Mapping) and isinstance(team.get("roles"), list):
        found["team"] = {**team, "roles": [_with_path(role, "prompt", folder) for role in team["roles"]]}
    if isinstance(skills, list):
        entries = ({"folder": one} if isinstance(one, str) else one for one in skills)
        found["skills"] = [_with_path(one, "folder", folder) for one in entries]
    return found


def environment_variables(*names: str) -> dict[str, str]:
    """Return the variables of these names that are set, for a program that is started."""
    return {name: os.environ[name] for name in names if name in os.environ}


def read_text(path: Path) -> str | None:
    """Return a file's text, or None when there is none; raises `ConfigError` for one that is no text."""
    try:
        # Windows editors begin a file with a mark that would else belong to the first name.
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error


def is_kubernetes_variable(name: str, value: str) -> bool:
    """Return whether Kubernetes set this variable; its value counts too, so that misspellings are found."""
    return _KUBERNETES_VARIABLE.fullmatch(f"{name}={value}") is not None


def _binding_line(original: Original) -> int:
    """Return the line of a binding's name; the blank lines before it belong to it, too."""
    text = original.string
    return original.line + text[: len(text) - len(text.lstrip())].count("\n")


def _put_variable(source: SettingsSource, name: str, value: str, place: str) -> None:
    if not value:
        return  # `NAME=` in .env.example means: not set
    shown = place if name in place else f"{place} ({name})"
    if keys := ALIASES.get(name) or LIBRARY_VARIABLES.get(name):
        source.put(keys, value, shown)
    elif name.startswith(PREFIX):
        parts = tuple(part.lower() for part in name.removeprefix(PREFIX).split("__"))
        source.put(parts, value, shown)
    else:
        source.strangers[name] = place


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = _merge(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return merged


class _SettingsLoader(yaml.SafeLoader):
    """PyYAML's safe loader, which knows the line also of a value that only looks like a date or a number."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError, KeyError):
            # The value is not repeated: it may be a secret.
            problem = "a value that is neither a date nor a number, but looks like one; put it in quotes"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


def _key_places(root: yaml.Node | None, path: Path) -> dict[Keys, str]:
    places: dict[Keys, str] = {}
    for keys, place in _walk_keys(root, path, (), ()):
        places[keys] = place
        if len(places) > MAX_KEYS:
            raise ConfigError(f"{place}: the anchors of this file make more than {MAX_KEYS} keys of it.")
    return places


def _walk_keys(
    node: yaml.Node | None, path: Path, keys: Keys, above: tuple[yaml.Node, ...]
) -> Iterator[tuple[Keys, str]]:
    """Yield the location of each key of a YAML tree; lists are addressed by position."""
    if not isinstance(node, yaml.MappingNode | yaml.SequenceNode):
        return
    for key, at, value in _mapping_entries(node, path, keys):
        place = f"{path}, line {_line_number(at)}"
        if any(value is one for one in (*above, node)):
            name = _dotted_name((*keys, key))
            raise ConfigError(f"{place}: {name}: this holds itself by an alias (*name); write the value out.")
        yield (*keys, key), place
        yield from _walk_keys(value, path, (*keys, key), (*above, node))


def _mapping_entries(
    node: yaml.MappingNode | yaml.SequenceNode, path: Path, keys: Keys
) -> Iterator[tuple[str | int, yaml.Node, yaml.Node]]:
    """Yield each key, its location and its value; the keys of a mapping must be words, each once."""
    if isinstance(node, yaml.SequenceNode):
        yield from ((position, value, value) for position, value in enumerate(node.value))
        return
    seen: dict[str, yaml.Node] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag not in _KEY_TAGS:
            raise ConfigError(f"{path}, line {_line_number(key)}: a key must be a word, such as `models:`")
        if key.value in seen:
            raise ConfigError(
                f"{path}, line {_line_number(key)}: {_dotted_name((*keys, key.value))}: this key stands "
                f"already in line {_line_number(seen[key.value])}; keep one of the two."
            )
        seen[key.value] = key
        yield key.value, key, value


def _line_number(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _dotted_name(keys: Keys) -> str:
    return ".".join(map(str, keys))


def _error_position(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _error_text(error: yaml.YAMLError) -> str:
    return getattr(error, "problem", None) or str(error).splitlines()[0]


def _with_path(entry: Any, key: str, folder: Path) -> Any:
    path = entry.get(key) if isinstance(entry, Mapping) else None
    if not isinstance(path, str) or not path or path.startswith("~"):
        return entry
    return {**entry, key: str(folder / path)}
