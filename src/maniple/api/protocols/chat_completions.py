"""OpenAI's Chat Completions: the team as a chat model.

Source: https://platform.openai.com/docs/api-reference/chat
"""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Path, Request, Response
from fastapi.responses import JSONResponse

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.document import describe_stream
from maniple.api.not_used import describe_not_used
from maniple.api.protocols.chat_request import TEAM, ChatCompletionRequest, ChatQuestion, read_question
from maniple.api.protocols.chat_views import (
    ERRORS,
    AnswerMessage,
    CalledFunction,
    ChatCompletionView,
    CompletionChoice,
    CompletionUsage,
    FinishReason,
    FunctionCallView,
    ModelList,
    ModelView,
)
from maniple.api.protocols.conversations import (
    AnsweredOf,
    AnsweredRuns,
    Retries,
    SentConversation,
    name_lost_parts,
    note_delivery,
    submit,
)
from maniple.api.protocols.following import follow_run, read_ended, stream_frames
from maniple.api.protocols.functions import (
    find_calls,
    name_lost_functions,
    name_lost_results,
    write_arguments,
)
from maniple.api.protocols.openai_errors import UnsupportedParameter, describe_error
from maniple.api.protocols.run_choices import name_unknown
from maniple.api.state import ServiceOf
from maniple.errors import ManipleError, StoreError
from maniple.events import RunView
from maniple.graph import RunOptions
from maniple.runs import AcceptedRun, RunRequest, ServiceStopping
from maniple.scope.client_tools import ClientCall, ClientTool
from maniple.service import Service
from maniple.service.answer_pieces import AnswerPieces
from maniple.service.callers import KeyRevoked
from maniple.service.client_tools import AcceptedResults, send_results, send_results_and_text
from maniple.service.sent_files import store_files
from maniple.service.thread_views import resolve_thread_id
from maniple.store import RunRecord

router = keyed_router("openai", is_protocol=True)
Answered = TypeVar("Answered")


_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ChatCompletionView,
        **describe_stream("The answer; with `stream`, its chunks as server-sent events, up to `[DONE]`"),
    }
}


class RunFailed(ManipleError):
    """The run ended without an answer."""

    code = "run_failed"


@router.get("/v1/models", summary="List the models", responses=ERRORS)
async def list_models(service: ServiceOf) -> ModelList:
    """The team, and the agents that answer alone."""
    return ModelList(data=[ModelView(id=name) for name in (TEAM, *service.runtime.alone)])


@router.get("/v1/models/{model}", summary="Read a model", responses=ERRORS)
async def read_model(model: Annotated[str, Path(max_length=200)], service: ServiceOf) -> ModelView:
    """One of the models."""
    agent_of(model, service)
    return ModelView(id=model)


@router.post(
    "/v1/chat/completions",
    summary="Ask the team, as OpenAI's chat models are asked",
    response_model=ChatCompletionView,
    responses={**ERRORS, **_ANSWERS},
)
async def create_chat_completion(
    body: ChatCompletionRequest,
    request: Request,
    service: ServiceOf,
    caller: CallerOf,
    answered: AnsweredOf,
    retries: Retries = 0,
) -> Response:
    """Ask the team; its newest answer, or its question, is the message of the assistant.

    The run does not end when the client disconnects: the same request, sent again, gets its answer.
    """
    agent, question = agent_of(body.model, service), read_question(body)
    conversation = SentConversation("chat.completions", question.asked)
    functions = question.functions.accept(service)
    lost: list[str] = []
    if sent := await take_results(service, caller.owner, question):
        accepted = sent.accepted
        lost += name_lost_results(sent.not_used)
        lost += _name_lost_options(body, question.choices.as_options(agent), accepted.run)
    else:
        accepted = await submit(
            service,
            await _as_run(question, functions, agent, service, caller.owner),
            conversation,
            answered,
            is_repeated=retries > 0,
            prepare=lambda thread_id: store_files(service, caller.owner, thread_id, question.files),
        )
    lost += name_lost_functions(accepted.run, functions)
    lost += await name_lost_parts(service.store, accepted, question.earlier)
    not_used = [*question.not_used, *name_unknown("metadata", body.metadata or {}), *lost]
    answer = _Answer(service, accepted, conversation, body.model, not_used)
    if body.stream:
        options = body.stream_options
        chunks = _chunks(answer, answered, bool(options and options.include_usage))
        return stream_frames(chunks, answer.headers)
    with answered.answering(accepted.run.run_id):
        return await _whole_answer(answer, request)


async def take_results(service: Service, owner: str, question: ChatQuestion) -> AcceptedResults | None:
    """Return the run that goes on with the results of calls; None if the question is to be asked."""
    if question.results and question.added is None:
        return await send_results(service, owner, question.results)
    if question.results and question.added:
        return await send_results_and_text(service, owner, question.results, question.added)
    return None


def agent_of(model: str, service: Service) -> str:
    """Return the agent that a model's id names; "" for the team."""
    if model == TEAM:
        return ""
    alone = [str(one) for one in service.runtime.alone]
    if model not in alone:
        raise UnsupportedParameter(
            "model",
            f"There is no model {model[:100]!r} here; known: {', '.join((TEAM, *alone))}.",
            code="model_not_found",
            status=404,
        )
    return model


async def _as_run(
    question: ChatQuestion, functions: Sequence[ClientTool], agent: str, service: Service, owner: str
) -> RunRequest:
    choices, thread_id = question.choices, None
    if choices.thread_id:
        thread_id = await resolve_thread_id(service.store, choices.thread_id, owner)
    options = choices.as_options(agent)
    return RunRequest(question.messages, thread_id, options, owner, client_tools=functions)


def _name_lost_options(body: ChatCompletionRequest, options: RunOptions, run: RunRecord) -> list[str]:
    """Return the parameters with options where a run that goes on has others."""
    if options == RunRequest.of(run).options:
        return []
    return [name for name in ("metadata", "reasoning_effort") if getattr(body, name)]


@dataclass(slots=True)
class _Answer:
    """The answer to one request, as it comes out of a run."""

    service: Service
    accepted: AcceptedRun
    conversation: SentConversation
    model: str
    not_used: Sequence[str]

    @property
    def headers(self) -> dict[str, str]:
        """The headers that name the run, its conversation and what had no effect."""
        run = self.accepted.run
        named = {"x-request-id": run.run_id, "x-maniple-thread-id": run.thread_name}
        return {**named, **describe_not_used(self.not_used)}

    @property
    def base(self) -> dict[str, Any]:
        """The fields that every chunk has."""
        run = self.accepted.run
        return {"id": f"chatcmpl-{run.run_id}", "created": int(run.created_at), "model": self.model}

    async def pieces(self, found: AnswerPieces) -> AsyncIterator[tuple[str, str]]:
        """Yield (kind, text) until the run ends or waits; raises the errors of `Engine.events`."""
        async with aclosing(follow_run(self.service, self.accepted)) as records:
            async for record in records:
                for piece in found.feed(record):
                    yield piece.kind, piece.text

    async def note_failure(self, error: ManipleError) -> None:
        """Store that the client is told of an error: the same request is then asked anew."""
        if not isinstance(error, (ServiceStopping, StoreError, KeyRevoked)):
            await note_delivery(self.service.store, self.accepted.run, self.conversation)

    async def end(self, found: AnswerPieces) -> "_AnswerEnd":
        """Return the end of the answer; raises the error that ended the run."""
        run, rest = await read_ended(self.service, self.accepted.run), found.unsent
        calls = find_calls(found.view.pauses) if run.status == "interrupted" else []
        if not rest and not calls and not found.sent.strip():
            failure = found.view.failure
            raise _failure(run, failure.message if failure else "")
        return _AnswerEnd(run, rest, calls)


@dataclass(frozen=True, slots=True)
class _AnswerEnd:
    """The run at its end, the end of its answer, and the calls that the client is asked to run."""

    run: RunRecord
    rest: str
    calls: Sequence[ClientCall]

    @property
    def reason(self) -> FinishReason:
        """Why the answer ends."""
        return "tool_calls" if self.calls else "length" if self.run.status == "budget_exhausted" else "stop"

    @property
    def call_views(self) -> list[FunctionCallView] | None:
        """The calls; None without one."""
        views = [
            FunctionCallView(
                id=one.call_id, function=CalledFunction(name=one.name, arguments=write_arguments(one))
            )
            for one in self.calls
        ]
        return views or None


def _failure(run: RunRecord, message: str) -> ManipleError:
    if run.status == "cancelled":
        return RunFailed("The run was cancelled before it had an answer.")
    error = RunFailed(message or run.error or f"The run ended {run.status} without an answer.")
    error.code = run.error_code or RunFailed.code
    return error


def _usage(view: RunView) -> CompletionUsage:
    read, written = view.usage.input_tokens, view.usage.output_tokens
    return CompletionUsage(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)


async def _whole_answer(answer: _Answer, request: Request) -> Response:
    """Return the whole answer; nothing is marked as delivered to a client that has gone."""
    try:
        view = await wait_or_leave(_collect(answer), request)
    except ManipleError as error:
        await answer.note_failure(error)
        return _error_response(error, answer.headers)
    if view is None:
        return Response(status_code=499)
    await note_delivery(answer.service.store, answer.accepted.run, answer.conversation)
    return JSONResponse(view.model_dump(mode="json"), headers=answer.headers)


async def wait_or_leave(work: Coroutine[Any, Any, Answered], request: Request) -> Answered | None:
    """Return the result of `work`, or None as soon as the client disconnects; `work` is cancelled then."""
    reading = asyncio.create_task(work)
    leaving = asyncio.create_task(_wait_for_leaving(request))
    try:
        await asyncio.wait((reading, leaving), return_when=asyncio.FIRST_COMPLETED)
        return await reading if reading.done() else None
    finally:
        reading.cancel()
        leaving.cancel()
        await asyncio.gather(reading, leaving, return_exceptions=True)


async def _wait_for_leaving(request: Request) -> None:
    """Wait until the client disconnects; its request was read whole before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _collect(answer: _Answer) -> ChatCompletionView:
    found, texts = AnswerPieces(), {"progress": list[str](), "answer": list[str]()}
    async for kind, text in answer.pieces(found):
        texts[kind].append(text)
    end = await answer.end(found)
    content, progress = "".join((*texts["answer"], end.rest)), "".join(texts["progress"])
    calls = end.call_views
    message = AnswerMessage(
        content=(content or None) if calls else content, reasoning_content=progress, tool_calls=calls
    )
    return ChatCompletionView(
        **answer.base,
        choices=[CompletionChoice(message=message, finish_reason=end.reason)],
        usage=_usage(found.view),
        thread_id=end.run.thread_name,
        not_used=[*answer.not_used],
    )


def _error_response(error: ManipleError, headers: Mapping[str, str]) -> JSONResponse:
    body, status = describe_error(error)
    # OpenAI's clients repeat a request by themselves; the run of this one has ended.
    repeat = "true" if isinstance(error, ServiceStopping) else "false"
    return JSONResponse(body, status_code=status, headers={**headers, "x-should-retry": repeat})


async def _chunks(answer: _Answer, answered: AnsweredRuns, has_usage_chunk: bool) -> AsyncIterator[bytes]:
    """Yield the frames of a streamed answer."""
    found = AnswerPieces()
    with answer.service.metrics.client(), answered.answering(answer.accepted.run.run_id):
        yield _chunk(answer, {"role": "assistant", "content": ""})
        try:
            async for kind, text in answer.pieces(found):
                yield _chunk(answer, {"content" if kind == "answer" else "reasoning_content": text})
            end = await answer.end(found)
        except ManipleError as error:
            await answer.note_failure(error)
            yield _frame(describe_error(error)[0])
            return
        if end.rest:
            yield _chunk(answer, {"content": end.rest})
        for index, call in enumerate(end.call_views or ()):
            yield _chunk(answer, {"tool_calls": [{"index": index, **call.model_dump()}]})
        usage = _usage(found.view).model_dump()
        last = {"choices": [_choice({}, end.reason)], "not_used": [*answer.not_used]}
        if has_usage_chunk:
            yield _frame({**_head(answer), **last})
            yield _frame({**_head(answer), "choices": [], "usage": usage})
        else:
            yield _frame({**_head(answer), **last, "usage": usage})
        await note_delivery(answer.service.store, end.run, answer.conversation)
        yield b"data: [DONE]\n\n"


def _head(answer: _Answer) -> dict[str, Any]:
    return {**answer.base, "object": "chat.completion.chunk"}


def _choice(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _chunk(answer: _Answer, delta: Mapping[str, Any]) -> bytes:
    return _frame({**_head(answer), "choices": [_choice(delta)]})


def _frame(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
