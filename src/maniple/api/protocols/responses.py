"""OpenAI's Responses: the team as a model with memory, background work and streams that can be resumed.

Source: https://platform.openai.com/docs/api-reference/responses and https://www.openresponses.org
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from fastapi.responses import JSONResponse

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.document import describe_stream
from maniple.api.protocols.chat_completions import wait_or_leave
from maniple.api.protocols.chat_views import ERRORS
from maniple.api.protocols.conversations import AnsweredOf, AnsweredRuns, Retries
from maniple.api.protocols.following import stream_frames
from maniple.api.protocols.openai_errors import UnsupportedParameter, describe_error
from maniple.api.protocols.responses_compact import CompactRequest, compact_conversation
from maniple.api.protocols.responses_desk import AskedResponse, ResponseDesk, find_response
from maniple.api.protocols.responses_request import ResponseRequest
from maniple.api.protocols.responses_view import Json, ResponseView, frame
from maniple.api.routes.threads import delete_thread
from maniple.api.state import ServiceOf
from maniple.errors import ManipleError
from maniple.runs import RunRequest
from maniple.service import Service

router = keyed_router("openai", is_protocol=True)
_STREAM: dict[int | str, dict[str, Any]] = {
    200: describe_stream("The response; with `stream`, its events as server-sent events")
}
_ResponsePath = Annotated[str, Path(max_length=200, description="The response")]


@router.post(
    "/v1/responses",
    summary="Ask the team, as OpenAI's models are asked",
    response_class=JSONResponse,
    responses={**ERRORS, **_STREAM},
)
async def create_response(
    body: ResponseRequest,
    request: Request,
    service: ServiceOf,
    caller: CallerOf,
    answered: AnsweredOf,
    retries: Retries = 0,
) -> Response:
    """Ask the team. `output` has its progress, its searches and programs, and the answer.

    A WebSocket of this path takes the same bodies (`"type": "response.create"`) and sends the same events.

    The run does not end when the client disconnects: read the response by its id, or send the request again.
    """
    desk = ResponseDesk(service, caller.owner, answered)
    asked = await desk.accept(body, await desk.find_previous(body), is_repeated=retries > 0)
    if body.stream:
        return stream_frames(_answer_frames(asked, answered), asked.headers)
    if body.background:
        view = await asked.view()
        run = await service.engine.status(asked.run.run_id, caller.owner)
        await asked.note_delivery(run)  # the client has the id of the response
        return JSONResponse(view.response(run))
    with answered.answering(asked.run.run_id):
        return await _whole(asked, request)


@router.post(
    "/v1/responses/compact",
    summary="Compact a conversation",
    response_class=JSONResponse,
    responses=ERRORS,
)
async def compact_response(
    body: CompactRequest, service: ServiceOf, caller: CallerOf, answered: AnsweredOf
) -> JSONResponse:
    """The conversation as the user's messages and one item for the rest, to be sent as the first input items.

    It is what a run reads of the conversation. No model is called, and nothing is stored.
    """
    return JSONResponse(await compact_conversation(body, ResponseDesk(service, caller.owner, answered)))


@router.get(
    "/v1/responses/{response_id}",
    summary="Read a response",
    response_class=JSONResponse,
    responses={**ERRORS, **_STREAM},
)
async def read_response(
    response_id: _ResponsePath,
    service: ServiceOf,
    caller: CallerOf,
    stream: Annotated[bool, Query(description="Its events; those that follow as they come")] = False,
    starting_after: Annotated[int, Query(ge=-1, le=2**53, description="Only events behind this number")] = -1,
) -> Response:
    """The response as far as it is, or a stream of its events."""
    asked = await _find(service, response_id, caller.owner)
    if stream:
        return stream_frames(_frames(asked, starting_after), asked.headers)
    return JSONResponse((await asked.view()).response(asked.run))


@router.post(
    "/v1/responses/{response_id}/cancel",
    summary="Cancel a response",
    response_class=JSONResponse,
    responses=ERRORS,
)
async def cancel_response(response_id: _ResponsePath, service: ServiceOf, caller: CallerOf) -> JSONResponse:
    """End the run; its results so far are stored. One that has ended stays as it is."""
    asked = await _find(service, response_id, caller.owner)
    run = await service.engine.cancel(asked.run.run_id, caller.owner)
    return JSONResponse((await asked.view()).response(run))


@router.delete(
    "/v1/responses/{response_id}",
    summary="Delete a response",
    response_class=JSONResponse,
    responses=ERRORS,
)
async def delete_response(response_id: _ResponsePath, service: ServiceOf, caller: CallerOf) -> JSONResponse:
    """Cancel the run and delete its conversation and branches, which the answer names (`deleted_threads`).

    409 if the conversation has other responses.
    """
    asked = await _find(service, response_id, caller.owner)
    if len(await service.store.runs.list_by_thread(asked.run.thread_id, 2)) > 1:
        raise UnsupportedParameter(
            "response_id",
            "Other responses continue this one. DELETE /api/threads/ID deletes them together.",
            code="response_continued",
            status=409,
        )
    gone = await delete_thread(asked.run.thread_id, service, caller)
    return JSONResponse(
        {"id": response_id, "object": "response", "deleted": True, "deleted_threads": gone.deleted}
    )


@router.get(
    "/v1/responses/{response_id}/input_items",
    summary="List the input of a response",
    response_class=JSONResponse,
    responses=ERRORS,
)
async def list_input_items(response_id: _ResponsePath, service: ServiceOf, caller: CallerOf) -> JSONResponse:
    """The messages of the request that began the run, newest first."""
    asked = await _find(service, response_id, caller.owner)
    items: list[Json] = []
    for place, message in enumerate(RunRequest.of(asked.run).messages):
        role = {"human": "user", "ai": "assistant"}.get(message.type, message.type)
        kind = "output_text" if role == "assistant" else "input_text"
        items.append(
            {
                "type": "message",
                "id": f"msg_{asked.run.run_id}_in_{place}",
                "status": "completed",
                "role": role,
                "content": [{"type": kind, "text": message.text}],
            }
        )
    ids = [one["id"] for one in items]
    page = {"object": "list", "data": items[::-1], "has_more": False}
    return JSONResponse({**page, "first_id": ids[-1], "last_id": ids[0]})


async def _find(service: Service, text: str, owner: str) -> AskedResponse:
    """Return a response by its id; raises an `UnsupportedParameter` with 404."""
    if found := await find_response(service, text, owner):
        return found
    raise UnsupportedParameter(
        "response_id", "There is no such response.", code="response_not_found", status=404
    )


async def _answer_frames(asked: AskedResponse, answered: AnsweredRuns) -> AsyncIterator[bytes]:
    """Yield the frames for the client that asked: its run is another's only if that one has left."""
    with answered.answering(asked.run.run_id):
        async with aclosing(_frames(asked, -1)) as frames:
            async for one in frames:
                yield one


async def _frames(asked: AskedResponse, starting_after: int) -> AsyncGenerator[bytes]:
    number = -1
    try:
        async with aclosing(asked.deliver(ResponseView(asked.name, asked.base))) as events:
            async for event in events:
                number = event["sequence_number"]
                if number > starting_after:
                    yield frame(event)
    except ManipleError as error:
        told = {"code": error.code, "message": str(error), "param": None}
        yield frame({"type": "error", "sequence_number": number + 1, **told})


async def _whole(asked: AskedResponse, request: Request) -> Response:
    """Return the whole response; nothing is marked as delivered to a client that has gone."""
    try:
        last = await wait_or_leave(_last_event(asked), request)
    except ManipleError as error:
        content, status = describe_error(error)
        return JSONResponse(content, status_code=status)
    if last is None:
        return Response(status_code=499)
    await asked.note_delivery(asked.run)
    return JSONResponse(last["response"], headers=asked.headers)


async def _last_event(asked: AskedResponse) -> Json:
    last: Json = {}
    async for event in asked.events(ResponseView(asked.name, asked.base)):
        last = event
    return last
