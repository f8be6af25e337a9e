"""Middleware: tools for models that cannot call them natively, and for those that say it in text.

A model that has native calls but answers with a bare or fenced `{"name": …, "arguments": …}` meant a
call: it becomes one. To an endpoint that rejects `tools`, they are described in the prompt, earlier
calls and results are shown as text, and its JSON is read as the call.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_function

from maniple.agents.middleware.base import ModelHandler
from maniple.agents.middleware.tool_errors import make_storable
from maniple.errors import ModelError
from maniple.llms import capabilities_of, read_json
from maniple.text import without_thoughts

_OPENING = re.compile(r"\A(?:```(?:json|tool_call)?|<tool_call>)\s*")
_CUT_CALL = (
    "STEP FAILED: the answer reached its length limit in the middle of a tool call "
    "(models.*.max_output_tokens)."
)
_CLOSINGS = ("```", "</tool_call>")
_NAME_KEYS = ("name", "tool", "tool_name", "function", "action")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "tool_input", "input", "action_input")


class TextToolCalls(AgentMiddleware[Any, Any]):
    """Read tool calls out of text, and write tools into it where the endpoint has none."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        if not request.tools:
            return await handler(request)
        capabilities = capabilities_of(request.model)
        if capabilities.has("tools"):
            try:
                return await _with_calls(await handler(request), request.tools)
            except ModelError as error:
                # Rejected and noted just now: go on in text.
                if error.code != "model_bad_request" or capabilities.has("tools"):
                    raise
        return await self.in_text(request, handler)

    async def in_text(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        """Ask a model that has no calls of its own."""
        return await _with_calls(await handler(_in_text(request)), request.tools)


def _in_text(request: ModelRequest) -> ModelRequest:
    described = "\n".join(json.dumps(_described(tool), ensure_ascii=False) for tool in request.tools)
    system = SystemMessage(
        "You have these tools:\n" + described + "\nTo use one, answer with JSON only: "
        '{"name": TOOL, "arguments": {…}}. Its result comes next. When you are done, answer in plain text.'
    )
    messages = [system, *(_as_text(message) for message in request.messages)]
    return request.override(messages=cast("list[AnyMessage]", _joined_system(messages)), tools=[])


def _described(tool: BaseTool | dict[str, Any]) -> dict[str, Any]:
    return convert_to_openai_function(tool) if isinstance(tool, BaseTool) else tool


def _as_text(message: BaseMessage) -> BaseMessage:
    match message:
        case AIMessage(tool_calls=[call, *_]):
            return AIMessage(
                json.dumps({"name": call["name"], "arguments": call["args"]}, ensure_ascii=False)
            )
        case ToolMessage():
            return HumanMessage(f"Result of {message.name}:\n{message.text}")
        case _:
            return message


def _joined_system(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Join system messages into the first: several endpoints accept only one."""
    system = [m.text for m in messages if isinstance(m, SystemMessage)]
    rest = [m for m in messages if not isinstance(m, SystemMessage)]
    return [SystemMessage("\n\n".join(reversed(system))), *rest]


async def _with_calls(response: ModelResponse, tools: Sequence[BaseTool | dict[str, Any]]) -> ModelResponse:
    names = {tool.name if isinstance(tool, BaseTool) else tool.get("name", "") for tool in tools}
    # In a thread: what a model wrote may take its time to be repaired.
    result = [
        await asyncio.to_thread(parse_tool_calls, m, names) if isinstance(m, AIMessage) else m
        for m in response.result
    ]
    return ModelResponse(result=result, structured_response=response.structured_response)


def parse_tool_calls(message: AIMessage, names: set[str]) -> AIMessage:
    """Return `message` with the tool calls it meant: spelled out, broken or without an id."""
    if is_truncated(message) and (message.tool_calls or message.invalid_tool_calls):
        # What is left of the arguments may parse, and would be half a program or half a file.
        return message.model_copy(update={"content": _CUT_CALL, "tool_calls": [], "invalid_tool_calls": []})
    mended = [call for one in message.invalid_tool_calls if (call := _mended(one, names)) is not None]
    calls = [_kept(call) for call in (*message.tool_calls, *mended)]
    if calls:
        return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})
    return parse_text_call(message, names)


def _mended(call: Mapping[str, Any], names: set[str]) -> dict[str, Any] | None:
    try:
        arguments = read_json(call.get("args") or "")
    except ValueError:
        return None
    if call.get("name") not in names or not isinstance(arguments, dict):
        return None
    return {"name": call["name"], "args": arguments, "id": call.get("id"), "type": "tool_call"}


def _kept(call: Mapping[str, Any]) -> dict[str, Any]:
    return {**call, "args": make_storable(call["args"]), "id": call.get("id") or _new_id()}


def _new_id() -> str:
    return f"call_{uuid4().hex}"


def parse_text_call(message: AIMessage, names: set[str]) -> AIMessage:
    """Return `message` with the tool call that its text spells out, if it does name one of `names`."""
    text = _unfenced(message.text)
    if message.tool_calls or not (text.startswith("{") and text.endswith("}")):
        return message
    try:
        value = read_json(text)
    except ValueError:
        return message
    if not isinstance(value, dict):
        return message
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in _ARGUMENT_KEYS if isinstance(value.get(key), dict)), None)
    if name not in names or arguments is None:
        return message
    call = {"name": name, "args": arguments, "type": "tool_call"}
    return message.model_copy(update={"content": "", "tool_calls": [_kept(call)]})


def _unfenced(text: str) -> str:
    text = _OPENING.sub("", text.strip(), count=1)
    for closing in _CLOSINGS:
        text = text.removesuffix(closing).rstrip()
    return text


TRUNCATION_NOTE = "[This answer was cut at the model's output limit.]"


def is_truncated(answer: BaseMessage) -> bool:
    """Say whether the model would have said more."""
    return answer.response_metadata.get("finish_reason") == "length"


def text_with_note(answer: AIMessage) -> str:
    """Return the answer's text without thoughts, and with the note when it was cut."""
    text = without_thoughts(answer.text)
    return f"{text}\n\n{TRUNCATION_NOTE}" if text and is_truncated(answer) else text


class TruncationNotes(AgentMiddleware[Any, Any]):
    """Mark answers in words; a tool call that was cut is the affair of `TextToolCalls`."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        response = await handler(request)
        result = [_noted(message) for message in response.result]
        return ModelResponse(result=result, structured_response=response.structured_response)


def _noted(message: BaseMessage) -> Any:
    if not isinstance(message, AIMessage) or message.tool_calls or message.invalid_tool_calls:
        return message
    text = text_with_note(message) if is_truncated(message) else ""
    return message.model_copy(update={"content": text}) if text else message
