"""Middleware: models without tool calling say thought and action as JSON of one shape (seed 003)."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_function
from pydantic import BaseModel, ConfigDict, Field, model_validator

from maniple.agents.middleware.base import ModelHandler
from maniple.agents.middleware.text_tools import TextToolCalls
from maniple.agents.middleware.tool_errors import make_storable
from maniple.llms import Shape, ShapeError, ask_for

REACT_RESPONSE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "thought": {
            "type": "object",
            "properties": {"content": {"type": "string"}, "reasoning_type": {"type": "string"}},
            "required": ["content"],
        },
        "action": {
            "type": "object",
            "properties": {"tool_name": {"type": "string"}, "parameters": {"type": "object"}},
            "required": ["tool_name", "parameters"],
        },
        "is_complete": {"type": "boolean"},
        "result": {},
    },
    "required": ["thought", "action", "is_complete"],
}
"""The response as seed 003 has it."""
_REPAIRS = 2
_MISSED_CHARACTERS = 2_000


class _Thought(BaseModel):
    content: str = ""
    reasoning_type: str = ""


class _Action(BaseModel):
    tool_name: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)


class _Response(BaseModel):
    model_config = ConfigDict(extra="ignore")

    thought: _Thought = _Thought()
    action: _Action | None = None
    is_complete: bool = False
    result: Any = None

    @model_validator(mode="before")
    @classmethod
    def _plain_thought(cls, given: Any) -> Any:
        """Take a thought that is a mere text."""
        if isinstance(given, dict) and isinstance(given.get("thought"), str):
            return {**given, "thought": {"content": given["thought"]}}
        return given


class JsonSteps(TextToolCalls):
    """Asks such models for the object; it is repaired, and a model that missed it is shown its mistake twice.

    After that it is a call of no tool, whose failure counts. A model that has tool calls is asked for those.
    """

    async def in_text(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        names = {tool.name for tool in request.tools if isinstance(tool, BaseTool)}
        shape = Shape("react_response", REACT_RESPONSE_SCHEMA, _Response)

        def check(said: _Response) -> _Response:
            if said.is_complete:
                return said
            if said.action is None or said.action.tool_name not in names:
                named = repr(said.action.tool_name) if said.action else "none"
                raise ValueError(f"action.tool_name is {named}; it must be one of {', '.join(sorted(names))}")
            return said

        try:
            said, answer = await ask_for(
                request.model, _in_words(request), shape, check=check, repairs=_REPAIRS
            )
        except ShapeError as error:
            thought = _Thought(content=error.answer[:_MISSED_CHARACTERS])
            said, answer = _Response(thought=thought, action=_Action(tool_name=shape.name)), AIMessage("")
        return ModelResponse(result=[_as_message(said, answer)])


def _as_message(said: _Response, answer: AIMessage) -> AIMessage:
    if said.is_complete:
        result = said.result if said.result is not None else said.thought.content
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        return answer.model_copy(update={"content": text, "tool_calls": [], "invalid_tool_calls": []})
    action = said.action or _Action()
    arguments = make_storable(action.parameters)
    call = {"name": action.tool_name, "args": arguments, "id": f"call_{uuid4().hex}", "type": "tool_call"}
    return answer.model_copy(
        update={"content": said.thought.content, "tool_calls": [call], "invalid_tool_calls": []}
    )


def _in_words(request: ModelRequest) -> list[BaseMessage]:
    """Return the conversation as models read it that know of no tools, with how to answer in its prompt."""
    described = "\n".join(
        json.dumps(convert_to_openai_function(tool), ensure_ascii=False)
        for tool in request.tools
        if isinstance(tool, BaseTool)
    )
    how = (
        f"Your tools:\n{described}\nAnswer with one JSON object and nothing else, of this schema:\n"
        f"{json.dumps(REACT_RESPONSE_SCHEMA)}\n"
        "thought.content: why. action: the tool and its parameters; its result comes next. When the task is "
        "done, is_complete is true and result is the whole answer."
    )
    messages = [_as_text(one) for one in request.messages]
    prompts = [one.text for one in messages if isinstance(one, SystemMessage)]
    rest = [one for one in messages if not isinstance(one, SystemMessage)]
    # Several endpoints accept one system message only.
    return [SystemMessage("\n\n".join([*prompts, how])), *_joined(rest)]


def _as_text(message: BaseMessage) -> BaseMessage:
    match message:
        case AIMessage(tool_calls=[call, *_]):
            action = {"tool_name": call["name"], "parameters": call["args"]}
            step = {"thought": {"content": message.text}, "action": action, "is_complete": False}
            return AIMessage(json.dumps(step, ensure_ascii=False))
        case ToolMessage():
            return HumanMessage(f"Result of {message.name}:\n{message.text}")
        case _:
            return message


def _joined(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with those of the user that follow each other as one, where they are words."""
    joined: list[BaseMessage] = []
    for message in messages:
        last = joined[-1] if joined else None
        words = isinstance(message, HumanMessage) and isinstance(message.content, str)
        if words and isinstance(last, HumanMessage) and isinstance(last.content, str):
            joined[-1] = HumanMessage(f"{last.content}\n\n{message.content}")
        else:
            joined.append(message)
    return joined
