"""Objects of a given shape, from endpoints that can more or less."""

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel

from maniple.config import ModelSettings, ModelsSettings
from maniple.errors import ModelError
from maniple.llms import Shape, ShapeError, ask_for, capabilities_of, open_chat_models
from tests.openai_server import call, reply, serving

pytestmark = pytest.mark.anyio


class Point(BaseModel):
    x: int


SHAPE = Shape("Point", {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}, Point)


async def point(script, **settings):
    with serving(script) as server:
        basic = {"model": "m", "base_url": server.base_url, "max_retries": 0, **settings}
        async with open_chat_models(ModelsSettings(basic=ModelSettings.model_validate(basic))) as models:
            model = models.get("basic")
            try:
                value, _ = await ask_for(model, [HumanMessage("where?")], SHAPE)
            finally:
                requests, capabilities = server.requests, capabilities_of(model)
        return value, requests, capabilities


async def test_an_endpoint_with_json_schema_is_held_to_it():
    value, requests, _ = await point({"other": [reply('{"x": 1}')]})
    assert value.x == 1
    assert requests[0]["response_format"]["json_schema"]["schema"]["required"] == ["x"]


@pytest.mark.parametrize(
    ("rejected", "answer", "means"),
    [
        (["response_format"], call("Point", x=1), "tools"),
        (["response_format", "tools"], reply('{"x": 1}'), "messages"),
    ],
)
async def test_what_an_endpoint_rejects_is_left_out_and_remembered(rejected, answer, means):
    value, requests, capabilities = await point({"other": [answer], "reject": rejected})
    assert value.x == 1
    assert means in requests[-1]
    assert not any(name in requests[-1] for name in rejected)
    assert capabilities.has("json_schema") is False


@pytest.mark.parametrize(
    "answer",
    [
        reply('An example: {"y": "a longer value than the answer"}\n\n{"x": 1}'),
        reply('```json\n{"x": 1}\n```\n\nNot {"y": "a longer value"}.'),
        reply('First:\n```json\n{"y": "a longer value"}\n```\nThen:\n```json\n{"x": 1}\n```'),
        {"tool_calls": [{"name": "Other", "arguments": "{}"}, {"name": "Point", "arguments": '{"x": 1}'}]},
    ],
)
async def test_the_value_that_has_the_shape_counts(answer):
    value, requests, _ = await point({"other": [answer]})
    assert (value.x, len(requests)) == (1, 1)


async def test_a_model_with_grammars_is_held_to_one_without_free_white_space():
    _, requests, _ = await point({"other": [reply('{"x": 1}')]}, capabilities={"grammar": True})
    assert requests[0]["grammar"].startswith("%llguidance {}\nstart: %json {")
    assert '"whitespace_flexible": false' in requests[0]["grammar"]


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"x": 1}\n```',
        'It is {"x": 1} I think',
        '{"x": 1',
        "{'x': 1}",
        '{"x": "1",}',
        "<x>{x: 1}</x>",
    ],
)
async def test_what_is_nearly_right_is_repaired(text):
    value, requests, _ = await point({"other": [reply(text)]})
    assert (value.x, len(requests)) == (1, 1)


async def test_a_model_that_missed_the_shape_is_shown_its_mistake_once():
    value, requests, _ = await point({"other": [reply('{"y": 1}'), reply('{"x": 2}')]})
    assert value.x == 2
    assert "x: Field required" in requests[1]["messages"][-1]["content"]
    assert requests[1]["messages"][-2]["content"] == '{"y": 1}'


async def test_two_misses_end_in_words():
    with pytest.raises(ShapeError, match="not a JSON object"):
        await point({"other": [reply("no")]})


async def test_a_broken_endpoint_is_no_missing_capability():
    with pytest.raises(ModelError, match="HTTP 500"):
        await point({"other": [{"status": 500}]})


async def test_an_endless_answer_is_not_parsed():
    with pytest.raises(ShapeError, match="at most 100000 are read"):
        await point({"other": [{"chunks": ["{" * 200_001]}]})


@pytest.mark.parametrize("text", ["{" * 500 + "x" * 15_000, '{"title": "' + 'a"b ' * 4_000, "[" * 50_000])
async def test_a_hostile_answer_does_not_hold_up_the_run(text):
    with pytest.raises(ShapeError):
        await point({"other": [{"chunks": [text]}]})
