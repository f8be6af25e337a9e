"""Tool calls written out in text."""

import json

import pytest
from langchain_core.messages import AIMessage
from pydantic import TypeAdapter

from maniple.agents.middleware.text_tools import parse_text_call, parse_tool_calls
from maniple.store.redaction import make_serializer

NAMES = {"bash_tool", "crawl_tool"}


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "bash_tool", "arguments": {"cmd": "ls"}}',
        '```json\n{"name": "bash_tool", "arguments": {"cmd": "ls"}}\n```',
        '<tool_call>\n{"name": "bash_tool", "arguments": {"cmd": "ls"}}\n</tool_call>',
        '{"tool": "bash_tool", "parameters": {"cmd": "ls"}}',
        "{'action': 'bash_tool', 'action_input': {'cmd': 'ls'}}",
    ],
)
def test_a_call_that_is_spelled_out_becomes_one(text):
    message = parse_text_call(AIMessage(text), NAMES)
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [("bash_tool", {"cmd": "ls"})]
    assert message.text == ""


@pytest.mark.parametrize(
    "text",
    [
        "Use bash_tool to list files.",
        '{"name": "rm_tool", "arguments": {"cmd": "ls"}}',
        '{"answer": 4}',
        'The call would be {"name": "bash_tool", "arguments": {"cmd": "ls"}} but I advise against it.',
        "{",
        "",
    ],
)
def test_anything_else_stays_an_answer(text):
    assert parse_text_call(AIMessage(text), NAMES).tool_calls == []


@pytest.mark.parametrize(
    "arguments", [{"n": 2**70, "m": [-(2**63) - 1]}, json.loads('{"a":' * 400 + "1" + "}" * 400)]
)
def test_arguments_survive_any_format_that_a_model_writes(arguments):
    call = {"name": "bash_tool", "args": arguments, "id": "1", "type": "tool_call"}
    message = parse_tool_calls(AIMessage("", tool_calls=[call]), NAMES)
    kept = make_serializer().loads_typed(make_serializer().dumps_typed(message)).tool_calls[0]["args"]
    assert str(2**70) in str(kept) or "nested deeper than 100 levels" in str(kept)
    assert isinstance(TypeAdapter(dict[str, int | list[int] | dict]).validate_python(kept), dict)
