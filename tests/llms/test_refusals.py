"""What an endpoint's refusal says of its features, and how requests change."""

from typing import Any

import openai
import pytest

from maniple.llms import Capabilities
from maniple.llms.endpoint_errors import status_error
from maniple.llms.refusals import adapt_request, find_refused, refusal_text

SCHEMA = {
    "type": "object",
    "properties": {
        "at": {"type": "string", "format": "date-time", "default": "now"},
        "next": {"$ref": "#/$defs/Node"},
        "size": {"anyOf": [{"type": "integer"}, {"type": "null"}], "minItems": 1},
        "format": {"const": "a"},
    },
    "required": ["at"],
    "additionalProperties": False,
    "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
}
TOOL = {"type": "function", "function": {"name": "look", "strict": True, "parameters": SCHEMA}}
PICTURE = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "look"}}]}
RESULT = {"role": "tool", "content": "4", "tool_call_id": "1"}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def system(content: str, role: str = "system") -> dict[str, Any]:
    return {"role": role, "content": content}


SENT = {
    "messages": [system("Be brief.", "developer"), user(PICTURE), user("hi"), CALL, RESULT, system("Go on.")],
    "tools": [TOOL],
    "temperature": 0,
    "max_tokens": 9,
    "stop": ["x"],
    "grammar": 'root ::= "a"',
    "parallel_tool_calls": False,
    "stream_usage": True,
    "extra_body": {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
}
OBJECT = {"response_format": {"type": "json_object"}}
COMPLETION = {"messages": [user("hi")], "max_completion_tokens": 9}
REASONED = {"messages": [user("hi"), {**CALL, "reasoning_content": "I look."}, RESULT]}
PLAIN = {"messages": [system("Be brief."), user("hi"), CALL, RESULT]}
FORCED = {"tool_choice": "required"}
CALLED = {"messages": [user("hi"), {**CALL, "tool_calls": [{"id": "call_1"}]}]}
ALBUM = {"messages": [user([*PICTURE, *PICTURE]), user([*PICTURE, *PICTURE])]}
LATE = {"messages": [system("a"), user("hi"), system("b")]}

REFUSALS = [
    ("registry.ollama.ai/library/x does not support tools", {}, "tools", False),
    ('"auto" tool choice requires --enable-auto-tool-choice', {}, "tools", False),
    ("This model does not support function calling", {}, "tools", False),
    ("Unrecognized request argument supplied: stream_options", {}, "stream_usage", False),
    ("body.stream_options: Extra inputs are not permitted", {}, "stream_usage", False),
    ("response_format type json_schema is unavailable now", {}, "json_schema", False),
    ("This model does not support response_format", {}, "json_schema", False),
    ("'response_format.type' must not be json_object", {"extra_body": OBJECT}, "json_object", False),
    ("Unknown field: grammar", {}, "grammar", False),
    ("Unsupported parameter: 'parallel_tool_calls'", {}, "parallel_tools", False),
    ("Unsupported value: 'temperature' does not support 0.0 with this model.", {}, "temperature", False),
    ("`temperature` must be strictly positive", {}, "temperature", False),
    ("invalid temperature: only 1 is allowed for this model", {}, "temperature", False),
    (
        "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        {},
        "temperature",
        False,
    ),
    (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
        "instead.",
        {},
        "max_completion_tokens",
        True,
    ),
    ("max_completion_tokens: Extra inputs are not permitted", COMPLETION, "max_completion_tokens", False),
    (
        "The reasoning_content in the thinking mode must be passed back to the API.",
        PLAIN,
        "reasoning_content",
        True,
    ),
    (
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        PLAIN,
        "reasoning_content",
        True,
    ),
    ("Unknown field: reasoning_content", REASONED, "reasoning_content", False),
    ("tool_choice 'required' is incompatible with thinking enabled", FORCED, "tool_choice", False),
    (
        "The tool_choice parameter does not support being set to required or object in thinking mode",
        {"tool_choice": {"type": "function", "function": {"name": "look"}}},
        "tool_choice",
        False,
    ),
    (
        "developer is not one of ['system', 'assistant', 'user'] - 'messages.[0].role'",
        {},
        "developer_role",
        False,
    ),
    ("System message must be at the beginning.", LATE, "late_system", False),
    ("System role not supported", PLAIN, "system_role", False),
    (
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        PLAIN,
        "system_role",
        False,
    ),
    ("Developer instruction is not enabled for models/gemma-3-1b-it", PLAIN, "system_role", False),
    ("Conversation roles must alternate user/assistant/user/assistant/...", {}, "same_role", False),
    (
        "After the optional system message, conversation roles must alternate user and assistant roles "
        "except for tool calls and results.",
        {"messages": [user("a"), user("b")]},
        "same_role",
        False,
    ),
    (
        "Unexpected role 'user' after role 'tool'",
        {"messages": [*PLAIN["messages"], user("b")]},
        "same_role",
        False,
    ),
    ("Conversation roles must alternate user/assistant/user/assistant/...", PLAIN, "tools", False),
    ("Unsupported parameter: 'stop' is not supported with this model.", {}, "stop", False),
    ("image input is not supported - hint: you may need mmproj", {}, "vision", False),
    ("No endpoints found that support image input", {}, "vision", False),
    ("unknown variant `image_url`, expected `text`", {}, "vision", False),
    ("messages[1].content: invalid type: sequence, expected a string", {}, "vision", False),
    (
        "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
        CALLED,
        "long_call_ids",
        False,
    ),
    (
        "messages[0].role: unknown variant `system`, expected `user` or `assistant`",
        PLAIN,
        "system_role",
        False,
    ),
    ("this model does not accept system prompts", PLAIN, "system_role", False),
    ("Role must be in [user, assistant]", PLAIN, "system_role", False),
    ("Role must be in [user, assistant]", {"messages": [user("hi"), CALL, RESULT]}, "tools", False),
    ("role must be one of [system user assistant]", PLAIN, "tools", False),
    ("Sampling parameters are not supported", {}, "temperature", False),
    ("The content field is a required field.", CALLED, "empty_content", False),
    ("messages: text content blocks must be non-empty", CALLED, "empty_content", False),
    ("Invalid value for 'content': expected a string, got null.", CALLED, "empty_content", False),
    ("This model does not support streaming.", {"stream": True}, "streaming", False),
    ("You must be verified to stream this model.", {"stream": True}, "streaming", False),
    ("At most 0 image(s) may be provided in one prompt.", {}, "vision", False),
    ("At most 1 image(s) may be provided in one request.", ALBUM, "pictures.1", True),
    ("You set image=1 in `--limit-mm-per-prompt`, but passed 4 image items.", ALBUM, "pictures.1", True),
    ("Too many images in request: 4. Maximum is 2.", ALBUM, "pictures.2", True),
    ("messages.0.content.3: too many images: 4 > 3", ALBUM, "pictures.3", True),
    ("Only one image is supported per request", ALBUM, "pictures.1", True),
    ("m is not a multimodal model", {}, "vision", False),
    (
        'Invalid JSON payload received. Unknown name "additionalProperties" at '
        "'tools[0].function_declarations[0].parameters': Cannot find field.",
        {},
        "schema.additionalProperties",
        False,
    ),
    (
        "tools.0.parameters: only 'enum' and 'date-time' are supported for STRING type",
        {},
        "schema.format",
        False,
    ),
    (
        "Invalid schema for function 'look': In context=('at',), 'default' is not permitted.",
        {},
        "schema.default",
        False,
    ),
    ("Unsupported JSON schema fields: {'minItems'}", {}, "schema.minItems", False),
    ("keyword $ref is not supported in function parameters", {}, "schema.$ref", False),
    ("json_schema: $defs are not supported", {}, "schema.$ref", False),
    (
        "tools.0.function.strict: Extra inputs are not permitted; unknown field 'strict'",
        {},
        "schema.strict",
        False,
    ),
]


def _sent_with(sent: dict[str, Any]) -> dict[str, Any]:
    whole = {**SENT, **sent}
    if "max_completion_tokens" in sent:
        whole.pop("max_tokens")
    return whole


@pytest.mark.parametrize(("text", "sent", "feature", "works"), REFUSALS)
def test_a_refusal_names_a_feature(text, sent, feature, works):
    assert find_refused(text, _sent_with(sent)) == (feature, works)


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 4096 tokens",
        "An assistant message with 'tool_calls' was followed by a message without a tool result",
        "An assistant message with 'tool_calls' must be followed by tool messages",
        "Failed to parse tool call arguments as JSON",
        "max_tokens is too large: 9000. This model supports at most 4096 completion tokens.",
        "At most 2 image(s) may be provided in one prompt.",
        "Unsupported image format: image/tiff",
        "Could not process image",
        "Invalid API key",
        "",
    ],
)
def test_a_complaint_about_something_else_takes_no_feature_away(text):
    assert find_refused(text, SENT) is None


@pytest.mark.parametrize(("text", "sent", "feature", "works"), REFUSALS)
def test_a_feature_that_was_not_sent_cannot_have_been_refused(text, sent, feature, works):
    assert find_refused(text, {"messages": [user("hi")]}) is None


def adapted(body: dict[str, Any], **known: bool) -> dict[str, Any]:
    return adapt_request(
        body, Capabilities({name.replace("__", "."): works for name, works in known.items()})
    )


def test_refused_fields_are_left_out():
    fields = {"temperature": 0, "top_p": 1, "stop": ["x"], "tool_choice": "required", "stream_options": {}}
    body = adapted(
        {**fields, "model": "m"}, temperature=False, stop=False, tool_choice=False, stream_usage=False
    )
    assert body == {"model": "m"}
    assert adapted({"tool_choice": "auto"}, tool_choice=False) == {"tool_choice": "auto"}
    extra = {"temperature": 0}
    assert adapted({"extra_body": extra}, temperature=False) == {"extra_body": {}}
    assert extra == {"temperature": 0}


@pytest.mark.parametrize("works", [True, False])
def test_the_limit_of_tokens_has_the_name_that_the_endpoint_takes(works):
    name = "max_completion_tokens" if works else "max_tokens"
    for body in ({"max_tokens": 9}, {"max_completion_tokens": 9}):
        assert adapted(body, max_completion_tokens=works) == {name: 9}


@pytest.mark.parametrize(
    ("messages", "known", "wanted"),
    [
        ([system("a", "developer"), user("b")], "developer_role", [system("a"), user("b")]),
        ([system("a"), user("b"), system("c")], "late_system", [system("a\n\nc"), user("b")]),
        ([system("a"), user("b"), system("c")], "system_role", [user("a\n\nc\n\nb")]),
        ([system("a"), user(PICTURE)], "system_role", [user([{"type": "text", "text": "a"}, *PICTURE])]),
        ([system("a"), CALL, RESULT], "system_role", [user("a"), CALL, RESULT]),
        ([user("a"), user(PICTURE)], "same_role", [user([{"type": "text", "text": "a"}, *PICTURE])]),
        (
            [user("a"), {"role": "assistant", "content": "b"}, CALL, RESULT, RESULT],
            "same_role",
            [user("a"), {**CALL, "content": "b"}, RESULT, RESULT],
        ),
    ],
)
def test_messages_get_the_form_that_the_endpoint_takes(messages, known, wanted):
    assert adapted({"messages": messages}, **{known: False})["messages"] == wanted


def test_between_a_result_and_a_message_of_the_user_is_an_answer():
    body = adapted({"messages": [user("a"), CALL, RESULT, user("b"), user("c")]}, same_role=False)
    assert [one["role"] for one in body["messages"]] == ["user", "assistant", "tool", "assistant", "user"]


def test_reasoning_is_sent_only_to_endpoints_that_want_it():
    messages = REASONED["messages"]
    assert adapted({"messages": messages}, reasoning_content=True)["messages"] == messages
    assert "reasoning_content" not in adapted({"messages": messages})["messages"][1]


def test_keywords_are_removed_from_schemas_and_not_from_names():
    body = {"tools": [TOOL], **SENT["extra_body"]}
    refused = ["additionalProperties", "format", "$ref", "anyOf", "strict", "minItems", "const", "default"]
    changed = adapted(body, **{f"schema__{word}": False for word in refused})
    wanted = {
        "type": "object",
        "properties": {
            "at": {"type": "string"},
            "next": {"type": "object", "properties": {"next": {"type": "object"}}},
            "size": {"type": "integer"},
            "format": {"enum": ["a"]},
        },
        "required": ["at"],
    }
    assert changed["tools"][0]["function"] == {"name": "look", "parameters": wanted}
    assert changed["response_format"]["json_schema"] == {"schema": wanted}
    assert SCHEMA["additionalProperties"] is False


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            {"message": "no", "param": "temperature", "code": "unsupported_value"},
            "no temperature unsupported_value",
        ),
        (
            {"detail": [{"loc": ["body", "stop"], "msg": "Extra inputs", "input": "temperature"}]},
            "body.stop: Extra inputs",
        ),
        (
            {"message": "Provider returned error", "code": 400, "metadata": {"raw": "no tools"}},
            "Provider returned error: no tools",
        ),
        ("no tools", "no tools"),
    ],
)
def test_the_text_of_a_refusal_repeats_nothing_of_the_request(body, text):
    error = status_error(openai.APIError("x", None, body=body), "http://127.0.0.1")  # type: ignore[arg-type]
    assert error is not None
    assert refusal_text(error) == text


def test_calls_and_results_get_the_same_short_ids():
    calls = [{"id": "call_12345678", "function": {"name": "look"}}, {"id": "abcDEF123", "function": {}}]
    body = {
        "messages": [
            {"role": "assistant", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call_12345678", "content": "4"},
            {"role": "tool", "tool_call_id": "abcDEF123", "content": "5"},
        ]
    }
    called, first, second = adapt_request(body, Capabilities(known={"long_call_ids": False}))["messages"]
    ids = [one["id"] for one in called["tool_calls"]]
    assert ids == [first["tool_call_id"], second["tool_call_id"]]
    assert ids[1] == "abcDEF123"
    assert len(ids[0]) == 9
    assert ids[0].isalnum()
