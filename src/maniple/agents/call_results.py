"""What a tool gave, as the ledger keeps it: a message, or commands with their updates of the graph's state.

Written as JSON in plain words, and not by LangGraph's serializer, so that secrets can be taken out of it.
"""

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage, message_to_dict, messages_from_dict
from langgraph.types import Command, Send

from maniple.agents.wrapping import ToolAnswer

Answer = ToolAnswer | list[ToolAnswer]
"""What LangGraph takes from a tool."""

SAID_BY = "said_by"
"""Marks a tool's message, or the metadata of a tool, whose words are the user's or ours, no data."""

_NO_WORDS = "{name} did its work before this program was restarted. What it changed in the state is lost."


def kept(answer: Answer, name: str, tool_call_id: str) -> dict[str, Any]:
    """Return `answer` for the ledger.

    Of commands that JSON cannot hold, such as those with objects of the tool's own, only the words to the
    model are kept: the tool is not run again, and its update of the state is lost with the process.
    """
    message = _words_of(answer, name, tool_call_id)
    record: dict[str, Any] = {"status": message.status, "content": message.content}
    if SAID_BY in message.additional_kwargs:
        record[SAID_BY] = message.additional_kwargs[SAID_BY]
    if isinstance(answer, ToolMessage):
        return record
    try:
        written = _written(answer)
        whole = _read(json.loads(json.dumps(written))) == answer
    except (TypeError, ValueError):
        return record
    return {**record, "commands": written} if whole else record


def restored(record: Mapping[str, Any], name: str, tool_call_id: str) -> Answer:
    """Return what a record of the ledger was made from."""
    if "commands" in record:
        return _read(record["commands"])
    message = ToolMessage(record["content"], tool_call_id=tool_call_id, name=name, status=record["status"])
    if SAID_BY in record:
        message.additional_kwargs[SAID_BY] = record[SAID_BY]
    return message


def _words_of(answer: Answer, name: str, tool_call_id: str) -> ToolMessage:
    for one in answer if isinstance(answer, list) else [answer]:
        update = one.update if isinstance(one, Command) else None
        messages = update.get("messages") if isinstance(update, Mapping) else [one]
        for message in messages if isinstance(messages, list) else [messages]:
            if isinstance(message, ToolMessage) and message.tool_call_id == tool_call_id:
                return message
    return ToolMessage(_NO_WORDS.format(name=name), tool_call_id=tool_call_id, name=name)


def _written(value: Any) -> Any:
    """Return a tree for JSON in which each object says its kind: `{KIND: …}`."""
    match value:
        case Command():
            parts = (value.graph, value.update, value.resume, value.goto)
            return {"command": [_written(part) for part in parts]}
        case Send():
            return {"send": [value.node, _written(value.arg)]}
        case BaseMessage():
            return {"message": message_to_dict(value)}
        case dict():
            return {"dict": [[_written(key), _written(one)] for key, one in value.items()]}
        case tuple():
            return {"tuple": [_written(one) for one in value]}
        case list():
            return [_written(one) for one in value]
        case str() | int() | float() | None:
            return value
        case _:
            raise TypeError(f"{type(value).__name__} is not kept in the ledger")


def _read(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_read(one) for one in tree]
    if not isinstance(tree, dict):
        return tree
    ((kind, value),) = tree.items()
    match kind:
        case "message":
            return messages_from_dict([value])[0]
        case "dict":
            return {_read(key): _read(one) for key, one in value}
        case "tuple":
            return tuple(_read(one) for one in value)
        case "send":
            return Send(value[0], _read(value[1]))
        case _:
            graph, update, resume, goto = (_read(one) for one in value)
            return Command(graph=graph, update=update, resume=resume, goto=goto)
