"""Streamed answers: buffering until the first token, limits, and separation of reasoning from the answer."""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, runtime_checkable
from uuid import UUID, uuid4

import httpx2
from langchain_core.callbacks import AsyncCallbackHandler, AsyncCallbackManagerForLLMRun, BaseCallbackHandler
from langchain_core.callbacks.manager import (
    _ahandle_event_for_handler,  # pyright: ignore[reportPrivateUsage] - what it calls for each handler
)
from langchain_core.messages import LC_ID_PREFIX, AIMessage, AIMessageChunk, BaseMessage, ToolCallChunk
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_async_callback_manager_for_config,
    merge_configs,
)

from maniple.errors import ModelError
from maniple.thoughts import ThoughtSplitter, split_thoughts
from maniple.types import DISPENSABLE

BLOCKS_KEY = "provider_blocks"
"""In `additional_kwargs`: blocks of an answer that its provider wants back, such as signed thoughts."""


EXTRAS_KEY = "call_extras"
"""In `additional_kwargs`: what an endpoint sends with tool calls and wants back, such as Gemini's signatures.

By the id of the call, or its number in the answer if the endpoint gives no id.
"""


class StreamedAnswer:
    """Buffers the chunks of an answer until its first token.

    An answer that fails before its first token can therefore be requested again, here or from a fallback,
    without anything having been sent to clients.

    Where a closing mark may come without an opening one (`awaits_closing`), words are held until it is known
    whether they are thoughts, or `release` is called. With `is_thinking` they are, unless the answer ends
    without the mark.
    """

    def __init__(self, *, awaits_closing: bool = False, is_thinking: bool = False) -> None:
        self.arrived = False
        """Whether a chunk was received."""
        self.shown = False
        """Whether a chunk was passed on."""
        self._finished = False
        self._thoughts = ThoughtSplitter(awaits_closing=awaits_closing or is_thinking)
        self._is_thinking = is_thinking
        self._texts: list[str] = []
        self._held: list[ChatGenerationChunk] = []

    def feed(self, chunk: ChatGenerationChunk) -> list[ChatGenerationChunk]:
        """Add `chunk`; return the chunks that can be passed on now."""
        self.arrived = True
        reason = (chunk.generation_info or {}).get("finish_reason")
        self._finished = self._finished or bool(reason)
        chunk = self._without_thoughts(chunk, reason)
        self._held.append(chunk)
        if not (self.shown or self._finished or _has_content(chunk)):
            return []
        self.shown = True
        ready, self._held = self._held, []
        return ready

    def close(self) -> None:
        """End the stream.

        Raises `ValueError` if it was empty, `RemoteProtocolError` if the answer is incomplete.
        """
        if not self.arrived:
            raise ValueError("the answer was empty")
        if not self._finished:
            raise httpx2.RemoteProtocolError("the stream ended before the answer did")

    @property
    def may_be_released(self) -> bool:
        """Whether words are held that are thoughts only if a closing mark comes."""
        return self._thoughts.is_waiting and not self._is_thinking

    def release(self) -> list[ChatGenerationChunk]:
        """Take words that are held as the answer; return the chunks that can be passed on now."""
        self._thoughts.stop_waiting()
        return self.feed(ChatGenerationChunk(message=AIMessageChunk(content="")))

    @property
    def has_unopened_thoughts(self) -> bool | None:
        """Whether thoughts ended with a mark that nothing had opened; None if the answer does not show it."""
        text = "".join(self._texts)
        if self._thoughts.has_marks is None and text.strip():
            return bool(split_thoughts(text)[0])
        return self._thoughts.has_marks

    def _without_thoughts(self, chunk: ChatGenerationChunk, reason: str | None) -> ChatGenerationChunk:
        message = chunk.message
        if not isinstance(message, AIMessageChunk) or not isinstance(message.content, str):
            return chunk
        if reasoning_of(message.additional_kwargs):
            self._thoughts.stop_waiting()
        thought, text = self._thoughts.feed(message.content)
        if message.tool_call_chunks or reason:
            # No closing mark comes after a call. An answer that was cut may have had one.
            is_cut = self._is_thinking and reason != "stop"
            more_thought, more_text = self._thoughts.end(is_cut=is_cut)
            thought, text = thought + more_thought, text + more_text
        self._texts.append(text)
        if text == message.content:
            return chunk
        message.content = text
        add_reasoning(message, thought)
        return ChatGenerationChunk(message=message, generation_info=chunk.generation_info)


@runtime_checkable
class AnswerLimit(Protocol):
    """A callback handler that can end an answer while it is written, by an exception."""

    def receive_part(self, run_id: UUID, size: int) -> None:
        """Receive the size in bytes of a part of the answer to the call `run_id`."""
        ...


@runtime_checkable
class OutageWaiter(Protocol):
    """A callback handler that lets calls wait while the endpoint of their model is away."""

    async def wait_out(self, call_id: UUID, endpoint: str, failure: ModelError) -> None:
        """Return when the call is to be sent again; raises `ModelError` if it is not."""
        ...

    async def end_wait(self, call_id: UUID) -> None:
        """Take note that the endpoint answers a call that had waited."""
        ...


@dataclass(frozen=True, slots=True)
class _CurrentCall:
    """A call whose answer is being written, and those of its handlers that take part in it."""

    run_id: UUID
    limits: Sequence[AnswerLimit] = ()
    waiter: OutageWaiter | None = None


_CURRENT_CALL = ContextVar[_CurrentCall | None]("_CURRENT_CALL", default=None)


@contextmanager
def limit_answer(
    run_manager: AsyncCallbackManagerForLLMRun | None,
) -> Iterator[AsyncCallbackManagerForLLMRun | None]:
    """Let handlers of a call end its answer, or let it wait: LangChain gives no handlers to streams.

    Yields what reports the pieces of the answer to the handlers in place of `run_manager`; None without one.
    """
    if run_manager is None:
        yield None
        return
    limits = [one for one in run_manager.handlers if isinstance(one, AnswerLimit)]
    waiter = _find_waiter(run_manager.handlers, run_manager.metadata)
    token = _CURRENT_CALL.set(_CurrentCall(run_manager.run_id, limits, waiter))
    try:
        yield _PieceReporter.of(run_manager)
    finally:
        _CURRENT_CALL.reset(token)


class _PieceReporter(AsyncCallbackManagerForLLMRun):
    """Reports the pieces of an answer to those handlers alone that receive them, one after another.

    LangChain makes a task of each handler for each piece, or calls it in a thread.
    """

    @classmethod
    def of(cls, run_manager: AsyncCallbackManagerForLLMRun) -> "_PieceReporter":
        made = cls.__new__(cls)
        vars(made).update(vars(run_manager))
        made.handlers = [one for one in run_manager.handlers if _receives_pieces(type(one))]
        return made

    async def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        ids = {"run_id": self.run_id, "parent_run_id": self.parent_run_id, "tags": self.tags}
        for handler in self.handlers:
            await _ahandle_event_for_handler(
                handler, "on_llm_new_token", "ignore_llm", token, chunk=chunk, **ids, **kwargs
            )


@cache
def _receives_pieces(handler: type[BaseCallbackHandler]) -> bool:
    """Return whether a class of handlers does anything with the pieces of an answer."""
    return any(
        getattr(handler, name)
        not in (getattr(BaseCallbackHandler, name), getattr(AsyncCallbackHandler, name))
        for name in ("on_llm_new_token", "on_stream_event")
    )


def _find_waiter(handlers: Iterable[Any], metadata: Mapping[str, Any]) -> OutageWaiter | None:
    """Return the handler that lets a call wait; None for a call that its run can do without."""
    if metadata.get("lc_source") in DISPENSABLE:
        return None
    return next((one for one in handlers if isinstance(one, OutageWaiter)), None)


@dataclass(slots=True)
class PatientCall:
    """A call that may wait for its endpoint, if the run that it belongs to lets it."""

    endpoint: str
    run_id: UUID
    waiter: OutageWaiter | None
    is_waiting: bool = False

    @classmethod
    def current(cls, endpoint: str) -> "PatientCall":
        """Return the current call. A stream of its own has the handlers of the node that reads it."""
        if (call := _CURRENT_CALL.get()) is not None:
            return cls(endpoint, call.run_id, call.waiter)
        config = ensure_config()
        handlers = get_async_callback_manager_for_config(config).handlers
        return cls(endpoint, uuid4(), _find_waiter(handlers, config.get("metadata") or {}))

    async def wait_out(self, failure: ModelError) -> None:
        """Return when the call is to be sent again after this failure; else raise a `ModelError`."""
        if self.waiter is None or not failure.is_outage:
            await self.end_wait()
            raise failure
        self.is_waiting = True
        await self.waiter.wait_out(self.run_id, self.endpoint, failure)

    async def end_wait(self) -> None:
        """Take note that the endpoint is there: it has answered, or refused the call."""
        if self.is_waiting and self.waiter is not None:
            self.is_waiting = False
            await self.waiter.end_wait(self.run_id)


def part_receiver() -> Callable[[int], None]:
    """Return the function that receives the size of each part of the current answer, in bytes."""
    call = _CURRENT_CALL.get() or _CurrentCall(UUID(int=0))

    def receive(size: int) -> None:
        for limit in call.limits:
            limit.receive_part(call.run_id, size)

    return receive


def as_chunk(generation: ChatGeneration) -> ChatGenerationChunk:
    """Return a whole answer as the only chunk of a stream."""
    message = generation.message
    fields: dict[str, Any] = {}
    if isinstance(message, AIMessage):
        calls = [{**one, "args": json.dumps(one["args"])} for one in message.tool_calls]
        calls += message.invalid_tool_calls
        fields = {
            "tool_call_chunks": [
                ToolCallChunk(name=one["name"], args=one["args"], id=one["id"], index=number)
                for number, one in enumerate(calls)
            ],
            "usage_metadata": message.usage_metadata,
        }
    chunk = AIMessageChunk(
        content=message.content,
        additional_kwargs={
            key: value for key, value in message.additional_kwargs.items() if key != "tool_calls"
        },
        response_metadata=message.response_metadata,
        id=message.id,
        **fields,
    )
    return ChatGenerationChunk(message=chunk, generation_info=generation.generation_info)


MAX_CALLS = 128
"""Of one answer, where no agent has a limit of its own."""
_CALL_LIMIT = ContextVar("_CALL_LIMIT", default=MAX_CALLS)


@contextmanager
def limit_calls(most: int) -> Iterator[None]:
    """End the body's answers before the call after `most`: each further one costs time everywhere."""
    token = _CALL_LIMIT.set(most)
    try:
        yield
    finally:
        _CALL_LIMIT.reset(token)


def trim_calls(answer: ChatResult) -> ChatResult:
    """Return an answer in one body with as many tool calls as `limit_calls` lets a stream have."""
    most = call_limit()
    for generation in answer.generations:
        message = generation.message
        if not isinstance(message, AIMessage):
            continue
        if len(message.tool_calls) + len(message.invalid_tool_calls) > most:
            message.tool_calls = message.tool_calls[:most]
            message.invalid_tool_calls = message.invalid_tool_calls[: most - len(message.tool_calls)]
            message.additional_kwargs.pop("tool_calls", None)
    return answer


def separate_thoughts(answer: ChatResult) -> ChatResult:
    """Return an answer in one body with the thoughts in its text as its reasoning."""
    answer.generations = [_without_thoughts(one) for one in answer.generations]
    return answer


def _without_thoughts(generation: ChatGeneration) -> ChatGeneration:
    message = generation.message
    if not isinstance(message.content, str):
        return generation
    thought, message.content = split_thoughts(message.content)
    add_reasoning(message, thought)
    return ChatGeneration(message=message, generation_info=generation.generation_info)


def call_limit() -> int:
    """Return the number of tool calls after which the current answer ends."""
    return _CALL_LIMIT.get()


_CALL_RECEIVER = ContextVar[Callable[[str], None] | None]("_CALL_RECEIVER", default=None)


@contextmanager
def receive_calls(receive: Callable[[str], None]) -> Iterator[None]:
    """Pass `receive` the name of each tool call of the body's answers, before its arguments are written."""
    token = _CALL_RECEIVER.set(receive)
    try:
        yield
    finally:
        _CALL_RECEIVER.reset(token)


def pass_on_calls(chunk: ChatGenerationChunk) -> None:
    """Pass on the names of the calls that begin with `chunk`; see `receive_calls`."""
    receive = _CALL_RECEIVER.get()
    if receive is not None and isinstance(chunk.message, AIMessageChunk):
        for call in chunk.message.tool_call_chunks:
            if call["name"]:
                receive(call["name"])


def join_chunks(chunks: Iterable[ChatGenerationChunk]) -> Iterator[ChatGenerationChunk]:
    """Join neighbours of one kind: thoughts, text or calls; a chunk of no kind, with the one before it."""
    joined: list[ChatGenerationChunk] = []
    kind = ""
    for chunk in chunks:
        found = kind_of(chunk)
        if joined and found and (found == "mixed" or kind not in ("", found)):
            yield _add_up(joined)
            joined, kind = [], ""
        joined.append(chunk)
        kind = found or kind
    if joined:
        yield _add_up(joined)


def _add_up(chunks: list[ChatGenerationChunk]) -> ChatGenerationChunk:
    return chunks[0] if len(chunks) == 1 else chunks[0] + chunks[1:]


def kind_of(chunk: ChatGenerationChunk) -> str:
    """Return "thoughts", "text" or "calls", "mixed" for a chunk with several of them, and "" without any."""
    message = chunk.message
    if not isinstance(message, AIMessageChunk):
        return "mixed"
    extra = message.additional_kwargs
    parts = {
        "thoughts": extra.get(BLOCKS_KEY) or reasoning_of(extra),
        "text": message.content,
        "calls": message.tool_call_chunks,
    }
    kinds = [kind for kind, part in parts.items() if part]
    return "mixed" if len(kinds) > 1 else "".join(kinds)


def chunk_bytes(chunk: ChatGenerationChunk) -> int:
    """Return the size of a chunk's text, reasoning and tool calls in bytes of UTF-8."""
    message = chunk.message
    if not isinstance(message, AIMessageChunk):
        return 0
    size = _text_bytes(message.content)
    for call in message.tool_call_chunks:
        size += _text_bytes(call["name"]) + _text_bytes(call["args"])
    return size + _text_bytes(message.additional_kwargs.get("reasoning_content"))


def _text_bytes(value: object) -> int:
    text = value if isinstance(value, str) else str(value) if value else ""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _has_content(chunk: ChatGenerationChunk) -> bool:
    message = chunk.message
    if not isinstance(message, AIMessageChunk):
        return True
    return bool(message.content or message.tool_call_chunks or message.additional_kwargs)


# DeepSeek and vLLM use `reasoning_content`; Ollama, OpenRouter and newer vLLM use `reasoning`.
_FIELDS = ("reasoning_content", "reasoning")


def copy_reasoning(message: BaseMessage, source: Mapping[str, Any]) -> None:
    """Copy the reasoning that an endpoint sent in a separate field to the message."""
    add_reasoning(message, reasoning_of(source))


def reasoning_of(source: Mapping[str, Any]) -> str:
    """Return the reasoning that an endpoint sent in a separate field, "" without any."""
    for name in _FIELDS:
        text = source.get(name)
        if text and isinstance(text, str):
            return text
    return ""


def copy_call_extras(message: BaseMessage, source: Mapping[str, Any]) -> None:
    """Copy the fields that an endpoint sent with tool calls to the message."""
    calls = source.get("tool_calls") or ()
    extras = {
        str(call.get("id") or call.get("index") or number): call["extra_content"]
        for number, call in enumerate(calls)
        if call.get("extra_content")
    }
    if extras:
        message.additional_kwargs[EXTRAS_KEY] = extras


def add_call_extras(message: dict[str, Any], source: BaseMessage) -> None:
    """Add to the calls of a request's message the fields with which the endpoint sent them."""
    extras = source.additional_kwargs.get(EXTRAS_KEY) or {}
    for number, call in enumerate(message.get("tool_calls") or () if extras else ()):
        if extra := extras.get(call.get("id")) or extras.get(str(number)):
            call["extra_content"] = extra


def copy_cached_tokens(message: BaseMessage, usage: Mapping[str, Any]) -> None:
    """Copy the number of cached prompt tokens from DeepSeek's or Kimi's field, which LangChain ignores."""
    cached = usage.get("prompt_cache_hit_tokens", usage.get("cached_tokens"))
    counted = getattr(message, "usage_metadata", None)
    if isinstance(message, AIMessage) and isinstance(cached, int) and counted is not None:
        details = InputTokenDetails(**{"cache_read": cached, **(counted.get("input_token_details") or {})})
        message.usage_metadata = UsageMetadata(**{**counted, "input_token_details": details})


def add_reasoning(message: BaseMessage, text: str) -> None:
    """Append to `additional_kwargs["reasoning_content"]` of a model's message."""
    if text and isinstance(message, AIMessage):
        known = message.additional_kwargs.get("reasoning_content", "")
        message.additional_kwargs["reasoning_content"] = known + text


@dataclass(slots=True)
class PartialAnswer:
    """All that a model has written of an answer so far, without its reasoning.

    `arguments` are those of the first tool call, as JSON text. A repeated call has another `message_id`.
    """

    message_id: str = ""
    text: str = ""
    arguments: str = ""
    calls_tools: bool = False


AnswerReceiver = Callable[[PartialAnswer], Awaitable[None]]


async def report_chunk(chunk: ChatGenerationChunk, run_manager: AsyncCallbackManagerForLLMRun | None) -> None:
    """Report a chunk of a streamed answer to the callbacks, with the id that LangChain gives to the answer.

    LangChain does this itself unless an answer becomes the events of `astream_events(version="v3")`: there it
    hands `run_manager` to the model.
    """
    if run_manager is not None:
        chunk.message.id = chunk.message.id or f"{LC_ID_PREFIX}-{run_manager.run_id}"
        await run_manager.on_llm_new_token(chunk.text, chunk=chunk)


class _AnswerObserver(AsyncCallbackHandler):
    """Passes an answer on with each piece of it."""

    def __init__(self, receive: AnswerReceiver) -> None:
        self._receive = receive
        self._answer = PartialAnswer()

    async def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        self._answer = PartialAnswer()

    async def on_llm_new_token(self, token: Any, *, chunk: Any = None, **_: Any) -> None:
        message = getattr(chunk, "message", None)
        if not isinstance(message, AIMessageChunk):
            return
        answer, calls = self._answer, message.tool_call_chunks
        answer.message_id = message.id or answer.message_id
        answer.text += message.text
        answer.calls_tools = answer.calls_tools or bool(calls)
        answer.arguments += "".join(call["args"] or "" for call in calls if not call["index"])
        if message.text or calls:
            await self._receive(answer)


def observing(receive: AnswerReceiver) -> RunnableConfig:
    """Return the configuration of a model call whose answer is passed to `receive` while it is written.

    That happens only where the call is streamed. Callbacks of the running graph stay: a configuration with
    callbacks alone would replace them.
    """
    return merge_configs(ensure_config(), {"callbacks": [_AnswerObserver(receive)]})
