"""The routes that the LangManus client calls."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.document import RUN_STREAM
from maniple.api.downloads import respond_with_artifact
from maniple.api.error_responses import error_responses
from maniple.api.not_used import name_unused_options
from maniple.api.requests import ChatRequest, check_budget, check_choices
from maniple.api.sse import StreamStart, ViewQuery, event_stream
from maniple.api.state import ServiceOf
from maniple.errors import FileError
from maniple.events import ViewName, as_chat_message, history_digest
from maniple.service import Service
from maniple.service.thread_views import resolve_thread_id
from maniple.service.views import FileMissing, TeamMember, TeamMembers
from maniple.text import fix_surrogates, shorten

router = keyed_router("chat")
_SHOWN_NAMES = 10
_SHOWN_CHARACTERS = 80

_GIF: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/gif": {}}, "description": "The recording"},
    404: {"model": FileMissing, "description": "There is none"},
}


@router.post(
    "/api/chat/stream",
    summary="Ask the team",
    response_class=EventSourceResponse,
    responses={**RUN_STREAM, **error_responses(404, 409, 429)},
)
async def chat_stream(
    chat: ChatRequest, service: ServiceOf, caller: CallerOf, view: ViewQuery = "langmanus"
) -> EventSourceResponse:
    """Ask the team; the answer is the stream of its work, from `run` to `final_session_state`.

    On a thread that waits for an answer, the newest message is the answer, and with `steer` it may become a
    message to the run at work; then options of a new run have no effect, and `X-Maniple-Not-Used` names them.
    In the view `langmanus`, unknown names in `team_members` have none either: its client stores names, shows
    no error, and cannot remove one that the team does not have. The stream begins with a text about them.
    """
    chat, strangers = _leave_out_strangers(chat, service, view)
    check_choices(chat, service.runtime)
    engine = service.engine
    budget = check_budget(chat.asked_budget(), service.settings.models)
    async with _thread_of(chat, service, caller.owner) as thread_id:
        accepted = await engine.submit(chat.as_run(thread_id, caller.owner, budget))

    async def leave() -> None:
        # A client that only wrote to a run does not end it by disconnecting.
        if chat.on_disconnect != "continue" and not accepted.message_id:
            await engine.cancel(accepted.run.run_id, accepted.run.owner)

    start = StreamStart(view, after_event=accepted.after, notice=_describe_strangers(strangers))
    not_used = [*name_unused_options(chat, accepted), *(f"team_members.{one}" for one in strangers)]
    return event_stream(service, accepted.run, start, on_leaving=leave, not_used=not_used)


def _leave_out_strangers(
    chat: ChatRequest, service: Service, view: ViewName
) -> tuple[ChatRequest, list[str]]:
    """Return a request of LangManus's client without the members that the team does not have, and these."""
    members, roles = chat.team_members or [], service.runtime.roles
    strangers = [name for name in dict.fromkeys(members) if name not in roles] if view == "langmanus" else []
    if not strangers:
        return chat, []
    known = [name for name in members if name in roles]
    return chat.model_copy(update={"team_members": known}), strangers


def _describe_strangers(names: Sequence[str]) -> str:
    """Return what the user is told about members that the team does not have; "" without any."""
    if not names:
        return ""
    named = ", ".join(f"`{shorten(fix_surrogates(one), _SHOWN_CHARACTERS)}`" for one in names[:_SHOWN_NAMES])
    return f"*[The team has no member {named}; the others answer.]*"


@asynccontextmanager
async def _thread_of(chat: ChatRequest, service: Service, owner: str) -> AsyncGenerator[str | None]:
    """Find the thread that a request continues: the one that it names, or whose conversation it sends back.

    None if there is none. A thread that was found by its conversation can be found again if this context
    fails.
    """
    threads, thread = service.store.threads, None
    if chat.thread_id:
        yield await resolve_thread_id(service.store, chat.thread_id, owner)
        return
    history = [as_chat_message(one.as_langchain()) for one in chat.messages[:-1]]
    digest = history_digest(history)
    if history:
        thread = await threads.take_history(owner, digest)
    try:
        yield thread.thread_id if thread else None
    except Exception:
        if thread is not None:
            await threads.touch(thread.thread_id, history=digest)
        raise


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
async def browser_history(name: str, request: Request, service: ServiceOf, caller: CallerOf) -> Response:
    """The recording that a browser tool's result names: an artifact of the run, by its id and `.gif`."""
    artifacts = service.store.artifacts
    artifact = await artifacts.get(name.removesuffix(".gif"), caller.owner) if name.endswith(".gif") else None
    if artifact is None or artifact.media_type != "image/gif":
        return JSONResponse(FileMissing().model_dump(), status_code=404)
    headers = {"x-content-type-options": "nosniff", "cache-control": "private, no-store"}
    try:
        return await respond_with_artifact(service.store, artifact, request, headers)
    except FileError:
        return JSONResponse(FileMissing().model_dump(), status_code=404)
