"""The body of `POST /v1/chat/completions`, and what of it the team can use.

Source: https://platform.openai.com/docs/api-reference/chat/create
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile
from typing import Annotated, Any, Literal, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, ConfigDict, Field

from maniple.api.protocols.functions import FunctionResults, OfferedFunctions, offer_functions
from maniple.api.protocols.openai_errors import UnsupportedParameter
from maniple.api.protocols.run_choices import InvalidChoice, RunChoices, read_choices
from maniple.service.sent_files import SentFile, decode_content
from maniple.text import fix_surrogates
from maniple.types import EFFORTS

TEAM = "maniple"
"""The model id of the whole team."""
_REFUSED_UNLESS: Mapping[str, tuple[Any, ...]] = {
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "modalities": (["text"],),
    "audio": (),
}
"""Parameters that promise what the team does not do, with the values that ask for nothing."""
_ROLES: Mapping[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "assistant": AIMessage,
    "system": SystemMessage,
    "developer": SystemMessage,
}
_RESULT_ROLES = frozenset(("tool", "function"))
_UNKNOWN_CALL = "?"
_MAX_TOOLS = 128
_MAX_PARTS = 200
_PARTS = "text, image_url and file (with file_data)"


class Part(BaseModel):
    """A piece of a message's content."""

    model_config = ConfigDict(extra="allow")

    type: str


class CompletionMessage(BaseModel):
    """One message of the conversation. The team answers the newest one of the user."""

    model_config = ConfigDict(extra="allow")

    role: str = Field(json_schema_extra={"enum": [*_ROLES, *sorted(_RESULT_ROLES)]})
    content: str | Annotated[list[Part], Field(max_length=_MAX_PARTS)] | None = None


class ChatFunction(BaseModel):
    """A function that the client runs; `parameters` is a JSON Schema, which its arguments fit."""

    model_config = ConfigDict(extra="allow")

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ChatTool(BaseModel):
    """A tool of the client."""

    model_config = ConfigDict(extra="allow")

    type: Literal["function"]
    function: ChatFunction


class StreamOptions(BaseModel):
    """Options of a streamed answer."""

    include_usage: bool | None = False


class ChatCompletionRequest(BaseModel):
    """A request to the team. A parameter that is not listed here has no effect, and the answer names it."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "example": {"model": TEAM, "messages": [{"role": "user", "content": "1+3=?"}], "stream": True}
        },
    )

    model: str = Field(description="`maniple`, or an agent that answers alone; `GET /v1/models` lists them")
    messages: Annotated[list[CompletionMessage], Field(min_length=1)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    metadata: dict[str, str] | None = Field(
        default=None,
        description="Options of the run, as text: `thread_id`, `depth`, `report_style`, `effort`, "
        "`locale`, `auto_accepted_plan`, `deep_thinking_mode`, `search_before_planning`. The answer names "
        "other keys, which have no effect.",
    )
    reasoning_effort: str | None = Field(
        default=None,
        description="How much the models are to reason: `low`, `medium` or `high`. Another value has no "
        "effect, nor has one beside another `effort` in `metadata`; the answer names it.",
    )
    n: Literal[1] | None = Field(default=None, description="The team gives one answer.")
    tools: Annotated[list[ChatTool], Field(max_length=_MAX_TOOLS)] | None = Field(
        default=None,
        description="Functions that the client runs: the answer has the calls, and messages of the role "
        "`tool` at the end of the next request have the results; what the user adds may follow them.",
    )
    tool_choice: str | dict[str, Any] | None = Field(
        default=None, description="`auto`, or `none`: no function is called. Other values are refused."
    )
    parallel_tool_calls: bool | None = Field(default=None, description="false is refused with functions.")


@dataclass(frozen=True, slots=True)
class EarlierPart:
    """A file or a call's result that a client sends again, with the history."""

    place: str
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """What the team is asked: the conversation, its options, and the files of its newest message."""

    messages: Sequence[BaseMessage]
    choices: RunChoices
    files: Sequence[SentFile]
    asked: Sequence[str]
    """The user's messages, as one text each."""
    not_used: Sequence[str]
    """The parameters and parts of the request that have no effect."""
    functions: OfferedFunctions
    results: Mapping[str, str]
    """The results of calls, by their ids, with which the conversation ends."""
    added: str | None
    """The user's text behind the results; "" if it has pictures or files, None if nothing is asked there."""
    earlier: Sequence[EarlierPart] = ()
    """What has an effect only where its turn was one of the same conversation."""


def read_question(
    body: ChatCompletionRequest, effort_name: str = "reasoning_effort", places: Sequence[str] = ()
) -> ChatQuestion:
    """Return what a request asks for; raises `UnsupportedParameter`.

    `effort_name` is the name that the request itself has for its effort, and `places` those of the messages.
    """
    not_used = check_parameters(body.model_extra or {})
    places = places or [f"messages.{at}" for at in range(len(body.messages))]
    messages, parts, results = (
        list[BaseMessage](),
        _PartReader(),
        _read_results(body.messages, places),
    )
    for place, one in zip(places, body.messages, strict=True):
        if one.role in _RESULT_ROLES:
            call_id = (one.model_extra or {}).get("tool_call_id")
            parts.earlier.append(EarlierPart(place, str(call_id or _UNKNOWN_CALL)))
            continue
        kind = _ROLES.get(one.role)
        if kind is None:
            raise _invalid(f"{place}.role", f"{one.role!r} is none of {', '.join(_ROLES)}.")
        parts.begin(place, is_newest=one is body.messages[-1])
        messages.append(kind(content=cast("str | list[str | dict[Any, Any]]", parts.read(one))))
    is_asking = body.messages[-1].role == "user"
    if not results and (not messages or not isinstance(messages[-1], HumanMessage)):
        raise _invalid("messages", "The last message must be the user's: the team answers that one.")
    if (is_asking or not results) and not messages[-1].text.strip() and not parts.has_picture:
        raise _invalid("messages", "The last message is empty: give it text or a picture.")
    not_used += _name_tool_keys(body.tools or ())
    asked = [str(one.content) for one in messages if isinstance(one, HumanMessage)]
    choices = _read_choices(body)
    if body.reasoning_effort not in (None, choices.effort):
        not_used.append(effort_name)
    added = join_newest(messages, parts.files) if is_asking else None
    functions = _read_functions(body)
    return ChatQuestion(
        messages, choices, parts.files, asked, not_used, functions, results, added, parts.earlier
    )


def join_newest(messages: Sequence[BaseMessage], files: Sequence[SentFile]) -> str:
    """Return the user's last messages as one text; "" if they have pictures or files."""
    last = [*takewhile(lambda one: isinstance(one, HumanMessage), reversed(messages))]
    if files or not all(isinstance(one.content, str) for one in last):
        return ""
    return "\n\n".join(one.text for one in reversed(last))


def _name_tool_keys(tools: Sequence[ChatTool]) -> list[str]:
    """Return the keys of tools that have no effect."""
    names: list[str] = []
    for place, tool in enumerate(tools):
        extra = [*(tool.model_extra or {}), *(f"function.{one}" for one in tool.function.model_extra or {})]
        names += [fix_surrogates(f"tools.{place}.{one}") for one in extra]
    return names


def _read_functions(body: ChatCompletionRequest) -> OfferedFunctions:
    described = [
        (f"tools.{place}.function", one.function.model_dump()) for place, one in enumerate(body.tools or ())
    ]
    return offer_functions(described, body.tool_choice, body.parallel_tool_calls)


def _read_results(messages: Sequence[CompletionMessage], places: Sequence[str]) -> dict[str, str]:
    """Return the results with which a conversation ends, by the ids of the calls.

    The user's messages may follow them.
    """
    results = FunctionResults()
    backwards = dropwhile(lambda at: messages[at].role == "user", range(len(messages) - 1, -1, -1))
    last = takewhile(lambda at: messages[at].role == "tool", backwards)
    for at in sorted(last):
        call_id = (messages[at].model_extra or {}).get("tool_call_id")
        content = messages[at].content
        parts = (
            content if content is None or isinstance(content, str) else [one.model_dump() for one in content]
        )
        results.add(places[at], call_id, parts)
    return results.by_call


def _read_choices(body: ChatCompletionRequest) -> RunChoices:
    """Return the options of `metadata`, with the effort of the request unless they have one."""
    try:
        choices = read_choices("metadata", body.metadata or {})
    except InvalidChoice as error:
        raise _invalid(error.place, str(error)) from error
    if choices.effort is None and body.reasoning_effort in EFFORTS:
        return choices.model_copy(update={"effort": body.reasoning_effort})
    return choices


def check_parameters(given: Mapping[str, Any]) -> list[str]:
    """Return the parameters that have no effect; raise the error of one that promises something."""
    for name, harmless in _REFUSED_UNLESS.items():
        if given.get(name) is not None and given[name] not in harmless:
            raise UnsupportedParameter(
                name, f"The team cannot do what {name} asks for: it has tools of its own and answers in text."
            )
    return [
        fix_surrogates(name)
        for name, value in given.items()
        if value is not None and name not in _REFUSED_UNLESS
    ]


@dataclass(slots=True)
class _PartReader:
    """Reads the contents of messages; only the files of the newest one are new."""

    files: list[SentFile] = field(default_factory=list[SentFile])
    earlier: list[EarlierPart] = field(default_factory=list[EarlierPart])
    has_picture: bool = False
    _place: str = ""
    _is_newest: bool = False

    def begin(self, place: str, *, is_newest: bool) -> None:
        self._place, self._is_newest, self.has_picture = place, is_newest, False

    def read(self, message: CompletionMessage) -> str | list[dict[str, Any]]:
        """Return a content as chat models take it: text alone as text."""
        if message.content is None or isinstance(message.content, str):
            return fix_surrogates(message.content or "")
        parts = [read for at, one in enumerate(message.content) if (read := self._part(at, one))]
        if all(one["type"] == "text" for one in parts):
            return fix_surrogates("\n".join(one["text"] for one in parts))
        return fix_surrogates(parts)

    def _part(self, at: int, part: Part) -> dict[str, Any] | None:
        name, given = f"{self._place}.content.{at}", part.model_extra or {}
        match part.type:
            case "text" | "input_text" | "output_text" | "refusal":
                return {"type": "text", "text": str(given.get("text") or given.get("refusal") or "")}
            case "image_url":
                self.has_picture = True
                return {"type": "image_url", "image_url": {"url": _picture_address(name, given)}}
            case "file":
                self._add_file(name, given.get("file"))
                return None
            case _:
                raise UnsupportedParameter(
                    name, f"A part of the type {part.type!r} cannot be read; known: {_PARTS}."
                )

    def _add_file(self, name: str, given: Any) -> None:
        file = cast("Mapping[str, Any]", given if isinstance(given, dict) else {})
        if not self._is_newest:
            self.earlier.append(EarlierPart(name))  # it was stored when it came with the newest message
            return
        if not file.get("file_data"):
            raise UnsupportedParameter(name, "Send the file itself, as file_data: no file has an id here.")
        title = str(file.get("filename") or f"file-{len(self.files) + 1}")
        self.files.append(SentFile(title, _decode(name, str(file["file_data"]))))


def _picture_address(name: str, given: Mapping[str, Any]) -> str:
    """Return the address of a picture, which newer clients put into an object and older ones do not."""
    picture = given.get("image_url")
    url = cast("Mapping[str, Any]", picture).get("url") if isinstance(picture, dict) else picture
    if not isinstance(url, str) or not url.strip():
        raise _invalid(name, "image_url needs the address of a picture, or a data: URL.")
    return url


def _decode(name: str, data: str) -> bytes:
    try:
        return decode_content(data)
    except ValueError as error:
        raise _invalid(name, "file_data is no base64.") from error


def _invalid(param: str, message: str) -> UnsupportedParameter:
    return UnsupportedParameter(param, message, code="invalid_value")
