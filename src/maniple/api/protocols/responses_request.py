"""The requests of OpenAI's Responses, and what of them the team can use.

Source: https://platform.openai.com/docs/api-reference/responses and https://www.openresponses.org
"""

from collections.abc import Mapping, Sequence
from itertools import dropwhile, takewhile
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from maniple.api.protocols.chat_request import ChatCompletionRequest, CompletionMessage, Part
from maniple.api.protocols.functions import (
    FunctionResults,
    OfferedFunctions,
    offer_functions,
)
from maniple.api.protocols.openai_errors import UnsupportedParameter
from maniple.api.requests import check_storable

_OWN_TOOLS = ("web_search", "web_search_preview", "code_interpreter", "file_search")
_FUNCTION = "function"
_OF_FUNCTIONS = frozenset(("type", "name", "description", "parameters", "strict"))
_EFFORT_OF_CHAT = "reasoning_effort"
_OF_CHAT = frozenset(ChatCompletionRequest.model_fields)
"""Parameters of Chat Completions, which are none of Responses unless `ResponseBody` has them."""
MAX_ITEMS = 1_000
"""The most items of an input, and messages of the conversation that they stand for."""
_MAX_TOOLS = 128
_OUTPUT = "function_call_output"


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
        default=None,
        description="Functions that the client runs (`function`), and tools of OpenAI's that the team has, "
        "too, whose options have no effect",
    )
    tool_choice: str | dict[str, Any] | None = Field(default=None, description="As of `/v1/chat/completions`")
    parallel_tool_calls: bool | None = Field(default=None, description="false is refused with functions")
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


def as_chat(body: ResponseBody) -> ChatCompletionRequest:
    """Return a request as one of Chat Completions, which has the same messages and options."""
    messages = [CompletionMessage(role="system", content=body.instructions)] if body.instructions else []
    if isinstance(body.input, str):
        messages.append(CompletionMessage(role="user", content=body.input))
    else:
        messages += [_as_message(at, one) for at, one in enumerate(body.input)]
    if (body.text or {}).get("format") not in (None, {"type": "text"}):
        raise UnsupportedParameter("text.format", "The team answers in text.")
    effort = body.reasoning.effort if body.reasoning else None
    asked = {"model": body.model, "messages": messages, "metadata": body.metadata, _EFFORT_OF_CHAT: effort}
    return ChatCompletionRequest.model_validate({**other_parameters(body), **asked})


def name_messages(body: ResponseBody, sent: str | Sequence[InputItem]) -> list[str]:
    """Return the place in the request of each message of `as_chat(body)`.

    `sent` is the input as it came; an item that is not in it stood in a compaction.
    """
    names = ["instructions"] if body.instructions else []
    if isinstance(body.input, str):
        return [*names, "input"]
    places = {id(one): f"input.{at}" for at, one in enumerate(sent)}
    return [*names, *(places.get(id(one), "input") for one in body.input)]


def other_parameters(body: ResponseBody) -> dict[str, Any]:
    """Return the parameters of a request that no field has, as those of Chat Completions."""
    return {name: value for name, value in (body.model_extra or {}).items() if name not in _OF_CHAT}


def read_functions(body: ResponseBody) -> OfferedFunctions:
    """Return the functions of a request; raises `UnsupportedParameter`."""
    described: list[tuple[str, Mapping[str, Any]]] = []
    for at, tool in enumerate(body.tools or ()):
        if tool.get("type") == _FUNCTION:
            described.append((f"tools.{at}", tool))
        elif tool.get("type") not in _OWN_TOOLS:
            known = ", ".join((_FUNCTION, *_OWN_TOOLS))
            raise UnsupportedParameter("tools", f"The team has tools of its own; it takes {known}.")
    return offer_functions(described, body.tool_choice, body.parallel_tool_calls)


def read_results(body: ResponseBody) -> dict[str, str]:
    """Return the results with which the input ends, by the ids of the calls.

    The user's messages may follow them.
    """
    results = FunctionResults()
    items = body.input if isinstance(body.input, list) else []
    backwards = dropwhile(lambda one: _is_of_user(one[1]), reversed([*enumerate(items)]))
    after_messages = takewhile(lambda one: one[1].type != "message", backwards)
    for at, item in reversed([*after_messages]):
        given: Mapping[str, Any] = item.model_extra or {}
        if item.type == _OUTPUT:
            results.add(f"input.{at}", given.get("call_id"), given.get("output"))
    return results.by_call


def ends_with_results(body: ResponseBody) -> bool:
    """Whether nothing new is asked behind the results of the input."""
    return isinstance(body.input, list) and not _is_of_user(body.input[-1])


def _is_of_user(item: InputItem) -> bool:
    return item.type == "message" and item.role == "user"


def name_unused(body: ResponseBody) -> list[str]:
    """Return the options of tools, of the text and of the reasoning that have no effect."""
    names = [
        f"tools.{at}.{name}"
        for at, tool in enumerate(body.tools or ())
        for name in tool
        if name not in (_OF_FUNCTIONS if tool.get("type") == _FUNCTION else ("type",))
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
        call_id = (item.model_extra or {}).get("call_id") if item.type == _OUTPUT else None
        return CompletionMessage.model_validate({"role": "function", "content": "", "tool_call_id": call_id})
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
