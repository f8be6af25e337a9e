"""Streamed answers: which chunks can be passed on, and the reasoning apart from the answer."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal, cast

import httpx2
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from openai import AsyncStream


class StreamedAnswer:
    """Takes the chunks of an answer and says which to pass on.

    None is passed on before the first word, so that an answer that fails until then can be asked for
    again, here or elsewhere, and nobody has seen a part of it.
    """

    def __init__(self) -> None:
        self.arrived = False
        """Something was received."""
        self.shown = False
        """Something was passed on."""
        self._finished = False
        self._thoughts = ThoughtSplitter()
        self._held: list[ChatGenerationChunk] = []

    def take(self, chunk: ChatGenerationChunk) -> list[ChatGenerationChunk]:
        """Return the chunks that can be passed on now that `chunk` has arrived."""
        self.arrived = True
        ends = bool((chunk.generation_info or {}).get("finish_reason"))
        self._finished = self._finished or ends
        chunk = self._without_thoughts(chunk, ends=ends)
        self._held.append(chunk)
        if not (self.shown or self._finished or _says_something(chunk)):
            return []
        self.shown = True
        ready, self._held = self._held, []
        return ready

    def close(self) -> None:
        """The stream is over; raises what is wrong with an answer that is not."""
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


def _says_something(chunk: ChatGenerationChunk) -> bool:
    message = chunk.message
    if not isinstance(message, AIMessageChunk):
        return True
    return bool(message.content or message.tool_call_chunks or message.additional_kwargs)


_OPENING, _CLOSING = "<think>", "</think>"

# DeepSeek and vLLM say `reasoning_content`; Ollama, OpenRouter and newer vLLM say `reasoning`.
_FIELDS = ("reasoning_content", "reasoning")


class ThoughtSplitter:
    """Takes an answer in pieces and parts the `<think>` block at its very beginning from the rest.

    A block further on is text: the answer may be about such blocks. What could still become a tag is
    held until the next piece.
    """

    def __init__(self) -> None:
        self._state: Literal["start", "thought", "gap", "answer"] = "start"
        self._pending = ""
        self._has_thought = False

    def feed(self, piece: str) -> tuple[str, str]:
        """Return what is thought and what is answered, as far as the pieces until now tell."""
        if self._state == "answer":
            return "", piece
        self._pending += piece
        if self._state == "start":
            self._begin()
        thought = self._thought() if self._state == "thought" else ""
        return thought, self._answer() if self._state in ("gap", "answer") else ""

    def end(self) -> tuple[str, str]:
        """Return what was held: the answer is over."""
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
    """Return the thought and the answer of a whole text."""
    splitter = ThoughtSplitter()
    (thought, answer), (more_thought, more_answer) = splitter.feed(text), splitter.end()
    return thought + more_thought, answer + more_answer


def copy_reasoning(message: BaseMessage, source: Mapping[str, Any]) -> None:
    """Take over the reasoning that an endpoint sent in a field beside the content."""
    text = next((text for name in _FIELDS if isinstance(text := source.get(name), str) and text), "")
    add_reasoning(message, text)


def add_reasoning(message: BaseMessage, text: str) -> None:
    """Append to `additional_kwargs["reasoning_content"]` of a model's message."""
    if text and isinstance(message, AIMessage):
        known = message.additional_kwargs.get("reasoning_content", "")
        message.additional_kwargs["reasoning_content"] = known + text


class ClosingCompletions:
    """The SDK's completions, whose streams close their own generator with their response.

    An `openai.AsyncStream` holds a generator that holds the stream: left in the middle, it waits for the
    garbage collector with all that it reads from. When that comes along in another thread, it may
    close what the event loop is closing just then, and complains of it on standard error.
    """

    def __init__(self, completions: Any) -> None:
        self._completions = completions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._completions, name)

    async def create(self, **payload: Any) -> Any:
        """Return what the SDK does; a stream as the context manager as which LangChain opens it."""
        answer = await self._completions.create(**payload)
        return _whole(answer) if isinstance(answer, AsyncStream) else answer


@asynccontextmanager
async def _whole(stream: AsyncStream[Any]) -> AsyncIterator[AsyncStream[Any]]:
    async with stream, aclosing(cast("AsyncGenerator[Any, None]", stream._iterator)):
        yield stream
