"""The context windows of models, and estimates of the tokens of prompts."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_function

DEFAULT_WINDOW_TOKENS = 32_768
"""The default for unknown models.

If an endpoint accepts less, its error names the limit, which is then used.
"""
BYTES_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4
TOKENS_PER_IMAGE = 1_000
_IMAGE_TYPES = frozenset({"image", "image_url", "input_image"})


def window_of(model: Any) -> int:
    """Return the context window of `model` in tokens.

    The value comes from the settings (`models.*.context_tokens`, passed in the model's profile), else from
    LangChain's profile of a known model, else it is `DEFAULT_WINDOW_TOKENS`.
    """
    profile = getattr(_unbound(model), "profile", None) or {}
    tokens = profile.get("max_input_tokens")
    return tokens if isinstance(tokens, int) and tokens > 0 else DEFAULT_WINDOW_TOKENS


def room_of(model: Any, window: int | None = None) -> int:
    """Return the number of tokens that a prompt may have: the window without the maximal answer."""
    window = window or window_of(model)
    answer = getattr(_unbound(model), "max_tokens", None) or 0
    return max(window - answer, window // 2)


def count_tokens(messages: Iterable[BaseMessage], tools: Sequence[BaseTool | dict[str, Any]] = ()) -> int:
    """Estimate the tokens of a prompt: one for four bytes of UTF-8, which is about right for most languages.

    Exact counts would need each model's tokenizer, which endpoints do not provide.
    """
    described = sum(_bytes(json.dumps(_described(tool), default=str)) for tool in tools)
    return -(-described // BYTES_PER_TOKEN) + sum(_message_tokens(message) for message in messages)


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-_bytes(text) // BYTES_PER_TOKEN)


def characters_within(tokens: int, text: str) -> int:
    """Return the number of characters of a text like `text` that have `tokens` tokens."""
    return int(tokens * len(text) / max(text_tokens(text), 1))


def _message_tokens(message: BaseMessage) -> int:
    size, tokens = 0, TOKENS_PER_MESSAGE
    for part in [message.content] if isinstance(message.content, str) else message.content:
        if isinstance(part, str):
            size += _bytes(part)
        elif part.get("type") in _IMAGE_TYPES:
            tokens += TOKENS_PER_IMAGE
        else:
            size += _bytes(str(part.get("text") or part))
    if isinstance(message, AIMessage):
        size += sum(_bytes(f"{call['name']}{call['args']}") for call in message.tool_calls)
    return tokens + -(-size // BYTES_PER_TOKEN)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _described(tool: BaseTool | dict[str, Any]) -> dict[str, Any]:
    return convert_to_openai_function(tool) if isinstance(tool, BaseTool) else tool


def _unbound(model: Any) -> Any:
    return getattr(model, "bound", model)
