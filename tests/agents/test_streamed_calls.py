"""Calls that a member writes into its text, while the text is streamed in pieces."""

import random
import re

import pytest

from maniple.agents.text_calls import TextWithoutCalls
from tests.agents.call_outputs import ENVELOPES, UNMARKED

# Without the tools' names these may be anything, and the fence is sent before the mark comes.
BY_NAME = re.compile(r'bash_tool\(|^(>>>)?bash_tool|^\{"bash_tool')
SHOWN = {name for name, text in UNMARKED.items() if BY_NAME.search(text)} | {"marks in a fence"}
SURE = {**ENVELOPES, **{name: text for name, text in UNMARKED.items() if name not in SHOWN}}
WORDS = "I list the files, as < 3 and [1] ask."
TEXTS = [
    "",
    "4",
    "It is <b>bold</b> and 2 < 3 [see 1].",
    "Use `<tool_call>{...}</tool_call>` to call a tool.",
    "Use <tool_call> to call.\n\nThat is all.",
    "```xml\n<tool_call>{}</tool_call>\n```\nThat was an example.",
    'Hermes writes:\n```\n<tool_call>{"name": "x", "arguments": {}}</tool_call>\n```\nThat is all.',
    '{"name": "Ann", "age": 3}',
    '```json\n{"rate": 3}\n```',
    '{"name": "Ann", "input": {"a": 1}}',
    "Act two begins.\nAction: none of it",
    "The speed is set to = x, which is all.",
    "a\n\n[",
    "`",
]


def streamed(pieces: list[str]) -> str:
    stream = TextWithoutCalls()
    return "".join([*(stream.feed(piece) for piece in pieces), stream.end()])


def splits(text: str) -> list[list[str]]:
    chance = random.Random(text)
    cuts = [sorted(chance.sample(range(len(text) + 1), min(5, len(text)))) for _ in range(5)]
    at_cuts = [[text[a:b] for a, b in zip([0, *one], [*one, len(text)], strict=True)] for one in cuts]
    return [[text], [*text], *at_cuts]


@pytest.mark.parametrize("call", SURE.values(), ids=SURE)
def test_a_written_call_is_left_out_however_the_text_is_split(call):
    for pieces in splits(f"{WORDS}\n\n{call}"):
        assert streamed(pieces).strip() == WORDS


@pytest.mark.parametrize("call", ENVELOPES.values(), ids=ENVELOPES)
def test_text_behind_a_call_stays(call):
    if call.endswith(("}", ">", "]")):
        for pieces in splits(f"{call}\n\nThat is all."):
            assert streamed(pieces).strip() == "That is all."


@pytest.mark.parametrize("text", TEXTS)
def test_text_without_a_call_stays_as_it_is(text):
    for pieces in splits(text):
        assert streamed(pieces) == text


def test_text_is_shown_at_once_until_a_call_may_begin():
    stream = TextWithoutCalls()
    assert [stream.feed(piece) for piece in ("I list. ", "Then", "\n<tool", "_call>")] == [
        "I list. ",
        "Then",
        "\n",
        "",
    ]
