"""What the LangManus client calls."""

from typing import Any

from fastapi import Response
from fastapi.responses import FileResponse, JSONResponse
from sse_starlette import EventSourceResponse

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.error_responses import error_responses
from maniple.api.requests import ChatRequest, check_budget, check_sole_agent, check_team_members
from maniple.api.responses import FileMissing, TeamMember, TeamMembers, resolve_thread_id
from maniple.api.sse import STREAM_RESPONSES, event_stream
from maniple.api.state import ServiceOf
from maniple.errors import FileError

router = keyed_router("chat")

_GIF: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/gif": {}}, "description": "The recording"},
    404: {"model": FileMissing, "description": "There is none"},
}


@router.post(
    "/api/chat/stream",
    summary="Ask the team",
    response_class=EventSourceResponse,
    responses={**STREAM_RESPONSES, **error_responses(404, 409, 429)},
)
async def chat_stream(chat: ChatRequest, service: ServiceOf, caller: CallerOf) -> EventSourceResponse:
    """Ask the team; the answer is the stream of its work, from `run` to `final_session_state`."""
    check_team_members(chat.team_members, service.runtime.roles)
    check_sole_agent(chat.agent, service.runtime.alone)
    engine = service.engine
    thread_id = (
        await resolve_thread_id(service.store, chat.thread_id, caller.owner) if chat.thread_id else None
    )
    budget = check_budget(chat.asked_budget(), service.settings.models)
    accepted = await engine.submit(chat.as_run(thread_id, caller.owner, budget))

    async def leave() -> None:
        if chat.on_disconnect != "continue":
            await engine.cancel(accepted.run.run_id, accepted.run.owner)

    return event_stream(service, accepted.run, after=accepted.after, on_leaving=leave)


@router.get("/api/team_members", summary="List the team", responses=error_responses())
async def team_members(service: ServiceOf) -> TeamMembers:
    """Who may be on the team, and who may be left out."""
    members = {
        role.name: TeamMember(name=role.name, desc=role.description, is_optional=role.is_optional)
        for role in service.runtime.roles.values()
    }
    return TeamMembers(team_members=members)


@router.get(
    "/api/browser_history/{name}",
    summary="Read a recording of the browser",
    response_class=Response,
    responses={**error_responses(), **_GIF},
)
async def browser_history(name: str, service: ServiceOf, caller: CallerOf) -> Response:
    """The recording that a browser tool's result names: an artifact of the run, by its id and `.gif`."""
    artifacts = service.store.artifacts
    artifact = await artifacts.get(name.removesuffix(".gif"), caller.owner) if name.endswith(".gif") else None
    if artifact is None or artifact.media_type != "image/gif":
        return JSONResponse(FileMissing().model_dump(), status_code=404)
    try:
        path = await artifacts.open(artifact)
    except FileError:
        return JSONResponse(FileMissing().model_dump(), status_code=404)
    headers = {"x-content-type-options": "nosniff", "cache-control": "private, no-store"}
    return FileResponse(path, media_type="image/gif", headers=headers)
