"""Middleware for tool calls in text, and for answers that are cut at the output limit.

A model with native tool calling may still write a call into its text, in any of the forms of `text_calls`.
It becomes a tool call, and the text around it stays the message's text. For an endpoint that rejects `tools`,
the prompt describes the tools, earlier calls and results are sent as text, and the answer is read the same
way.
"""

import asyncio
import json
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

from maniple.agents.call_forms import TextCall, as_arguments, clean_name
from maniple.agents.middleware.argument_decoding import decode_arguments
from maniple.agents.middleware.base import ModelHandler
from maniple.agents.middleware.tool_errors import make_storable
from maniple.agents.text_calls import find_last_calls, find_own_calls, without_blocks
from maniple.errors import ModelError
from maniple.llms import capabilities_of
from maniple.text import without_thoughts
from maniple.thoughts import split_thoughts
from maniple.types import STEP_FAILED

_CUT_CALL = (
    f"{STEP_FAILED} the answer reached its length limit in the middle of a tool call "
    "(models.*.max_output_tokens)."
)
Tool = BaseTool | dict[str, Any]


class TextToolCalls(AgentMiddleware[Any, Any]):
    """Parses tool calls in text, and describes tools in the prompt if the endpoint has no tool calling."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        if not request.tools:
            return await handler(request)
        capabilities = capabilities_of(request.model)
        if capabilities.has("tools"):
            try:
                return await _parse_response(await handler(request), request.tools)
            except ModelError as error:
                # The endpoint has just rejected `tools`, which is now recorded: continue in text.
                if error.code != "model_bad_request" or capabilities.has("tools"):
                    raise
        return await self.request_as_text(request, handler)

    async def request_as_text(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        """Send a request to a model without tool calling."""
        return await _parse_response(await handler(_to_text_request(request)), request.tools)


def _to_text_request(request: ModelRequest) -> ModelRequest:
    described = "\n".join(json.dumps(_tool_schema(tool), ensure_ascii=False) for tool in request.tools)
    system = SystemMessage(
        "You have these tools:\n" + described + "\nTo use one, answer with JSON only: "
        '{"name": TOOL, "arguments": {…}}. Its result comes next. When you are done, answer in plain text.'
    )
    messages = [system, *(_to_text_message(message) for message in request.messages)]
    return request.override(messages=cast("list[AnyMessage]", _merge_system_messages(messages)), tools=[])


def _tool_schema(tool: Tool) -> dict[str, Any]:
    return convert_to_openai_function(tool) if isinstance(tool, BaseTool) else tool


def _to_text_message(message: BaseMessage) -> BaseMessage:
    match message:
        case AIMessage(tool_calls=[_, *_]):
            calls = [{"name": one["name"], "arguments": one["args"]} for one in message.tool_calls]
            written = (json.dumps(one, ensure_ascii=False) for one in calls)
            return AIMessage("\n".join([text for text in [message.text.strip()] if text] + [*written]))
        case ToolMessage():
            return HumanMessage(f"Result of {message.name}:\n{message.text}")
        case _:
            return message


def _merge_system_messages(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Join all system messages into one, because several endpoints accept only one."""
    system = [m.text for m in messages if isinstance(m, SystemMessage)]
    rest = [m for m in messages if not isinstance(m, SystemMessage)]
    return [SystemMessage("\n\n".join(reversed(system))), *rest]


async def _parse_response(response: ModelResponse, tools: Sequence[Tool]) -> ModelResponse:
    by_name = {tool.name if isinstance(tool, BaseTool) else tool.get("name", ""): tool for tool in tools}
    # Repairing long JSON may block the event loop.
    result = [
        await asyncio.to_thread(parse_tool_calls, m, by_name) if isinstance(m, AIMessage) else m
        for m in response.result
    ]
    return ModelResponse(result=result, structured_response=response.structured_response)


def parse_tool_calls(message: AIMessage, tools: Mapping[str, Tool]) -> AIMessage:
    """Return `message` with its tool calls repaired, completed with ids, or parsed from its text."""
    if is_truncated(message) and (message.tool_calls or message.invalid_tool_calls):
        # Cut arguments may still parse, and would be half a program or half a file.
        return message.model_copy(update={"content": _CUT_CALL, "tool_calls": [], "invalid_tool_calls": []})
    repaired = [call for one in message.invalid_tool_calls if (call := _repair_call(one, tools)) is not None]
    calls = [_clean_call(call, tools) for call in (*message.tool_calls, *repaired)]
    if calls:
        return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})
    return parse_text_calls(message, tools)


def _repair_call(call: Mapping[str, Any], tools: Mapping[str, Tool]) -> dict[str, Any] | None:
    name = clean_name(call.get("name") or "", tools.keys())
    arguments = as_arguments(call.get("args") or "")
    if name not in tools or arguments is None:
        return None
    return {"name": name, "args": arguments, "id": call.get("id"), "type": "tool_call"}


def _clean_call(call: Mapping[str, Any], tools: Mapping[str, Tool]) -> dict[str, Any]:
    """Return a call with a tool's name, arguments of its types that can be stored, and an id."""
    name = clean_name(call["name"], tools.keys())
    id_, arguments = call.get("id") or f"call_{uuid4().hex}", call["args"]
    if name not in tools:
        return {**call, "args": make_storable(arguments), "id": id_}
    arguments = decode_arguments(_tool_schema(tools[name]).get("parameters"), arguments)
    return {**call, "name": name, "args": make_storable(arguments), "id": id_}


def parse_text_calls(message: AIMessage, tools: Mapping[str, Tool]) -> AIMessage:
    """Return `message` with the calls of `tools` in its text; the text around them stays.

    Without any text, calls at the end of the thoughts count: some servers take all up to `</think>` for
    thoughts, and some models never write it. If the arguments of one call cannot be read, the message stays.
    """
    thoughts, text = split_thoughts("" if message.tool_calls else message.text)
    text = text.strip()
    blocks = find_own_calls(text, tools.keys())
    if not text and not message.tool_calls:
        thoughts = str(message.additional_kwargs.get("reasoning_content") or thoughts)
        blocks = find_last_calls(thoughts, tools.keys())
    calls: list[dict[str, Any]] = []
    for one in (call for block in blocks for call in block.calls):
        arguments = _arguments_of(one, tools[one.name])
        if arguments is None:
            return message
        calls.append(_clean_call({"name": one.name, "args": arguments, "type": "tool_call"}, tools))
    if not calls:
        return message
    if is_truncated(message):
        return message.model_copy(update={"content": _CUT_CALL})
    content = without_blocks(text, blocks) if text else ""
    return message.model_copy(update={"content": content, "tool_calls": calls})


def _arguments_of(call: TextCall, tool: Tool) -> dict[str, Any] | None:
    """Return the arguments of a call by name; None if they cannot be read."""
    if call.arguments is None or not call.positional:
        return call.arguments
    names = list(_tool_schema(tool).get("parameters", {}).get("properties", {}))
    if len(call.positional) > len(names):
        return None
    return {**dict(zip(names, call.positional, strict=False)), **call.arguments}


TRUNCATION_NOTE = "[This answer was cut at the model's output limit.]"


def is_truncated(answer: BaseMessage) -> bool:
    """Return whether the answer was cut at the model's output limit."""
    return answer.response_metadata.get("finish_reason") == "length"


def text_with_note(answer: AIMessage) -> str:
    """Return the answer's text without thoughts, with a note if it was cut."""
    text = without_thoughts(answer.text)
    return f"{text}\n\n{TRUNCATION_NOTE}" if text and is_truncated(answer) else text


class TruncationNotes(AgentMiddleware[Any, Any]):
    """Adds a note to answers that were cut. `TextToolCalls` handles tool calls that were cut."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        response = await handler(request)
        result = [_add_truncation_note(message) for message in response.result]
        return ModelResponse(result=result, structured_response=response.structured_response)


def _add_truncation_note(message: BaseMessage) -> Any:
    if not isinstance(message, AIMessage) or message.tool_calls or message.invalid_tool_calls:
        return message
    text = text_with_note(message) if is_truncated(message) else ""
    return message.model_copy(update={"content": text}) if text else message
