"""Read settings from files and the environment, remembering where each value stands."""

import io
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dotenv.parser import Original, parse_stream

from maniple.config.kubernetes import is_injected
from maniple.errors import ConfigError
from maniple.types import LLMType

Keys = tuple[str | int, ...]

MODEL_PREFIXES: Mapping[LLMType, str] = {"basic": "BASIC", "reasoning": "REASONING", "vision": "VL"}
"""What the variables of each model type begin with."""

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

LIBRARIES: Mapping[str, Keys] = {
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
_LIST_KEYS = {
    "members",
    "allow_private",
    "cors_origins",
    "approval",
    "packages",
    "allow_hosts",
    "providers",
    "engines",
}


@dataclass(frozen=True, slots=True)
class Source:
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

    def over(self, below: "Source") -> "Source":
        """Return this source laid over `below`: dictionaries merge, anything else replaces."""
        return Source(
            _merge(below.values, self.values),
            {**below.places, **self.places},
            {**below.strangers, **self.strangers},
        )


def text_of(path: Path) -> str | None:
    """Return a file's text, or None when there is none; raises `ConfigError` for one that is no text."""
    try:
        # Windows editors begin a file with a mark that would else belong to the first name.
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error


def read_dotenv(path: Path) -> Source:
    """Read a `.env` file; an absent one is empty."""
    source = Source()
    for binding in parse_stream(io.StringIO(text_of(path) or "")):
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
        if is_injected(name, value):
            continue
        _put_variable(source, name, value, f"environment variable {name}")
    return source


def _line_of(original: Original) -> int:
    """Return the line of a binding's name; the blank lines before it belong to it, too."""
    text = original.string
    return original.line + text[: len(text) - len(text.lstrip())].count("\n")


def _put_variable(source: Source, name: str, value: str, place: str) -> None:
    if not value:
        return  # `NAME=` in .env.example means: not set
    shown = place if name in place else f"{place} ({name})"
    if keys := ALIASES.get(name) or LIBRARIES.get(name):
        source.put(keys, value, shown)
    elif name.startswith(PREFIX):
        parts = tuple(part.lower() for part in name.removeprefix(PREFIX).split("__"))
        parsed = _parse_list(value) if parts[-1] in _LIST_KEYS else value
        source.put(parts, parsed, shown)
    else:
        source.strangers[name] = place


def _parse_list(value: str) -> list[Any]:
    """Read `a, b` and `["a", "b"]` alike."""
    if value.lstrip().startswith("["):
        with suppress(ValueError):
            return json.loads(value)
    return [item for item in re.split(r"[,\s]+", value) if item]


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = _merge(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return merged
