"""Errors that an endpoint puts into an answer it has begun with HTTP 200, taken for the status they carry.

Shapes seen: `{"code": 429, "message": …}` (llama.cpp, vLLM, OpenRouter; the code also as text),
`{"type": "rate_limit_error", "code": null}` (gateways before OpenAI, Anthropic and Ollama), or a bare string.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import openai
from langchain_core.exceptions import ContextOverflowError

FIRST_WAIT_SECONDS = 0.5
LONGEST_BACKOFF_SECONDS = 8.0
LONGEST_RETRY_AFTER_SECONDS = 60.0

_AGAIN = frozenset({408, 409, 429})
_UNKNOWN_STATUS = 500

_CLASSES: Mapping[int, type[openai.APIStatusError]] = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
}

# What types and codes in words stand for, most specific first.
_WORDS: tuple[tuple[str, int], ...] = (
    ("rate_limit", 429),
    ("ratelimit", 429),
    ("too_many_requests", 429),
    ("quota", 429),
    ("overloaded", 503),
    ("unavailable", 503),
    ("timeout", 504),
    ("authentication", 401),
    ("invalid_api_key", 401),
    ("permission", 403),
    ("not_found", 404),
    ("context_length", 400),
    ("content_filter", 400),
    ("invalid_request", 400),
    ("bad_request", 400),
    ("badrequest", 400),
)


def status_error(error: Exception, url: str) -> openai.APIStatusError | None:
    """Return the HTTP error that an error within an answer stands for; None for any other failure.

    One that does not say what it is counts as a failure of the endpoint (500).
    """
    body = _body(error)
    if body is None:
        return None
    status = 400 if isinstance(error, ContextOverflowError) else _status(body)
    response = httpx2.Response(status, headers=_headers(body), request=httpx2.Request("POST", url))
    kind = _CLASSES.get(status, openai.InternalServerError if status >= 500 else openai.APIStatusError)
    words = body.get("message") if isinstance(body.get("message"), str) else None
    return kind(words or str(error), response=response, body=body)


def wait_seconds(error: openai.APIStatusError, attempt: int) -> float | None:
    """Return how long to wait after try number `attempt`; None: asking again is no use."""
    if error.status_code not in _AGAIN and error.status_code < 500:
        return None
    if told := error.response.headers.get("retry-after"):
        return min(float(told), LONGEST_RETRY_AFTER_SECONDS)
    backoff = min(FIRST_WAIT_SECONDS * 2 ** (attempt - 1), LONGEST_BACKOFF_SECONDS)
    return backoff * random.uniform(0.75, 1.0)


def _body(error: Exception) -> dict[str, Any] | None:
    match error:
        case openai.APIStatusError() | openai.APIConnectionError() | openai.APIResponseValidationError():
            return None
        case openai.APIError():
            return error.body if isinstance(error.body, dict) else {"message": str(error.body or error)}
        case ValueError(args=(dict() as body,)):
            return body  # LangChain's, for an answer in one body
    return None


def _status(body: Mapping[str, Any]) -> int:
    named = [str(body[name]) for name in ("code", "status", "status_code", "type") if body.get(name)]
    for one in named:
        if one.isdecimal() and len(one) == 3 and 400 <= int(one) < 600:
            return int(one)
    words = " ".join(named).casefold()
    return next((status for word, status in _WORDS if word in words), _UNKNOWN_STATUS)


def _headers(body: Mapping[str, Any]) -> dict[str, str]:
    for source in _places(body):
        for name, value in source.items():
            if str(name).casefold().replace("-", "_") in ("retry_after", "retry_after_seconds"):
                try:
                    return {"retry-after": str(max(0.0, float(value)))}
                except (TypeError, ValueError):
                    continue
    return {}


def _places(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield where a Retry-After is found: the error, its metadata (OpenRouter), headers quoted there."""
    metadata = body.get("metadata")
    for place in (body, metadata if isinstance(metadata, Mapping) else {}):
        yield place
        if isinstance(headers := place.get("headers"), Mapping):
            yield headers
