"""Chat models on OpenAI-compatible endpoints: reasoning, fallbacks, errors people can act on."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Self, cast

import httpx2
import openai
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from langchain_openai.chat_models.base import BaseChatOpenAI
from pydantic import Field, SecretStr, model_validator

from maniple.errors import ModelError
from maniple.llms.calls import has_images
from maniple.llms.capabilities import Capabilities, Feature, rejected_feature
from maniple.llms.endpoint_errors import (
    LONGEST_RETRY_AFTER_SECONDS,
    MALFORMED,
    OPENAI_ORIGIN,
    EndpointName,
    combine_failures,
    is_overflow,
    model_error,
    status_error,
    wait_seconds,
)
from maniple.llms.streams import (
    ClosingCompletions,
    StreamedAnswer,
    add_reasoning,
    copy_reasoning,
    split_thoughts,
)
from maniple.text import whole
from maniple.types import ProfileName

# Most refuse a feature with 400 or 422; OpenRouter says 404, llama.cpp without templates 500.
_REFUSALS = frozenset({400, 404, 405, 415, 422, 500, 501})

# The SDK wraps what fails before the answer; what fails within it surfaces as the HTTP library's own error.
_ENDPOINT_FAILURES = (openai.OpenAIError, httpx2.HTTPError, OSError, *MALFORMED)

_Chunks = AsyncGenerator[ChatGenerationChunk, None]


class EndpointModel(BaseChatOpenAI):
    """What maniple adds to LangChain's OpenAI chat models.

    Reasoning arrives in `additional_kwargs["reasoning_content"]`, also that of a `<think>` block before
    the answer. A feature that the endpoint rejects is remembered in `capabilities`; a field of ours is
    then left out and the request sent again, any other rejection is raised. Errors are `ModelError`.
    When the endpoint fails before its first word, `fallback_models` are asked in order.
    """

    endpoint: EndpointName = Field(exclude=True)
    capabilities: Capabilities = Field(default_factory=Capabilities, exclude=True)
    prompting: ProfileName = Field(default="standard", exclude=True)
    chunk_seconds: float = Field(default=120, exclude=True)
    """How long the stream may say nothing; comments that keep it alive are nothing."""
    fallback_models: tuple[Any, ...] = Field(default=(), exclude=True)

    @model_validator(mode="after")
    def _close_streams_whole(self) -> Self:
        if not isinstance(self.async_client, ClosingCompletions):
            self.async_client = ClosingCompletions(self.async_client)
        return self

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        # Each generator is closed with the one above it, so that its connection is given back at once.
        async with aclosing(self._answered(messages, stop, kwargs)) as chunks:
            async for chunk in chunks:
                if run_manager is not None:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    async def _answered(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> _Chunks:
        """Stream the answer of the endpoint or of the first fallback that gives one."""
        failures: list[ModelError] = []
        shown = False
        for answer in (self._tried, *(model._answered for model in self.fallback_models)):
            try:
                async with aclosing(answer(messages, stop, kwargs)) as chunks:
                    async for chunk in chunks:
                        shown = True
                        yield chunk
            except ModelError as failure:
                if shown:
                    raise
                failures.append(failure)
            else:
                return
        raise combine_failures(failures) from failures[0].__cause__

    async def _tried(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> _Chunks:
        """Stream this endpoint's answer, asked for again while it puts off before its first word.

        Until the answer begins the SDK does so itself; here it is for errors within the stream.
        """
        attempt, wait = 0, 0.0
        while True:
            await asyncio.sleep(wait)
            attempt += 1
            ours, reading = self._own_fields(kwargs, streaming=True), StreamedAnswer()
            fields = {**kwargs, **ours}
            try:
                async with aclosing(self._streamed(messages, stop, fields, reading)) as chunks:
                    async for chunk in chunks:
                        yield chunk
            except _ENDPOINT_FAILURES as error:
                put_off = status_error(error, self.endpoint.url)
                begun = reading.shown if put_off else reading.arrived
                failure = self._understand(put_off or error, messages, fields, mid_stream=begun)
                again = None if reading.shown else self._wait_for(put_off, attempt)
                if not reading.shown and self._own_fields(kwargs, streaming=True) != ours:
                    again = 0.0
                if again is None:
                    raise failure from error
                wait = again
            else:
                return

    def _wait_for(self, put_off: openai.APIStatusError | None, attempt: int) -> float | None:
        if put_off is None or attempt > (self.max_retries or 0):
            return None
        return wait_seconds(put_off, attempt)

    async def _streamed(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        fields: dict[str, Any],
        reading: StreamedAnswer,
    ) -> _Chunks:
        # Past ChatOpenAI's own `_astream`, which only chooses an API and leaves this generator unclosed.
        stream = cast("_Chunks", BaseChatOpenAI._astream(self, messages, stop, None, **fields))
        async with aclosing(stream) as chunks:
            while (chunk := await self._next(chunks, first=not reading.arrived)) is not None:
                for ready in reading.take(chunk):
                    yield ready
        reading.close()

    async def _next(self, chunks: _Chunks, *, first: bool) -> ChatGenerationChunk | None:
        # Before the first come the SDK's own tries, each with its time-out and a wait.
        tries = 1 + (self.max_retries or 0) if first else 1
        waits = (tries - 1) * LONGEST_RETRY_AFTER_SECONDS
        async with asyncio.timeout(tries * self.chunk_seconds + waits):
            return await anext(chunks, None)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        failures: list[ModelError] = []
        for generate in (self._generated, *(model._agenerate for model in self.fallback_models)):
            try:
                return await generate(messages, stop, None, **kwargs)
            except ModelError as failure:
                failures.append(failure)
        raise combine_failures(failures) from failures[0].__cause__

    async def _generated(
        self, messages: list[BaseMessage], stop: list[str] | None, _: None, **kwargs: Any
    ) -> ChatResult:
        ours = self._own_fields(kwargs, streaming=False)
        try:
            return await super()._agenerate(messages, stop, None, **kwargs, **ours)
        except _ENDPOINT_FAILURES as error:
            put_off = status_error(error, self.endpoint.url)
            fields = {**kwargs, **ours}
            failure = self._understand(put_off or error, messages, fields, mid_stream=put_off is not None)
            if self._own_fields(kwargs, streaming=False) == ours:
                raise failure from error
        return await self._generated(messages, stop, None, **kwargs)

    def _own_fields(self, kwargs: dict[str, Any], *, streaming: bool) -> dict[str, Any]:
        """Return the fields that no caller asked for, as far as the endpoint takes them."""
        fields: dict[str, Any] = {"stream_usage": self.capabilities.has("stream_usage")} if streaming else {}
        if (
            kwargs.get("tools")
            and "parallel_tool_calls" not in kwargs
            and self.capabilities.one_tool_at_a_time
        ):
            fields["parallel_tool_calls"] = False
        return fields

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
        return not self.endpoint.url.startswith(OPENAI_ORIGIN) and self._llm_type != "azure-openai-chat"

    def _understand(
        self,
        error: Exception,
        messages: list[BaseMessage],
        kwargs: dict[str, Any],
        *,
        mid_stream: bool,
    ) -> ModelError:
        failure = model_error(error, self.endpoint, mid_stream=mid_stream)
        failure.broke_off = failure.retryable and (mid_stream or isinstance(error, TimeoutError))
        if isinstance(self.openai_api_key, SecretStr):
            # Some endpoints repeat the request's headers in their complaint.
            failure.hide(self.openai_api_key.get_secret_value())
        if (
            isinstance(error, openai.APIStatusError)
            and error.status_code in _REFUSALS
            and not is_overflow(error)
        ):
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
            copy_reasoning(converted.message, choices[0].get("delta") or {})
        return converted

    def _create_chat_result(
        self, response: dict | openai.BaseModel, generation_info: dict | None = None
    ) -> ChatResult:
        result = super()._create_chat_result(response, generation_info)
        body = response if isinstance(response, dict) else response.model_dump()
        for generation, choice in zip(result.generations, body.get("choices") or (), strict=False):
            copy_reasoning(generation.message, choice.get("message") or {})
        result.generations = [_without_thoughts(generation) for generation in result.generations]
        return result


class OpenAIEndpointModel(EndpointModel, ChatOpenAI):
    """Any OpenAI-compatible endpoint."""


class AzureEndpointModel(EndpointModel, AzureChatOpenAI):
    """An Azure OpenAI deployment."""


def _without_thoughts(generation: ChatGeneration) -> ChatGeneration:
    message = generation.message
    if not isinstance(message.content, str):
        return generation
    thought, message.content = split_thoughts(message.content)
    add_reasoning(message, thought)
    return ChatGeneration(message=message, generation_info=generation.generation_info)


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
