"""The chat models of providers: where their requests go, and how they are made.

Constructors are given what they have an argument for.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from maniple.config import ModelSettings
from maniple.config.model_providers import PROVIDERS, Provider, provider_named
from maniple.errors import ConfigError
from maniple.installation import installing
from maniple.llms.endpoints import EndpointName
from maniple.llms.provider_networks import merge_arguments, network_arguments, route_client

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


def provider_of(kind: type[BaseChatModel]) -> Provider:
    """Return the provider whose chat models are of a class."""
    paths = {f"{one.__module__.partition('.')[0]}:{one.__name__}" for one in kind.__mro__}
    known = next((one for one in PROVIDERS.values() if one.path in paths), None)
    return known or Provider(f"{kind.__module__}:{kind.__name__}")


def base_url_of(settings: ModelSettings) -> str:
    """Return where a model's requests go; "" for a class that knows it alone."""
    return settings.base_url or provider_named(settings.provider).url


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
        model = kind(**{**arguments, **merge_arguments(network_arguments(provider), settings.options)})
        route_client(provider, model, setting)
    except (ValidationError, ValueError, TypeError, OSError) as error:
        raise ConfigError(
            f"{setting}: {kind.__name__} cannot be made: {error}. Correct the model's settings; "
            f"{setting}.options are further arguments of its constructor."
        ) from error
    return model


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
