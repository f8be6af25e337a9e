"""Tool calls written out in text."""

import json

import pytest
from langchain_core.messages import AIMessage
from pydantic import TypeAdapter

from maniple.agents.middleware.text_tools import parse_text_calls, parse_tool_calls
from maniple.store.redaction import make_serializer

SCHEMA = {"type": "object", "properties": {"cmd": {"type": "string"}, "seconds": {"type": "integer"}}}
TOOLS = {
    name: {"name": name, "description": name, "parameters": SCHEMA} for name in ("bash_tool", "crawl_tool")
}


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "bash_tool", "arguments": {"cmd": "ls"}}',
        '```json\n{"name": "bash_tool", "arguments": {"cmd": "ls"}}\n```',
        '<tool_call>\n{"name": "bash_tool", "arguments": {"cmd": "ls"}}\n</tool_call>',
        '{"tool": "bash_tool", "parameters": {"cmd": "ls"}}',
        "{'action': 'bash_tool', 'action_input': {'cmd': 'ls'}}",
        '{"tool_calls": [{"function": {"name": "bash_tool", "arguments": "{\\"cmd\\": \\"ls\\"}"}}]}',
        'bash_tool({"cmd": "ls"})',
        'bash_tool(cmd="ls")',
        "bash_tool('ls')",
        "```python\nbash_tool(cmd='ls')\n```",
        "```tool_code\nprint(default_api.bash_tool(cmd='ls'))\n```",
        "result = functions.bash_tool(\n    cmd='ls',\n)",
        "<think>I need the files.</think>bash_tool(cmd='ls')",
        '{"action": "bash_tool", "action_input": "ls"}',
        "Action: bash_tool\nAction Input: ls",
    ],
)
def test_a_call_that_is_spelled_out_becomes_one(text):
    message = parse_text_calls(AIMessage(text), TOOLS)
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [("bash_tool", {"cmd": "ls"})]
    assert message.text == ""


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('bash_tool({"cmd": "ls", "all": true, "of": null})', {"cmd": "ls", "all": True, "of": None}),
        ('bash_tool("ls", seconds=3)', {"cmd": "ls", "seconds": 3}),
        ('bash_tool(cmd="""cd a\nls (b)""")', {"cmd": "cd a\nls (b)"}),
        ('bash_tool(cmd="cd a\nls")', {"cmd": "cd a\nls"}),
        ("bash_tool(cmd='echo \"a\" \\'b\\'')", {"cmd": "echo \"a\" 'b'"}),
        ("bash_tool()", {}),
    ],
)
def test_arguments_are_read_in_the_form_of_python(text, arguments):
    [call] = parse_text_calls(AIMessage(text), TOOLS).tool_calls
    assert call["args"] == arguments


def test_calls_below_each_other_are_several():
    text = "bash_tool(cmd='ls')\ncrawl_tool('a')"
    calls = parse_text_calls(AIMessage(text), TOOLS).tool_calls
    assert [(one["name"], one["args"]) for one in calls] == [
        ("bash_tool", {"cmd": "ls"}),
        ("crawl_tool", {"cmd": "a"}),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "bash_tool(cmd=name)",
        "bash_tool('a', 1, 'b')",
        "bash_tool(cmd=open('a').read())",
        "bash_tool(cmd='ls') or print('no')",
        "def bash_tool(cmd): return 1\nbash_tool(cmd='ls')",
        "rm_tool(cmd='ls')",
        "bash_tool(cmd='ls'); rm_tool(cmd='ls')",
        "Use bash_tool to list files.",
        '{"name": "rm_tool", "arguments": {"cmd": "ls"}}',
        '{"answer": 4}',
        'The call would be {"name": "bash_tool", "arguments": {"cmd": "ls"}} but I advise against it.',
        "{",
        "",
    ],
)
def test_anything_else_stays_an_answer(text):
    assert parse_text_calls(AIMessage(text), TOOLS).tool_calls == []


@pytest.mark.parametrize(
    "arguments", [{"n": 2**70, "m": [-(2**63) - 1]}, json.loads('{"a":' * 400 + "1" + "}" * 400)]
)
def test_arguments_survive_any_format_that_a_model_writes(arguments):
    call = {"name": "bash_tool", "args": arguments, "id": "1", "type": "tool_call"}
    message = parse_tool_calls(AIMessage("", tool_calls=[call]), TOOLS)
    kept = make_serializer().loads_typed(make_serializer().dumps_typed(message)).tool_calls[0]["args"]
    assert str(2**70) in str(kept) or "nested deeper than 100 levels" in str(kept)
    assert isinstance(TypeAdapter(dict[str, int | list[int] | dict]).validate_python(kept), dict)


@pytest.mark.parametrize("text", ["", "\n", "<think>A plan.\n"])
def test_a_call_that_ends_the_thoughts_before_an_empty_answer_is_one(text):
    call = '<tool_call>\n{"name": "bash_tool", "arguments": {"cmd": "ls"}}\n</tool_call>'
    thoughts = f"First {call}? No, the other way.\n{call.replace('ls', 'pwd')}\n"
    if text.strip():
        message = AIMessage(text + thoughts)
    else:
        message = AIMessage(text, additional_kwargs={"reasoning_content": thoughts})
    parsed = parse_text_calls(message, TOOLS)
    assert [call["args"] for call in parsed.tool_calls] == [{"cmd": "pwd"}]
    assert parsed.text == ""


@pytest.mark.parametrize(
    ("text", "thoughts"),
    [
        ("It is 4.", '<tool_call>{"name": "bash_tool", "arguments": {}}</tool_call>'),
        ("", '<tool_call>{"name": "bash_tool", "arguments": {}}</tool_call> is not needed.'),
        ("", "I could run bash_tool(cmd='ls')"),
        ("", '<tool_call>{"name": "rm_tool", "arguments": {}}</tool_call>'),
    ],
)
def test_other_calls_in_thoughts_are_none(text, thoughts):
    message = AIMessage(text, additional_kwargs={"reasoning_content": thoughts})
    assert parse_text_calls(message, TOOLS).tool_calls == []
