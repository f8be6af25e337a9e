"""Every provider's words for a prompt that is too long, and what only sounds like it."""

import pytest
from langchain_core.exceptions import ContextOverflowError

from maniple.errors import ModelError
from maniple.llms.overflow import is_overflow, window_told

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
    "mistral": ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", None),
    "moonshot": ("Invalid request: Your request exceeded model token limit: 8192", None),
    "llama.cpp": ("the request exceeds the available context size, try increasing it", None),
    "llama.cpp, new": (
        "request (5213 tokens) exceeds the available context size (4096 tokens), try increasing it",
        4096,
    ),
    "llama.cpp, type": ("{'type': 'exceed_context_size_error', 'n_prompt_tokens': 9, 'n_ctx': 4096}", 4096),
    "vllm": ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096),
    "sglang": ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096),
    "tgi": ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.", None),
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
    assert window_told(error) == window


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
    ],
)
def test_other_refusals_are_not_taken_for_it(words):
    assert not is_overflow(ModelError(words, code="model_bad_request"))


def test_the_cause_of_an_error_is_heard_and_a_limit_in_time_is_not():
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
