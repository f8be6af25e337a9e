"""Middleware that turns the failures of tools into messages to the model."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ToolErrorMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_function
from langgraph.types import Command
from pydantic import BaseModel, ValidationError

from maniple.agents.middleware.base import ToolAnswer, ToolHandler
from maniple.agents.task import truncate_middle
from maniple.errors import BrowserError, ManipleError, ToolFailure, describe_error
from maniple.tools.registry import redact_arguments
from maniple.types import is_dict, is_list, is_mapping


def build_failure_middleware() -> ToolErrorMiddleware:
    """Return the middleware; interrupts and cancellation pass it unchanged."""
    return ToolErrorMiddleware(_describe_failure)


def describe_failure(tool_name: str, error: Exception) -> str:
    """Return the message to the model about a failed tool.

    Browser errors are not prefixed with the tool's name.
    """
    if isinstance(error, BrowserError):
        return describe_error(error)
    return f"{tool_name} failed: {describe_error(error)}"


def _describe_failure(error: Exception, request: ToolCallRequest) -> str | None:
    if isinstance(error, ManipleError) and not isinstance(error, ToolFailure):
        # Caused by an endpoint, the store or the budget and not by the tool, so it must end the run.
        return None
    return describe_failure(request.tool_call["name"], error)


SCHEMA_CHARACTERS = 3_000
ARGUMENT_CHARACTERS = 200
ARGUMENTS_CHARACTERS = 1_000
_MISFIT_CHARACTERS = 1_000


class ArgumentErrors(AgentMiddleware[Any, Any]):
    """Replaces LangGraph's messages about invalid arguments, which omit the schema."""

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        tool = request.tool
        if tool is None or tool.handle_validation_error:
            return await handler(request)
        arguments = redact_arguments(tool, request.tool_call["args"])
        if isinstance(tool.args_schema, dict):
            return _with_schema(await handler(request), tool, arguments)
        # Set on the tool itself, so that its callbacks report the same text to clients.
        replacement = tool.model_copy(
            update={"handle_validation_error": partial(_describe_validation_error, tool, arguments)}
        )
        return await handler(request.override(tool=replacement))


def _describe_validation_error(tool: BaseTool, arguments: Mapping[str, Any], error: Exception) -> str:
    wrong = find_argument_errors(tool, arguments)
    return (
        f"{tool.name} was not run.\n{describe_argument_errors(tool, wrong, arguments)}"
        if wrong
        else describe_failure(tool.name, error)
    )


def _with_schema(
    answer: ToolMessage | Command[Any], tool: BaseTool, arguments: Mapping[str, Any]
) -> ToolMessage | Command[Any]:
    """Return a failed answer with the argument errors and the schema, for tools whose server checks the
    arguments.
    """
    if not isinstance(answer, ToolMessage) or answer.status != "error":
        return answer
    if not (wrong := find_argument_errors(tool, arguments)):
        return answer
    text = f"{answer.text}\n{describe_argument_errors(tool, wrong, arguments)}"
    return answer.model_copy(update={"content": text})


def describe_argument_errors(tool: BaseTool, wrong: str, arguments: Mapping[str, Any]) -> str:
    """Return a message with the errors (`wrong`), the arguments and the tool's schema.

    At most 6,000 characters.
    """
    schema = json.dumps(convert_to_openai_function(tool).get("parameters", {}), ensure_ascii=False)
    given = json.dumps(_abbreviate(arguments), ensure_ascii=False, default=str)
    return (
        f"The arguments do not fit. {truncate_middle(wrong, _MISFIT_CHARACTERS)}\n"
        f"Given: {truncate_middle(given, ARGUMENTS_CHARACTERS)}\n"
        f"It takes: {truncate_middle(schema, SCHEMA_CHARACTERS)}"
    )


def _abbreviate(value: Any) -> Any:
    """Return arguments with long texts cut in their middles."""
    if isinstance(value, str):
        return truncate_middle(value, ARGUMENT_CHARACTERS)
    if is_mapping(value):
        return {name: _abbreviate(one) for name, one in value.items()}
    return [_abbreviate(one) for one in value] if is_list(value) else value


_MAX_LEVELS = 100
_TOO_DEEP = f"[left out: nested deeper than {_MAX_LEVELS} levels]"
_MAX_MISTAKES = 20
_INT64_RANGE = range(-(2**63), 2**64)


def make_storable(arguments: Any, levels: int = _MAX_LEVELS) -> Any:
    """Return `arguments` in the form that msgpack, the format of checkpoints, can store.

    Integers beyond 64 bits become strings of digits, which tools parse as integers. Values nested deeper than
    `levels` are left out.
    """
    if isinstance(arguments, int) and arguments not in _INT64_RANGE:
        return str(arguments)
    if levels == 0 and isinstance(arguments, dict | list):
        return _TOO_DEEP
    if is_list(arguments):
        return [make_storable(one, levels - 1) for one in arguments]
    if is_dict(arguments):
        return {name: make_storable(one, levels - 1) for name, one in arguments.items()}
    return arguments


def check_arguments(tool: BaseTool, arguments: Mapping[str, Any]) -> str:
    """Return a description of what is wrong with `arguments` for `tool`; "" if nothing is.

    Unknown names are errors: they would be dropped, so that the tool would not run with the arguments that
    the user saw. For tools with a JSON Schema, only names are checked; their server checks the values.
    """
    schema = tool.tool_call_schema
    if isinstance(schema, dict):
        return _check_names(schema, arguments)
    if not issubclass(schema, BaseModel):
        return ""  # a pydantic v1 model: the tool itself rejects invalid arguments
    if unknown := _describe_unknown(arguments, [*schema.model_fields, *_aliases(schema)]):
        return unknown
    return _check_values(schema, arguments)


def find_argument_errors(tool: BaseTool, arguments: Mapping[str, Any]) -> str:
    """Return a description of why a call's arguments made it fail; "" if they did not.

    Unknown names are no error, because they were dropped. For tools with a JSON Schema, unknown names and
    nested values are included, because the server may have rejected them.
    """
    schema = tool.tool_call_schema
    if isinstance(schema, dict):
        return _check_names(schema, arguments) or "; ".join(
            islice(find_schema_errors(schema, arguments), _MAX_MISTAKES)
        )
    return _check_values(schema, arguments) if issubclass(schema, BaseModel) else ""


def _check_values(schema: type[BaseModel], arguments: Mapping[str, Any]) -> str:
    try:
        schema.model_validate(dict(arguments))
    except ValidationError as error:
        return "; ".join(
            f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()
        )
    return ""


def _check_names(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if missing:
        return f"missing: {', '.join(missing)}"
    if schema.get("additionalProperties"):
        return ""
    return _describe_unknown(arguments, list(schema.get("properties", {})))


def _aliases(schema: type[BaseModel]) -> list[str]:
    return [field.alias for field in schema.model_fields.values() if field.alias]


def _describe_unknown(arguments: Mapping[str, Any], known: list[str]) -> str:
    unknown = [name for name in arguments if name not in known]
    return f"unknown: {', '.join(unknown)} (it takes {', '.join(known) or 'nothing'})" if unknown else ""


_KINDS: Mapping[Any, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int | float) and not _is_boolean(value) and value % 1 == 0,
    "number": lambda value: isinstance(value, int | float) and not _is_boolean(value),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
    "null": lambda value: value is None,
}


def find_schema_errors(schema: Any, value: Any, at: str = "") -> Iterator[str]:
    """Yield errors such as `items.0.count: should be integer`; for alternatives, those of the best match."""
    if not is_mapping(schema):
        return
    kinds = _as_list(schema.get("type"))
    if kinds and not any(_is_of_type(value, kind) for kind in kinds):
        yield f"{_path_prefix(at)}should be {' or '.join(map(str, kinds))}"
        return
    if (known := _as_list(schema.get("enum"))) and value not in known:
        yield f"{_path_prefix(at)}should be one of {json.dumps(known, ensure_ascii=False, default=str)}"
    yield from _in_alternatives(schema, value, at)
    if is_mapping(value):
        yield from _in_object(schema, value, at)
    elif is_list(value):
        for number, one in enumerate(value):
            yield from find_schema_errors(schema.get("items"), one, _join_path(at, number))


def _in_alternatives(schema: Mapping[str, Any], value: Any, at: str) -> Iterator[str]:
    for word in ("anyOf", "oneOf"):
        each = [list(find_schema_errors(one, value, at)) for one in _as_list(schema.get(word))]
        if each and all(each):
            yield from min(each, key=len)


def _in_object(schema: Mapping[str, Any], value: Mapping[str, Any], at: str) -> Iterator[str]:
    properties = schema.get("properties")
    known: Mapping[str, Any] = properties if is_mapping(properties) else {}
    required = [name for name in _as_list(schema.get("required")) if isinstance(name, str)]
    if missing := [name for name in required if name not in value]:
        yield f"{_path_prefix(at)}missing: {', '.join(missing)}"
    unknown = [str(name) for name in value if name not in known]
    if unknown and schema.get("additionalProperties") is False:
        yield f"{_path_prefix(at)}unknown: {', '.join(unknown)}"
    for name, one in value.items():
        yield from find_schema_errors(known.get(name), one, _join_path(at, name))


def _path_prefix(at: str) -> str:
    return f"{at}: " if at else ""


def _join_path(at: str, name: object) -> str:
    return f"{at}.{name}" if at else str(name)


def _as_list(value: Any) -> list[Any]:
    return value if is_list(value) else [value] if isinstance(value, str) else []


def _is_of_type(value: Any, kind: Any) -> bool:
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    return known is None or known(value)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)
