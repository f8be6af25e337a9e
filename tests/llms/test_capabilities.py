"""What an endpoint's error reveals about its features."""

import pytest

from maniple.llms import Capabilities
from maniple.llms.capabilities import FEATURES, rejected_feature

EVERYTHING = set(FEATURES)


@pytest.mark.parametrize(
    ("message", "feature"),
    [
        ("registry.ollama.ai/library/x does not support tools", "tools"),
        ('"auto" tool choice requires --enable-auto-tool-choice', "tools"),
        ("This model does not support function calling", "tools"),
        ("Unrecognized request argument supplied: stream_options", "stream_usage"),
        ("Extra inputs are not permitted: stream_options", "stream_usage"),
        ("response_format type json_schema is unavailable now", "json_schema"),
        ("'response_format.type' must not be json_object", "json_object"),
        ("This model does not support response_format", "json_schema"),
        ("image input is not supported - hint: you may need mmproj", "vision"),
        ("Unknown field: grammar", "grammar"),
        ("Unsupported parameter: 'parallel_tool_calls'", "parallel_tools"),
    ],
)
def test_errors_of_endpoints_that_lack_a_feature(message, feature):
    assert rejected_feature(message, EVERYTHING) == feature


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens",
        "An assistant message with 'tool_calls' was followed by a message without a tool result",
        "Failed to parse tool call arguments as JSON",
        "Invalid API key",
        "",
    ],
)
def test_a_complaint_about_something_else_takes_no_feature_away(message):
    assert rejected_feature(message, EVERYTHING) is None


def test_a_feature_that_was_not_sent_cannot_have_been_rejected():
    assert rejected_feature("tools are not supported", {"json_schema"}) is None


def test_what_is_set_by_hand_wins_over_what_is_learned():
    capabilities = Capabilities(fixed={"tools": True})
    capabilities.learn("tools", False)
    assert capabilities.has("tools")
