"""Chat models on OpenAI-compatible endpoints, with reasoning, fallbacks and actionable errors."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self, TypeVar, cast

import httpx2
import openai
from langchain_core.callbacks import (
    AsyncCallbackHandler,
    AsyncCallbackManagerForLLMRun,
    BaseCallbackHandler,
    adispatch_custom_event,
)
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from langchain_openai.chat_models.base import BaseChatOpenAI
from pydantic import Field, SecretStr, model_validator

from maniple.errors import ModelError
from maniple.llms.capabilities import Capabilities
from maniple.llms.context_windows import is_overflow
from maniple.llms.endpoint_errors import (
    MALFORMED,
    MAX_RETRY_AFTER_SECONDS,
    EndpointOutage,
    combine_failures,
    model_error,
    status_error,
    wait_seconds,
)
from maniple.llms.endpoints import OPENAI_ORIGIN, EndpointName
from maniple.llms.raw_streams import RawCompletions
from maniple.llms.refusals import MAX_ADAPTATIONS, adapt_request, find_refused, refusal_text
from maniple.llms.request_messages import UNKNOWN_REASONING
from maniple.llms.streams import (
    StreamedAnswer,
    add_reasoning,
    chunk_bytes,
    copy_cached_tokens,
    copy_reasoning,
    limit_answer,
    part_receiver,
    pass_on_calls,
    trim_calls,
)
from maniple.text import fix_surrogates
from maniple.thoughts import split_thoughts
from maniple.types import MODEL_UNREACHABLE, ProfileName

# Most endpoints reject a feature with 400 or 422, OpenRouter with 404, llama.cpp without templates with 500.
_REFUSALS = frozenset({400, 404, 405, 415, 422, 500, 501})

# The SDK wraps failures before the answer; failures within it are the HTTP library's own errors.
_ENDPOINT_FAILURES = (openai.OpenAIError, httpx2.HTTPError, OSError, *MALFORMED)

T = TypeVar("T")
_Chunks = AsyncGenerator[ChatGenerationChunk, None]

HELD_SECONDS = 1.0
"""So long words are held that may be thoughts, where it is not known yet what an endpoint sends."""
MAX_ANSWER_BYTES = 4_000_000
"""The size of an answer with its reasoning and tool calls at which it is assumed to be endless."""


@dataclass(frozen=True, slots=True)
class _Request:
    """What is sent, with the fields of this class, and what was known of the endpoint then."""

    messages: list[BaseMessage]
    stop: list[str] | None
    kwargs: dict[str, Any]
    own_fields: dict[str, Any]
    known: Capabilities

    @property
    def fields(self) -> dict[str, Any]:
        """All fields of the call."""
        return {**self.kwargs, **self.own_fields}


class EndpointModel(BaseChatOpenAI):
    """LangChain's OpenAI chat model with fallbacks, learned capabilities, reasoning and `ModelError`s.

    Reasoning is in `additional_kwargs["reasoning_content"]`, also that of a `<think>` block before the
    answer. A rejected feature is recorded in `capabilities`. If a request can be sent in another form (see
    `refusals.RULES`), it is sent again; any other rejection is raised. If the endpoint fails before its first
    token, `fallback_models` are called in order.
    """

    endpoint: EndpointName = Field(exclude=True)
    capabilities: Capabilities = Field(default_factory=Capabilities, exclude=True)
    prompting: ProfileName = Field(default="standard", exclude=True)
    chunk_seconds: float = Field(default=120, exclude=True)
    """The maximal time between two chunks; keep-alive comments do not count as chunks."""
    answer_seconds: float = Field(default=1_800, exclude=True)
    """The maximal time of a whole answer, also of one that drips."""
    fallback_models: tuple[Any, ...] = Field(default=(), exclude=True)
    outage: EndpointOutage | None = Field(default=None, exclude=True)
    """Waits while the endpoint restarts; None with fallbacks, which are asked at once."""

    @model_validator(mode="after")
    def _read_streams_raw(self) -> Self:
        if not isinstance(self.async_client, RawCompletions):
            self.async_client = RawCompletions(self.async_client)
        return self

    async def _agenerate_with_cache(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if run_manager is None:
            return await super()._agenerate_with_cache(messages, stop, None, **kwargs)
        with limit_answer(run_manager):
            # LangChain makes a task of each handler for each chunk, or calls it in a thread.
            run_manager = copy(run_manager)
            run_manager.handlers = [one for one in run_manager.handlers if _receives_tokens(type(one))]
            return await super()._agenerate_with_cache(messages, stop, run_manager, **kwargs)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        meter = _AnswerMeter(self, part_receiver())
        # Each generator closes the one below it, so that the connection is returned immediately.
        async with aclosing(self._stream_with_fallbacks(messages, stop, kwargs, meter)) as chunks:
            async for chunk in chunks:
                pass_on_calls(chunk)
                if run_manager is not None:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    async def _stream_with_fallbacks(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        kwargs: dict[str, Any],
        meter: "_AnswerMeter",
    ) -> _Chunks:
        """Stream the answer of the endpoint, or of the first fallback that answers."""
        failures: list[ModelError] = []
        shown = False
        for answer in (
            self._stream_with_retries,
            *(model._stream_with_fallbacks for model in self.fallback_models),
        ):
            try:
                async with aclosing(answer(messages, stop, kwargs, meter)) as chunks:
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

    async def _stream_with_retries(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        kwargs: dict[str, Any],
        meter: "_AnswerMeter",
    ) -> _Chunks:
        """Stream this endpoint's answer; repeat the request on retryable errors before the first token.

        The SDK retries errors before the stream begins. This method retries errors within the stream.
        """
        attempt, wait, missed, adapted = 0, 0.0, 0, 0
        while True:
            await asyncio.sleep(wait)
            attempt += 1
            request = self._request(messages, stop, kwargs, streaming=True)
            reading = self._open_answer()
            try:
                async with aclosing(self._stream_once(request, reading, meter)) as chunks:
                    async for chunk in chunks:
                        yield chunk
                self._end_outage()
                self._learn_thoughts(reading.has_unopened_thoughts)
            except _ENDPOINT_FAILURES as error:
                status = status_error(error, self.endpoint.url)
                begun = reading.shown if status else reading.arrived
                failure, is_changed = self._to_model_error(status or error, request, mid_stream=begun)
                again = None if reading.arrived else self._outage_wait(error)
                if again is not None:
                    missed += 1
                    await self._report_outage(missed, again)
                else:
                    again = self._wait_for(status, attempt, reading)
                if is_changed and not reading.shown and adapted < MAX_ADAPTATIONS:
                    adapted, again = adapted + 1, 0.0
                if again is None:
                    raise failure from error
                wait = again
            else:
                return

    def _open_answer(self) -> StreamedAnswer:
        known = self.capabilities.known_of("unopened_thoughts")
        is_probed = known is None and not self.capabilities.has_answered and self._is_another_host()
        return StreamedAnswer(awaits_closing=is_probed, is_thinking=bool(known))

    def _learn_thoughts(self, unopened: bool | None) -> None:
        if unopened:
            self.capabilities.learn("unopened_thoughts", True)
        elif unopened is not None:
            self.capabilities.has_answered = True

    def _wait_for(
        self,
        status: openai.APIStatusError | None,
        attempt: int,
        reading: StreamedAnswer,
    ) -> float | None:
        if reading.shown or status is None or attempt > (self.max_retries or 0):
            return None
        return wait_seconds(status, attempt)

    def _outage_wait(self, error: Exception) -> float | None:
        return self.outage.wait_seconds(error) if self.outage else None

    async def _report_outage(self, missed: int, seconds: float) -> None:
        """Send an event that the endpoint is asked again after `seconds`; `missed` tries have failed."""
        left = self.outage.left_seconds if self.outage else 0.0
        event = {"attempt": missed + 1, "seconds": round(seconds, 1), "left_seconds": round(left, 1)}
        with suppress(RuntimeError):  # outside of a run there is no stream of events
            await adispatch_custom_event(MODEL_UNREACHABLE, event)

    def _end_outage(self) -> None:
        if self.outage:
            self.outage.end()

    async def _stream_once(
        self, request: "_Request", reading: StreamedAnswer, meter: "_AnswerMeter"
    ) -> _Chunks:
        # Bypasses `ChatOpenAI._astream`, which only chooses an API and leaves this generator unclosed.
        answer = BaseChatOpenAI._astream(self, request.messages, request.stop, None, **request.fields)
        stream, released_at = cast("_Chunks", answer), 0.0
        async with aclosing(stream) as chunks:
            while True:
                pending = self._next(chunks, first=not reading.arrived)
                if reading.may_be_released:
                    async with _in_task(pending) as pending:
                        left = released_at - asyncio.get_running_loop().time()
                        if not (await asyncio.wait({pending}, timeout=max(0.0, left)))[0]:
                            for ready in reading.release():
                                yield ready
                        chunk = await pending
                else:
                    chunk = await pending
                    released_at = asyncio.get_running_loop().time() + HELD_SECONDS
                if chunk is None:
                    break
                meter.count(chunk)
                for ready in reading.feed(chunk):
                    yield ready
        reading.close()

    async def _next(self, chunks: _Chunks, *, first: bool) -> ChatGenerationChunk | None:
        # The first chunk may take all attempts of the SDK, each with its timeout and a wait.
        tries = 1 + (self.max_retries or 0) if first else 1
        waits = (tries - 1) * MAX_RETRY_AFTER_SECONDS
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
        for generate in (self._generate_once, *(model._agenerate for model in self.fallback_models)):
            try:
                return await generate(messages, stop, None, **kwargs)
            except ModelError as failure:
                failures.append(failure)
        raise combine_failures(failures) from failures[0].__cause__

    async def _generate_once(
        self, messages: list[BaseMessage], stop: list[str] | None, _: None, **kwargs: Any
    ) -> ChatResult:
        missed = adapted = 0
        while True:
            request, wait = self._request(messages, stop, kwargs, streaming=False), 0.0
            try:
                async with asyncio.timeout(self.answer_seconds):
                    answer = await super()._agenerate(messages, stop, None, **request.fields)
            except _ENDPOINT_FAILURES as error:
                status = status_error(error, self.endpoint.url)
                failure, is_changed = self._to_model_error(
                    status or error, request, mid_stream=status is not None
                )
                if is_changed and adapted < MAX_ADAPTATIONS:
                    adapted += 1
                    continue
                outage_wait = self._outage_wait(error)
                if outage_wait is None:
                    raise failure from error
                missed, wait = missed + 1, outage_wait
                await self._report_outage(missed, wait)
            else:
                self._end_outage()
                return trim_calls(answer)
            await asyncio.sleep(wait)

    def _request(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, streaming: bool
    ) -> "_Request":
        known = replace(self.capabilities, known={**self.capabilities.known})
        return _Request(messages, stop, kwargs, self._own_fields(kwargs, streaming=streaming), known)

    def _own_fields(self, kwargs: dict[str, Any], *, streaming: bool) -> dict[str, Any]:
        """Return the fields that this class adds to a request, as far as the endpoint accepts them."""
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
        return adapt_request(self._full_payload(input_, stop, kwargs), self.capabilities)

    def _full_payload(
        self, input_: LanguageModelInput, stop: list[str] | None, kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the body of a request with all that an endpoint may accept."""
        payload = fix_surrogates(super()._get_request_payload(input_, stop=stop, **kwargs))
        sent = payload.get("messages", ())
        for message, source in zip(sent, self._convert_input(input_).to_messages(), strict=True):
            message.pop("name", None)  # the names of agents; several endpoints reject the field
            _add_reasoning_field(message, source)
        if self._is_another_host() and "max_completion_tokens" in payload:
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        return payload

    def _is_another_host(self) -> bool:
        # Only OpenAI and Azure have renamed the field to `max_completion_tokens`.
        return not self.endpoint.url.startswith(OPENAI_ORIGIN) and self._llm_type != "azure-openai-chat"

    def _to_model_error(
        self, error: Exception, request: "_Request", *, mid_stream: bool
    ) -> tuple[ModelError, bool]:
        """Return the error for users, and whether the request has another form now: a feature was learned."""
        failure = model_error(error, self.endpoint, mid_stream=mid_stream)
        failure.broke_off = failure.retryable and (mid_stream or isinstance(error, TimeoutError))
        if isinstance(self.openai_api_key, SecretStr):
            # Some endpoints repeat the request's headers in their error messages.
            failure.hide(self.openai_api_key.get_secret_value())
        if (
            not isinstance(error, openai.APIStatusError)
            or error.status_code not in _REFUSALS
            or is_overflow(error)
        ):
            return failure, False
        sent = adapt_request(
            self._full_payload(request.messages, request.stop, request.fields), request.known
        )
        refused = find_refused(refusal_text(error), sent)
        if refused is not None:
            self.capabilities.learn(*refused)
            failure.code = "model_bad_request"
        is_streamed = "stream_usage" in request.own_fields
        changed = self._request(request.messages, request.stop, request.kwargs, streaming=is_streamed)
        return failure, self._get_request_payload(
            changed.messages, stop=changed.stop, **changed.fields
        ) != sent

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict, default_chunk_class: type, base_generation_info: dict | None
    ) -> ChatGenerationChunk | None:
        converted = super()._convert_chunk_to_generation_chunk(
            chunk, default_chunk_class, base_generation_info
        )
        choices = chunk.get("choices") or ()
        if converted is not None and isinstance(converted.message.content, str):
            # A lone surrogate can neither be stored in a checkpoint nor sent to a client.
            converted.message.content = fix_surrogates(converted.message.content)
        if converted is not None:
            copy_cached_tokens(converted.message, chunk.get("usage") or {})
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
            copy_cached_tokens(generation.message, body.get("usage") or {})
        result.generations = [_without_thoughts(generation) for generation in result.generations]
        return result


class _AnswerMeter:
    """Ends an answer that becomes too large or takes too long, also while it is held."""

    def __init__(self, model: EndpointModel, receive_part: Callable[[int], None]) -> None:
        self._model = model
        self._receive_part = receive_part
        self._size = 0
        self._clock = asyncio.get_running_loop().time
        self._deadline = self._clock() + model.answer_seconds

    def count(self, chunk: ChatGenerationChunk) -> None:
        """Count a chunk; raises `ModelError`, and what the limits of the call raise."""
        self._size += (grown := chunk_bytes(chunk))
        name = self._model.endpoint
        if self._size > MAX_ANSWER_BYTES:
            raise ModelError(
                f"{name} did not end its answer within {MAX_ANSWER_BYTES:,} bytes. "
                f"Set {name.setting}.max_output_tokens, or use another model.",
                code="model_bad_response",
            )
        if self._clock() > self._deadline:
            raise ModelError(
                f"{name} did not end its answer within {self._model.answer_seconds:g} s. Set "
                f"{name.setting}.answer_seconds, or use a faster model.",
                code="model_timeout",
            )
        self._receive_part(grown)


class OpenAIEndpointModel(EndpointModel, ChatOpenAI):
    """Any OpenAI-compatible endpoint."""


class AzureEndpointModel(EndpointModel, AzureChatOpenAI):
    """An Azure OpenAI deployment."""


@asynccontextmanager
async def _in_task(pending: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run a coroutine in a task, which has ended when the context is left."""
    task = asyncio.create_task(pending)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


@cache
def _receives_tokens(handler: type[BaseCallbackHandler]) -> bool:
    """Return whether a class of handlers does anything with the pieces of an answer."""
    return any(
        getattr(handler, name)
        not in (getattr(BaseCallbackHandler, name), getattr(AsyncCallbackHandler, name))
        for name in ("on_llm_new_token", "on_stream_event")
    )


def _add_reasoning_field(message: dict[str, Any], source: BaseMessage) -> None:
    """Add the reasoning before an answer, for endpoints that want it back; `adapt_request` removes it."""
    if message.get("role") != "assistant":
        return
    reasoning = source.additional_kwargs.get("reasoning_content")
    if reasoning or message.get("tool_calls"):
        message["reasoning_content"] = fix_surrogates(reasoning or UNKNOWN_REASONING)


def _without_thoughts(generation: ChatGeneration) -> ChatGeneration:
    message = generation.message
    if not isinstance(message.content, str):
        return generation
    thought, message.content = split_thoughts(message.content)
    add_reasoning(message, thought)
    return ChatGeneration(message=message, generation_info=generation.generation_info)
