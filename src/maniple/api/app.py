"""The HTTP service."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from maniple.api.auth import KeyGate
from maniple.api.limits import BodyLimit
from maniple.api.members import document_members
from maniple.api.refusals import admit_fault, refuse, refuse_http, refuse_run
from maniple.api.routes import artifacts, chat, files, page, runs, service, threads
from maniple.api.state import open_service
from maniple.config import Settings
from maniple.config.settings import LOOPBACK_HOSTS
from maniple.errors import ManipleError
from maniple.llms.embedded import Progress

GARBAGE_THRESHOLDS = (5_000, 10, 200)


def create_app(settings: Settings, *, progress: Progress | None = None) -> FastAPI:
    """Return the service; models, sandbox and browser are opened when it starts, and closed with it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_service(settings, progress) as opened:
            app.state.service = opened
            # FastAPI puts off the making of its routes; nobody is to wait for it in the middle of a run.
            app.openapi()
            # What stands now stands for good: keep it out of every later collection's pause.
            gc.collect()
            gc.freeze()
            # And look through all that lives seldom: with many runs that pause is longer than a word takes.
            gc.set_threshold(*GARBAGE_THRESHOLDS)
            yield

    app = FastAPI(
        title="maniple",
        version=version("maniple"),
        description="A team of agents. `POST /api/chat/stream` streams its work as server-sent events.",
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        lifespan=lifespan,
    )
    app.add_exception_handler(RequestValidationError, refuse)
    app.add_exception_handler(ManipleError, refuse_run)
    app.add_exception_handler(HTTPException, refuse_http)
    app.add_exception_handler(Exception, admit_fault)
    _guard(app, settings)
    for room in (page, chat, threads, files, runs, artifacts, service):
        app.include_router(room.router)
    document_members(app, settings.team)
    return app


def _guard(app: FastAPI, settings: Settings) -> None:
    """Put what refuses requests before the routes; what is added last is asked first."""
    server = settings.server
    app.add_middleware(BodyLimit, max_bytes=server.max_body_bytes, max_upload_bytes=server.max_upload_bytes)
    app.add_middleware(KeyGate, server=settings.server)
    if settings.server.is_loopback:
        # A web page can name a loopback address by a domain of its own; such a Host is refused.
        app.add_middleware(
            TrustedHostMiddleware, allowed_hosts=[*LOOPBACK_HOSTS, "[::1]", settings.server.host]
        )
    if settings.server.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.server.cors_origins),
            allow_methods=["GET", "POST", "PATCH", "DELETE"],
            allow_headers=["content-type", "cache-control", "last-event-id", "authorization", "x-api-key"],
            expose_headers=["location", "retry-after", "www-authenticate"],
        )
