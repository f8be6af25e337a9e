"""What holds for the chat models of all providers: fallbacks, retries, limits, thoughts, learned features."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import httpx2
import openai
from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    adispatch_custom_event,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import Field, PrivateAttr

from maniple.errors import ModelError
from maniple.llms.capabilities import Capabilities
from maniple.llms.context_windows import is_overflow
from maniple.llms.efforts import current_effort, report_unused_effort
from maniple.llms.endpoint_errors import (
    MALFORMED,
    MAX_RETRY_AFTER_SECONDS,
    EndpointOutage,
    combine_failures,
    is_outage,
    model_error,
    status_error,
    wait_seconds,
)
from maniple.llms.endpoints import EndpointName
from maniple.llms.refusals import MAX_ADAPTATIONS, find_refused, refusal_text
from maniple.llms.streams import (
    PatientCall,
    StreamedAnswer,
    as_chunk,
    chunk_bytes,
    limit_answer,
    part_receiver,
    pass_on_calls,
    report_chunk,
    separate_thoughts,
    trim_calls,
)
from maniple.types import MODEL_UNREACHABLE, ProfileName

# The SDK wraps failures before the answer; failures within it are the HTTP library's own errors.
ENDPOINT_FAILURES = (openai.OpenAIError, httpx2.HTTPError, OSError, *MALFORMED)

# Most endpoints reject a feature with 400 or 422, OpenRouter with 404, llama.cpp without templates with 500.
_REFUSALS = frozenset({400, 404, 405, 415, 422, 500, 501})

T = TypeVar("T")
Chunks = AsyncGenerator[ChatGenerationChunk, None]

HELD_SECONDS = 0.25
"""So long words are held that may be thoughts, where it is not known yet what an endpoint sends."""
CLIENT_LEAD_SECONDS = 1.0
"""So much earlier the client's own timeout ends the wait for the first chunk: its error names the proxy."""
MAX_ANSWER_BYTES = 4_000_000
"""The size of an answer with its reasoning and tool calls at which it is assumed to be endless."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What is sent, with the fields of this class, and what was known of the endpoint then."""

    messages: list[BaseMessage]
    stop: list[str] | None
    kwargs: dict[str, Any]
    own_fields: dict[str, Any]
    known: Capabilities
    is_streamed: bool

    @property
    def fields(self) -> dict[str, Any]:
        """All fields of the call."""
        return {**self.kwargs, **self.own_fields}


class AnsweringModel(BaseChatModel):
    """A chat model with fallbacks, learned capabilities, reasoning, limits and `ModelError`s.

    Reasoning is in `additional_kwargs["reasoning_content"]`, also that of a `<think>` block before the
    answer. A rejected feature is recorded in `capabilities`. If a request can be sent in another form (see
    `refusals.RULES`), it is sent again; any other rejection is raised. If the endpoint fails before its first
    token, `fallback_models` are called in order. Subclasses send the requests.
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

    max_retries: int | None = None
    _has_answered: bool = PrivateAttr(default=False)

    def stream_answer(self, request: ModelRequest) -> Chunks:
        """Send a request; yield the pieces of the answer. Raises one of `ENDPOINT_FAILURES`."""
        raise NotImplementedError

    async def generate_answer(self, request: ModelRequest) -> ChatResult:
        """Send a request; return the whole answer. Raises one of `ENDPOINT_FAILURES`."""
        raise NotImplementedError

    def request_body(self, request: ModelRequest, known: Capabilities) -> dict[str, Any]:
        """Return what is sent in the form of OpenAI's API, without what the endpoint is known to refuse."""
        raise NotImplementedError

    @property
    def secret(self) -> str:
        """The key, which some endpoints repeat in their errors."""
        return ""

    @property
    def may_omit_opening_mark(self) -> bool:
        """Whether the thoughts of an unknown model may have only the mark that closes them."""
        return False

    def own_fields(self, kwargs: dict[str, Any], *, streaming: bool) -> dict[str, Any]:
        """Return the fields that this class adds to a request.

        `adapt_request` removes those that the endpoint does not accept.
        """
        return {"reasoning_effort": effort} if (effort := current_effort()) else {}

    async def _agenerate_with_cache(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with limit_answer(run_manager) as reporter:
            return await super()._agenerate_with_cache(messages, stop, reporter, **kwargs)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        call, is_ended = PatientCall.current(str(self.endpoint)), False
        while not is_ended:
            meter = _AnswerMeter(self, part_receiver())
            try:
                # Each generator closes the one below it, so that the connection is returned immediately.
                async with aclosing(self._stream_with_fallbacks(messages, stop, kwargs, meter)) as chunks:
                    async for chunk in chunks:
                        await call.end_wait()
                        pass_on_calls(chunk)
                        await report_chunk(chunk, run_manager)
                        yield chunk
                is_ended = True
            except ModelError as failure:
                await call.wait_out(failure)

    async def _stream_with_fallbacks(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        kwargs: dict[str, Any],
        meter: "_AnswerMeter",
    ) -> Chunks:
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
    ) -> Chunks:
        """Stream this endpoint's answer; repeat the request on retryable errors before the first token.

        The SDK retries errors before the stream begins. This method retries errors within the stream.
        """
        attempt, wait, missed, adapted = 0, 0.0, 0, 0
        while True:
            await asyncio.sleep(wait)
            attempt += 1
            streaming = self.capabilities.has("streaming")
            request = await self._begin(messages, stop, kwargs, streaming=streaming)
            reading = self._open_answer()
            try:
                async with aclosing(self._stream_once(request, reading, meter)) as chunks:
                    async for chunk in chunks:
                        yield chunk
                self._end_outage()
                self._learn_thoughts(reading.has_unopened_thoughts)
            except ENDPOINT_FAILURES as error:
                status = status_error(error, self.endpoint.url)
                begun = reading.shown if status else reading.arrived
                failure, is_changed = self._explain_failure(status or error, request, mid_stream=begun)
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
        is_probed = known is None and not self.capabilities.has_answered and self.may_omit_opening_mark
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
        self._has_answered = True
        if self.outage:
            self.outage.end()

    async def _stream_once(
        self, request: ModelRequest, reading: StreamedAnswer, meter: "_AnswerMeter"
    ) -> Chunks:
        released_at = 0.0
        answer = self.stream_answer(request) if request.is_streamed else self._whole_answer(request)
        async with aclosing(answer) as chunks:
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

    async def _whole_answer(self, request: ModelRequest) -> Chunks:
        """Yield an answer in one body as one chunk."""
        for generation in trim_calls(await self.generate_answer(request)).generations:
            yield as_chunk(generation)

    async def _next(self, chunks: Chunks, *, first: bool) -> ChatGenerationChunk | None:
        # The first chunk may take all attempts of the SDK, each with its timeout and a wait.
        tries = 1 + (self.max_retries or 0) if first else 1
        waits = (tries - 1) * MAX_RETRY_AFTER_SECONDS + (CLIENT_LEAD_SECONDS if first else 0.0)
        async with asyncio.timeout(tries * self.chunk_seconds + waits):
            return await anext(chunks, None)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = PatientCall.current(str(self.endpoint))
        while True:
            try:
                answer = await self._generate_with_fallbacks(messages, stop, kwargs)
            except ModelError as failure:
                await call.wait_out(failure)
            else:
                await call.end_wait()
                return answer

    async def _generate_with_fallbacks(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> ChatResult:
        """Return the answer of the endpoint, or of the first fallback that answers."""
        failures: list[ModelError] = []
        for generate in (
            self._generate_once,
            *(model._generate_with_fallbacks for model in self.fallback_models),
        ):
            try:
                return await generate(messages, stop, kwargs)
            except ModelError as failure:
                failures.append(failure)
        raise combine_failures(failures) from failures[0].__cause__

    async def _generate_once(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> ChatResult:
        missed = adapted = 0
        while True:
            request, wait = await self._begin(messages, stop, kwargs, streaming=False), 0.0
            try:
                async with asyncio.timeout(self.answer_seconds):
                    answer = await self.generate_answer(request)
            except ENDPOINT_FAILURES as error:
                status = status_error(error, self.endpoint.url)
                failure, is_changed = self._explain_failure(
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
                return separate_thoughts(trim_calls(answer))
            await asyncio.sleep(wait)

    async def _begin(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, streaming: bool
    ) -> ModelRequest:
        """Return the next request; say so once in a run whose effort it does not have."""
        if not self.capabilities.has("reasoning_effort"):
            await report_unused_effort(self.endpoint.model)
        return self._request(messages, stop, kwargs, streaming=streaming)

    def _request(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, streaming: bool
    ) -> ModelRequest:
        known = replace(self.capabilities, known={**self.capabilities.known})
        own = self.own_fields(kwargs, streaming=streaming)
        return ModelRequest(messages, stop, kwargs, own, known, streaming)

    def _explain_failure(
        self, error: Exception, request: ModelRequest, *, mid_stream: bool
    ) -> tuple[ModelError, bool]:
        """Return the error for users, and whether the request has another form now: a feature was learned."""
        failure = model_error(error, self.endpoint, mid_stream=mid_stream)
        # Of an answer that has begun, parts may be shown already.
        failure.is_outage = not mid_stream and is_outage(error)
        failure.had_answered = self._has_answered
        failure.broke_off = failure.retryable and (mid_stream or isinstance(error, TimeoutError))
        failure.hide(self.secret)
        if (
            not isinstance(error, openai.APIStatusError)
            or error.status_code not in _REFUSALS
            or is_overflow(error)
        ):
            return failure, False
        sent = self.request_body(request, request.known)
        refused = find_refused(refusal_text(error), sent)
        if refused is not None:
            self.capabilities.learn(*refused)
            failure.code = "model_bad_request"
        changed = self._request(request.messages, request.stop, request.kwargs, streaming=request.is_streamed)
        return failure, self.request_body(changed, self.capabilities) != sent


class _AnswerMeter:
    """Ends an answer that becomes too large or takes too long, also while it is held."""

    def __init__(self, model: AnsweringModel, receive_part: Callable[[int], None]) -> None:
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


@asynccontextmanager
async def _in_task(pending: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run a coroutine in a task, which has ended when the context is left."""
    task = asyncio.create_task(pending)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})
