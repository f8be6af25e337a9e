"""The HTTP service."""

import asyncio
import gc
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from maniple.api.auth import KeyGate
from maniple.api.browser_guard import OriginGate, SecurityHeaders
from maniple.api.document import adapt_document
from maniple.api.error_responses import (
    answer_error,
    answer_http_exception,
    answer_internal_error,
    answer_invalid_request,
)
from maniple.api.protocols import ag_ui, chat_completions, responses, responses_socket
from maniple.api.protocols.conversations import AnsweredRuns
from maniple.api.protocols.langgraph import (
    assistants,
    command_routes,
    cron_routes,
    run_routes,
    thread_routes,
)
from maniple.api.protocols.openai_errors import OpenAIErrors, UnsupportedParameter, answer_unsupported
from maniple.api.requests import NO_AGENT
from maniple.api.routes import batches, chat, files, models, page, runs, schedules, service, threads, webhooks
from maniple.config import Settings, TeamSettings
from maniple.config.service_settings import LOOPBACK_HOSTS, ServerSettings
from maniple.errors import ManipleError
from maniple.llms.embedded import Progress
from maniple.service import open_service
from maniple.service.views import UploadLimits
from maniple.text import file_size, fix_surrogates, shorten
from maniple.types import GENERAL, EngineRole

LANGMANUS_ORIGIN = "http://localhost:3000"
"""Where the LangManus web client runs; allowed while the service listens on loopback only."""
GARBAGE_THRESHOLDS = (5_000, 10, 3)
"""Of `gc.set_threshold`. The graphs of a run are cycles of about 700 objects that hold its events and
messages, 0.15 MB: the oldest generation is collected after about 60 runs, which takes up to 0.1 s."""
_TITLE = "maniple"
_DOCUMENT_PATH = "/openapi.json"
_ROUTERS = (
    page.router,
    chat.router,
    threads.router,
    files.router,
    runs.router,
    files.artifact_router,
    batches.router,
    schedules.router,
    webhooks.router,
    models.router,
    service.router,
    chat_completions.router,
    responses.router,
    ag_ui.router,
    assistants.router,
    thread_routes.router,
    run_routes.router,
    command_routes.router,
    cron_routes.router,
)
_ROUTES = [route for router in _ROUTERS for route in router.routes]


def _freeze_survivors(phase: str, info: dict[str, int]) -> None:
    """Exclude what the first runs loaded from collections, after the first one of the oldest generation."""
    if phase == "stop" and info["generation"] == 2:
        _stop_freezing()
        gc.freeze()


def _stop_freezing() -> None:
    if _freeze_survivors in gc.callbacks:
        gc.callbacks.remove(_freeze_survivors)


def create_app(settings: Settings, *, progress: Progress | None = None, role: EngineRole = "all") -> FastAPI:
    """Return the ASGI app. Its lifespan opens and closes the models, the sandbox and the browser."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with open_service(settings, progress, role=role) as opened:
            app.state.service = opened
            app.state.limits = UploadLimits.of(settings)
            app.state.answered_runs = AnsweredRuns()
            app.state.response_sockets = responses_socket.OpenSockets()
            app.state.thread_bells = command_routes.ThreadBells()
            # These objects are permanent, so they are excluded from later garbage collections.
            gc.collect()
            gc.freeze()
            # Collect the oldest generation rarely: its pause is longer than a token takes. But ended runs
            # are freed only then.
            gc.set_threshold(*GARBAGE_THRESHOLDS)
            gc.callbacks.append(_freeze_survivors)
            try:
                yield
            finally:
                _stop_freezing()

    app = FastAPI(
        # Not `include_router`, which builds a copy of each route, and that at the first request.
        # Its first match counts, so `_send_document` replaces FastAPI's own route.
        routes=[
            Route(_DOCUMENT_PATH, _send_document, include_in_schema=False),
            *_ROUTES,
            WebSocketRoute(responses_socket.PATH, responses_socket.serve_socket),
            WebSocketRoute("/{path:path}", _refuse_socket),
        ],
        title=_TITLE,
        openapi_url=_DOCUMENT_PATH,
        # FastAPI's page loads scripts of another origin; `/docs` is a page of ours.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.add_exception_handler(RequestValidationError, answer_invalid_request)
    app.add_exception_handler(ManipleError, answer_error)
    app.add_exception_handler(UnsupportedParameter, answer_unsupported)
    app.add_exception_handler(HTTPException, answer_http_exception)
    app.add_exception_handler(Exception, answer_internal_error)
    _guard(app, settings)
    app.openapi = lambda: _describe_api(*_members(settings.team))
    return app


async def _send_document(request: Request) -> JSONResponse:
    """Answer with the OpenAPI document, which the first request of it makes, in a thread."""
    document = await asyncio.to_thread(request.app.openapi)
    if root := request.scope.get("root_path", "").rstrip("/"):
        document = {**document, "servers": [{"url": root}]}
    return JSONResponse(document)


async def _refuse_socket(socket: WebSocket) -> None:
    detail = f"There is no WebSocket at {shorten(socket.scope['path'], 100)}, but at {responses_socket.PATH}."
    refusal = JSONResponse({"detail": fix_surrogates(detail), "code": "not_found"}, status_code=404)
    await socket.send_denial_response(refusal)


def _members(team: TeamSettings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of all members, and of those that work alone."""
    return tuple(team.workers), (*NO_AGENT, *({GENERAL} & {*team.members}))


@cache
def _describe_api(workers: tuple[str, ...], alone: tuple[str, ...]) -> dict[str, Any]:
    """Return the OpenAPI document of a service with these members. It takes 0.1 s: apps share it."""
    document = get_openapi(
        title=_TITLE,
        version=version("maniple"),
        description="A team of agents. `POST /api/chat/stream` streams its work as server-sent events.",
        routes=_ROUTES,
    )
    adapt_document(document, workers, alone)
    return document


def _guard(app: FastAPI, settings: Settings) -> None:
    """Add the middleware that refuses requests. The one that is added last comes first."""
    server = settings.server
    app.add_middleware(BodyLimit, max_bytes=server.max_body_bytes, max_upload_bytes=server.max_upload_bytes)
    app.add_middleware(KeyGate, server=settings.server)
    app.add_middleware(OpenAIErrors)
    origins = _allowed_origins(settings.server)
    app.add_middleware(OriginGate, allowed_origins=origins)
    if settings.server.is_loopback:
        # A web page can name a loopback address by a domain of its own; such a Host is refused.
        app.add_middleware(
            TrustedHostMiddleware, allowed_hosts=[*LOOPBACK_HOSTS, "[::1]", settings.server.host]
        )
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=[
                "content-type",
                "cache-control",
                "last-event-id",
                "authorization",
                "x-api-key",
                "x-auth-scheme",
            ],
            expose_headers=[
                "location",
                "content-location",
                "retry-after",
                "www-authenticate",
                "x-maniple-not-used",
            ],
        )
    app.add_middleware(SecurityHeaders)


def _allowed_origins(server: ServerSettings) -> list[str]:
    """Return the origins of pages that may call the service."""
    own = [LANGMANUS_ORIGIN] if server.is_loopback else []
    return list(dict.fromkeys([*server.cors_origins, *own]))


_UPLOAD = re.compile(r"/api/threads/[^/]+/files")


class BodyTooLarge(ManipleError):
    """The request body is larger than its limit."""

    code = "too_large"


class BodyLimit:
    """ASGI middleware: a request body over `max_bytes` is answered with 413.

    An upload may have `max_upload_bytes`; it is passed on in chunks, and its reader gets `BodyTooLarge`.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, max_upload_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_upload_bytes = max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_upload = scope["method"] == "POST" and _UPLOAD.fullmatch(scope["path"]) is not None
        limit = self._max_upload_bytes if is_upload else self._max_bytes
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > limit:
            await self._refuse(is_upload, scope, receive, send, int(declared))
        elif is_upload:
            await self._app(scope, self._counted(receive), send)
        else:
            await self._read(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive, send: Send) -> None:
        body: list[Message] = []
        size = 0
        while True:
            message = await receive()
            body.append(message)
            size += len(message.get("body", b""))
            if size > self._max_bytes:
                await self._refuse(False, scope, receive, send)
                return
            if not message.get("more_body"):
                break
        await self._app(scope, _replayed(body, receive), send)

    async def _refuse(
        self, is_upload: bool, scope: Scope, receive: Receive, send: Send, size: int | None = None
    ) -> None:
        content = {"detail": self._message(is_upload, size), "code": BodyTooLarge.code}
        await JSONResponse(content, status_code=413)(scope, receive, send)

    def _message(self, is_upload: bool, size: int | None = None) -> str:
        limit = self._max_upload_bytes if is_upload else self._max_bytes
        has = f"has {file_size(size)}" if size is not None else "is larger"
        if is_upload:
            return (
                f"The upload {has}, and one upload may have {file_size(limit)} (server.max_upload_bytes in "
                "conf.yaml). Nothing was stored. Send fewer or smaller files at a time, or raise the limit."
            )
        return (
            f"The request {has}, and a request of this address may have {file_size(limit)} "
            "(server.max_body_bytes in conf.yaml). Send pictures and long texts as files, with "
            f"POST /api/threads/ID/files (up to {file_size(self._max_upload_bytes)}), or raise the limit."
        )

    def _counted(self, receive: Receive) -> Receive:
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._max_upload_bytes:
                raise BodyTooLarge(self._message(True))
            return message

        return counted


def _replayed(body: list[Message], receive: Receive) -> Receive:
    waiting = iter(body)

    async def replay() -> Message:
        return next(waiting, None) or await receive()

    return replay
