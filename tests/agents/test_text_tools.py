"""Tool calls written out in text."""

import pytest
from langchain_core.messages import AIMessage

from maniple.agents.text_tools import salvaged

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
    message = salvaged(AIMessage(text), NAMES)
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
    assert salvaged(AIMessage(text), NAMES).tool_calls == []
