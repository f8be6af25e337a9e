"""The context windows of models, the tokens of prompts, and the errors of prompts that are too long."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_function

from maniple.errors import causes_of
from maniple.llms.picture_parts import is_picture_part, part_tokens

DEFAULT_WINDOW_TOKENS = 32_768
"""The default for unknown models.

If an endpoint accepts less, its error names the limit, which is then used.
"""
BYTES_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4
SMALLEST_WINDOW_TOKENS = 256
"""A smaller number in an error message is no window."""

# The messages of OpenAI, Azure, Anthropic, Bedrock, Gemini, xAI, Groq, Mistral, Cohere, DeepSeek, Moonshot,
# Qwen (DashScope), GLM (z.ai), Doubao (Volcengine), ERNIE, SiliconFlow, vLLM, SGLang, TGI, llama.cpp, LM
# Studio, Ollama, LiteLLM and OpenRouter, which all differ.
_OVERFLOW = re.compile(
    r"context[_ ]length[_ ]exceeded|exceed_context_size|model_context_window_exceeded|ContextWindowExceeded"
    r"|max(?:imum)?[_ ](?:allowed )?(?:model |context |prompt |input |sequence )+length"
    r"|exceeds? (?:the |this |your )?(?:model'?s? |available |maximum |max |configured )*context"
    r"|(?:context (?:size|length|window|limit)|n_ctx)\b.{0,40}\b(?:exceed|too small|overflow|full)"
    r"|(?:greater|longer|larger|more) than (?:the |its )?(?:model'?s? |maximum |max )*context"
    r"|(?:prompt|input|messages?|request)\b.{0,20}\b(?:is|are) too long|too many input tokens"
    r"|(?:prompt|input)(?: tokens?)? too long|range of input length should be|max input characters is"
    r"|too many tokens: (?:the )?(?:total|size)|(?:prompt|total)_tokens \(\d+\) must be less than"
    r"|tokens when context (?:the )?overflows|(?:model's|configured) context (?:size|length) is (?:only )?\d"
    r"|prompt exceeds max length|exceed max message tokens|reached (?:its|the) context window limit"
    r"|(?:input|prompt) (?:tokens?|token count|length)\b.{0,60}\bexceed"
    r"|tokens in (?:the )?request.{0,20}(?:more|greater) than"
    r"|reduce the length of (?:the |your )?(?:messages|prompt|input)"
    r"|exceeded model token limit|prompt exceeds the length limit|context overflow"
    r"|inputs\W{1,3}tokens \+ \W?max_new_tokens",
    re.I | re.S,
)
# A limit of tokens per minute needs waiting, not shortening.
_RATE_LIMIT = re.compile(r"rate.?limit|per.(?:minute|day|hour)|\b[tr]p[md]\b|quota", re.I)
_WINDOW_PATTERNS = (
    re.compile(r"\d[\d,]*(?: tokens)? > (\d[\d,]*)"),
    re.compile(
        r"(?:maximum|max) (?:model |context |prompt |input )*length (?:is|of) (?:only )?(\d[\d,]*)", re.I
    ),
    # MiniMax puts the number of its error after "exceeds limit".
    re.compile(r"context (?:size|length|window|limit)(?! exceeds limit \()[^.\d]{0,20}(\d[\d,]*)", re.I),
    re.compile(r"n_ctx\W{1,6}(\d+)", re.I),
    re.compile(r"maximum number of (?:input )?tokens allowed \(?(\d[\d,]*)", re.I),
    re.compile(r"(?:configured|the) limit of (\d[\d,]*)|model token limit: (\d+)", re.I),
    re.compile(r"input length should be \[\d+, ?(\d+)\]|cannot exceed (\d+) - received", re.I),
    re.compile(r"max_seq_len \((\d+)\)|max_new_tokens\W{1,3}must be <= (\d+)", re.I),
    re.compile(r"model with (\d[\d,]*) maximum context", re.I),
)


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
    """Estimate the tokens of a prompt: one for four bytes of UTF-8, which is about right for most languages,
    and one for 750 pixels of a picture.

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


def is_overflow(error: BaseException) -> bool:
    """Return whether `error` or one of its causes means that the prompt exceeds the context window."""
    for one in causes_of(error):
        if isinstance(one, ContextOverflowError):
            return True
        if getattr(one, "status_code", None) == 429:
            return False
        text = _error_text(one)
        if _OVERFLOW.search(text):
            return not _RATE_LIMIT.search(text)
    return False


def reported_window(error: BaseException) -> int | None:
    """Return the window in tokens that the endpoint names in its error message, if any."""
    for one in causes_of(error):
        text = _error_text(one)
        for pattern in _WINDOW_PATTERNS:
            if found := pattern.search(text):
                tokens = int(next(filter(None, found.groups())).replace(",", ""))
                if tokens >= SMALLEST_WINDOW_TOKENS:
                    return tokens
    return None


def _message_tokens(message: BaseMessage) -> int:
    size, tokens = 0, TOKENS_PER_MESSAGE
    for part in [message.content] if isinstance(message.content, str) else message.content:
        if isinstance(part, str):
            size += _bytes(part)
        elif is_picture_part(part):
            tokens += part_tokens(part)
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


def _error_text(error: BaseException) -> str:
    # Limited, because an endpoint may repeat the whole prompt, which may mention context windows, too.
    return f"{getattr(error, 'code', None) or ''} {error}"[:1_000]
