"""Every provider's words for a prompt that is too long, and what only sounds like it."""

import pytest
from langchain_core.exceptions import ContextOverflowError

from maniple.errors import ModelError
from maniple.llms.context_windows import is_overflow, reported_window

TOO_LONG = {
    "openai": (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. "
        "Please reduce the length of the messages.",
        8192,
    ),
    "openai, of functions": (
        "This model's maximum context length is 16,385 tokens. However, you requested 20042 tokens (18042 in "
        "the messages, 90 in the functions, and 1910 in the completion).",
        16385,
    ),
    "openai, new": ("Your input exceeds the context window of this model. Please adjust your input.", None),
    "azure": ("Input tokens exceed the configured limit of 272000 tokens. Your messages are 300000.", 272000),
    "anthropic": ("prompt is too long: 213462 tokens > 200000 maximum", 200000),
    "anthropic, of both": (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        200000,
    ),
    "bedrock": ("Input is too long for requested model.", None),
    "gemini": (
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        1048575,
    ),
    "xai": ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131072),
    "groq": ("Please reduce the length of the messages or completion.", None),
    "mistral": ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32768),
    "moonshot": ("Invalid request: Your request exceeded model token limit: 8192", 8192),
    "llama.cpp": ("the request exceeds the available context size, try increasing it", None),
    "llama.cpp, new": (
        "request (5213 tokens) exceeds the available context size (4096 tokens), try increasing it",
        4096,
    ),
    "llama.cpp, type": ("{'type': 'exceed_context_size_error', 'n_prompt_tokens': 9, 'n_ctx': 4096}", 4096),
    "vllm": ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096),
    "sglang": ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096),
    "tgi": ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.", 4096),
    "vllm, new": (
        "You passed 4097 input tokens and requested 100 output tokens. However, the model's context length "
        "is only 4096 tokens.",
        4096,
    ),
    "qwen": ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]", 30720),
    "cohere": (
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using "
        "a shorter prompt, or enabling prompt truncating.",
        4081,
    ),
    "cohere, of both": (
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354.",
        2048,
    ),
    "cohere, of size": ("too many tokens: size limit exceeded by 11326 tokens.", None),
    "cohere, of a limit": (
        "Too many tokens: the total number of tokens in the prompt exceeds the limit of 4081.",
        4081,
    ),
    "siliconflow": ("length of prompt_tokens (57535) must be less than max_seq_len (32768).", 32768),
    "siliconflow, of both": (
        "max_total_tokens (33802) must be less than or equal to max_seq_len (32768)",
        32768,
    ),
    "z.ai": ("Prompt exceeds max length", None),
    "z.ai, of tokens": (
        "Request 182387 input tokens exceeds the model's maximum context length 202750",
        202750,
    ),
    "z.ai, as anthropic": ("The model has reached its context window limit.", None),
    "volcengine": ("Total tokens of image and text exceed max message tokens. Request id: 0217", None),
    "minimax": ("invalid params, context window exceeds limit (2013)", None),
    "ernie": ("prompt tokens too long", None),
    "ernie, of characters": ("the max input characters is 20000", None),
    "ds4": ("Prompt has 32769 tokens, but the configured context size is 32768 tokens", 32768),
    "copilot": ("prompt token count of 13432 exceeds the limit of 12288", 12288),
    "lm studio, old": (
        "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with "
        "context length of only 4096 tokens, which is not enough.",
        4096,
    ),
    "lm studio, mended": (
        "Trying to keep the first 6547 tokens when context overflows. However, the model is loaded with a "
        "context length of only 4096 tokens, which is not enough.",
        4096,
    ),
    "lm studio": ("The context length of only 4096 tokens was exceeded by the prompt.", 4096),
    "ollama": ("input length exceeds the context length", None),
    "litellm": ("litellm.ContextWindowExceededError: too much", None),
    "openrouter": (
        "This endpoint's maximum context length is 65536 tokens. However, you requested about 70000 tokens.",
        65536,
    ),
}


@pytest.mark.parametrize("provider", TOO_LONG)
def test_the_words_of_every_provider_are_understood(provider):
    words, window = TOO_LONG[provider]
    error = ModelError(f"Model 'm' rejected the request with HTTP 400: {words}", code="model_bad_request")
    assert is_overflow(error)
    assert reported_window(error) == window


@pytest.mark.parametrize(
    "words",
    [
        "Invalid API key",
        "Rate limit reached: too large for gpt-4o on tokens per min (TPM): reduce the length of the messages",
        "max_tokens is too large: 9000. This model supports at most 4096 completion tokens.",
        "string too long. Expected a string with maximum length 64, for messages[0].name",
        "Invalid schema for function 'context': the maximum depth is exceeded",
        "You exceeded your current quota for context caching",
        "tools is not supported by this server",
        "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]",
        "too many tokens: max tokens must be less than or equal to 4096, the maximum output for this model - "
        "received 8192.",
        "The parameter `max_tokens` specified in the request are not valid: integer above maximum value",
        "max_tokens (40000) must be less than or equal to 16384",
        "The name of tool 1 exceeds max length 64",
    ],
)
def test_other_refusals_are_not_taken_for_it(words):
    assert not is_overflow(ModelError(words, code="model_bad_request"))


def test_an_overflow_is_found_in_the_cause_of_an_error_and_not_in_rate_limits():
    class Refused(Exception):
        status_code = 429

    def raised(cause):
        error = ModelError("It was rejected.", code="model_bad_request")
        error.__cause__ = cause
        return error

    assert is_overflow(raised(ContextOverflowError("too long")))
    assert is_overflow(raised(ValueError("code: context_length_exceeded")))
    assert not is_overflow(raised(Refused("the request exceeds the context window")))
    assert not is_overflow(raised(None))
