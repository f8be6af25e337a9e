"""Streamed answers: buffering until the first token, and separation of reasoning from the answer."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal, cast

import httpx2
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from openai import AsyncStream


class StreamedAnswer:
    """Buffers the chunks of an answer until its first token.

    An answer that fails before its first token can therefore be requested again, here or from a fallback,
    without
    anything having been sent to clients.
    """

    def __init__(self) -> None:
        self.arrived = False
        """Whether a chunk was received."""
        self.shown = False
        """Whether a chunk was passed on."""
        self._finished = False
        self._thoughts = ThoughtSplitter()
        self._held: list[ChatGenerationChunk] = []

    def feed(self, chunk: ChatGenerationChunk) -> list[ChatGenerationChunk]:
        """Add `chunk`; return the chunks that can be passed on now."""
        self.arrived = True
        ends = bool((chunk.generation_info or {}).get("finish_reason"))
        self._finished = self._finished or ends
        chunk = self._without_thoughts(chunk, ends=ends)
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

    def _without_thoughts(self, chunk: ChatGenerationChunk, *, ends: bool) -> ChatGenerationChunk:
        message = chunk.message
        if not isinstance(message, AIMessageChunk) or not isinstance(message.content, str):
            return chunk
        thought, text = self._thoughts.feed(message.content)
        if ends:
            more_thought, more_text = self._thoughts.end()
            thought, text = thought + more_thought, text + more_text
        if text == message.content:
            return chunk
        message.content = text
        add_reasoning(message, thought)
        return ChatGenerationChunk(message=message, generation_info=chunk.generation_info)


def _has_content(chunk: ChatGenerationChunk) -> bool:
    message = chunk.message
    if not isinstance(message, AIMessageChunk):
        return True
    return bool(message.content or message.tool_call_chunks or message.additional_kwargs)


_OPENING, _CLOSING = "<think>", "</think>"

# DeepSeek and vLLM use `reasoning_content`; Ollama, OpenRouter and newer vLLM use `reasoning`.
_FIELDS = ("reasoning_content", "reasoning")


class ThoughtSplitter:
    """Separates the `<think>` block at the very beginning of a streamed answer from the rest.

    Later blocks are text, because the answer may be about such blocks. Characters that may be part of a tag
    are
    buffered until the next piece.
    """

    def __init__(self) -> None:
        self._state: Literal["start", "thought", "gap", "answer"] = "start"
        self._pending = ""
        self._has_thought = False

    def feed(self, piece: str) -> tuple[str, str]:
        """Add a piece; return the thoughts and the answer text that are known now."""
        if self._state == "answer":
            return "", piece
        self._pending += piece
        if self._state == "start":
            self._begin()
        thought = self._thought() if self._state == "thought" else ""
        return thought, self._answer() if self._state in ("gap", "answer") else ""

    def end(self) -> tuple[str, str]:
        """End the answer; return the buffered thoughts and answer text."""
        held, self._pending = self._pending, ""
        return (held, "") if self._state == "thought" else ("", held)

    def _begin(self) -> None:
        text = self._pending.lstrip()
        if text.startswith(_OPENING):
            self._state, self._pending = "thought", text.removeprefix(_OPENING)
        elif not _OPENING.startswith(text):
            self._state = "answer"

    def _thought(self) -> str:
        thought, closing, rest = self._pending.partition(_CLOSING)
        if closing:
            self._state = "gap"
        else:
            held = _beginning_of_closing(thought)
            thought, rest = thought[: len(thought) - held], thought[len(thought) - held :]
        self._pending = rest
        if not self._has_thought:
            thought = thought.lstrip()
            self._has_thought = bool(thought)
        return thought

    def _answer(self) -> str:
        text, self._pending = self._pending, ""
        if self._state == "gap":
            text = text.lstrip()
        if text:
            self._state = "answer"
        return text


def _beginning_of_closing(text: str) -> int:
    return next((n for n in range(len(_CLOSING) - 1, 0, -1) if text.endswith(_CLOSING[:n])), 0)


def split_thoughts(text: str) -> tuple[str, str]:
    """Return the thoughts and the answer of a complete text."""
    splitter = ThoughtSplitter()
    (thought, answer), (more_thought, more_answer) = splitter.feed(text), splitter.end()
    return thought + more_thought, answer + more_answer


def copy_reasoning(message: BaseMessage, source: Mapping[str, Any]) -> None:
    """Copy the reasoning that an endpoint sent in a separate field to the message."""
    text = next((text for name in _FIELDS if isinstance(text := source.get(name), str) and text), "")
    add_reasoning(message, text)


def add_reasoning(message: BaseMessage, text: str) -> None:
    """Append to `additional_kwargs["reasoning_content"]` of a model's message."""
    if text and isinstance(message, AIMessage):
        known = message.additional_kwargs.get("reasoning_content", "")
        message.additional_kwargs["reasoning_content"] = known + text


class ClosingCompletions:
    """The SDK's completions, whose streams close their own generator with their response.

    An `openai.AsyncStream` and its generator reference each other. If a stream is abandoned, both stay open
    until
    the garbage collector runs. If that runs in another thread, it may close them while the event loop does,
    which
    prints errors to standard error.
    """

    def __init__(self, completions: Any) -> None:
        self._completions = completions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._completions, name)

    async def create(self, **payload: Any) -> Any:
        """Return the SDK's result; a stream is returned as the context manager that LangChain expects."""
        answer = await self._completions.create(**payload)
        return _closing_stream(answer) if isinstance(answer, AsyncStream) else answer


@asynccontextmanager
async def _closing_stream(stream: AsyncStream[Any]) -> AsyncIterator[AsyncStream[Any]]:
    async with stream, aclosing(cast("AsyncGenerator[Any, None]", stream._iterator)):
        yield stream
