"""The requests of OpenAI's Responses, what of them the team can use, and the response that each becomes.

Source: https://platform.openai.com/docs/api-reference/responses and https://www.openresponses.org
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, model_validator

from maniple.api.protocols.chat_completions import agent_of
from maniple.api.protocols.chat_request import (
    ChatCompletionRequest,
    ChatQuestion,
    CompletionMessage,
    Part,
    read_question,
)
from maniple.api.protocols.compaction import COMPACTION, CompactionReader, expand_items
from maniple.api.protocols.conversations import AnsweredRuns, SentConversation, note_delivery, submit
from maniple.api.protocols.following import follow_run, make_stopping_error
from maniple.api.protocols.openai_errors import UnsupportedParameter
from maniple.api.protocols.responses_view import Json, ResponseName, ResponseView
from maniple.api.requests import check_storable
from maniple.runs import AcceptedRun, NotFound, RunRequest
from maniple.service import Service
from maniple.service.sent_files import store_files
from maniple.service.views import resolve_thread_id
from maniple.store import RunRecord

_OWN_TOOLS = ("web_search", "web_search_preview", "code_interpreter", "file_search")
_EFFORT_OF_CHAT = "reasoning_effort"
_OF_CHAT = frozenset(ChatCompletionRequest.model_fields)
"""Parameters of Chat Completions, which are none of Responses unless `ResponseBody` has them."""
MAX_ITEMS = 1_000
"""The most items of an input, and messages of the conversation that they stand for."""
_MAX_TOOLS = 128


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


class ResponseBody(BaseModel):
    """What a request to the team has over every transport. Other parameters are named as without effect."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _check(cls, data: Any) -> Any:
        return check_storable(data)

    model: str = Field(description="`maniple`, or an agent that answers alone; `GET /v1/models` lists them")
    input: str | Annotated[list[InputItem], Field(min_length=1, max_length=MAX_ITEMS)]
    instructions: str | None = None
    previous_response_id: str | None = Field(
        default=None, max_length=200, description="The response whose conversation goes on"
    )
    background: bool | None = Field(default=False, description="True: answer at once, with the run at work")
    metadata: dict[str, str] | None = Field(
        default=None, description="As of `/v1/chat/completions`; all keys are stored"
    )
    tools: Annotated[list[dict[str, Any]], Field(max_length=_MAX_TOOLS)] | None = Field(
        default=None, description="Tools of OpenAI's that the team has, too; their options have no effect"
    )
    reasoning: ReasoningIn | None = None
    text: dict[str, Any] | None = Field(
        default=None, description="`format` is text; other keys have no effect"
    )

    @property
    def is_stored(self) -> bool:
        """Whether the response can be read and continued by its id, until it is deleted."""
        return True


class ResponseRequest(ResponseBody):
    """A request to the team. A parameter that is not listed here has no effect, and the answer names it."""

    model_config = ConfigDict(json_schema_extra={"example": {"model": "maniple", "input": "1+3=?"}})

    stream: bool | None = False
    store: Literal[True] | None = None


@dataclass(frozen=True, slots=True)
class AskedResponse:
    """A segment of a run, as the response to a request."""

    service: Service
    name: ResponseName
    run: RunRecord
    base: Json
    conversation: SentConversation | None = None
    """The conversation of the request that this answers; None if a response is read again."""

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

    async def events(self, view: ResponseView) -> AsyncGenerator[Json]:
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

    async def deliver(self, view: ResponseView) -> AsyncGenerator[Json]:
        """Yield the events for a client, and store at the end that it has the whole answer to its request."""
        with self.service.metrics.client():
            async with aclosing(self.events(view)) as events:
                async for event in events:
                    yield event
        await self.note_delivery(self.run)

    async def note_delivery(self, run: RunRecord) -> None:
        """Store that the client that asked has the answer; nothing if a response is read again."""
        if self.conversation is not None:
            await note_delivery(self.service.store, run, self.conversation)


@dataclass(frozen=True, slots=True)
class ResponseDesk:
    """Accepts the requests of a caller."""

    service: Service
    owner: str
    answered: AnsweredRuns

    async def accept(
        self, body: ResponseBody, thread_id: str | None, *, is_repeated: bool = False
    ) -> AskedResponse:
        """Accept a request on a thread, or on a new one; raises `UnsupportedParameter` and as `submit`."""
        service, agent = self.service, agent_of(body.model, self.service)
        question = await self.read(body)
        if not thread_id and question.choices.thread_id:
            if not body.is_stored:
                raise UnsupportedParameter("store", "A stored conversation goes on with store: true.")
            thread_id = await resolve_thread_id(service.store, question.choices.thread_id, self.owner)
        key = "\n".join((body.previous_response_id or "", *question.asked))
        # An unstored run is deleted with its socket: nobody else joins it, and it joins none.
        conversation = SentConversation("responses" if body.is_stored else uuid4().hex, (key,))
        options = question.choices.as_options(agent)
        accepted = await submit(
            service,
            RunRequest(
                question.messages, thread_id or None, options, self.owner, metadata=dict(body.metadata or {})
            ),
            conversation,
            self.answered,
            is_repeated=is_repeated,
            prepare=lambda thread: store_files(service, self.owner, thread, question.files),
        )
        name = ResponseName(accepted.run.run_id, accepted.after, body.is_stored)
        base = response_base(name, accepted.run) | {
            "model": body.model,
            "previous_response_id": body.previous_response_id,
            "instructions": body.instructions,
            "background": bool(body.background),
            "metadata": body.metadata or {},
            "not_used": [*question.not_used, *_name_unused(body)],
        }
        if not body.is_stored:
            base |= {"store": False, "conversation": None}
        return AskedResponse(service, name, accepted.run, base, conversation)

    async def read(self, body: ResponseBody) -> ChatQuestion:
        """Return what a request asks for; raises `UnsupportedParameter`."""
        if not isinstance(body.input, str) and any(one.type == COMPACTION for one in body.input):
            reader, make = CompactionReader(self.service.webhook_key, self.owner), InputItem.model_validate
            items = await asyncio.to_thread(expand_items, body.input, reader, make, MAX_ITEMS)
            body = body.model_copy(update={"input": items})
        return read_question(_as_chat(body), "reasoning.effort")

    async def find_previous(self, body: ResponseBody) -> str | None:
        """Return the thread that a request continues; None for a new one; raises `UnsupportedParameter`."""
        if not body.previous_response_id:
            return None
        found = await find_response(self.service, body.previous_response_id, self.owner)
        if found is None:
            raise make_previous_missing()
        return found.run.thread_id


async def find_response(service: Service, text: str, owner: str) -> AskedResponse | None:
    """Return a response by its id; None if there is none of this owner."""
    name = ResponseName.of(text)
    if name is not None:
        with suppress(NotFound):
            run = await service.engine.status(name.run_id, owner)
            return AskedResponse(service, name, run, response_base(name, run))
    return None


def make_previous_missing() -> UnsupportedParameter:
    """Return the error of a request that continues a response which cannot be found."""
    return UnsupportedParameter(
        "previous_response_id",
        "There is no such response. Send the whole conversation, without previous_response_id.",
        code="previous_response_not_found",
    )


def response_base(name: ResponseName, run: RunRecord) -> Json:
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


def _as_chat(body: ResponseBody) -> ChatCompletionRequest:
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
    extra = {name: value for name, value in (body.model_extra or {}).items() if name not in _OF_CHAT}
    effort = body.reasoning.effort if body.reasoning else None
    asked = {"model": body.model, "messages": messages, "metadata": body.metadata, _EFFORT_OF_CHAT: effort}
    return ChatCompletionRequest.model_validate({**extra, **asked})


def _name_unused(body: ResponseBody) -> list[str]:
    """Return the options of tools, of the text and of the reasoning that have no effect."""
    names = [
        f"tools.{at}.{name}" for at, tool in enumerate(body.tools or ()) for name in tool if name != "type"
    ]
    names += [f"text.{name}" for name in body.text or () if name != "format"]
    reasoning = (body.reasoning.model_extra if body.reasoning else None) or {}
    names += [f"reasoning.{name}" for name, value in reasoning.items() if value is not None]
    extra = body.model_extra or {}
    names += [name for name, value in extra.items() if name in _OF_CHAT and value is not None]
    return names


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
