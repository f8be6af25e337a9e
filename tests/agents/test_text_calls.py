"""The parser of calls in text: the forms of many models, and texts that only look like calls."""

import json
import random
import time

import pytest

from maniple.agents.text_calls import find_own_calls, without_blocks
from tests.agents.call_outputs import ENVELOPES, NAMED, UNMARKED

TOOLS = frozenset({"bash_tool", "crawl_tool"})
PROSE = (
    "I list the files first.",
    "Here is `code`, a < b, x[0] and {team} [1].",
    "现在我来运行：",
    "1. One\n2. Two\n\n| a | b |",
    'It\'s "quoted" and costs 5 > 3 dollars & more…',
    "```python\nprint({'a': 1})\n```\nThat was before.",
    "The `<tool_call>` mark and </tool_call> are mentioned.",
)


def calls_in(text):
    blocks = find_own_calls(text, TOOLS)
    calls = [(call.name, call.arguments) for block in blocks for call in block.calls]
    return calls, without_blocks(text, blocks)


def squeezed(text):
    return "".join(text.split())


@pytest.mark.parametrize("text", ENVELOPES.values(), ids=ENVELOPES)
def test_an_envelope_is_a_call_whatever_stands_around_it(text):
    for before in ("", *PROSE):
        for after in ("", *PROSE) if "without" not in text else ("",):
            calls, rest = calls_in("\n\n".join(part for part in (before, text, after) if part))
            assert calls == [("bash_tool", {"cmd": "ls"})], (before, after)
            assert squeezed(rest) == squeezed(before + after)


@pytest.mark.parametrize("text", UNMARKED.values(), ids=UNMARKED)
@pytest.mark.parametrize("before", ["", *PROSE])
def test_code_that_ends_a_text_is_a_call_after_any_words(text, before):
    calls, rest = calls_in(f"{before}\n\n{text}\n")
    assert calls == [("bash_tool", {"cmd": "ls"})]
    assert squeezed(rest) == squeezed(before)


@pytest.mark.parametrize("form", ENVELOPES.values(), ids=ENVELOPES)
def test_several_envelopes_are_several_calls(form):
    if "</" not in form and "|>" not in form:
        form += "\n"
    calls, _ = calls_in(form + "\n" + form)
    assert [name for name, _ in calls] == ["bash_tool", "bash_tool"]


@pytest.mark.parametrize(
    "text",
    [
        f"Such a call looks like this:\n\n```json\n{NAMED}\n```\n\nIt lists the files.",
        f"```xml\n<tool_call>{NAMED}</tool_call>\n```\nis what such models write.",
        f"Write `<tool_call>{NAMED}</tool_call>` to call it.",
        f"The call {NAMED} lists the files.",
        '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>',
        '<tools>[{"type": "function", "function": {"name": "bash_tool", "parameters": '
        '{"type": "object", "properties": {"cmd": {"type": "string"}}}}}]</tools>',
        "The <tool_call> mark begins a call.",
        "bash_tool(cmd='ls') lists them.",
        '<tool_call>{"name": "bash_tool", "arguments": {"cmd": "rm -r /tmp',
        "import os\nbash_tool(cmd='ls')",
        '{"name": "Ada", "parameters": {"age": 3}}',
    ],
)
def test_a_text_about_calls_is_no_call(text):
    assert calls_in(text) == ([], text)


def test_values_in_tags_are_taken_as_they_are():
    code = 'if a < b:\n    print("</p>", {"x": [1]})\n\n```not a fence'
    values = f"<parameter=cmd>\n{code}\n</parameter>\n<parameter=n>\n3\n</parameter>"
    text = f"<function=bash_tool>\n{values}\n</function>"
    assert calls_in(text)[0] == [("bash_tool", {"cmd": code, "n": "3"})]


def test_gemmas_values_have_their_types():
    values = '{cmd:<|"|>echo "a: {b}"<|"|>,times:2,opts:{dry:true,of:[1,null]}}'
    text = f"<|tool_call>call:bash_tool{values}<tool_call|>"
    [(_, arguments)], rest = calls_in(text)
    assert arguments == {"cmd": 'echo "a: {b}"', "times": 2, "opts": {"dry": True, "of": [1, None]}}
    assert rest == ""


def test_code_within_json_is_no_mark():
    code = "print('<tool_call>')\n```\n</tool_call>"
    named = json.dumps({"name": "bash_tool", "arguments": {"cmd": code}})
    for text in (f"<tool_call>{named}</tool_call>", f"```json\n{named}\n```", named):
        assert calls_in(text) == ([("bash_tool", {"cmd": code})], "")


PIECES = tuple(
    (
        '<tool_call> </tool_call> <tool_call>{ {"name":" {"a":[ [{ [TOOL_CALLS] [TOOL_CALLS][ <function=a> '
        '<parameter=b> <invoke\xa0name="a"> <|channel|> to=functions.a ``` ```json\n{ ````\n \nbash_tool( '
        "bash_tool(cmd=' <｜tool▁call▁begin｜> <arg_key>a</arg_key><arg_value> ` Action:a\nAction\xa0Input:{ "
        "\" ' {'a': \n[bash_tool( ~~~\n <|a \\ <tool_call>bash_tool( <tool_call>[a "
        '<|tool_call>call:bash_tool{a: <|"|>'
    )
    .replace("\\n", "\n")
    .split(" ")
)


def seconds_for(text):
    begun = time.process_time()
    find_own_calls(text, TOOLS)
    return time.process_time() - begun


def test_a_megabyte_with_calls_is_read_in_a_second():
    text = "\n\n".join(PROSE * 5 + (ENVELOPES["Qwen3-Coder"], UNMARKED["a fence"]))
    text *= 1_000_000 // len(text)
    assert len(calls_in(text)[0]) > 500
    assert seconds_for(text) < 1.0


@pytest.mark.parametrize("piece", [*PIECES, "\n", " " * 50])
def test_the_time_is_linear_for_any_mark(piece):
    assert seconds_for(piece * (1_000_000 // len(piece))) < 5.0


@pytest.mark.parametrize("seed", range(4))
def test_the_time_is_linear_for_mixed_marks(seed):
    assert seconds_for("".join(random.Random(seed).choices(PIECES, k=90_000))) < 5.0
