"""The inputs of AG-UI 1.0: what they ask, offer and answer, and what of them has no effect.

Source: https://docs.ag-ui.com
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile
from typing import Any, cast

from ag_ui.core import (
    DataSource,
    ResumeEntry,
    RunAgentInput,
    ToolMessage,
    UrlSource,
    UserMessage,
)
from langchain_core.messages import HumanMessage
from pydantic import BaseModel

from maniple.api.protocols.run_choices import InvalidChoice, RunChoices, name_unknown, read_choices
from maniple.errors import ManipleError
from maniple.scope.client_tools import ClientTool, InvalidClientTool, run_of_call
from maniple.service import Service
from maniple.service.client_tools import accept_client_tools
from maniple.service.sent_files import SentFile, decode_content
from maniple.text import fix_surrogates


class InvalidInput(ManipleError):
    """An input asks nothing, or something that the team cannot do."""

    code = "invalid_input"


@dataclass(slots=True)
class AskedMessage:
    """The newest message of an input, with its files and the options of the run."""

    message: HumanMessage
    choices: RunChoices
    files: list[SentFile] = field(default_factory=list[SentFile])


def read_input(given: RunAgentInput) -> AskedMessage | None:
    """Return what an input asks; None if it has no message. Raises `InvalidInput`."""
    if not given.messages:
        return None
    newest = given.messages[-1]
    if given.resume:
        return None
    if not isinstance(newest, UserMessage):
        raise InvalidInput("The last message must be the user's: the team answers that one.")
    props = _mapping(given.forwarded_props)
    try:
        asked = AskedMessage(HumanMessage(""), read_choices("forwardedProps", props))
    except InvalidChoice as error:
        raise InvalidInput(f"{error.place}: {error}") from error
    content = cast("str | list[str | dict[Any, Any]]", _read_content(newest, asked))
    asked.message = HumanMessage(content=content)
    if not asked.message.content:
        raise InvalidInput("The last message is empty: give it text or a picture.")
    return asked


def name_unused(given: RunAgentInput, asked: AskedMessage | None) -> list[str]:
    """Return the names of what an input has that has no effect; without a question, options have none."""
    props = _mapping(given.forwarded_props)
    names = name_unknown("forwardedProps", props) if asked else [f"forwardedProps.{key}" for key in props]
    names += [name for name in ("context", "state") if getattr(given, name)]
    names += [f"tools.{place}.metadata" for place, one in enumerate(given.tools or ()) if one.metadata]
    names += _name_extra("", given) + (["parentRunId"] if given.parent_run_id else [])
    for place, entry in enumerate(given.resume or ()):
        names += _name_extra(f"resume.{place}.", entry)
        names += [f"resume.{place}.metadata"] if entry.metadata else []
    return fix_surrogates(names)


def read_tools(given: RunAgentInput, service: Service) -> tuple[ClientTool, ...]:
    """Return the functions of the front end; raises `InvalidInput`."""
    try:
        return accept_client_tools([one.model_dump() for one in given.tools or ()], service.runtime)
    except InvalidClientTool as error:
        raise InvalidInput(f"{'.'.join(filter(None, ('tools', error.place)))}: {error}") from error


def read_results(given: RunAgentInput) -> dict[str, str]:
    """Return the results of the front end's functions with which the messages end, by the ids of the calls.

    Results of the team's own tools, which the client sends back, are none. The user's messages may follow.
    """
    results: dict[str, str] = {}
    backwards = dropwhile(lambda one: isinstance(one, UserMessage), reversed(given.messages))
    for one in takewhile(lambda one: isinstance(one, ToolMessage), backwards):
        if isinstance(one, ToolMessage) and run_of_call(one.tool_call_id):
            result = _read_result(one)
            if results.setdefault(one.tool_call_id, result) != result:
                raise InvalidInput(f"There are two results of {one.tool_call_id}. Send one.")
    return dict(reversed(results.items()))


def _read_result(message: ToolMessage) -> str:
    content = message.content
    if not isinstance(content, str):
        if any(part.type != "text" for part in content):
            raise InvalidInput("The result of a function is text; put a picture into a message.")
        content = "\n".join(part.text for part in content if part.type == "text")
    return fix_surrogates(f"Error: {message.error}\n{content}".rstrip() if message.error else content)


def _name_extra(prefix: str, part: BaseModel) -> list[str]:
    return [f"{prefix}{name}" for name, value in (part.model_extra or {}).items() if value is not None]


def _read_content(message: UserMessage, asked: AskedMessage) -> str | list[dict[str, Any]]:
    if isinstance(message.content, str):
        return fix_surrogates(message.content.strip() and message.content)
    parts: list[dict[str, Any]] = []
    for part in message.content:
        match part.type:
            case "text":
                parts.append({"type": "text", "text": part.text})
            case "image":
                parts.append({"type": "image_url", "image_url": {"url": _address(part.source)}})
            case _:
                asked.files.append(_file(part, len(asked.files) + 1))
    if all(one["type"] == "text" for one in parts):
        return fix_surrogates("\n".join(one["text"] for one in parts))
    return fix_surrogates(parts)


def _address(source: Any) -> str:
    if isinstance(source, DataSource):
        return f"data:{source.mime_type};base64,{source.value}"
    if isinstance(source, UrlSource):
        return source.value
    raise InvalidInput("Send the picture itself or its address: no file has an id here.")


def _file(part: Any, number: int) -> SentFile:
    if not isinstance(part.source, DataSource):
        raise InvalidInput(f"Send the {part.type} itself, as a source of the type data.")
    ending = part.source.mime_type.partition("/")[2].partition(";")[0] or "bin"
    try:
        content = decode_content(part.source.value)
    except ValueError as error:
        raise InvalidInput(f"The {part.type} is no base64.") from error
    given = _mapping(part.metadata).get("filename")
    return SentFile(str(given or f"{part.type}-{number}.{ending}"), content)


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def read_answer(entry: ResumeEntry) -> Any:
    """Return an answer as the engine takes it: a form with the one field `answer` as its text."""
    if entry.status == "cancelled":
        return {"type": "reject", "message": "The user has not answered."}
    payload: Any = entry.payload
    if isinstance(payload, dict):
        form = cast("Mapping[str, Any]", payload)
        if "answer" in form:
            return form["answer"]
        if isinstance(form.get("approved"), bool):
            return {"type": "approve"} if form["approved"] else {"type": "reject", "message": ""}
    return cast("Any", payload)
