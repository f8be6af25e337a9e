"""`POST /v1/responses/compact`: a conversation as the user's messages and one item for the rest.

Source: https://platform.openai.com/docs/api-reference/responses/compact and https://www.openresponses.org
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, ConfigDict, Field, model_validator

from maniple.api.protocols.chat_completions import agent_of
from maniple.api.protocols.compaction import COMPACTION, CompactedMessages, CompactionReader, OtherMessage
from maniple.api.protocols.openai_errors import UnsupportedParameter
from maniple.api.protocols.responses_desk import ResponseDesk, find_response, make_previous_missing
from maniple.api.protocols.responses_request import MAX_ITEMS, InputItem, ResponseBody
from maniple.api.protocols.responses_view import Json, make_usage
from maniple.api.requests import check_storable
from maniple.events import RunView
from maniple.graph.state import State, conversation_of
from maniple.runs import ThreadBusy
from maniple.runs.turn import thread_state
from maniple.service.thread_views import SHOWN_RUNS, read_thread_messages
from maniple.text import fix_surrogates

_NEXT = InputItem(role="user", content="-")
"""Stands for the request that will follow: a run answers one, and reads what comes before it."""


class CompactRequest(BaseModel):
    """A conversation to compact. A parameter that is not listed here has no effect; the answer names it."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"example": {"model": "maniple", "input": "1+3=?"}}
    )

    @model_validator(mode="before")
    @classmethod
    def _check(cls, data: Any) -> Any:
        return check_storable(data)

    model: str = Field(description="As of `/v1/responses`")
    input: str | Annotated[list[InputItem], Field(max_length=MAX_ITEMS - 1)] | None = None
    previous_response_id: str | None = Field(
        default=None, max_length=200, description="The response whose conversation comes before `input`"
    )

    @property
    def items(self) -> list[InputItem]:
        """The input as items."""
        if isinstance(self.input, str):
            return [InputItem(role="user", content=self.input)]
        return self.input or []


async def compact_conversation(body: CompactRequest, desk: ResponseDesk) -> Json:
    """Return the `response.compaction` of a conversation: what a run would read of it, without a run.

    Raises `UnsupportedParameter`, and `ThreadBusy` if the conversation waits for an answer or for a run.
    """
    agent_of(body.model, desk.service)
    earlier = await _read_previous(body.previous_response_id, desk)
    question = await desk.read(ResponseBody(model=body.model, input=[*body.items, _NEXT]))
    messages = [*earlier, *question.messages[:-1]]
    if not messages:
        raise _refuse("input", "There is no message to compact: send input or previous_response_id.")
    if len(messages) >= MAX_ITEMS:
        raise _refuse(
            "input", f"The conversation has {MAX_ITEMS} messages or more. Go on with previous_response_id."
        )
    reader = CompactionReader(desk.service.webhook_key, desk.owner)
    asked = [one for one in messages if isinstance(one, HumanMessage)]
    try:
        packed = CompactedMessages(len(asked), [*_others(messages)])
        content = await asyncio.to_thread(reader.pack, packed)
    except ValueError as error:
        raise _refuse("input", str(error)) from error
    unused = [name for name, value in (body.model_extra or {}).items() if value is not None]
    compaction = {"type": COMPACTION, "id": f"cmp_{uuid4().hex}", "encrypted_content": content}
    return {
        "id": f"resp_compact_{uuid4().hex}",
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [*map(_as_item, asked), compaction],
        "usage": make_usage(RunView()),  # no model reads it
        "not_used": [*question.not_used, *(one.place for one in question.earlier), *unused],
    }


async def _read_previous(response_id: str | None, desk: ResponseDesk) -> Sequence[BaseMessage]:
    """Return what a run would read of a conversation of this service; nothing without one."""
    if not response_id:
        return ()
    service = desk.service
    found = await find_response(service, response_id, desk.owner)
    if found is None:
        raise make_previous_missing()
    thread_id = found.run.thread_id
    runs = await service.store.runs.list_by_thread(thread_id, SHOWN_RUNS)
    if not runs:  # the conversation was deleted meanwhile
        raise make_previous_missing()
    if runs[0].is_unfinished or runs[0].status == "interrupted":
        raise ThreadBusy(
            "The conversation has a run that works, or waits for an answer. Compact it when that has ended."
        )
    state = (await thread_state(service.runtime.graph, thread_id)).values
    stored = await read_thread_messages(service.store, runs, state)
    said = conversation_of(cast("State", {"messages": stored}))
    return [*(one for one in stored if isinstance(one, SystemMessage)), *said]


def _others(messages: Sequence[BaseMessage]) -> Iterator[OtherMessage]:
    after = 0
    for one in messages:
        if isinstance(one, HumanMessage):
            after += 1
        else:
            yield OtherMessage(after, "assistant" if isinstance(one, AIMessage) else "system", _content(one))


def _content(message: BaseMessage) -> Any:
    return fix_surrogates(message.content)


def _as_item(message: BaseMessage) -> Json:
    """Return a message of the user as an item that Responses reads as that message."""
    content = _content(message)
    parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {
        "type": "message",
        "id": f"msg_{uuid4().hex}",
        "status": "completed",
        "role": "user",
        "content": [_as_part(one) for one in parts],
    }


def _as_part(part: Any) -> Json:
    match part:
        case {"type": "image_url", "image_url": {"url": url}}:
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case {"text": text}:
            return {"type": "input_text", "text": text}
        case _:
            return {"type": "input_text", "text": str(part)}


def _refuse(param: str, message: str) -> UnsupportedParameter:
    return UnsupportedParameter(param, message, code="invalid_value")
