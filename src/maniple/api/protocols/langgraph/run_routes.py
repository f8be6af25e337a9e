"""The runs of the LangGraph API. None ends because its client goes away, unless the client asks for that."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import Body, Header, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from sse_starlette import EventSourceResponse

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.document import describe_stream
from maniple.api.error_responses import error_responses
from maniple.api.not_used import describe_not_used
from maniple.api.protocols.chat_request import TEAM
from maniple.api.protocols.conversations import find_segment_start
from maniple.api.protocols.following import follow_run, read_ended, stream_frames
from maniple.api.protocols.langgraph.accepting import accept_run, accept_runs
from maniple.api.protocols.langgraph.assistants import UnsupportedRequest, make_assistant_id
from maniple.api.protocols.langgraph.run_request import LangGraphRun, Modes
from maniple.api.protocols.langgraph.stream_parts import StreamPart, StreamParts, StreamPosition
from maniple.api.protocols.langgraph.thread_routes import ThreadPath
from maniple.api.protocols.langgraph.transcripts import (
    format_time,
    join_messages,
    open_transcript,
    read_transcripts,
)
from maniple.api.protocols.run_choices import OpenBody
from maniple.api.sse import HEADERS
from maniple.api.state import ServiceOf
from maniple.errors import ManipleError, StoreError
from maniple.runs import AcceptedRun, NotFound, RunRequest, ServiceStopping
from maniple.runs.branches import list_family
from maniple.service import Service
from maniple.service.thread_views import get_thread
from maniple.store import RunRecord, read_runs
from maniple.types import RunState

router = keyed_router("langgraph", is_protocol=True)
MAX_BATCH_RUNS = 100
_PULSE_SECONDS = 4.0
"""The longest silence of an answer that is waited for: clients give up after 5 s without a byte."""
_STATUS: Mapping[RunState, str] = {
    "queued": "pending",
    "running": "running",
    "interrupted": "success",  # its thread is `interrupted`
    "cancelled": "interrupted",
    "failed": "error",
    "completed": "success",
    "budget_exhausted": "success",
}
_RunStatus = Literal["pending", "running", "error", "success", "timeout", "interrupted"]
_STREAM: dict[int | str, dict[str, Any]] = {
    200: describe_stream("The parts of the chosen modes, up to `end`")
}
_VALUES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The values of the thread's state at the end, or `__error__`; spaces may come first",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}
_RunPath = Annotated[str, Path(max_length=200, description="The run")]
_LastEventId = Annotated[
    str, Header(alias="last-event-id", max_length=100, description="The newest part's id")
]


class LangGraphRunView(BaseModel):
    """A run, with the reason of a failure as `error`.

    One that was cancelled is `interrupted`; one that waits is a `success`, and its thread `interrupted`.
    """

    run_id: str
    thread_id: str
    assistant_id: str
    created_at: datetime
    updated_at: datetime
    status: _RunStatus
    error: str | None = None
    metadata: dict[str, Any] = {}
    kwargs: dict[str, Any] = {}
    multitask_strategy: str = "enqueue"


class JoinQuery(BaseModel):
    """What a joined stream has; `cancel_on_disconnect` ends the run with it."""

    stream_mode: Modes = ["values"]
    stream_subgraphs: bool = False
    cancel_on_disconnect: bool = False


class CancelSelection(OpenBody):
    """The runs of a thread that are cancelled: those with these ids, or all with a status."""

    model_config = ConfigDict(extra="allow", title="LangGraphRunsCancel")

    thread_id: str | None = None
    run_ids: list[str] | None = Field(None, max_length=100)
    status: Literal["pending", "running", "all"] | None = None


def _describe_run(run: RunRecord) -> LangGraphRunView:
    request = RunRequest.of(run)
    return LangGraphRunView.model_validate(
        {
            "run_id": run.run_id,
            "thread_id": run.thread_name,
            "assistant_id": make_assistant_id(request.options.agent or TEAM),
            "created_at": format_time(run.created_at),
            "updated_at": format_time(run.ended_at or run.started_at or run.created_at),
            "status": _STATUS[run.status],
            "error": run.error if run.status == "failed" else None,
            "metadata": request.metadata,
        }
    )


@dataclass(frozen=True, slots=True)
class _FollowedRun:
    """A run as a client follows it, with the modes of the stream."""

    service: Service
    run: RunRecord
    position: StreamPosition
    modes: Sequence[str]
    has_subgraphs: bool = False
    not_used: Sequence[str] = ()
    """What the request has that has no effect."""

    @property
    def address(self) -> str:
        """The path of the run."""
        thread = quote(self.run.thread_name, safe="")
        return f"/threads/{thread}/runs/{self.run.run_id}"

    @property
    def headers(self) -> dict[str, str]:
        """The headers by which a client finds the run and goes on with its stream."""
        query: list[tuple[str, str]] = [("stream_mode", mode) for mode in self.modes]
        if self.has_subgraphs:
            query.append(("stream_subgraphs", "true"))
        location = f"{self.address}/stream?{urlencode(query)}"
        named = {"content-location": self.address, "location": location}
        return {**named, **describe_not_used(self.not_used)}

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the frames of the stream; without `end` if this process stops before the run ends."""
        with self.service.metrics.client():
            metadata: dict[str, Any] = {
                "run_id": self.run.run_id,
                "thread_id": self.run.thread_name,
                "attempt": 1,
            }
            if self.not_used:
                metadata["maniple"] = {"not_used": [*self.not_used]}
            yield StreamPart("metadata", metadata).encode()
            try:
                async with aclosing(self.parts()) as parts:
                    async for part in parts:
                        yield part.encode()
                run = await read_ended(self.service, self.run)
            except (ServiceStopping, StoreError):
                return  # the client asks for the run, and goes on with its stream
            except ManipleError as error:
                yield _error_part(error.code, str(error)).encode()
                return
            if run.status == "failed" and not await self._has_answer():
                yield _error_part(run.error_code or "internal", run.error or "The run failed.").encode()
            else:
                yield StreamPart("end", None).encode()

    async def parts(self) -> AsyncGenerator[StreamPart]:
        """Yield the parts after the position until the run ends or waits."""
        made: StreamParts | None = None
        # From the first event: a part shows the whole state.
        async with aclosing(follow_run(self.service, AcceptedRun(self.run, 0))) as records:
            async for record in records:
                # Not before the run has begun: those before it have ended then.
                made = made or await self._open_parts()
                for part in made.feed(record):
                    event, _, number = part.id.partition("-")
                    if self.position.is_before(int(event), int(number)):
                        yield part

    async def wait(self) -> dict[str, Any]:
        """Return the values at the end of the run, or `__error__`."""
        newest: dict[str, Any] = {}
        try:
            async with aclosing(self.parts()) as parts:
                async for part in parts:
                    if part.event == "values":
                        newest = part.data
            run = await read_ended(self.service, self.run)
        except ManipleError as error:
            return {"__error__": {"error": error.code, "message": str(error)}}
        if run.status == "failed" and not await self._has_answer():
            message = run.error or "The run failed."
            return {"__error__": {"error": run.error_code or "internal", "message": message}}
        return newest

    async def _open_parts(self) -> StreamParts:
        thread = await self.service.store.threads.get(self.run.thread_id, self.run.owner)
        known = await read_transcripts(self.service.store, thread) if thread else []
        earlier = [one for one in known if one.run.created_at < self.run.created_at]
        plans = [one.plan for one in earlier if one.plan is not None]
        transcript = open_transcript(self.run, is_first=not earlier)
        return StreamParts(
            self.modes,
            self.has_subgraphs,
            transcript,
            join_messages(earlier),
            plans[-1] if plans else None,
        )

    async def _has_answer(self) -> bool:
        thread = await self.service.store.threads.get(self.run.thread_id, self.run.owner)
        known = await read_transcripts(self.service.store, thread) if thread else []
        return any(
            message["id"] == one.answer_id
            for one in known
            if one.run.run_id == self.run.run_id
            for message in one.messages
        )


def _error_part(code: str, message: str) -> StreamPart:
    return StreamPart("error", {"error": code, "message": message})


def _follow_accepted(service: Service, accepted: AcceptedRun, given: LangGraphRun) -> _FollowedRun:
    start = StreamPosition(accepted.after)
    return _FollowedRun(
        service, accepted.run, start, given.stream_mode, given.stream_subgraphs, given.not_used
    )


def _stream(followed: _FollowedRun, *, cancels: bool) -> EventSourceResponse:
    async def leave() -> None:
        if cancels:
            await followed.service.engine.cancel(followed.run.run_id, followed.run.owner)

    return stream_frames(followed.frames(), followed.headers, leave)


def _wait(followed: _FollowedRun) -> StreamingResponse:
    """Return the response with the values at the end; spaces before them keep the connection alive."""

    async def pieces() -> AsyncIterator[bytes]:
        with followed.service.metrics.client():
            waiting = asyncio.ensure_future(followed.wait())
            try:
                while not (await asyncio.wait((waiting,), timeout=_PULSE_SECONDS))[0]:
                    yield b"\n"
                yield json.dumps(waiting.result(), ensure_ascii=False).encode()
            finally:
                waiting.cancel()

    headers = {**HEADERS, **followed.headers, "location": f"{followed.address}/join"}
    return StreamingResponse(pieces(), media_type="application/json", headers=headers)


def _refuse_cancel(given: LangGraphRun) -> None:
    if given.on_disconnect == "cancel":
        raise UnsupportedRequest(
            "on_disconnect: cancel is for streams. Leave it out and cancel the run itself."
        )


@router.post("/threads/{thread_id}/runs", summary="Start a run", responses=error_responses(404, 409, 429))
async def create_run(
    thread_id: ThreadPath, given: LangGraphRun, response: Response, service: ServiceOf, caller: CallerOf
) -> LangGraphRunView:
    """Start a run in the background, or answer or retry one."""
    accepted = await accept_run(service, caller.owner, thread_id, given)
    response.headers.update(_follow_accepted(service, accepted, given).headers)
    return _describe_run(accepted.run)


@router.post("/runs", summary="Start a run on a new thread", responses=error_responses(404, 409, 429))
async def create_run_alone(
    given: LangGraphRun, response: Response, service: ServiceOf, caller: CallerOf
) -> LangGraphRunView:
    """The same, on a new thread, which stays."""
    accepted = await accept_run(service, caller.owner, None, given)
    response.headers.update(_follow_accepted(service, accepted, given).headers)
    return _describe_run(accepted.run)


@router.post("/runs/batch", summary="Start several runs", responses=error_responses(404, 409, 429))
async def create_runs(
    given: Annotated[list[LangGraphRun], Body(min_length=1, max_length=MAX_BATCH_RUNS)],
    response: Response,
    service: ServiceOf,
    caller: CallerOf,
) -> list[LangGraphRunView]:
    """Start runs in the background, each on a new thread, which stays. If one is refused, none goes on."""
    accepted = await accept_runs(service, caller.owner, given)
    response.headers.update(
        describe_not_used(list(dict.fromkeys(name for one in given for name in one.not_used)))
    )
    return [_describe_run(one.run) for one in accepted]


@router.post(
    "/threads/{thread_id}/runs/stream",
    summary="Start a run and stream it",
    response_class=EventSourceResponse,
    responses={**_STREAM, **error_responses(404, 409, 429)},
)
async def stream_new_run(
    thread_id: ThreadPath, given: LangGraphRun, service: ServiceOf, caller: CallerOf
) -> EventSourceResponse:
    """Start, answer or retry a run and stream its parts; `on_disconnect: cancel` ends it with the stream."""
    accepted = await accept_run(service, caller.owner, thread_id, given)
    return _stream(_follow_accepted(service, accepted, given), cancels=given.on_disconnect == "cancel")


@router.post(
    "/runs/stream",
    summary="Start a run on a new thread and stream it",
    response_class=EventSourceResponse,
    responses={**_STREAM, **error_responses(404, 409, 429)},
)
async def stream_new_run_alone(
    given: LangGraphRun, service: ServiceOf, caller: CallerOf
) -> EventSourceResponse:
    """The same, on a new thread, which stays."""
    accepted = await accept_run(service, caller.owner, None, given)
    return _stream(_follow_accepted(service, accepted, given), cancels=given.on_disconnect == "cancel")


@router.post(
    "/threads/{thread_id}/runs/wait",
    summary="Start a run and wait for its end",
    response_class=StreamingResponse,
    responses={**_VALUES, **error_responses(404, 409, 429)},
)
async def wait_for_new_run(
    thread_id: ThreadPath, given: LangGraphRun, service: ServiceOf, caller: CallerOf
) -> StreamingResponse:
    """Start, answer or retry a run and return the values of the thread's state at its end."""
    _refuse_cancel(given)
    given.stream_mode = ["values"]
    accepted = await accept_run(service, caller.owner, thread_id, given)
    return _wait(_follow_accepted(service, accepted, given))


@router.post(
    "/runs/wait",
    summary="Start a run on a new thread and wait for its end",
    response_class=StreamingResponse,
    responses={**_VALUES, **error_responses(404, 409, 429)},
)
async def wait_for_new_run_alone(
    given: LangGraphRun, service: ServiceOf, caller: CallerOf
) -> StreamingResponse:
    """The same, on a new thread, which stays."""
    _refuse_cancel(given)
    given.stream_mode = ["values"]
    accepted = await accept_run(service, caller.owner, None, given)
    return _wait(_follow_accepted(service, accepted, given))


@router.post("/runs/cancel", status_code=204, summary="Cancel runs", responses=error_responses(404, 409))
async def cancel_runs(
    selection: CancelSelection, response: Response, service: ServiceOf, caller: CallerOf
) -> None:
    """Cancel runs of a thread."""
    response.headers.update(describe_not_used(selection.not_used))
    if selection.thread_id is None:
        raise UnsupportedRequest("Name the thread_id whose runs are to be cancelled.")
    thread = await get_thread(service.store, selection.thread_id, caller.owner)
    wanted = {"pending": ("queued",), "running": ("running", "interrupted")}.get(selection.status or "")
    async for run in read_runs(service.store.runs, thread.thread_id):
        is_named = run.run_id in (selection.run_ids or ())
        has_status = selection.status is not None and (wanted is None or run.status in wanted)
        if (is_named or has_status) and (run.is_unfinished or run.status == "interrupted"):
            await service.engine.cancel(run.run_id, caller.owner)


@router.get("/threads/{thread_id}/runs", summary="List the runs of a thread", responses=error_responses(404))
async def list_runs(
    thread_id: ThreadPath,
    service: ServiceOf,
    caller: CallerOf,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    offset: Annotated[int, Query(ge=0, le=10_000)] = 0,
    status: _RunStatus | None = None,
) -> list[LangGraphRunView]:
    """The runs of a conversation and of its branches, or those with a status, newest first."""
    thread = await get_thread(service.store, thread_id, caller.owner)
    found: dict[str, RunRecord] = {}
    for line in await list_family(service.store, thread, with_copies=False):
        wanted = 0
        async with aclosing(read_runs(service.store.runs, line.thread_id)) as runs:
            async for run in runs:
                if status in (None, _STATUS[run.status]):
                    found[run.run_id], wanted = run, wanted + 1
                if wanted == offset + limit:
                    break
    newest_first = sorted(found.values(), key=lambda run: run.created_at, reverse=True)
    return [_describe_run(run) for run in newest_first[offset : offset + limit]]


@router.get("/threads/{thread_id}/runs/{run_id}", summary="Read a run", responses=error_responses(404))
async def read_run(
    thread_id: ThreadPath, run_id: _RunPath, service: ServiceOf, caller: CallerOf
) -> LangGraphRunView:
    """A run with its status, also of a branch of the thread."""
    return _describe_run(await _get_run(service, thread_id, run_id, caller.owner))


async def _get_run(service: Service, name: str, run_id: str, owner: str) -> RunRecord:
    thread = await get_thread(service.store, name, owner)
    run = await service.engine.status(run_id, owner)
    if run.thread_id != thread.thread_id:
        family = await list_family(service.store, thread, with_copies=False)
        if all(run.thread_id != one.thread_id for one in family):
            raise NotFound("The thread has no such run.")
    return run


@router.delete(
    "/threads/{thread_id}/runs/{run_id}",
    summary="Refuse to delete a run",
    status_code=422,
    responses=error_responses(404),
)
async def refuse_deletion(
    thread_id: ThreadPath, run_id: _RunPath, service: ServiceOf, caller: CallerOf
) -> None:
    """Answer 422 (`unsupported`): what follows in a conversation builds on each of its runs."""
    await _get_run(service, thread_id, run_id, caller.owner)
    raise UnsupportedRequest(
        "A run cannot be deleted alone: its messages and files are those of its thread. Delete the thread, "
        "or go on without the run on a branch of it."
    )


@router.get(
    "/threads/{thread_id}/runs/{run_id}/stream",
    summary="Join the stream of a run",
    response_class=EventSourceResponse,
    responses={**_STREAM, **error_responses(404)},
)
async def join_stream(
    thread_id: ThreadPath,
    run_id: _RunPath,
    service: ServiceOf,
    caller: CallerOf,
    query: Annotated[JoinQuery, Query()],
    last_event_id: _LastEventId = "",
) -> EventSourceResponse:
    """Stream a run's newest segment from its beginning, or after `Last-Event-ID`."""
    run = await _get_run(service, thread_id, run_id, caller.owner)
    start = await find_segment_start(service.store, run_id)
    position = StreamPosition.read(last_event_id, start)
    followed = _FollowedRun(service, run, position, query.stream_mode, query.stream_subgraphs)
    return _stream(followed, cancels=query.cancel_on_disconnect)


@router.get(
    "/threads/{thread_id}/runs/{run_id}/join",
    summary="Wait for the end of a run",
    response_class=StreamingResponse,
    responses={**_VALUES, **error_responses(404)},
)
async def join_run(
    thread_id: ThreadPath, run_id: _RunPath, service: ServiceOf, caller: CallerOf
) -> StreamingResponse:
    """Return the values of the thread's state at the end of a run."""
    run = await _get_run(service, thread_id, run_id, caller.owner)
    return _wait(_FollowedRun(service, run, StreamPosition(), ["values"]))


@router.post(
    "/threads/{thread_id}/runs/{run_id}/cancel",
    status_code=204,
    summary="Cancel a run of a thread",
    responses=error_responses(404, 409),
)
async def cancel_run(
    thread_id: ThreadPath,
    run_id: _RunPath,
    service: ServiceOf,
    caller: CallerOf,
    wait: Annotated[bool, Query(description="Has no effect: the run has ended when this returns")] = False,
    action: Literal["interrupt", "rollback"] = "interrupt",
) -> None:
    """Cancel a run; what it has done stays. `rollback` is refused."""
    if action == "rollback":
        raise UnsupportedRequest(
            "action: rollback is not supported. Send a run with multitask_strategy: rollback."
        )
    await _get_run(service, thread_id, run_id, caller.owner)
    await service.engine.cancel(run_id, caller.owner)
