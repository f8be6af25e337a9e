"""Which model answers: the configured endpoint, one found on this machine, or the embedded one."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import SecretStr

from maniple.config import CapabilityOverrides, ModelSettings, ModelsSettings, Settings
from maniple.errors import ModelError
from maniple.llms import FEATURES, Capabilities, ChatModels, Feature, open_chat_models
from maniple.llms.embedded import Endpoint, Progress, find_local_server, open_embedded
from maniple.llms.failures import EndpointName
from maniple.store import LearnedCapabilities

BETTER_MODEL = (
    "To use a better one, put two or three lines into .env:\n"
    "  BASIC_API_KEY=your key\n"
    "  BASIC_MODEL=gpt-4o\n"
    "  BASIC_BASE_URL=https://…/v1   (only when it is not OpenAI's own)"
)
LEARNED_FILE = "capabilities.json"


@dataclass(frozen=True, slots=True)
class Answering:
    """The model that answers, in words for people. `advice` is empty when there is nothing to improve."""

    model: str
    url: str
    embedded: bool = False
    advice: str = ""


@asynccontextmanager
async def open_models(settings: Settings, progress: Progress) -> AsyncIterator[tuple[ChatModels, Answering]]:
    """Yield the chat models and which one answers.

    Raises `ModelError` when nothing is configured and the embedded model is turned off, and
    `EmbeddedModelError` when it cannot be had.
    """
    learned = await asyncio.to_thread(LearnedCapabilities, settings.cache_dir / LEARNED_FILE)

    def capabilities_for(url: str, model: str) -> Capabilities:
        def remember(features: Mapping[Feature, bool]) -> None:
            learned.learned(url, model, {str(name): works for name, works in features.items()})

        known = learned.of(url, model)
        return Capabilities({name: known[name] for name in FEATURES if name in known}, on_learned=remember)

    configured = settings.models
    if configured.basic is None:
        configured = _promoted(configured)
    if configured.basic is not None:
        answering = _answering(configured.basic)
        async with open_chat_models(configured, capabilities_for) as models:
            yield models, answering
        return
    async with (
        _local_endpoint(settings, progress) as (local, answering),
        open_chat_models(ModelsSettings(basic=local), capabilities_for) as models,
    ):
        yield models, answering


def _promoted(configured: ModelsSettings) -> ModelsSettings:
    """Without a basic model, the reasoning or vision model that was configured takes its place."""
    return configured.model_copy(update={"basic": configured.reasoning or configured.vision})


def _answering(basic: ModelSettings) -> Answering:
    endpoint = EndpointName.of(basic.model, basic.base_url, "models.basic", "BASIC")
    return Answering(basic.model, endpoint.url)


@asynccontextmanager
async def _local_endpoint(
    settings: Settings, progress: Progress
) -> AsyncIterator[tuple[ModelSettings, Answering]]:
    embedded = settings.embedded
    if embedded.discover and embedded.model_file is None:
        found = await find_local_server()
        if found is not None:
            model = ModelSettings(
                model=found.model,
                base_url=found.base_url,
                api_key=SecretStr(found.api_key),
                context_tokens=found.context_tokens,
            )
            yield (
                model,
                Answering(found.model, found.base_url, advice=f"Found {found.server} on this machine."),
            )
            return
    if not embedded.enabled:
        raise ModelError(
            "No model is configured and the embedded one is turned off. Set BASIC_API_KEY, BASIC_BASE_URL "
            "and BASIC_MODEL in .env, or embedded.enabled: true in conf.yaml.",
            code="model_not_configured",
        )
    async with open_embedded(embedded, settings.cache_dir, progress) as endpoint:
        yield _compact(endpoint), Answering(endpoint.model, "embedded", embedded=True, advice=BETTER_MODEL)


def _compact(endpoint: Endpoint) -> ModelSettings:
    return ModelSettings(
        model=endpoint.model,
        base_url=endpoint.base_url,
        api_key=SecretStr(endpoint.api_key),
        temperature=0.0,
        # A long prompt is read at 60 tokens a second before the first word comes.
        timeout_seconds=300,
        max_retries=1,
        context_tokens=endpoint.context_tokens,
        profile="compact",
        capabilities=CapabilityOverrides(grammar=True, tools=False, json_schema=False, vision=False),
    )
