"""Responses to refused requests: `{detail, code}` with a status."""

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from maniple.api.browser_guard import SECURITY_HEADERS
from maniple.errors import ManipleError, StoreError
from maniple.service.views import ErrorResponse
from maniple.text import fix_surrogates, shorten

SHOWN_INPUT_CHARACTERS = 500
_SECRET_PATHS = "/api/models"
"""Where a body may hold a key, so that no part of it is repeated."""
STATUS_BY_CODE = {
    "too_many_runs": 429,
    "daily_limit": 429,
    "stopping": 503,
    "worker_away": 503,
    "no_browser": 503,
    "no_suggestions": 503,
    "not_printed": 503,
    "thread_busy": 409,
    "thread_exists": 409,
    "not_waiting": 409,
    "calls_waiting": 409,
    "not_working": 409,
    "nothing_to_retry": 409,
    "branch_point_gone": 409,
    "too_many_branches": 409,
    "not_finished": 409,
    "not_acceptable": 406,
    "not_found": 404,
    "no_report": 404,
    "no_files": 404,
    "plan_not_open": 409,
    "prices_unknown": 409,
    "unknown_model": 409,
    "settings_not_writable": 409,
    "model_unusable": 409,
    "not_admin": 403,
    "invalid_model": 422,
    "wrong_plan_change": 422,
    "invalid_input": 422,
    "unsupported": 422,
    "unknown_call": 422,
    "invalid_batch": 422,
    "invalid_schedule": 422,
    "invalid_webhook": 422,
    "file_refused": 422,
    "too_large": 413,
    "workspace_full": 413,
}
_RETRY_AFTER_SECONDS = {"daily_limit": 3600}
_SOON_SECONDS = 5
_SEND_JSON = "Send JSON, with the header -H 'content-type: application/json' (or --json) of curl; see /docs."
_PATH_CHARACTERS = 100


async def answer_invalid_request(request: Request, error: Exception) -> JSONResponse:
    """Answer an invalid body with 422 and the places of its mistakes.

    FastAPI's own answer repeats the input, which may be the whole body, or not be valid JSON (NaN, a lone
    surrogate), or nested more deeply than it can be written; in these cases it is left out.
    """
    if not isinstance(error, RequestValidationError):
        raise error
    if sentence := _describe_media_type(request, error):
        return JSONResponse({"detail": sentence, "code": "invalid_request"}, status_code=422)
    has_secrets = request.scope["path"].startswith(_SECRET_PATHS)
    details = [_present({**detail}, has_secrets=has_secrets) for detail in error.errors()]
    return JSONResponse({"detail": details, "code": "invalid_request"}, status_code=422)


def _describe_media_type(request: Request, error: RequestValidationError) -> str:
    """Return how to send JSON if the body was not read as JSON because of its type; "" otherwise."""
    sent = request.headers.get("content-type", "")
    media_type = sent.partition(";")[0].strip().lower()
    is_json = media_type.startswith("application/") and media_type.endswith(("/json", "+json"))
    if is_json or not any(one["loc"] == ("body",) for one in error.errors()):
        return ""
    if error.body is None:
        return f"The request has no body. {_SEND_JSON}"
    named = f"has the type {shorten(media_type, 60)!r}" if media_type else "has no type"
    return f"The body {named}. {_SEND_JSON}"


def _present(detail: dict[str, Any], *, has_secrets: bool) -> dict[str, Any]:
    shown, given = {key: value for key, value in detail.items() if key not in ("ctx", "input")}, {}
    if not has_secrets and "input" in detail and _is_short(detail["input"]):
        given = {"input": detail["input"]}
    return fix_surrogates(jsonable_encoder({**shown, **given}, custom_encoder={float: _number}))


def _is_short(value: Any) -> bool:
    try:
        return len(json.dumps(value, allow_nan=False, default=jsonable_encoder)) <= SHOWN_INPUT_CHARACTERS
    except (ValueError, RecursionError):  # not a finite number, or nested too deeply
        return False


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else repr(value)


def status_of(error: ManipleError) -> int:
    """Return the HTTP status of an error."""
    return STATUS_BY_CODE.get(error.code, 503 if isinstance(error, StoreError) else 500)


async def answer_error(request: Request, error: Exception) -> JSONResponse:
    """Answer an error of the engine."""
    if not isinstance(error, ManipleError):
        raise error
    return respond_to_error(error)


def respond_to_error(error: ManipleError) -> JSONResponse:
    """Return the answer to an error: its status, its message and, where it helps, when to try again."""
    status = status_of(error)
    headers = None
    if status in (429, 503):
        headers = {"retry-after": str(_RETRY_AFTER_SECONDS.get(error.code, _SOON_SECONDS))}
    return JSONResponse({"detail": str(error), "code": error.code}, status_code=status, headers=headers)


async def answer_http_exception(request: Request, error: Exception) -> JSONResponse:
    """Answer an error of the framework, such as an unknown path, in the same form."""
    if not isinstance(error, HTTPException):
        raise error
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    headers = _allowed(request) or error.headers if error.status_code == 405 else error.headers
    content = {"detail": _describe_http_error(request, error, headers or {}), "code": code}
    return JSONResponse(content, status_code=error.status_code, headers=headers)


def _describe_http_error(request: Request, error: HTTPException, headers: Mapping[str, str]) -> str:
    """Return the error's own text; for an address that the router does not know, what exists instead."""
    if error.detail != HTTPStatus(error.status_code).phrase:
        return error.detail
    documents = "/docs describes every address, and /openapi.json is the same for programs."
    asked = f"{request.method} {shorten(request.scope['path'], _PATH_CHARACTERS)}"
    match error.status_code:
        case 404:
            return fix_surrogates(f"There is nothing at {asked}. {documents}")
        case 405:
            allowed = f" The methods of this address: {headers['allow']}." if "allow" in headers else ""
            return fix_surrogates(f"{asked} is not possible.{allowed} {documents}")
        case _:
            return error.detail


def _allowed(request: Request) -> dict[str, str]:
    """Return every method of the most exact path; the router returns those of its first route only."""
    path = request.scope["path"]
    routes = [one for one in request.app.routes if isinstance(one, APIRoute) and one.include_in_schema]
    matching = [route for route in routes if route.path_regex.match(path)]
    template = min((len(route.param_convertors), route.path) for route in matching)[1] if matching else None
    methods = {method for route in routes if route.path == template for method in route.methods or ()}
    return {"allow": ", ".join(sorted(methods))} if methods else {}


async def answer_internal_error(request: Request, error: Exception) -> JSONResponse:
    """Answer an unexpected error; its details are in the log and are not sent to the client."""
    content = {"detail": "Something went wrong here. The server's log has it.", "code": "internal"}
    # Starlette answers these outside of all middleware.
    return JSONResponse(content, status_code=500, headers={**SECURITY_HEADERS})


_WORDS = {
    400: "The body cannot be read",
    401: "No API key, or an unknown one",
    403: "The caller may not do this",
    404: "It does not exist, or belongs to another key",
    406: "None of the accepted formats is available",
    409: "Not possible in the present state",
    413: "The body is too large",
    422: "The request is invalid",
    429: "Too many runs, or the key's daily quota is used up; see Retry-After",
    503: "Stopping, or the store or the model cannot be used; see Retry-After",
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route that can answer with these statuses; routes with a key have more."""
    every = (400, 401, 413, 422, 503)
    return {status: {"model": ErrorResponse, "description": _WORDS[status]} for status in (*every, *statuses)}
