"""OpenAI's Responses: the team as a model with memory, background work and streams that can be resumed.

Source: https://platform.openai.com/docs/api-reference/responses and https://www.openresponses.org
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.document import describe_stream
from maniple.api.protocols.chat_completions import ERRORS, agent_of, wait_or_leave
from maniple.api.protocols.chat_request import ChatCompletionRequest, CompletionMessage, Part, read_question
from maniple.api.protocols.conversations import (
    AnsweredOf,
    Retries,
    SentConversation,
    note_delivery,
    submit,
)
from maniple.api.protocols.following import (
    follow_run,
    make_stopping_error,
    stream_frames,
)
from maniple.api.protocols.openai_errors import UnsupportedParameter, describe_error
from maniple.api.protocols.responses_view import Json, ResponseName, ResponseView, frame
from maniple.api.routes.threads import delete_thread
from maniple.api.state import ServiceOf
from maniple.errors import ManipleError
from maniple.runs import AcceptedRun, NotFound, RunRequest
from maniple.service import Service
from maniple.service.sent_files import store_files
from maniple.service.views import resolve_thread_id
from maniple.store import RunRecord
from maniple.text import fix_surrogates

router = keyed_router("openai", is_protocol=True)
_STREAM: dict[int | str, dict[str, Any]] = {
    200: describe_stream("The response; with `stream`, its events as server-sent events")
}
_OWN_TOOLS = ("web_search", "web_search_preview", "code_interpreter", "file_search")
_EFFORT_OF_CHAT = "reasoning_effort"
_MAX_ITEMS = 1_000
_MAX_TOOLS = 128
_ResponsePath = Annotated[str, Path(max_length=200, description="The response")]


class InputItem(BaseModel):
    """An item of the input: a message, or what an earlier response put out."""

    model_config = ConfigDict(extra="allow")

    type: str = "message"
    role: str | None = None
    content: str | list[Part] | None = None


class ReasoningIn(BaseModel):
    """How the models are to reason. A key that is not listed here has no effect, and the answer names it."""

    model_config = ConfigDict(extra="allow")

    effort: str | None = Field(default=None, description="As `reasoning_effort` of `/v1/chat/completions`")


class ResponseRequest(BaseModel):
    """A request to the team. A parameter that is not listed here has no effect, and the answer names it."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"example": {"model": "maniple", "input": "1+3=?"}}
    )

    model: str = Field(description="`maniple`, or an agent that answers alone; `GET /v1/models` lists them")
    input: str | Annotated[list[InputItem], Field(min_length=1, max_length=_MAX_ITEMS)]
    instructions: str | None = None
    previous_response_id: str | None = Field(
        default=None, max_length=200, description="The response whose conversation goes on"
    )
    stream: bool | None = False
    background: bool | None = Field(default=False, description="True: answer at once, with the run at work")
    metadata: dict[str, str] | None = Field(
        default=None, description="As of `/v1/chat/completions`; all keys are stored"
    )
    store: Literal[True] | None = None
    tools: Annotated[list[dict[str, Any]], Field(max_length=_MAX_TOOLS)] | None = Field(
        default=None, description="Tools of OpenAI's that the team has, too; their options have no effect"
    )
    reasoning: ReasoningIn | None = None
    text: dict[str, Any] | None = Field(
        default=None, description="`format` is text; other keys have no effect"
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A segment of a run, as the response to a request."""

    service: Service
    name: ResponseName
    run: RunRecord
    base: Json

    @property
    def headers(self) -> dict[str, str]:
        """The header that names the run."""
        return {"x-request-id": self.run.run_id}

    async def view(self) -> ResponseView:
        """Return the response as far as it is stored, without its last event."""
        view = ResponseView(self.name, self.base)
        _ = [*view.begin()]
        after = self.name.after
        while page := await self.service.store.events.read(self.run.run_id, after):
            for record in page:
                _ = [*view.feed(record)]
            after = page[-1].number
        return view

    async def events(self, view: ResponseView) -> AsyncIterator[Json]:
        """Yield the events until the end of the segment; raises the errors of `Engine.events`."""
        for event in view.begin():
            yield event
        accepted = AcceptedRun(self.run, self.name.after)
        async with aclosing(follow_run(self.service, accepted)) as records:
            async for record in records:
                for event in view.feed(record):
                    yield event
                if view.has_ended:
                    break
        if not view.has_ended:
            raise make_stopping_error()
        run = await self.service.engine.status(self.run.run_id, self.run.owner)
        for event in view.end(run):
            yield event


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

    The run does not end when the client disconnects: read the response by its id, or send the request again.
    """
    agent, owner = agent_of(body.model, service), caller.owner
    question = read_question(_as_chat(body), "reasoning.effort")
    thread_id = question.choices.thread_id and await resolve_thread_id(
        service.store, question.choices.thread_id, owner
    )
    if body.previous_response_id:
        thread_id = (await _find(service, body.previous_response_id, owner)).run.thread_id
    key = "\n".join((body.previous_response_id or "", *question.asked))
    conversation = SentConversation("responses", (key,))
    asked_run = RunRequest(question.messages, thread_id or None, question.choices.as_options(agent), owner)
    accepted = await submit(
        service,
        replace(asked_run, metadata=dict(body.metadata or {})),
        conversation,
        answered,
        is_repeated=retries > 0,
        prepare=lambda thread: store_files(service, owner, thread, question.files),
    )
    asked = _asked(service, accepted, body, [*question.not_used, *_name_unused(body)])
    if body.stream:
        return stream_frames(_frames(asked, -1, conversation), asked.headers)
    if body.background:
        view = await asked.view()
        run = await service.engine.status(accepted.run.run_id, owner)
        await note_delivery(service.store, run, conversation)  # the client has the id of the response
        return JSONResponse(view.response(run))
    with answered.answering(accepted.run.run_id):
        return await _whole(asked, request, conversation)


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
        return stream_frames(_frames(asked, starting_after, None), asked.headers)
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
    """Delete a response with its conversation and its branches, which the answer names (`deleted_threads`).

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


def _as_chat(body: ResponseRequest) -> ChatCompletionRequest:
    """Return a request as one of Chat Completions, which has the same messages and options."""
    messages = [CompletionMessage(role="system", content=body.instructions)] if body.instructions else []
    if isinstance(body.input, str):
        messages.append(CompletionMessage(role="user", content=body.input))
    else:
        messages += [_as_message(at, one) for at, one in enumerate(body.input)]
    for tool in body.tools or ():
        if tool.get("type") not in _OWN_TOOLS:
            known = ", ".join(_OWN_TOOLS)
            raise UnsupportedParameter("tools", f"The team has tools of its own; it takes {known}.")
    if (body.text or {}).get("format") not in (None, {"type": "text"}):
        raise UnsupportedParameter("text.format", "The team answers in text.")
    extra = {name: value for name, value in (body.model_extra or {}).items() if name != _EFFORT_OF_CHAT}
    effort = body.reasoning.effort if body.reasoning else None
    asked = {"model": body.model, "messages": messages, "metadata": body.metadata, _EFFORT_OF_CHAT: effort}
    return ChatCompletionRequest.model_validate({**extra, **asked})


def _name_unused(body: ResponseRequest) -> list[str]:
    """Return the options of tools, of the text and of the reasoning that have no effect."""
    names = [
        f"tools.{at}.{name}" for at, tool in enumerate(body.tools or ()) for name in tool if name != "type"
    ]
    names += [f"text.{name}" for name in body.text or () if name != "format"]
    reasoning = (body.reasoning.model_extra if body.reasoning else None) or {}
    names += [f"reasoning.{name}" for name, value in reasoning.items() if value is not None]
    names += [name for name in body.model_extra or () if name == _EFFORT_OF_CHAT]
    return fix_surrogates(names)


def _as_message(at: int, item: InputItem) -> CompletionMessage:
    """Return an item as a message; what earlier responses put out beside messages is left out by name."""
    if item.type != "message" or item.role is None:
        return CompletionMessage(role="tool", content="")
    if not isinstance(item.content, list):
        return CompletionMessage(role=item.role, content=item.content)
    return CompletionMessage(role=item.role, content=[_as_part(at, one) for one in item.content])


def _as_part(at: int, part: Part) -> Part:
    given: Mapping[str, Any] = part.model_extra or {}
    match part.type:
        case "input_image":
            return Part.model_validate({"type": "image_url", "image_url": given.get("image_url")})
        case "input_file":
            return Part.model_validate({"type": "file", "file": given})
        case _:
            return part


def _asked(service: Service, accepted: AcceptedRun, body: ResponseRequest, not_used: Sequence[str]) -> _Asked:
    name = ResponseName(accepted.run.run_id, accepted.after)
    base = _base(name, accepted.run) | {
        "model": body.model,
        "previous_response_id": body.previous_response_id,
        "instructions": body.instructions,
        "background": bool(body.background),
        "metadata": body.metadata or {},
        "not_used": [*not_used],
    }
    return _Asked(service, name, accepted.run, base)


async def _find(service: Service, text: str, owner: str) -> _Asked:
    """Return a response by its id; raises an `UnsupportedParameter` with 404."""
    name = ResponseName.of(text)
    if name is not None:
        with suppress(NotFound):
            run = await service.engine.status(name.run_id, owner)
            return _Asked(service, name, run, _base(name, run))
    raise UnsupportedParameter(
        "response_id", "There is no such response.", code="response_not_found", status=404
    )


def _base(name: ResponseName, run: RunRecord) -> Json:
    """Return the fields of a response that do not change, with the defaults of those that have no effect."""
    request = RunRequest.of(run)
    return {
        "id": str(name),
        "object": "response",
        "created_at": int(run.created_at),
        "model": "maniple",
        "previous_response_id": None,
        "instructions": None,
        "tools": [],
        "tool_choice": "auto",
        "truncation": "disabled",
        "parallel_tool_calls": True,
        "text": {"format": {"type": "text"}},
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "top_logprobs": 0,
        "temperature": 1.0,
        "reasoning": {"effort": request.options.effort or None, "summary": None},
        "max_output_tokens": None,
        "max_tool_calls": None,
        "store": True,
        "background": False,
        "service_tier": "default",
        "metadata": request.metadata,
        "safety_identifier": None,
        "prompt_cache_key": None,
        "conversation": {"id": run.thread_name},
        "not_used": [],
    }


async def _frames(
    asked: _Asked, starting_after: int, conversation: SentConversation | None
) -> AsyncIterator[bytes]:
    view = ResponseView(asked.name, asked.base)
    number = -1
    with asked.service.metrics.client():
        try:
            async for event in asked.events(view):
                number = event["sequence_number"]
                if number > starting_after:
                    yield frame(event)
        except ManipleError as error:
            told = {"code": error.code, "message": str(error), "param": None}
            yield frame({"type": "error", "sequence_number": number + 1, **told})
            return
        if conversation is not None:
            await note_delivery(asked.service.store, asked.run, conversation)


async def _whole(asked: _Asked, request: Request, conversation: SentConversation) -> Response:
    """Return the whole response; nothing is marked as delivered to a client that has gone."""
    try:
        last = await wait_or_leave(_last_event(asked), request)
    except ManipleError as error:
        content, status = describe_error(error)
        return JSONResponse(content, status_code=status)
    if last is None:
        return Response(status_code=499)
    await note_delivery(asked.service.store, asked.run, conversation)
    return JSONResponse(last["response"], headers=asked.headers)


async def _last_event(asked: _Asked) -> Json:
    last: Json = {}
    async for event in asked.events(ResponseView(asked.name, asked.base)):
        last = event
    return last
