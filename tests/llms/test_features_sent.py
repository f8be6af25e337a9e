"""Which features a request used: only those can be what an endpoint refused."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from maniple.llms.chat import _features_sent

PICTURE = HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}])
TOOL = [{"type": "function", "function": {"name": "look"}}]


@pytest.mark.parametrize(
    ("sent", "features"),
    [
        ({}, set()),
        ({"tools": TOOL}, {"tools"}),
        ({"tools": []}, set()),
        ({"tools": TOOL, "tool_choice": "any"}, set()),
        ({"tools": TOOL, "parallel_tool_calls": False}, {"tools", "parallel_tools"}),
        ({"stream_usage": True}, {"stream_usage"}),
        ({"stream_usage": False}, set()),
        ({"extra_body": {"grammar": 'root ::= "a"'}}, {"grammar"}),
        ({"extra_body": None}, set()),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, {"json_schema"}),
        ({"response_format": {"type": "json_object"}}, {"json_object"}),
        ({"response_format": {"type": "text"}}, set()),
        ({"extra_body": {"response_format": {"type": "json_object"}}}, {"json_object"}),
    ],
)
def test_the_features_of_a_request_are_those_that_it_used(sent: dict[str, Any], features: set[str]) -> None:
    assert _features_sent([HumanMessage("1+3=?")], sent) == features


def test_a_picture_in_any_message_is_vision() -> None:
    assert _features_sent([PICTURE, AIMessage("It is."), HumanMessage("What?")], {}) == {"vision"}
    assert _features_sent([HumanMessage([{"type": "text", "text": "1+3=?"}])], {}) == set()
