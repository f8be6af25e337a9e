"""Thoughts apart from the answer: in a field of their own, or in a `<think>` block before it."""

from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage

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


def keep_reasoning(message: BaseMessage, source: Mapping[str, Any]) -> None:
    """Take over the reasoning that an endpoint sent in a field beside the content."""
    text = next((text for name in _FIELDS if isinstance(text := source.get(name), str) and text), "")
    add_reasoning(message, text)


def add_reasoning(message: BaseMessage, text: str) -> None:
    """Append to `additional_kwargs["reasoning_content"]` of a model's message."""
    if text and isinstance(message, AIMessage):
        known = message.additional_kwargs.get("reasoning_content", "")
        message.additional_kwargs["reasoning_content"] = known + text
