"""Requests to endpoints that take less than OpenAI: what they refuse is learned, and the call goes on."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from maniple.config import ModelSettings, ModelsSettings
from maniple.errors import ModelError
from maniple.llms import ask, capabilities_of, open_chat_models
from maniple.llms.refusals import MAX_ADAPTATIONS
from tests.openai_server import Json, reply, serving

pytestmark = pytest.mark.anyio

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
PARAMETERS = {
    "type": "object",
    "properties": {"at": {"type": "string", "format": "date"}},
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}
CALLED = AIMessage(
    "",
    tool_calls=[{"name": "look", "args": {}, "id": "1"}],
    additional_kwargs={"reasoning_content": "I look."},
)
CONVERSATION = [
    SystemMessage("Be brief."),
    HumanMessage("hi"),
    CALLED,
    ToolMessage("4", tool_call_id="1"),
    HumanMessage("Go on."),
    HumanMessage("Now."),
    SystemMessage("Still brief."),
]


def _temperature(body: Json) -> str:
    return (
        "Unsupported value: 'temperature' does not support 0.0 with this model."
        if body.get("temperature", 1) != 1
        else ""
    )


def _reasoning(body: Json) -> str:
    missing = any(one.get("tool_calls") and not one.get("reasoning_content") for one in body["messages"])
    return "The reasoning_content in the thinking mode must be passed back to the API." if missing else ""


def _system(body: Json) -> str:
    return "System role not supported" if body["messages"][0]["role"] == "system" else ""


def _mistral(body: Json) -> str:
    roles = [one["role"] for one in body["messages"] if not one.get("tool_calls")]
    roles = [role for role in roles[roles[0] == "system" :] if role != "tool"]
    wanted = [("user", "assistant")[index % 2] for index in range(len(roles))]
    return (
        ""
        if roles == wanted
        else "After the optional system message, conversation roles must alternate user and assistant roles "
        "except for tool calls and results."
    )


def _schemas(body: Json) -> str:
    sent = json.dumps(body.get("tools") or "")
    if '"additionalProperties"' in sent:
        return (
            'Invalid JSON payload received. Unknown name "additionalProperties" at '
            "'tools[0].function_declarations[0].parameters': Cannot find field."
        )
    return "only 'enum' and 'date-time' are supported for STRING type" if '"format"' in sent else ""


def _limit(body: Json) -> str:
    why = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    return why if "max_tokens" in body else ""


def _choice(body: Json) -> str:
    return "tool_choice 'required' is incompatible with thinking enabled" if "tool_choice" in body else ""


def _stop(body: Json) -> str:
    return "Unsupported parameter: 'stop' is not supported with this model." if body.get("stop") else ""


def _usage(body: Json) -> str:
    return "body.stream_options: Extra inputs are not permitted" if "stream_options" in body else ""


STRICT = [_temperature, _reasoning, _system, _mistral, _schemas, _limit, _choice, _stop, _usage]


def _all(body: Json) -> str:
    return next(filter(None, (one(body) for one in STRICT)), "")


async def asked(refuse: Callable[[Json], str], *, streaming: bool, **settings: Any) -> list[Json]:
    """Return the requests of a call, and of a second one, which must be accepted at once."""
    with serving({"other": [reply("Hello")]}) as server:
        server.refuse = refuse
        basic = {
            "model": "m",
            "base_url": server.base_url,
            "max_retries": 0,
            "max_output_tokens": 99,
            **settings,
        }
        async with open_chat_models(ModelsSettings(basic=ModelSettings.model_validate(basic))) as models:
            options = {"tools": [TOOL], "tool_choice": "required", "stop": ["x"], "stream": streaming}
            for _ in range(2):
                before = len(server.requests)
                answer = await models.get("basic").ainvoke(CONVERSATION, **options)
                assert answer.text == "Hello"
            assert len(server.requests) == before + 1
    return server.requests


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("refuse", [*STRICT, _all])
async def test_a_refused_feature_is_left_out_of_this_and_later_requests(refuse, streaming):
    requests = await asked(refuse, streaming=streaming)
    assert not refuse(requests[-1])
    texts = json.dumps(requests[-1]["messages"])
    assert all(text in texts for text in ("Be brief.", "hi", '"4"', "Go on.", "Now.", "Still brief."))


async def test_the_reasoning_of_the_turn_goes_back_and_what_is_unknown_is_no_empty_text():
    [*_, last] = await asked(_reasoning, streaming=True)
    assert [one.get("reasoning_content") for one in last["messages"] if one.get("tool_calls")] == ["I look."]
    with serving({"other": [reply("Hello")]}) as server:
        server.refuse = _reasoning
        basic = ModelSettings(model="m", base_url=server.base_url)
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            unknown = CALLED.model_copy(update={"additional_kwargs": {}})
            assert (await models.get("basic").ainvoke([HumanMessage("hi"), unknown])).text == "Hello"


async def test_what_is_set_by_hand_is_sent_so_from_the_first_request():
    known = {"temperature": False, "schema_keywords": {"format": False, "additionalProperties": False}}
    first, _ = await asked(
        lambda body: _temperature(body) or _schemas(body), streaming=True, capabilities=known
    )
    assert "temperature" not in first


@pytest.mark.parametrize("streaming", [True, False])
async def test_an_endpoint_that_refuses_everything_is_asked_a_limited_number_of_times(streaming):
    with serving({"other": [reply("never")]}) as server:
        fields = [
            "'max_tokens' is not supported, use max_completion_tokens",
            "unknown field max_completion_tokens",
        ]
        server.refuse = lambda body: fields["max_completion_tokens" in body]
        basic = ModelSettings(model="m", base_url=server.base_url, max_output_tokens=9, max_retries=0)
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            with pytest.raises(ModelError, match="max_completion_tokens"):
                await models.get("basic").ainvoke("hi", stream=streaming)
        assert len(server.requests) <= MAX_ADAPTATIONS + 1


@pytest.mark.parametrize(
    ("words", "sees"),
    [
        ("At most 2 image(s) may be provided in one prompt.", True),
        ("At most 0 image(s) may be provided in one prompt.", False),
        ("unknown variant `image_url`, expected `text`", False),
        ("Failed to deserialize the JSON body into the target type", True),
    ],
)
async def test_whatever_is_said_of_pictures_the_request_is_sent_without_them(words, sees):
    with serving({"other": [reply("Hello")]}) as server:
        server.refuse = lambda body: words if "base64" in json.dumps(body) else ""
        basic = ModelSettings(model="m", base_url=server.base_url)
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            model = models.get("basic")
            answer = await ask(model, [HumanMessage([{"type": "text", "text": "What?"}, PICTURE])])
            assert (answer.text, capabilities_of(model).has("vision")) == ("Hello", sees)
    first, second = server.requests
    assert len(first["messages"][0]["content"]) == 2
    assert second["messages"][0]["content"].startswith("What?\n\n[")


async def test_a_refusal_that_is_not_understood_is_shown_in_the_words_of_the_endpoint():
    with serving({"other": [reply("never")]}) as server:
        server.refuse = lambda body: "The moon is wrong."
        basic = ModelSettings(model="m", base_url=server.base_url, max_retries=0)
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            with pytest.raises(ModelError, match=r"HTTP 400: The moon") as caught:
                await models.get("basic").ainvoke("hi")
        assert caught.value.code == "model_bad_request"
        assert len(server.requests) == 1


@pytest.mark.parametrize("limit", [1, 2])
async def test_an_endpoint_that_takes_few_pictures_gets_the_newest_ones(limit):
    def refuse(body: Json) -> str:
        sent = json.dumps(body).count("image/png")
        return f"At most {limit} image(s) may be provided in one request." if sent > limit else ""

    pictures = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{n}AAA"}} for n in "123"]
    with serving({"other": [reply("Hello")]}) as server:
        server.refuse = refuse
        settings = ModelsSettings(basic=ModelSettings(model="m", base_url=server.base_url, max_retries=0))
        async with open_chat_models(settings) as models:
            model = models.get("basic")
            for _ in range(2):
                answer = await ask(model, [HumanMessage([pictures[0]]), HumanMessage(pictures[1:])])
            assert (answer.text, capabilities_of(model).most_pictures) == ("Hello", limit)
    assert len(server.requests) == 3
    sent = json.dumps(server.requests[-1]["messages"])
    assert [name in sent for name in ("1AAA", "2AAA", "3AAA")] == [False, limit == 2, True]
    assert sent.count("left out") == 3 - limit
