"""Model endpoints without their client: their names, and models that load it when they are used."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from threading import Lock
from typing import Any, cast
from urllib.parse import urlsplit

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field, PrivateAttr

from maniple.config.model_providers import PROVIDERS
from maniple.llms.capabilities import Capabilities
from maniple.text import format_host
from maniple.types import ProfileName

OPENAI_URL = PROVIDERS["openai"].url
OPENAI_ORIGIN = OPENAI_URL.removesuffix("/v1")


@dataclass(frozen=True, slots=True)
class EndpointName:
    """The name of an endpoint in messages to users; it never contains a key.

    `env_prefix` is empty for a fallback, which only `conf.yaml` can set.
    """

    model: str
    url: str
    setting: str = "models.basic"
    env_prefix: str = "BASIC"

    @classmethod
    def of(cls, model: str, base_url: str | None, setting: str, env_prefix: str) -> "EndpointName":
        parts = urlsplit(base_url or OPENAI_URL)
        host = format_host(parts.hostname or "")
        port = f":{parts.port}" if parts.port else ""
        return cls(model, f"{parts.scheme}://{host}{port}{parts.path}", setting, env_prefix)

    def name_of(self, key: str) -> str:
        """Return the name under which users set `key`: the variable, or the setting of a fallback."""
        return f"{self.env_prefix}_{key.upper()}" if self.env_prefix else f"{self.setting}.{key}"

    def __str__(self) -> str:
        return f"model {self.model!r} at {self.url}"


def with_fallbacks(model: Any) -> Iterator[Any]:
    """Yield a model and all its fallbacks, each before its own; a third-party model has none."""
    yield model
    for fallback in getattr(model, "fallback_models", ()):
        yield from with_fallbacks(fallback)


class DeferredModel(BaseChatModel):
    """The chat model of an endpoint, whose client `open_client` makes when it is first used.

    Every call passes to the model that `load` returns. Load it in a thread before it is used in an event
    loop: the imports of the OpenAI client block for 0.3 s. Until then `profile` is unknown.
    """

    endpoint: EndpointName = Field(exclude=True)
    capabilities: Capabilities = Field(exclude=True)
    prompting: ProfileName = Field(exclude=True)
    fallback_models: tuple["DeferredModel", ...] = Field(default=(), exclude=True)
    max_tokens: int | None = None
    open_client: Callable[[], BaseChatModel] = Field(exclude=True, repr=False)
    _client: BaseChatModel | None = PrivateAttr(default=None)
    _lock: Lock = PrivateAttr(default_factory=Lock)

    def load(self) -> BaseChatModel:
        """Return the model with its client; the first call blocks."""
        if self._client is None:
            with self._lock:
                if self._client is None:
                    client = self.open_client()
                    self.profile = client.profile
                    self._client = client
        return self._client

    @property
    def _llm_type(self) -> str:
        return self.load()._llm_type

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return dict(self.load()._identifying_params)

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return self.load()._get_ls_params(stop=stop, **kwargs)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        return self.load().bind_tools(tools, **kwargs)

    def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        # No generator of its own, which would cost time for each token.
        return self.load().astream(input, config, **kwargs)

    async def ainvoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        return await self.load().ainvoke(input, config, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self.load()._generate(messages, stop, run_manager, **kwargs)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return await self.load()._agenerate(messages, stop, run_manager, **kwargs)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        stream = cast("Any", self.load()._astream(messages, stop, run_manager, **kwargs))
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                yield chunk
