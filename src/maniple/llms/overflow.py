"""Tell the error of a prompt that is longer than the model's window, whoever words it."""

import re
from collections.abc import Iterator

from langchain_core.exceptions import ContextOverflowError

# The words of OpenAI, Azure, Anthropic, Bedrock, Gemini, xAI, Groq, Mistral, Cohere, DeepSeek, Moonshot, Qwen
# (DashScope), GLM (z.ai), Doubao (Volcengine), ERNIE, SiliconFlow, vLLM, SGLang, TGI, llama.cpp, LM Studio,
# Ollama, LiteLLM and OpenRouter: no two say it alike.
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
# A limit of tokens in a minute passes by waiting, not by shortening.
_OF_TIME = re.compile(r"rate.?limit|per.(?:minute|day|hour)|\b[tr]p[md]\b|quota", re.I)
_TOLD = (
    re.compile(r"\d[\d,]*(?: tokens)? > (\d[\d,]*)"),
    re.compile(
        r"(?:maximum|max) (?:model |context |prompt |input )*length (?:is|of) (?:only )?(\d[\d,]*)", re.I
    ),
    # What MiniMax puts behind "exceeds limit" is the number of its error.
    re.compile(r"context (?:size|length|window|limit)(?! exceeds limit \()[^.\d]{0,20}(\d[\d,]*)", re.I),
    re.compile(r"n_ctx\W{1,6}(\d+)", re.I),
    re.compile(r"maximum number of (?:input )?tokens allowed \(?(\d[\d,]*)", re.I),
    re.compile(r"(?:configured|the) limit of (\d[\d,]*)|model token limit: (\d+)", re.I),
    re.compile(r"input length should be \[\d+, ?(\d+)\]|cannot exceed (\d+) - received", re.I),
    re.compile(r"max_seq_len \((\d+)\)|max_new_tokens\W{1,3}must be <= (\d+)", re.I),
    re.compile(r"model with (\d[\d,]*) maximum context", re.I),
)
SMALLEST_WINDOW_TOKENS = 256


def is_overflow(error: BaseException) -> bool:
    """Say whether `error`, or what it was raised from, means that the prompt does not fit the window."""
    for one in _causes(error):
        if isinstance(one, ContextOverflowError):
            return True
        if getattr(one, "status_code", None) == 429:
            return False
        text = _words(one)
        if _OVERFLOW.search(text):
            return not _OF_TIME.search(text)
    return False


def window_told(error: BaseException) -> int | None:
    """Return the window, in tokens, that the endpoint names in its complaint, if it does."""
    for one in _causes(error):
        text = _words(one)
        for pattern in _TOLD:
            if found := pattern.search(text):
                tokens = int(next(filter(None, found.groups())).replace(",", ""))
                if tokens >= SMALLEST_WINDOW_TOKENS:
                    return tokens
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    one: BaseException | None = error
    for _ in range(8):
        if one is None:
            return
        yield one
        one = one.__cause__


def _words(error: BaseException) -> str:
    # Bounded: an endpoint may repeat the whole prompt in its complaint, which may speak of windows, too.
    return f"{getattr(error, 'code', None) or ''} {error}"[:1_000]
