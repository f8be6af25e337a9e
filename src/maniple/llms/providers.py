"""The providers whose APIs LangChain's packages speak, and the endpoints that speak OpenAI's.

`PROVIDERS` is the table: a provider is added there. Constructors are given what they have an argument for.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from maniple.config import ModelSettings
from maniple.config.model_settings import OPENAI_PROVIDERS
from maniple.errors import ConfigError
from maniple.installation import installing
from maniple.llms.endpoints import OPENAI_URL, EndpointName

PRESETS: Mapping[str, str] = {
    "deepseek": "https://api.deepseek.com/v1",
    "mistral": "https://api.mistral.ai/v1",
}
"""Endpoints that speak OpenAI's API, with their URLs."""
PRESET_FEATURES: Mapping[str, Mapping[str, bool]] = {"mistral": {"long_call_ids": False}}
"""What is known of them."""

UNSUPPORTED = ("json_schema", "json_object", "grammar")
"""Options of OpenAI's API that other clients do not take; objects are asked for by a forced tool call."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A class of chat models, and what is particular to it."""

    path: str
    """`module:Class`"""
    url: str = ""
    """Where it sends requests unless `base_url` is set."""
    extra: str = ""
    """What installs it."""
    label: str = ""
    """What LangChain calls it in the metadata of its answers."""
    call_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further options of each call."""
    marks_system: bool = False
    """Whether the prompt's stable beginning is marked for the provider's cache."""
    names_end: bool = False
    """Whether each complete answer says why it ended, so that a stream without it was cut."""

    @property
    def origin(self) -> str:
        """The value of `model_provider` in the metadata of its answers."""
        return self.label or self.path


_CACHED = {"type": "ephemeral"}
PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(
        "langchain_anthropic:ChatAnthropic",
        "https://api.anthropic.com",
        "anthropic",
        "anthropic",
        call_options={"cache_control": _CACHED},
        marks_system=True,
        names_end=True,
    ),
    "gemini": Provider(
        "langchain_google_genai:ChatGoogleGenerativeAI",
        "https://generativelanguage.googleapis.com",
        "gemini",
        "google_genai",
        names_end=True,
    ),
    "bedrock": Provider(
        "langchain_aws:ChatBedrockConverse",
        extra="bedrock",
        label="bedrock_converse",
        names_end=True,
    ),
    "ollama": Provider(
        "langchain_ollama:ChatOllama", "http://127.0.0.1:11434", "ollama", "ollama", names_end=True
    ),
}

# The names that constructors have for a setting; the first one that a class has is used.
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "model": ("model", "model_name", "model_id"),
    "api_key": ("api_key", "anthropic_api_key", "google_api_key", "bedrock_api_key"),
    "base_url": ("base_url", "endpoint_url", "api_base"),
    "timeout_seconds": ("timeout", "request_timeout", "default_request_timeout"),
    "max_output_tokens": ("max_tokens", "max_output_tokens", "num_predict"),
    "context_tokens": ("num_ctx",),
    "max_retries": ("max_retries", "retries"),
    "temperature": ("temperature",),
}


def find_provider(name: str) -> Provider | None:
    """Return the provider of this name, or the class `module:Class`; None for endpoints of OpenAI's API."""
    if name in OPENAI_PROVIDERS:
        return None
    return PROVIDERS.get(name) or Provider(name)


def provider_of(kind: type[BaseChatModel]) -> Provider:
    """Return the provider whose chat models are of a class."""
    paths = {f"{one.__module__.partition('.')[0]}:{one.__name__}" for one in kind.__mro__}
    known = next((one for one in PROVIDERS.values() if one.path in paths), None)
    return known or Provider(f"{kind.__module__}:{kind.__name__}")


def base_url_of(settings: ModelSettings) -> str:
    """Return where a model's requests go; "" for a class that knows it alone."""
    provider = find_provider(settings.provider)
    otherwise = PRESETS.get(settings.provider, OPENAI_URL) if provider is None else provider.url
    return settings.base_url or otherwise


def name_endpoint(settings: ModelSettings, setting: str, env_prefix: str) -> EndpointName:
    """Return the name of a model's endpoint; `setting` and `env_prefix` are where it is configured."""
    if url := base_url_of(settings):
        return EndpointName.of(settings.model, url, setting, env_prefix)
    return EndpointName(settings.model, settings.provider, setting, env_prefix)


def make_model(provider: Provider, settings: ModelSettings, setting: str) -> BaseChatModel:
    """Return a provider's chat model with what `settings` give it. Blocks: it imports the provider's package.

    `setting` is the path of the settings. Raises `ConfigError` with what to do.
    """
    kind = _load_class(provider, setting)
    accepted = set(kind.model_fields) | {one.alias for one in kind.model_fields.values() if one.alias}
    arguments: dict[str, Any] = {}
    for key, names in _ARGUMENTS.items():
        value = getattr(settings, key)
        name = next((one for one in names if one in accepted), None)
        if value is not None and name is not None:
            arguments[name] = value
    try:
        return kind(**{**arguments, **settings.options})
    except (ValidationError, ValueError, TypeError, OSError) as error:
        raise ConfigError(
            f"{setting}: {kind.__name__} cannot be made: {error}. Correct the model's settings; "
            f"{setting}.options are further arguments of its constructor."
        ) from error


def _load_class(provider: Provider, setting: str) -> type[BaseChatModel]:
    module, _, name = provider.path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        package = (error.name or module).partition(".")[0]
        how = f"Install it: {installing(provider.extra)}." if provider.extra else "Install the package."
        raise ConfigError(f"{setting}.provider needs {package}, which is not installed. {how}") from error
    except AttributeError as error:
        raise ConfigError(f"{setting}.provider: {module} has no {name}. Write it as module:Class.") from error
    if not (isinstance(found, type) and issubclass(found, BaseChatModel)):
        raise ConfigError(f"{setting}.provider: {provider.path} is no chat model of LangChain.")
    return found
