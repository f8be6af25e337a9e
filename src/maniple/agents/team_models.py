"""The model that answers, the endpoint of each role, and the progress of opening it."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import cast

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from maniple.agents import Roles, choose_llm
from maniple.config import CapabilityOverrides, ModelSettings, ModelsSettings, Settings
from maniple.errors import ConfigError, ModelError
from maniple.llms import Capabilities, ChatModels, open_chat_models
from maniple.llms.capabilities import CapabilityCache
from maniple.llms.embedded import LocalEndpoint, Progress, find_local_server, open_embedded
from maniple.llms.endpoints import with_fallbacks
from maniple.llms.providers import name_endpoint
from maniple.store.shared_state import open_state
from maniple.types import DIRECTORS, LLM_TYPES, AgentName, LLMType, Worker

REFRESH_SECONDS = 30.0
"""How often what other processes have learned of endpoints is read."""
BETTER_MODEL = (
    "To use a better one, put two or three lines into .env:\n"
    "  BASIC_API_KEY=your key\n"
    "  BASIC_MODEL=gpt-4o\n"
    "  BASIC_BASE_URL=https://…/v1   (only when it is not OpenAI's own)"
)
_MODEL_SKIPPED = (
    "The model that the files of this folder name has no effect, because the folder is not trusted, and no "
    "other one is started in its place. Run `maniple trust` if you know where the files come from, or set "
    "BASIC_API_KEY, BASIC_BASE_URL and BASIC_MODEL in the environment."
)


GivenModels = BaseChatModel | Mapping[LLMType, BaseChatModel]
"""A program's own chat model for all work, or one for each type."""


@dataclass(frozen=True, slots=True)
class Answering:
    """The model that answers, as text for people. `advice` is empty when there is nothing to improve."""

    model: str
    url: str
    embedded: bool = False
    advice: str = ""


@asynccontextmanager
async def open_models(
    settings: Settings, progress: Progress, *, deferred: bool = False
) -> AsyncGenerator[tuple[ChatModels, Answering]]:
    """Yield the chat models and which one answers. `deferred` is that of `open_chat_models`.

    Raises `ConfigError` when only files that are not trusted configure one, `ModelError` when nothing is
    configured and the embedded model is turned off, and `EmbeddedModelError` when it cannot be downloaded or
    started.
    """
    configured, stream_rate = settings.models, settings.server.stream_rate
    if configured.basic is None:
        configured = _promoted(configured)
    async with AsyncExitStack() as stack:
        capabilities_for = await stack.enter_async_context(_stored_capabilities(settings))
        if configured.basic is not None:
            answering = _answering(configured.basic)
        else:
            local, answering = await stack.enter_async_context(_local_endpoint(settings, progress))
            configured = ModelsSettings(basic=local)
        models = await stack.enter_async_context(
            open_chat_models(configured, capabilities_for, stream_rate, deferred=deferred)
        )
        yield models, answering


@asynccontextmanager
async def _stored_capabilities(settings: Settings) -> AsyncGenerator[Callable[[str, str], Capabilities]]:
    """Yield what returns the capabilities of a model at a URL, as calls have shown and will show them.

    What other processes learn is known here within `REFRESH_SECONDS`.
    """
    async with open_state(settings) as state:
        learned = await asyncio.to_thread(CapabilityCache, state.endpoints)
        writes: set[asyncio.Future[None]] = set()
        given: dict[tuple[str, str], Capabilities] = {}

        def capabilities_for(url: str, model: str) -> Capabilities:
            def remember(features: Mapping[str, bool]) -> None:
                writes.add(write := learned.store(url, model, features))
                write.add_done_callback(writes.discard)

            given[url, model] = Capabilities(
                learned.of(url, model), on_learned=remember, judging=learned.judging_of(url, model)
            )
            return given[url, model]

        async def refresh() -> None:
            while True:
                await asyncio.sleep(REFRESH_SECONDS)
                # What is being stored is newer than what can be read: the next time has both.
                if not writes and await learned.refresh() and not writes:
                    for (url, model), one in given.items():
                        one.known |= learned.of(url, model)
                        one.judging = learned.judging_of(url, model)

        refreshing = asyncio.create_task(refresh(), name="learned features")
        try:
            yield capabilities_for
        finally:
            refreshing.cancel()
            await asyncio.wait({refreshing, *writes})


@asynccontextmanager
async def use_models(given: GivenModels, stream_rate: float) -> AsyncGenerator[tuple[ChatModels, Answering]]:
    """Yield a program's own chat models, and which one answers. Raises `ConfigError` for an unknown type.

    `stream_rate` is the setting `server.stream_rate`.
    """
    from maniple.llms.provider_model import as_answering

    by_type = {"basic": given} if isinstance(given, BaseChatModel) else dict(given)
    if unknown := by_type.keys() - set(LLM_TYPES):
        raise ConfigError(f"There is no model type {min(unknown)}. Give models for {', '.join(LLM_TYPES)}.")
    answering = {
        kind: as_answering(model, f"models[{kind!r}]", stream_rate) for kind, model in by_type.items()
    }
    models = ChatModels(cast("Mapping[LLMType, BaseChatModel]", answering))
    basic = as_answering(models.get("basic"), "models")
    yield models, Answering(basic.endpoint.model, basic.endpoint.url)


def _promoted(configured: ModelsSettings) -> ModelsSettings:
    """Without a basic model, the reasoning or vision model that was configured takes its place."""
    return configured.model_copy(update={"basic": configured.reasoning or configured.vision})


def _answering(basic: ModelSettings) -> Answering:
    endpoint = name_endpoint(basic, "models.basic", "BASIC")
    return Answering(basic.model, endpoint.url)


@asynccontextmanager
async def _local_endpoint(
    settings: Settings, progress: Progress
) -> AsyncGenerator[tuple[ModelSettings, Answering]]:
    embedded = settings.embedded
    if settings.origin.skips_models:
        raise ConfigError(_MODEL_SKIPPED)
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


def _compact(endpoint: LocalEndpoint) -> ModelSettings:
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
        capabilities=CapabilityOverrides(
            grammar=True,
            tools=False,
            json_schema=False,
            vision=False,
            unopened_thoughts=False,
            reasoning_effort=False,
        ),
    )


IN_EVERY_RUN: tuple[AgentName, ...] = ("coordinator", "planner", "reporter")
DEEP_THINKING = "planner (deep thinking)"


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A role and the URLs of its model and that model's fallbacks: one of them must answer.

    Without a `vital` one no question can be answered.
    """

    role: str
    urls: tuple[str, ...]
    vital: bool = False


def uses_of(
    models: ChatModels, llms: Mapping[AgentName, LLMType], workers: Iterable[Worker], roles: Roles
) -> tuple[ModelUse, ...]:
    """Return what each role uses; `llms` are the model types that differ from the roles' defaults."""
    uses = [
        ModelUse(agent, _urls(models.get(choose_llm(agent, roles, llms))), vital=agent in IN_EVERY_RUN)
        for agent in (*DIRECTORS, *workers)
    ]
    deep = ModelUse(DEEP_THINKING, _urls(models.get("reasoning")))
    return tuple(one for one in (*uses, deep) if one.urls)


def _urls(model: BaseChatModel) -> tuple[str, ...]:
    # A third-party model has no endpoint name, and some classes know their address alone.
    urls = (one.endpoint.url for one in with_fallbacks(model) if getattr(one, "endpoint", None) is not None)
    return tuple(dict.fromkeys(url for url in urls if url.startswith("http")))


_NUMBERS = re.compile(r"\d+")
_LINE_EVERY_PERCENT = 10


class LineProgress:
    """Reports each new task, and each tenth of tasks that are measured in bytes.

    Lines are passed to `say`; default: the log `maniple.progress` at level INFO.
    """

    def __init__(self, say: Callable[[str], object] | None = None) -> None:
        self._say = say or logging.getLogger("maniple.progress").info
        self._work = ""
        self._tenth = 0

    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Report `text`, with `done` of `total` bytes, unless it was reported already."""
        # "part 3 of 22" and "part 4 of 22" are one task.
        work = _NUMBERS.sub("#", text)
        tenth = 100 * (done or 0) // total // _LINE_EVERY_PERCENT if total else 0
        if work == self._work and tenth <= self._tenth:
            return
        self._work, self._tenth = work, tenth
        self._say(f"{text}{_share(done, total)}")


def _share(done: int | None, total: int | None) -> str:
    if done is None or not total:
        return ""
    return f": {done / 1e6:,.0f} of {total / 1e6:,.0f} MB ({100 * done // total} %)"
