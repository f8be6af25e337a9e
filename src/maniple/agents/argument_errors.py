"""Middleware: whoever calls a tool with wrong arguments is shown what was wrong, and what the tool takes."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_function
from langgraph.types import Command

from maniple.agents.task import shortened
from maniple.agents.tool_arguments import misfits
from maniple.agents.tool_failures import failed
from maniple.agents.wrapping import ToolAnswer, ToolHandler
from maniple.tools.discreet import told_arguments

SCHEMA_CHARACTERS = 3_000
ARGUMENT_CHARACTERS = 200
ARGUMENTS_CHARACTERS = 1_000
_MISFIT_CHARACTERS = 1_000


class ArgumentErrors(AgentMiddleware[Any, Any]):
    """Puts these words in the place of LangGraph's, which repeat the arguments in full and show no schema."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        tool = request.tool
        if tool is None or tool.handle_validation_error:
            return await handler(request)
        arguments = told_arguments(tool, request.tool_call["args"])
        if isinstance(tool.args_schema, dict):
            return _with_schema(await handler(request), tool, arguments)
        # By the tool itself, so that clients are told the same.
        told = tool.model_copy(update={"handle_validation_error": partial(_words, tool, arguments)})
        return await handler(request.override(tool=told))


def _words(tool: BaseTool, arguments: Mapping[str, Any], error: Exception) -> str:
    wrong = misfits(tool, arguments)
    return (
        f"{tool.name} was not run.\n{in_words(tool, wrong, arguments)}" if wrong else failed(tool.name, error)
    )


def _with_schema(
    answer: ToolMessage | Command[Any], tool: BaseTool, arguments: Mapping[str, Any]
) -> ToolMessage | Command[Any]:
    """Return the answer of a tool whose arguments only its server checks, with what may help if it failed."""
    if not isinstance(answer, ToolMessage) or answer.status != "error":
        return answer
    if not (wrong := misfits(tool, arguments)):
        return answer
    words = f"{answer.text}\n{in_words(tool, wrong, arguments)}"
    return answer.model_copy(update={"content": words})


def in_words(tool: BaseTool, wrong: str, arguments: Mapping[str, Any]) -> str:
    """Return what is `wrong` with arguments, beside them and the tool's schema; at most 6,000 characters."""
    schema = json.dumps(convert_to_openai_function(tool).get("parameters", {}), ensure_ascii=False)
    given = json.dumps(_briefly(arguments), ensure_ascii=False, default=str)
    return (
        f"The arguments do not fit. {shortened(wrong, _MISFIT_CHARACTERS)}\n"
        f"Given: {shortened(given, ARGUMENTS_CHARACTERS)}\n"
        f"It takes: {shortened(schema, SCHEMA_CHARACTERS)}"
    )


def _briefly(value: Any) -> Any:
    """Return arguments with long texts cut in their middles."""
    if isinstance(value, str):
        return shortened(value, ARGUMENT_CHARACTERS)
    if isinstance(value, Mapping):
        return {name: _briefly(one) for name, one in value.items()}
    return [_briefly(one) for one in value] if isinstance(value, list) else value
