"""The JSON value in a model's answer is found between words, in fences, and in nearly correct forms."""

import json
import time
from contextlib import suppress

import pytest

from maniple.llms import read_json

PLAN = {"title": "It's 4", "steps": [{"agent_name": "coder", "done": True, "note": None, "needs": [1, 2]}]}
TEXT = json.dumps(PLAN)
LOOSE = TEXT.replace("{", "{ // begins\n", 1).replace("}]", "},]")


@pytest.mark.parametrize("written", [TEXT, json.dumps(PLAN, indent=2), repr(PLAN), LOOSE])
@pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```", "```\r\n{}\r\n```"])
@pytest.mark.parametrize(
    "before", ["", "For {team}, as asked [1]:\n\n", 'Not {"a": 1} but {x}:\n\n', "Set {}.\n"]
)
@pytest.mark.parametrize("after", ["", "\n\nSee [2] and {it}."])
def test_the_plan_is_found_whatever_stands_around_it(written, fence, before, after):
    assert read_json(before + fence.replace("{}", written) + after) == PLAN


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['a', 1, None]", ["a", 1, None]),
        ('["a", "b",]', ["a", "b"]),
        ('{"code": "a\nb"}', {"code": "a\nb"}),
        ("{title: 'x'}", {"title": "x"}),
        ("{}", {}),
        ("no value", ""),
    ],
)
def test_short_values_are_read(text, value):
    assert read_json(text) == value


@pytest.mark.parametrize("piece", ['{"a": ', "{x: ", '{"a', "{'a': 1} ", "```json\n{", '[{"a": 1}, ', "{{[["])
def test_broken_values_take_no_more_than_a_few_seconds(piece):
    begun = time.process_time()
    with suppress(ValueError):
        read_json(piece * (100_000 // len(piece)))
    assert time.process_time() - begun < 5.0
