"""Chat models by type: `ChatModels.get("basic" | "reasoning" | "vision")`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx2
from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from maniple.config import ModelSettings, ModelsSettings
from maniple.config.model_providers import Provider, provider_named
from maniple.config.secrets import NO_KEY
from maniple.config.sources import MODEL_PREFIXES
from maniple.errors import ModelError, UnconfiguredModel
from maniple.llms.capabilities import FEATURES, PICTURES_PREFIX, SCHEMA_PREFIX, Capabilities, capabilities_of
from maniple.llms.endpoints import DeferredModel, with_fallbacks
from maniple.llms.providers import base_url_of, make_model, name_endpoint
from maniple.retry_after import retry_after_seconds
from maniple.types import LLM_TYPES, LLMType, ProfileName

AZURE_API_VERSION = "2024-10-21"

CapabilitiesFor = Callable[[str, str], Capabilities]
"""Returns the stored capabilities of (URL, model)."""


@dataclass(slots=True)
class ChatModels:
    """The chat model of each type; a type without one falls back to `basic`."""

    by_type: Mapping[LLMType, BaseChatModel]
    _loading: asyncio.Task[None] | None = field(default=None, init=False, repr=False, compare=False)

    def get(self, kind: LLMType) -> BaseChatModel:
        """Return the model for `kind`; raises `ModelError` if not even `basic` is configured."""
        model = self.by_type.get(kind) or self.by_type.get("basic")
        if model is None:
            raise ModelError(
                "No model is configured. Set BASIC_API_KEY, BASIC_BASE_URL and BASIC_MODEL in .env, or "
                "models.basic in conf.yaml.",
                code="model_not_configured",
            )
        return model

    @property
    def names(self) -> list[str]:
        """The names of all models, fallbacks included, each once."""
        return list(self._by_name())

    def with_basic(self, name: str) -> "ChatModels":
        """Return the models with the one of this name as the basic one; raises `UnconfiguredModel`."""
        found = self._by_name()
        if name not in found:
            raise UnconfiguredModel(name, list(found))
        return ChatModels({**self.by_type, "basic": found[name]})

    def _by_name(self) -> dict[str, BaseChatModel]:
        every = [one for model in self.by_type.values() for one in with_fallbacks(model)]
        # Reversed, so that of two with one name the first counts, as in `ModelsSettings.each`.
        named = {one.endpoint.model: one for one in reversed(every) if hasattr(one, "endpoint")}
        return dict(reversed(named.items()))

    def types_using_basic(self) -> list[LLMType]:
        """Return the types without a model of their own, which use `basic`."""
        return [kind for kind in LLM_TYPES if kind not in self.by_type]

    def learned(self) -> dict[str, dict[str, bool]]:
        """Return what real calls have shown of each model at its endpoint, fallbacks included."""
        every = (one for model in self.by_type.values() for one in with_fallbacks(model))
        known = ((one, capabilities_of(one).known) for one in every if hasattr(one, "endpoint"))
        return {str(one.endpoint): dict(features) for one, features in known if features}

    def start_loading(self) -> asyncio.Task[None]:
        """Begin to load the clients of deferred models in a thread, once; return the task."""
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(self._load_clients))
        return self._loading

    async def load(self) -> None:
        """Wait until the clients of all models are loaded, about 0.3 s for deferred ones."""
        # Shielded: a run that is cancelled must not stop what others wait for.
        await asyncio.shield(self.start_loading())

    def _load_clients(self) -> None:
        for model in self.by_type.values():
            if isinstance(model, DeferredModel):
                model.load()


def prompting_of(model: BaseChatModel) -> ProfileName:
    """Return the name of the profile for `model`; foreign models count as large ones."""
    return getattr(model, "prompting", "standard")


@asynccontextmanager
async def open_chat_models(
    settings: ModelsSettings,
    capabilities_for: CapabilitiesFor = lambda url, model: Capabilities(),
    stream_rate: float = 0,
    *,
    deferred: bool = False,
) -> AsyncIterator[ChatModels]:
    """Open the clients that `settings` describe, with one connection pool; nothing is sent yet.

    `stream_rate` is the setting `server.stream_rate`. With `deferred`, `ChatModels.load` loads the clients;
    await it before the models are used.
    """
    # In a thread, because certificates are read from disk and the import of the OpenAI client takes long.
    hooks = {"response": [convert_retry_after_date]}
    http = await asyncio.to_thread(_open_http_client, stream_rate=stream_rate, event_hooks=hooks)
    # Shared between types, because the capabilities of a model at an endpoint do not depend on the type.
    shared = cache(capabilities_for)
    connector = Connector(http, shared, stream_rate, deferred=deferred)
    async with http:
        yield await asyncio.to_thread(connector.connect_all, settings)


@dataclass(frozen=True, slots=True)
class Connector:
    """Creates the clients of endpoints and of their fallbacks."""

    http: httpx2.AsyncClient
    capabilities_for: CapabilitiesFor
    stream_rate: float = 0
    deferred: bool = False

    def connect_all(self, settings: ModelsSettings) -> ChatModels:
        """Return the chat model of each type that `settings` describe."""
        by_type: dict[LLMType, BaseChatModel] = {}
        for kind in LLM_TYPES:
            one: ModelSettings | None = getattr(settings, kind)
            if one is not None:
                if kind == "reasoning" and "temperature" not in one.model_fields_set:
                    # Reasoning models accept only their default.
                    one = one.model_copy(update={"temperature": None})
                model = self.connect(one, f"models.{kind}", MODEL_PREFIXES[kind])
                by_type[kind] = model if self.deferred else model.load()
        return ChatModels(by_type)

    def connect(self, settings: ModelSettings, name: str, env_prefix: str) -> DeferredModel:
        """Return the chat model that `settings` describe.

        `name` is the path of the settings. `env_prefix` is the prefix of their variables, "" without any.
        """
        endpoint = name_endpoint(settings, name, env_prefix)
        capabilities = self.capabilities_for(endpoint.url, settings.model)
        capabilities.fixed = {**capabilities.fixed, **_configured_features(settings)}
        fallbacks = tuple(
            self.connect(each, f"{name}.fallbacks[{n}]", env_prefix="")
            for n, each in enumerate(settings.fallbacks)
        )
        options: dict[str, Any] = {
            **_options(settings),
            "http_async_client": self.http,
            "endpoint": endpoint,
            "capabilities": capabilities,
        }
        return DeferredModel(
            endpoint=endpoint,
            capabilities=capabilities,
            prompting=settings.profile,
            fallback_models=fallbacks,
            max_tokens=settings.max_output_tokens,
            open_client=lambda: _client(settings, options, fallbacks, self.stream_rate),
        )


def _open_http_client(**options: Any) -> httpx2.AsyncClient:
    from maniple.llms.http_client import open_http_client  # aiohttp takes a while to import

    return open_http_client(**options)


def _options(settings: ModelSettings) -> dict[str, Any]:
    options: dict[str, Any] = {
        "model": settings.model,
        # Local servers need no key, but the SDK requires one.
        "api_key": settings.api_key or SecretStr(NO_KEY),
        "temperature": settings.temperature,
        "max_retries": settings.max_retries,
        # Of a client that is not used. By default LangChain warns that it would ignore the proxies.
        "http_socket_options": (),
        "timeout": settings.timeout_seconds,
        # LangChain's own timeout of chunks loses cancellations on Python 3.11 (`asyncio.wait_for`).
        "stream_chunk_timeout": None,
        "chunk_seconds": settings.timeout_seconds,
        "answer_seconds": settings.answer_seconds,
        "use_responses_api": False,
        "prompting": settings.profile,
    }
    if settings.max_output_tokens is not None:
        options["max_tokens"] = settings.max_output_tokens
    if settings.context_tokens is not None:
        options["profile"] = {"max_input_tokens": settings.context_tokens}
    return options


def _client(
    settings: ModelSettings,
    options: dict[str, Any],
    fallbacks: Sequence[DeferredModel],
    stream_rate: float,
) -> BaseChatModel:
    # The imports of the OpenAI client take 0.3 s and 17 MB, so they happen only when a model is used.
    from maniple.llms.chat import AzureEndpointModel, OpenAIEndpointModel
    from maniple.llms.endpoint_errors import EndpointOutage

    options = {**options, "fallback_models": tuple(model.load() for model in fallbacks)}
    provider = provider_named(settings.provider)
    if not provider.speaks_openai:
        return _provider_model(provider, settings, {**options, "stream_rate": stream_rate})
    if settings.max_retries and not fallbacks:
        options["outage"] = EndpointOutage(options["endpoint"], settings.unreachable_seconds)
    if settings.provider == "azure":
        return AzureEndpointModel(
            azure_endpoint=settings.base_url,
            azure_deployment=settings.model,
            api_version=settings.api_version or AZURE_API_VERSION,
            **options,
        )
    # Always set, because the client would otherwise send the key to OPENAI_BASE_URL.
    return OpenAIEndpointModel(base_url=base_url_of(settings), **options)


_SHARED_OPTIONS = (
    *("endpoint", "capabilities", "prompting", "chunk_seconds", "answer_seconds"),
    *("fallback_models", "profile", "stream_rate"),
)


def _provider_model(provider: Provider, settings: ModelSettings, options: dict[str, Any]) -> BaseChatModel:
    from maniple.llms.provider_model import ProviderModel

    shared = {name: options[name] for name in _SHARED_OPTIONS if name in options}
    key = settings.api_key.get_secret_value() if settings.api_key else ""
    inner = make_model(provider, settings, options["endpoint"].setting)
    return ProviderModel(inner=inner, provider=provider, api_key=key, **shared)


def _configured_features(settings: ModelSettings) -> dict[str, bool]:
    chosen = settings.capabilities
    fixed = {**provider_named(settings.provider).known_features}
    features = fixed | {str(name): value for name in FEATURES if (value := getattr(chosen, name)) is not None}
    if chosen.most_pictures is not None:
        features[f"{PICTURES_PREFIX}{chosen.most_pictures}"] = True
    return features | {f"{SCHEMA_PREFIX}{word}": works for word, works in chosen.schema_keywords.items()}


async def convert_retry_after_date(response: httpx2.Response) -> None:
    """Convert a Retry-After date to seconds, relative to the response's Date; a hook of the HTTP client.

    The OpenAI SDK uses this machine's clock, and ignores the date if the clock is wrong by over two minutes.
    """
    if "retry-after" not in response.headers:
        return
    if (seconds := retry_after_seconds(response.headers)) is not None:
        response.headers["retry-after"] = str(seconds)
