"""Chat models on OpenAI-compatible endpoints: reasoning, fallbacks, errors people can act on."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import httpx2
import openai
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from langchain_openai.chat_models.base import BaseChatOpenAI
from pydantic import Field, SecretStr

from maniple.errors import ModelError
from maniple.llms.capabilities import Capabilities, Feature, rejected_feature
from maniple.llms.failures import MALFORMED, EndpointName, model_error
from maniple.llms.images import has_images
from maniple.text import whole
from maniple.types import Profile

# Most refuse a feature with 400 or 422; OpenRouter says 404, llama.cpp without templates 500.
_REFUSALS = frozenset({400, 404, 405, 415, 422, 500, 501})

# The SDK honours a Retry-After up to this.
LONGEST_WAIT_SECONDS = 60.0

# DeepSeek and vLLM say `reasoning_content`; Ollama, OpenRouter and newer vLLM say `reasoning`.
_REASONING_FIELDS = ("reasoning_content", "reasoning")

# The SDK wraps what fails before the answer; what fails within it surfaces as the HTTP library's own error.
_ENDPOINT_FAILURES = (openai.OpenAIError, httpx2.HTTPError, OSError, *MALFORMED)


class EndpointModel(BaseChatOpenAI):
    """What maniple adds to LangChain's OpenAI chat models.

    Reasoning arrives in `additional_kwargs["reasoning_content"]`. A feature that the endpoint
    rejects is remembered in `capabilities`; usage in streams is then left out and the request sent
    again, any other rejection is raised. Errors are `ModelError`. When the endpoint fails before
    its first word, `fallback_models` are asked in order.
    """

    endpoint: EndpointName = Field(exclude=True)
    capabilities: Capabilities = Field(default_factory=Capabilities, exclude=True)
    prompting: Profile = Field(default="standard", exclude=True)
    chunk_seconds: float = Field(default=120, exclude=True)
    """How long the stream may say nothing; comments that keep it alive are nothing."""
    fallback_models: tuple[Any, ...] = Field(default=(), exclude=True)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        kwargs["stream_usage"] = self.capabilities.has("stream_usage")
        started = finished = False
        try:
            stream = super()._astream(messages, stop, run_manager, **kwargs)
            async with aclosing(cast("AsyncGenerator[ChatGenerationChunk]", stream)) as chunks:
                while (chunk := await self._next(chunks, first=not started)) is not None:
                    started = True
                    finished = finished or _is_finished(chunk)
                    yield chunk
            if not started:
                raise ValueError("the answer was empty")
            if not finished:
                raise httpx2.RemoteProtocolError("the stream ended before the answer did")
        except _ENDPOINT_FAILURES as error:
            failure = self._understand(error, messages, kwargs, mid_stream=started)
            if started:
                raise failure from error
            async for chunk in self._instead(failure, messages, stop, run_manager, kwargs):
                yield chunk

    async def _next(
        self, chunks: AsyncIterator[ChatGenerationChunk], *, first: bool
    ) -> ChatGenerationChunk | None:
        # Before the first come the SDK's own tries, each with its time-out and a wait.
        tries = 1 + (self.max_retries or 0) if first else 1
        async with asyncio.timeout(tries * self.chunk_seconds + (tries - 1) * LONGEST_WAIT_SECONDS):
            return await anext(chunks, None)

    async def _instead(
        self,
        failure: ModelError,
        messages: list[BaseMessage],
        stop: list[str] | None,
        run_manager: AsyncCallbackManagerForLLMRun | None,
        kwargs: dict[str, Any],
    ) -> AsyncIterator[ChatGenerationChunk]:
        if kwargs.get("stream_usage") and not self.capabilities.has("stream_usage"):
            models: tuple[EndpointModel, ...] = (self,)
        else:
            models = self.fallback_models
        started = False
        for number, model in enumerate(models, start=1):
            try:
                async for chunk in model._astream(messages, stop, run_manager, **kwargs):
                    started = True
                    yield chunk
            except ModelError:
                if started or number == len(models):
                    raise
                continue
            return
        raise failure

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        try:
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        except _ENDPOINT_FAILURES as error:
            failure = self._understand(error, messages, kwargs)
            for model in self.fallback_models:
                try:
                    return await model._agenerate(messages, stop, run_manager, **kwargs)
                except ModelError as another:
                    failure = another
            raise failure from error

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        payload = whole(super()._get_request_payload(input_, stop=stop, **kwargs))
        for message in payload.get("messages", ()):
            message.pop("name", None)  # our agents' names; several endpoints refuse the field
        if self._is_another_host() and "max_completion_tokens" in payload:
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        return payload

    def _is_another_host(self) -> bool:
        # Only OpenAI itself and Azure have renamed the field.
        return (
            not self.endpoint.url.startswith("https://api.openai.com")
            and self._llm_type != "azure-openai-chat"
        )

    def _understand(
        self,
        error: Exception,
        messages: list[BaseMessage],
        kwargs: dict[str, Any],
        *,
        mid_stream: bool = False,
    ) -> ModelError:
        failure = model_error(error, self.endpoint, mid_stream=mid_stream)
        failure.broke_off = mid_stream or isinstance(error, TimeoutError)
        if isinstance(self.openai_api_key, SecretStr):
            # Some endpoints repeat the request's headers in their complaint.
            failure.hide(self.openai_api_key.get_secret_value())
        if isinstance(error, openai.APIStatusError) and error.status_code in _REFUSALS:
            feature = rejected_feature(str(error), _features_sent(messages, kwargs))
            if feature is not None:
                self.capabilities.learn(feature, False)
                failure.code = "model_bad_request"
        return failure

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict, default_chunk_class: type, base_generation_info: dict | None
    ) -> ChatGenerationChunk | None:
        converted = super()._convert_chunk_to_generation_chunk(
            chunk, default_chunk_class, base_generation_info
        )
        choices = chunk.get("choices") or ()
        if converted is not None and isinstance(converted.message.content, str):
            # Half a character could neither be kept in a checkpoint nor told to a client.
            converted.message.content = whole(converted.message.content)
        if converted is not None and choices:
            _keep_reasoning(converted.message, choices[0].get("delta") or {})
        return converted

    def _create_chat_result(
        self, response: dict | openai.BaseModel, generation_info: dict | None = None
    ) -> ChatResult:
        result = super()._create_chat_result(response, generation_info)
        body = response if isinstance(response, dict) else response.model_dump()
        for generation, choice in zip(result.generations, body.get("choices") or (), strict=False):
            _keep_reasoning(generation.message, choice.get("message") or {})
        return result


class OpenAIEndpointModel(EndpointModel, ChatOpenAI):
    """Any OpenAI-compatible endpoint."""


class AzureEndpointModel(EndpointModel, AzureChatOpenAI):
    """An Azure OpenAI deployment."""


def _is_finished(chunk: ChatGenerationChunk) -> bool:
    return bool((chunk.generation_info or {}).get("finish_reason"))


def _keep_reasoning(message: BaseMessage, source: dict[str, Any]) -> None:
    for name in _REASONING_FIELDS:
        text = source.get(name)
        if isinstance(text, str) and text and isinstance(message, AIMessage):
            message.additional_kwargs["reasoning_content"] = text
            return


def _features_sent(messages: list[BaseMessage], kwargs: dict[str, Any]) -> set[Feature]:
    body = {**kwargs, **(kwargs.get("extra_body") or {})}
    sent: set[Feature] = set()
    if any(has_images(message) for message in messages):
        sent.add("vision")
    if body.get("stream_usage"):
        sent.add("stream_usage")
    # A refusal of `tool_choice` says nothing of tools.
    if body.get("tools") and not body.get("tool_choice"):
        sent.add("tools")
    if "parallel_tool_calls" in body:
        sent.add("parallel_tools")
    if "grammar" in body:
        sent.add("grammar")
    match body.get("response_format"):
        case {"type": "json_schema"}:
            sent.add("json_schema")
        case {"type": "json_object"}:
            sent.add("json_object")
    return sent
