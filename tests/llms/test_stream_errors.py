"""Errors that an endpoint puts into an answer it has begun with HTTP 200."""

import httpx2
import openai
import pytest
from langchain_core.messages import HumanMessage

from maniple.config import ModelSettings, ModelsSettings
from maniple.errors import ModelError
from maniple.llms import ask, capabilities_of, open_chat_models
from maniple.llms.endpoint_errors import status_error, wait_seconds
from tests.crawler.web import Reply, open_site
from tests.openai_server import reply, serving

pytestmark = pytest.mark.anyio
QUESTION = [HumanMessage("hi")]
URL = "http://127.0.0.1/v1"


def in_stream(after: int = 0, text: str = "a b c d", **error) -> dict:
    return {"text": text, "error_after": after, "error": {"message": "busy now", **error}, "times": 1}


async def streamed(*replies: dict, fallback: bool = False, **options) -> tuple[str, int]:
    """Return the text of one streamed answer, and how many calls it took."""
    with serving({"other": list(replies)}) as server, serving({"other": [reply("instead")]}) as second:
        basic = {
            "model": "m",
            "base_url": server.base_url,
            "timeout_seconds": 60,
            "max_retries": 2,
            **options,
        }
        if fallback:
            basic["fallbacks"] = [{"model": "n", "base_url": second.base_url}]
        async with open_chat_models(ModelsSettings(basic=ModelSettings.model_validate(basic))) as models:
            chunks = [chunk async for chunk in models.get("basic").astream(QUESTION)]
        return "".join(chunk.text for chunk in chunks), server.stats["calls"]


async def failure(*replies: dict, **options) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await streamed(*replies, **options)
    return caught.value


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        ({"code": 429, "retry_after": 0}, "model_rate_limited", True),
        ({"code": None, "type": "rate_limit_error", "retry_after": 0}, "model_rate_limited", True),
        ({"code": 503, "retry_after": 0}, "model_overloaded", True),
        ({"code": "502", "retry_after": 0}, "model_overloaded", True),
        ({"type": "overloaded_error", "retry_after": 0}, "model_overloaded", True),
        ({"type": "api_error", "code": None, "retry_after": 0}, "model_overloaded", True),
        ({"code": 401}, "model_auth", False),
        ({"code": "model_not_found"}, "model_not_found", False),
        ({"code": 400, "type": "BadRequestError"}, "model_bad_request", False),
        ({"type": "invalid_request_error", "code": "context_length_exceeded"}, "model_bad_request", False),
    ],
)
async def test_an_error_in_the_stream_is_reported_as_the_status_it_carries(error, code, retryable):
    told = await failure({**in_stream(**error), "times": 9})
    assert (told.code, told.retryable) == (code, retryable)
    assert "chat completion" not in str(told)


async def test_before_the_first_word_it_is_waited_out_like_the_status():
    replies = [
        in_stream(code=429, metadata={"headers": {"Retry-After": "0"}}),
        in_stream(1, code=503, retry_after=0),
    ]
    assert await streamed(*replies, reply("fine")) == ("fine", 3)


async def test_a_request_is_retried_as_often_as_set():
    busy = {**in_stream(code=503, retry_after=0), "times": 9}
    with pytest.raises(ModelError, match=r"HTTP 503 \(busy now\)") as caught:
        await streamed(busy, reply("late"), max_retries=1)
    assert not caught.value.broke_off  # whoever asks need not try again, either
    assert await streamed({**busy, "times": 2}, reply("fine")) == ("fine", 3)


async def test_the_fallback_is_used_even_if_the_answer_had_begun():
    assert await streamed({**in_stream(1, code=503), "times": 9}, fallback=True, max_retries=0) == (
        "instead",
        1,
    )


async def test_a_permanent_error_is_not_retried():
    assert await streamed({**in_stream(code=400), "times": 9}, fallback=True) == ("instead", 1)


async def test_an_error_within_the_answer_repeats_the_whole_request():
    plain = {"capabilities": {"unopened_thoughts": False}}
    error = await failure({**in_stream(3, code=429), "times": 9}, **plain)
    assert (error.code, error.broke_off) == ("model_rate_limited", True)
    with serving({"other": [in_stream(3, code=503), reply("whole answer")]}) as server:
        basic = ModelSettings.model_validate({"model": "m", "base_url": server.base_url, **plain})
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            assert (await ask(models.get("basic"), QUESTION, stream=True)).text == "whole answer"
        assert [request.get("stream") for request in server.requests] == [True, True]


async def test_a_mistake_in_the_middle_is_final():
    assert not (await failure({**in_stream(3, code=400), "times": 9})).broke_off


async def test_in_an_answer_in_one_body_too():
    with serving({"other": [in_stream(code=429), reply("fine")]}) as server:
        basic = ModelSettings(model="m", base_url=server.base_url)
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            with pytest.raises(ModelError) as caught:
                await models.get("basic").ainvoke(QUESTION)
            assert (caught.value.code, caught.value.broke_off) == ("model_rate_limited", True)
            assert (await models.get("basic").ainvoke(QUESTION)).text == "fine"


async def test_a_feature_that_is_refused_within_the_stream_is_remembered():
    refusal = {**in_stream(code=400), "error": {"code": 400, "message": "stream_options is not supported"}}
    with serving({"other": [refusal, reply("fine")]}) as server:
        basic = ModelSettings(model="m", base_url=server.base_url)
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            model = models.get("basic")
            assert "".join([chunk.text async for chunk in model.astream(QUESTION)]) == "fine"
            assert capabilities_of(model).has("stream_usage") is False


@pytest.mark.parametrize(
    "body",
    [
        'data: {"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}\n\n',
        "data: insufficient balance\n\ndata: [DONE]\n\n",
        'event: error\ndata: {"detail":"insufficient balance"}\n\n',
        "event: error\ndata: insufficient balance\n\n",
        'data: {"error":"insufficient balance"}\n\n',
        'data: {"error":true,"msg":"insufficient balance"}\n\n',
        '{"detail":"insufficient balance"}',
    ],
)
async def test_a_stream_without_an_answer_is_reported_in_the_words_of_the_endpoint(body):
    async with open_site({"/v1/chat/completions": Reply(body, "text/event-stream")}) as site:
        basic = ModelSettings(model="m", base_url=f"{site.url}/v1", max_retries=0)
        async with open_chat_models(ModelsSettings(basic=basic)) as models:
            with pytest.raises(ModelError, match="insufficient balance"):
                _ = [chunk async for chunk in models.get("basic").astream(QUESTION)]


def error_of(body: object) -> openai.APIStatusError:
    error = status_error(openai.APIError("words", httpx2.Request("POST", URL), body=body), URL)
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"code": 429, "retry_after": 7}, 7.0),
        ({"code": 503, "metadata": {"retry_after_seconds": "2.5"}}, 2.5),
        ({"code": 429, "metadata": {"headers": {"Retry-After": "3"}}}, 3.0),
        ({"code": 429, "retry_after": 3600}, 60.0),
        ({"code": 429, "retry_after": -1}, 0.0),
        ({"code": 400, "retry_after": 1}, None),
    ],
)
def test_how_long_to_wait_is_taken_from_the_error(body, seconds):
    assert wait_seconds(error_of(body), 1) == seconds


def test_without_a_time_the_wait_doubles_up_to_a_limit():
    busy = error_of({"code": 503, "retry_after": "soon"})
    waits = [wait_seconds(busy, attempt) for attempt in (1, 2, 3, 9)]
    assert all(
        low <= wait <= high
        for wait, (low, high) in zip(waits, [(0.3, 0.5), (0.7, 1), (1.5, 2), (6, 8)], strict=True)
    )


def test_an_error_in_bare_words_is_a_failure_of_the_endpoint():
    assert (error_of("out of memory").status_code, str(error_of("out of memory"))) == (500, "out of memory")
    assert error_of({"code": "1302", "message": "x"}).status_code == 500


def test_a_status_of_its_own_is_left_to_the_sdk():
    response = httpx2.Response(429, request=httpx2.Request("POST", URL))
    assert status_error(openai.RateLimitError("x", response=response, body=None), URL) is None
    assert status_error(ValueError("no JSON"), URL) is None
