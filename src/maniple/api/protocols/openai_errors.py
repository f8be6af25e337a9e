"""Errors in OpenAI's form, on the paths of OpenAI's protocols.

Source: https://platform.openai.com/docs/guides/error-codes
"""

import json
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, cast

from pydantic import ValidationError
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from maniple.api.error_responses import status_of
from maniple.errors import ManipleError
from maniple.service.callers import KeyRevoked
from maniple.text import fix_surrogates

PREFIX = "/v1/"
_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_DROPPED = frozenset((b"content-length", b"content-type"))


class UnsupportedParameter(Exception):
    """A request has a parameter, or a part, that this service cannot do what it says with."""

    def __init__(self, param: str, message: str, *, code: str = "unsupported_parameter", status: int = 400):
        super().__init__(message)
        self.param = param
        self.code = code
        self.status = status


async def answer_unsupported(_: object, error: Exception) -> JSONResponse:
    """Answer an `UnsupportedParameter`."""
    if not isinstance(error, UnsupportedParameter):
        raise error
    body, status = describe_error(error)
    return JSONResponse(body, status_code=status)


def error_body(message: str, code: str, status: int, param: str | None = None) -> dict[str, Any]:
    """Return an error as OpenAI's clients read it."""
    kind = _KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def describe_error(
    error: ManipleError | UnsupportedParameter | ValidationError,
) -> tuple[dict[str, Any], int]:
    """Return an error of a run, or of a request, as OpenAI's clients read it, and its status."""
    if isinstance(error, ValidationError):
        message, param = _describe_faults([{**one} for one in error.errors(include_url=False)])
        return error_body(fix_surrogates(message), "invalid_request", 400, param), 400
    if isinstance(error, UnsupportedParameter):
        return error_body(str(error), error.code, error.status, error.param), error.status
    status = 401 if isinstance(error, KeyRevoked) else status_of(error)
    return error_body(str(error), error.code, status), status


class OpenAIErrors:
    """ASGI middleware: errors of the service get OpenAI's form on the paths below `PREFIX`.

    The status of an invalid body becomes 400. The clients repeat some requests by themselves; an answer with
    `x-should-retry` says whether that helps.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        begun: MutableMapping[str, Any] | None = None
        body: list[bytes] = []

        async def rewrite(message: Message) -> None:
            nonlocal begun
            kind = message["type"].removeprefix("websocket.")  # the answer to a WebSocket that is refused
            if kind == "http.response.start" and _is_json_error(message):
                begun = message
            elif begun is None:
                await send(message)
            elif kind == "http.response.body":
                body.append(message.get("body", b""))
                if not message.get("more_body"):
                    await _rewritten(begun, b"".join(body))(scope, receive, send)

        await self._app(scope, receive, rewrite)


def _is_json_error(message: Message) -> bool:
    headers = dict(message.get("headers", ()))
    return message["status"] >= 400 and headers.get(b"content-type", b"").startswith(b"application/json")


def _rewritten(begun: MutableMapping[str, Any], body: bytes) -> JSONResponse:
    status = 400 if begun["status"] == 422 else begun["status"]
    content = cast("dict[str, Any]", json.loads(body))
    if "error" not in content:
        message, param = _describe_detail(content.get("detail"))
        content = error_body(message, str(content.get("code", "internal")), status, param)
    response = JSONResponse(content, status_code=status)
    kept = [(name, value) for name, value in begun["headers"] if name.lower() not in _DROPPED]
    response.raw_headers.extend(kept)
    return response


def _describe_detail(detail: Any) -> tuple[str, str | None]:
    """Return the sentence of an error, and the first parameter that it names."""
    if not isinstance(detail, list):
        return str(detail), None
    faults = cast("list[dict[str, Any]]", detail)
    return _describe_faults([{**one, "loc": one.get("loc", ())[1:]} for one in faults])


def _describe_faults(faults: Sequence[Mapping[str, Any]]) -> tuple[str, str | None]:
    places = [".".join(str(part) for part in one.get("loc", ())) for one in faults]
    said = "; ".join(
        f"{place}: {one.get('msg', '')}" if place else str(one.get("msg", ""))
        for place, one in zip(places, faults, strict=True)
    )
    return said, next(filter(None, places), None)
