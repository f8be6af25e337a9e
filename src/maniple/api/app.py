"""The HTTP service."""

import gc
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Annotated

import anyio
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from sse_starlette import EventSourceResponse
from starlette.middleware.trustedhost import TrustedHostMiddleware

from maniple.agents import ROLES
from maniple.api.limits import BodyLimit
from maniple.api.refusals import refuse
from maniple.api.schemas import ChatRequest, Health, TeamMember, TeamMembers
from maniple.api.sse import stream
from maniple.config import Settings
from maniple.config.settings import LOOPBACK_HOSTS
from maniple.llms.embedded import Progress
from maniple.runs import Runs, TooManyRuns, open_runs
from maniple.runtime import Runtime, open_runtime

RETRY_AFTER_SECONDS = 5
_RECORDING = re.compile(r"[A-Za-z0-9_-]{1,128}\.gif")


def create_app(settings: Settings, *, progress: Progress | None = None) -> FastAPI:
    """Return the service; models, sandbox and browser are opened when it starts, and closed with it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with (
            open_runtime(settings, checkpointer=InMemorySaver(), progress=progress) as runtime,
            open_runs(runtime.graph, max_runs=settings.server.max_runs) as runs,
        ):
            app.state.runtime, app.state.runs = runtime, runs
            # What stands now stands for good: keep it out of every later collection's pause.
            gc.collect()
            gc.freeze()
            yield

    app = FastAPI(
        title="maniple",
        version=version("maniple"),
        description="A team of agents. `POST /api/chat/stream` streams its work as server-sent events.",
        lifespan=lifespan,
    )
    app.state.settings = settings
    app.add_exception_handler(RequestValidationError, refuse)
    _guard(app, settings)
    _add_routes(app)
    return app


def _guard(app: FastAPI, settings: Settings) -> None:
    app.add_middleware(BodyLimit, max_bytes=settings.server.max_body_bytes)
    if settings.server.is_loopback:
        # A web page can name a loopback address by a domain of its own; such a Host is refused.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK_HOSTS, "[::1]"])
    if settings.server.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.server.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["content-type", "cache-control", "last-event-id"],
        )


def runs_of(request: Request) -> Runs:
    """Return the engine of this process."""
    return request.app.state.runs


def runtime_of(request: Request) -> Runtime:
    """Return the open team."""
    return request.app.state.runtime


RunsOf = Annotated[Runs, Depends(runs_of)]
RuntimeOf = Annotated[Runtime, Depends(runtime_of)]


def _add_routes(app: FastAPI) -> None:
    @app.post("/api/chat/stream", response_class=EventSourceResponse, tags=["chat"])
    async def chat_stream(chat: ChatRequest, runs: RunsOf, request: Request) -> EventSourceResponse:
        """Ask the team; the answer is the stream of its work, from `run` to `final_session_state`."""
        try:
            run = runs.start(chat.as_run())
        except TooManyRuns as error:
            headers = {"retry-after": str(RETRY_AFTER_SECONDS)}
            raise HTTPException(429, detail=str(error), headers=headers) from error
        ping_seconds = request.app.state.settings.server.ping_seconds
        return stream(run, on_disconnect=chat.on_disconnect or "cancel", ping_seconds=ping_seconds)

    @app.get("/api/team_members", tags=["chat"])
    async def team_members() -> TeamMembers:
        """Who may be on the team, and who may be left out."""
        members = {
            role.name: TeamMember(name=role.name, desc=role.description, is_optional=role.is_optional)
            for role in ROLES.values()
        }
        return TeamMembers(team_members=members)

    @app.get("/api/browser_history/{name}", tags=["chat"], response_class=Response)
    async def browser_history(name: str, request: Request) -> Response:
        """The recording that a browser tool's result names."""
        folder = anyio.Path(request.app.state.settings.data_dir) / "browser_history"
        file = folder / name
        if not _RECORDING.fullmatch(name) or await file.is_symlink() or not await file.is_file():
            raise HTTPException(404, detail="File not found")
        return Response(await file.read_bytes(), media_type="image/gif")

    @app.get("/healthz", tags=["service"])
    async def healthz(runtime: RuntimeOf) -> Health:
        """Whether the process is alive, and what it can do."""
        return Health(model=runtime.answering.model, notices=list(runtime.notices))
