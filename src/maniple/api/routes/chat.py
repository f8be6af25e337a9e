"""What the LangManus client calls."""

import re
from typing import Any

import anyio
from fastapi import Response
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse

from maniple.agents import ROLES
from maniple.api.admission import admit
from maniple.api.auth import CallerOf
from maniple.api.doors import keyed_router
from maniple.api.problems import problems
from maniple.api.schemas import ChatRequest, Missing, TeamMember, TeamMembers
from maniple.api.sse import STREAM, event_stream
from maniple.api.state import ServiceOf

router = keyed_router("chat")

_RECORDING = re.compile(r"[A-Za-z0-9_-]{1,128}\.gif")
_GIF: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/gif": {}}, "description": "The recording"},
    404: {"model": Missing, "description": "There is none"},
}


@router.post(
    "/api/chat/stream",
    summary="Ask the team",
    response_class=EventSourceResponse,
    responses={**STREAM, **problems(404, 409, 429)},
)
async def chat_stream(chat: ChatRequest, service: ServiceOf, caller: CallerOf) -> EventSourceResponse:
    """Ask the team; the answer is the stream of its work, from `run` to `final_session_state`."""
    engine = service.engine
    accepted = await admit(service, caller, chat.asked_budget(), chat.as_run)

    async def leave() -> None:
        if chat.on_disconnect != "continue":
            await engine.cancel(accepted.run.run_id, accepted.run.owner)

    return event_stream(service, accepted.run.run_id, after=accepted.after, on_leaving=leave)


@router.get("/api/team_members", summary="List the team", responses=problems())
async def team_members() -> TeamMembers:
    """Who may be on the team, and who may be left out."""
    members = {
        role.name: TeamMember(name=role.name, desc=role.description, is_optional=role.is_optional)
        for role in ROLES.values()
    }
    return TeamMembers(team_members=members)


@router.get(
    "/api/browser_history/{name}",
    summary="Read a recording of the browser",
    response_class=Response,
    responses={**problems(), **_GIF},
)
async def browser_history(name: str, service: ServiceOf) -> Response:
    """The recording that a browser tool's result names."""
    folder = anyio.Path(service.settings.data_dir) / "browser_history"
    file = folder / name
    if not _RECORDING.fullmatch(name) or await file.is_symlink() or not await file.is_file():
        return JSONResponse(Missing().model_dump(), status_code=404)
    headers = {"x-content-type-options": "nosniff"}
    return Response(await file.read_bytes(), media_type="image/gif", headers=headers)
