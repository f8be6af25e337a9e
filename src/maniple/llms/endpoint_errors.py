"""Conversion of the errors of model endpoints to `ModelError`s that say what to do.

Some endpoints put an error into an answer that began with HTTP 200. `status_error` returns the equivalent
HTTP error. Known formats: `{"code": 429, "message": …}` (llama.cpp, vLLM, OpenRouter; the code also as a
string), `{"type": "rate_limit_error", "code": null}` (gateways in front of OpenAI, Anthropic and Ollama), or
a bare string.
"""

import asyncio
import logging
import random
import socket
import ssl
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import httpx2
import openai
from langchain_core.exceptions import ContextOverflowError

from maniple.egress.bounded_responses import ResponseRefused
from maniple.egress.environment_transport import ProxyFailed, proxy_of
from maniple.errors import ModelError, ModelErrorCode, causes_of
from maniple.llms.endpoints import EndpointName
from maniple.llms.refusals import endpoint_words

_LOG = logging.getLogger(__name__)
# The exceptions of the SDK and of LangChain for a body that is not a chat completion.
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, IndexError)

REASON_CHARACTERS = 300


FIRST_WAIT_SECONDS = 0.5
MAX_BACKOFF_SECONDS = 8.0
MAX_RETRY_AFTER_SECONDS = 60.0
OUTAGE_PAUSE_SECONDS = 2.0
"""The pause between two requests to an endpoint that takes none."""

_PROXY_REMEDY = "correct or unset the variable, or name the endpoint's host in NO_PROXY."
_RETRYABLE_STATUSES = frozenset({408, 409, 429})
_UNKNOWN_STATUS = 500
_AWAY_STATUSES = frozenset({502, 503})
_AWAY = (
    *(httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.ConnectTimeout),
    *(ConnectionError, socket.gaierror, ProxyFailed),
)

_ERROR_CLASSES: Mapping[int, type[openai.APIStatusError]] = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
}

# The HTTP status for words in types and codes, most specific first.
_STATUS_BY_WORD: tuple[tuple[str, int], ...] = (
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


class ClientFailed(openai.OpenAIError):
    """A provider's client, or a program's own model, failed before an endpoint had a part in it."""


def model_error(error: Exception, endpoint: EndpointName, *, mid_stream: bool = False) -> ModelError:
    """Return a `ModelError` that explains `error` to the user, and what to do."""
    explained = _explain(error, endpoint, mid_stream=mid_stream)
    if isinstance(error, openai.APIStatusError):
        explained.refusal = f"HTTP {error.status_code}: {_reason(error)}"
    return explained


def _explain(error: Exception, endpoint: EndpointName, *, mid_stream: bool) -> ModelError:
    match error:
        case ModelError():
            return error
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return _auth_error(error, endpoint)
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
        case openai.APIConnectionError() if any(isinstance(one, ProxyFailed) for one in causes_of(error)):
            return _uncommon_error(error, endpoint, mid_stream=mid_stream)
        case openai.APITimeoutError() | asyncio.TimeoutError() | httpx2.TimeoutException():
            if (proxy := proxy_of(error)) and not mid_stream:
                return _silence_error(endpoint, proxy)
            return _error(
                f"{endpoint} did not answer in time. Raise {endpoint.setting}.timeout_seconds or use a "
                "faster model.",
                "model_timeout",
                retryable=True,
            )
        case _:
            return _uncommon_error(error, endpoint, mid_stream=mid_stream)


def combine_failures(failures: Sequence[ModelError]) -> ModelError:
    """Return one error for an endpoint and its fallbacks that all failed, with the reason of each."""
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
    together.refusal = first.refusal
    together.broke_off = any(failure.broke_off for failure in failures)
    together.is_outage = all(failure.is_outage for failure in failures)
    together.had_answered = any(failure.had_answered for failure in failures)
    return together


def is_outage(error: Exception) -> bool:
    """Return whether a request failed because its endpoint, or the way to it, is away for now.

    That is a connection that is refused, reset or not made in time, a name that is not resolved, and the
    statuses 502 and 503 of gateways and of servers that load a model; 504 may be the fault of a long request.
    A certificate that is not accepted, and a proxy that wants a password, do not pass by themselves.
    """
    if isinstance(error, openai.APIStatusError):
        return error.status_code in _AWAY_STATUSES
    causes = list(causes_of(error))
    if any(isinstance(one, ssl.SSLCertVerificationError) for one in causes):
        return False
    return any(isinstance(one, _AWAY) for one in causes)


def status_error(error: Exception, url: str) -> openai.APIStatusError | None:
    """Return the HTTP error that is equivalent to an error within an answer; None for other failures.

    An error without a known type counts as a failure of the endpoint (500).
    """
    body = _body(error)
    if body is None:
        return None
    status = 400 if isinstance(error, ContextOverflowError) else _status(body)
    return make_status_error(status, body, _headers(body), url, otherwise=str(error))


def make_status_error(
    status: int, body: dict[str, Any], headers: Mapping[str, str], url: str, *, otherwise: str = ""
) -> openai.APIStatusError:
    """Return the SDK's error for a status; `otherwise` is its text if the body has no message."""
    response = httpx2.Response(status, headers=dict(headers), request=httpx2.Request("POST", url))
    kind = _ERROR_CLASSES.get(status, openai.InternalServerError if status >= 500 else openai.APIStatusError)
    message = body.get("message") if isinstance(body.get("message"), str) else None
    return kind(message or otherwise or f"HTTP {status}", response=response, body=body)


def wait_seconds(error: openai.APIStatusError, attempt: int) -> float | None:
    """Return the seconds to wait after attempt number `attempt`; None if a retry is useless."""
    if error.status_code not in _RETRYABLE_STATUSES and error.status_code < 500:
        return None
    if retry_after := error.response.headers.get("retry-after"):
        return min(float(retry_after), MAX_RETRY_AFTER_SECONDS)
    backoff = min(FIRST_WAIT_SECONDS * 2 ** (attempt - 1), MAX_BACKOFF_SECONDS)
    return backoff * random.uniform(0.75, 1.0)


@dataclass(slots=True)
class EndpointOutage:
    """How long requests that an endpoint does not take are repeated: it may be restarting.

    All requests of a model share the time, so that a run of many steps does not wait for each of them. An
    endpoint that has never answered is probably configured wrong and is not waited for.
    """

    endpoint: EndpointName
    patience_seconds: float
    _has_answered: bool = False
    _began_at: float | None = None
    _failed_at: float = 0.0

    def end(self) -> None:
        """Record that the endpoint has answered."""
        self._has_answered, self._began_at = True, None

    @property
    def left_seconds(self) -> float:
        """How long failed requests are still sent again, after `wait_seconds`; 0 without an outage."""
        return 0.0 if self._began_at is None else self._began_at + self.patience_seconds - self._failed_at

    def wait_seconds(self, error: Exception) -> float | None:
        """Return the seconds to wait after a failed request; None if a retry is useless."""
        if not self._has_answered or not self._is_outage(error):
            return None
        now = time.monotonic()
        if self._began_at is None or now - self._failed_at > self.patience_seconds:
            self._began_at = now
            _LOG.warning(
                "The %s cannot be reached (%s); it may be restarting. It is asked again for %g s.",
                self.endpoint,
                _reason(error),
                self.patience_seconds,
            )
        self._failed_at = now
        left = self.left_seconds
        return min(left, OUTAGE_PAUSE_SECONDS * random.uniform(0.75, 1.0)) if left > 0 else None

    def _is_outage(self, error: Exception) -> bool:
        if isinstance(error, openai.APIStatusError):
            # Servers that load a model, and gateways in front of them, answer with 502 to 504.
            return self._began_at is not None and error.status_code in (502, 503, 504)
        causes = list(causes_of(error))
        if any(isinstance(one, socket.gaierror | ssl.SSLError) for one in causes):
            return False
        return any(isinstance(one, httpx2.NetworkError | httpx2.RemoteProtocolError) for one in causes)


def _uncommon_error(error: Exception, endpoint: EndpointName, *, mid_stream: bool) -> ModelError:
    if refused := next((one for one in causes_of(error) if isinstance(one, ResponseRefused)), None):
        return _error(f"{endpoint} {refused}.", "model_bad_response")
    if failed := next((one for one in causes_of(error) if isinstance(one, ProxyFailed)), None):
        return _proxy_error(failed, endpoint)
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError) and not _is_undecodable(error):
        return _connection_error(error, endpoint, mid_stream=mid_stream)
    match error:
        case ClientFailed():
            words = textwrap.shorten(str(error), REASON_CHARACTERS, placeholder="…")
            return _error(f"{endpoint} failed: {words.removesuffix('.')}.", "model_bad_request")
        case openai.APIStatusError() if error.status_code == 407 and (proxy := proxy_of(error)):
            return _error(
                f"{endpoint} cannot be reached: the proxy that {proxy} names answered HTTP 407 "
                f"({_reason(error)}). Write the user's name and password into the variable.",
                "model_unreachable",
            )
        case openai.APIStatusError() if error.status_code >= 500:
            return _error(
                f"{endpoint} failed with HTTP {error.status_code} ({_reason(error)}). It was asked again "
                f"without success; look at {_who_failed(error)}, or configure models.*.fallbacks.",
                "model_overloaded",
                retryable=True,
            )
        case openai.APIStatusError():
            return _error(
                f"{endpoint} rejected the request with HTTP {error.status_code}: {_reason(error)}",
                "model_bad_request",
            )
        case _:
            return _error(
                f"{endpoint} answered with something that is not a chat completion ({_reason(error)}). "
                f"Check that {endpoint.name_of('base_url')} is an endpoint of the API that "
                f"{endpoint.setting}.provider names.",
                "model_bad_response",
                retryable=True,
            )


def _connection_error(error: Exception, endpoint: EndpointName, *, mid_stream: bool) -> ModelError:
    proxy = proxy_of(error)
    if mid_stream:
        return _broken_stream_error(endpoint, proxy)
    if proxy:
        return _unreachable_error(endpoint, proxy, _reason(error))
    return _error(
        f"{endpoint} cannot be reached ({_reason(error)}). Is it running, and is "
        f"{endpoint.name_of('base_url')} right?",
        "model_unreachable",
        retryable=True,
    )


def _is_undecodable(error: Exception) -> bool:
    """Return whether an answer came whose compression is broken."""
    return any(isinstance(one, httpx2.DecodingError) for one in causes_of(error))


def _auth_error(error: openai.APIStatusError, endpoint: EndpointName) -> ModelError:
    variable = f"{endpoint.name_of('api_key')} in .env, or " if endpoint.env_prefix else ""
    words = f": {_reason(error)}" if endpoint_words(error) else ""
    return _error(
        f"{endpoint} refused the API key (HTTP {error.status_code}{words}). Set {variable}"
        f"{endpoint.setting}.api_key in conf.yaml.",
        "model_auth",
    )


def _proxy_error(failed: ProxyFailed, endpoint: EndpointName) -> ModelError:
    if isinstance(failed, httpx2.TimeoutException):
        return _silence_error(endpoint, failed.proxy)
    if failed.is_connected:
        return _unreachable_error(endpoint, failed.proxy, failed.reason)
    return _error(
        f"{endpoint} cannot be reached through the proxy that {failed.proxy} names ({failed.reason}). "
        f"Is the proxy running? If not, {_PROXY_REMEDY}",
        "model_unreachable",
        retryable=True,
    )


def _silence_error(endpoint: EndpointName, proxy: str) -> ModelError:
    return _error(
        f"{endpoint} did not answer in time: nothing came back through the proxy that {proxy} names. If the "
        f"proxy does not reach the endpoint, {_PROXY_REMEDY} If the model is slow, raise "
        f"{endpoint.setting}.timeout_seconds.",
        "model_timeout",
        retryable=True,
    )


def _unreachable_error(endpoint: EndpointName, proxy: str, reason: str) -> ModelError:
    """The error where the proxy or what is behind it may be at fault."""
    return _error(
        f"{endpoint} cannot be reached: no answer came through the proxy that {proxy} names ({reason}). Are "
        f"the proxy and the endpoint running? If the proxy does not reach the endpoint, {_PROXY_REMEDY}",
        "model_unreachable",
        retryable=True,
    )


def _who_failed(error: openai.APIStatusError) -> str:
    """Proxies answer with 502 to 504 themselves where they do not reach the endpoint."""
    proxy = proxy_of(error) if error.status_code in (502, 503, 504) else ""
    return f"the endpoint and the proxy that {proxy} names" if proxy else "the endpoint"


def _broken_stream_error(endpoint: EndpointName, proxy: str) -> ModelError:
    between = f"the proxy that {proxy} names" if proxy else "the network between"
    return _error(
        f"{endpoint} broke off in the middle of its answer. It was asked again without success; look at "
        f"the endpoint or {between}.",
        "model_stream_cut",
        retryable=True,
    )


def _error(message: str, code: ModelErrorCode, *, retryable: bool = False) -> ModelError:
    return ModelError(message[0].upper() + message[1:], code=code, retryable=retryable)


def _reason(error: Exception) -> str:
    """Return the first line of the root cause, without a body that may be a whole HTML page."""
    cause: BaseException = error
    while isinstance(error, openai.APIConnectionError) and cause.__cause__ is not None:
        cause = cause.__cause__
    # aiohttp's text for an answer that it cannot parse begins with a line that says nothing.
    text = endpoint_words(cause) or getattr(cause, "message", "") or cause
    lines = str(text).strip().splitlines()
    return lines[0].removesuffix(".")[:REASON_CHARACTERS] if lines else type(cause).__name__


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
    text = " ".join(named).casefold()
    return next((status for word, status in _STATUS_BY_WORD if word in text), _UNKNOWN_STATUS)


def _headers(body: Mapping[str, Any]) -> dict[str, str]:
    for source in _list_sources(body):
        for name, value in source.items():
            if str(name).casefold().replace("-", "_") in ("retry_after", "retry_after_seconds"):
                try:
                    return {"retry-after": str(max(0.0, float(value)))}
                except (TypeError, ValueError):
                    continue
    return {}


def _list_sources(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the mappings that may have a Retry-After:

    The error, its metadata (OpenRouter), headers in both.
    """
    metadata = body.get("metadata")
    for place in (body, metadata if isinstance(metadata, Mapping) else {}):
        yield place
        if isinstance(headers := place.get("headers"), Mapping):
            yield headers
