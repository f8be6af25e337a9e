"""Turn what the OpenAI SDK and HTTP raise into `ModelError`s that say what to do."""

import asyncio
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import httpx2
import openai

from maniple.errors import ModelError, ModelErrorCode

# A body that is not a chat completion surfaces as one of these from the SDK's or LangChain's parsing.
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, IndexError)

OPENAI_ORIGIN = "https://api.openai.com"
OPENAI_URL = f"{OPENAI_ORIGIN}/v1"

REASON_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class EndpointName:
    """How an endpoint is called in messages to people; never holds a key.

    `env_prefix` is empty for a fallback, which only `conf.yaml` can set.
    """

    model: str
    url: str
    setting: str = "models.basic"
    env_prefix: str = "BASIC"

    @classmethod
    def of(cls, model: str, base_url: str | None, setting: str, env_prefix: str) -> "EndpointName":
        parts = urlsplit(base_url or OPENAI_URL)
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        port = f":{parts.port}" if parts.port else ""
        return cls(model, f"{parts.scheme}://{host}{port}{parts.path}", setting, env_prefix)

    def name_of(self, key: str) -> str:
        """Return where a person sets `key`: a variable, or for a fallback, which has none, its setting."""
        return f"{self.env_prefix}_{key.upper()}" if self.env_prefix else f"{self.setting}.{key}"

    def __str__(self) -> str:
        return f"model {self.model!r} at {self.url}"


def model_error(error: Exception, endpoint: EndpointName, *, mid_stream: bool = False) -> ModelError:
    """Return the `ModelError` that tells a person what `error` means and what helps."""
    match error:
        case ModelError():
            return error
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return _refused(error, endpoint)
        case openai.NotFoundError():
            return _error(
                f"{endpoint} does not exist ({_reason(error)}). Check {endpoint.name_of('model')} and "
                f"{endpoint.name_of('base_url')}; many servers want the URL to end in /v1.",
                "model_not_found",
            )
        case openai.RateLimitError():
            return _error(
                f"{endpoint} limits requests or the quota is used up ({_reason(error)}). "
                "Wait and ask again, or raise the limit with the provider.",
                "model_rate_limited",
                retryable=True,
            )
        case openai.APITimeoutError() | asyncio.TimeoutError() | httpx2.TimeoutException():
            return _error(
                f"{endpoint} did not answer in time. Raise {endpoint.setting}.timeout_seconds or use a "
                "faster model.",
                "model_timeout",
                retryable=True,
            )
        case _:
            return _less_common(error, endpoint, mid_stream=mid_stream)


def none_answered(failures: Sequence[ModelError]) -> ModelError:
    """Return one error for an endpoint and its fallbacks, which all failed: each is named with its reason."""
    first = failures[0]
    if len(failures) == 1:
        return first
    each = (textwrap.shorten(str(failure), REASON_CHARACTERS, placeholder="…") for failure in failures)
    reasons = " ".join(f"({number}) {reason}" for number, reason in enumerate(each, start=1))
    together = ModelError(
        f"None of the {len(failures)} models answered. {reasons}",
        code=cast("ModelErrorCode", first.code),
        retryable=any(failure.retryable for failure in failures),
    )
    together.broke_off = any(failure.broke_off for failure in failures)
    return together


def _less_common(error: Exception, endpoint: EndpointName, *, mid_stream: bool) -> ModelError:
    match error:
        case openai.APIStatusError() if error.status_code >= 500:
            return _error(
                f"{endpoint} failed with HTTP {error.status_code} ({_reason(error)}). It was asked again "
                "without success; look at the endpoint, or configure models.*.fallbacks.",
                "model_overloaded",
                retryable=True,
            )
        case openai.APIStatusError():
            return _error(
                f"{endpoint} rejected the request with HTTP {error.status_code}: {_reason(error)}",
                "model_bad_request",
            )
        case openai.APIConnectionError() | httpx2.HTTPError():
            if mid_stream:
                return _cut(endpoint)
            return _error(
                f"{endpoint} cannot be reached ({_reason(error)}). Is it running, and is "
                f"{endpoint.name_of('base_url')} right?",
                "model_unreachable",
                retryable=True,
            )
        case _:
            return _error(
                f"{endpoint} answered with something that is not a chat completion ({_reason(error)}). "
                f"Check that {endpoint.name_of('base_url')} is an OpenAI-compatible endpoint.",
                "model_bad_response",
                retryable=True,
            )


def _refused(error: openai.APIStatusError, endpoint: EndpointName) -> ModelError:
    variable = f"{endpoint.name_of('api_key')} in .env, or " if endpoint.env_prefix else ""
    return _error(
        f"{endpoint} refused the API key (HTTP {error.status_code}). Set {variable}"
        f"{endpoint.setting}.api_key in conf.yaml.",
        "model_auth",
    )


def _cut(endpoint: EndpointName) -> ModelError:
    return _error(
        f"{endpoint} broke off in the middle of its answer. It was asked again without success; look at "
        "the endpoint or the network between.",
        "model_stream_cut",
        retryable=True,
    )


def _error(message: str, code: ModelErrorCode, *, retryable: bool = False) -> ModelError:
    return ModelError(message[0].upper() + message[1:], code=code, retryable=retryable)


def _reason(error: Exception) -> str:
    """Return the first line of what went wrong at bottom, without a body that may be a whole HTML page."""
    cause: BaseException = error
    while isinstance(error, openai.APIConnectionError) and cause.__cause__ is not None:
        cause = cause.__cause__
    lines = str(cause).strip().splitlines()
    return lines[0].removesuffix(".")[:REASON_CHARACTERS] if lines else type(cause).__name__
