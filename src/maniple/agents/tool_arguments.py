"""What a model wrote as the arguments of a call: made fit to be kept, and checked against its tool."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

from maniple.agents.schema_misfits import schema_misfits

_MOST_LEVELS = 100
_TOO_DEEP = f"[left out: nested deeper than {_MOST_LEVELS} levels]"
_MOST = 20
_LONGEST_INTEGERS = range(-(2**63), 2**64)


def storable(arguments: Any, levels: int = _MOST_LEVELS) -> Any:
    """Return `arguments` as a checkpoint can hold them: msgpack has no longer integers and no endless depth.

    A longer integer becomes its digits, which a tool that takes an integer reads as one.
    """
    if isinstance(arguments, int) and arguments not in _LONGEST_INTEGERS:
        return str(arguments)
    if not isinstance(arguments, dict | list):
        return arguments
    if levels == 0:
        return _TOO_DEEP
    if isinstance(arguments, list):
        return [storable(one, levels - 1) for one in arguments]
    return {name: storable(one, levels - 1) for name, one in arguments.items()}


def wrong_arguments(tool: BaseTool, arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with `arguments` for `tool`, in words; "" when nothing is.

    A name that the tool does not know counts: it would be dropped, and what runs would not be what was shown.
    Of a tool that is described by JSON Schema alone the names are checked; its server checks the values.
    """
    schema = tool.tool_call_schema
    if isinstance(schema, dict):
        return _wrong_names(schema, arguments)
    if not issubclass(schema, BaseModel):
        return ""  # of pydantic's old kind: the tool itself refuses what does not fit
    if unknown := _unknown(arguments, [*schema.model_fields, *_aliases(schema)]):
        return unknown
    return _wrong_values(schema, arguments)


def misfits(tool: BaseTool, arguments: Mapping[str, Any]) -> str:
    """Return why a call cannot have run, in words; "" when its arguments are not the reason.

    A name that the tool does not know is none: it was dropped. Of a tool that is described by JSON Schema
    alone nobody but its server knows, and what it refused may well be a name; so may be what lies deeper.
    """
    schema = tool.tool_call_schema
    if isinstance(schema, dict):
        return _wrong_names(schema, arguments) or "; ".join(islice(schema_misfits(schema, arguments), _MOST))
    return _wrong_values(schema, arguments) if issubclass(schema, BaseModel) else ""


def _wrong_values(schema: type[BaseModel], arguments: Mapping[str, Any]) -> str:
    try:
        schema.model_validate(dict(arguments))
    except ValidationError as error:
        return "; ".join(
            f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()
        )
    return ""


def _wrong_names(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if missing:
        return f"missing: {', '.join(missing)}"
    if schema.get("additionalProperties"):
        return ""
    return _unknown(arguments, list(schema.get("properties", {})))


def _aliases(schema: type[BaseModel]) -> list[str]:
    return [field.alias for field in schema.model_fields.values() if field.alias]


def _unknown(arguments: Mapping[str, Any], known: list[str]) -> str:
    unknown = [name for name in arguments if name not in known]
    return f"unknown: {', '.join(unknown)} (it takes {', '.join(known) or 'nothing'})" if unknown else ""
