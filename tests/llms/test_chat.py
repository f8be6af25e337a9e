"""Chat models against a real HTTP server that misbehaves on demand."""

import asyncio
import json
import logging
import socket
import time
from contextlib import AsyncExitStack, asynccontextmanager
from email.utils import formatdate
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import httpx2
import openai._base_client
import pytest
from langchain_core.messages import HumanMessage

from maniple.config import ModelSettings, ModelsSettings
from maniple.errors import ModelError
from maniple.events import AgentStarted, ModelUnreachable
from maniple.graph import build_graph
from maniple.llms import ChatModels, ask, capabilities_of, endpoint_errors, open_chat_models
from maniple.llms.endpoint_errors import EndpointOutage
from maniple.llms.endpoints import EndpointName
from maniple.runs.turn import stream_run
from tests.crawler.web import Reply, open_site
from tests.openai_server import call, reply, serving

pytestmark = pytest.mark.anyio
QUESTION = [HumanMessage("hi")]


@pytest.fixture(autouse=True)
def _quiet_cuts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="uvicorn.error")


def settings(base_url: str, **options) -> ModelsSettings:
    basic = {"model": "m", "base_url": base_url, "timeout_seconds": 60, "max_retries": 0, **options}
    return ModelsSettings(basic=ModelSettings.model_validate(basic))


async def answer_of(script: dict, **options) -> tuple[str, dict]:
    with serving({"other": script} if isinstance(script, list) else script) as server:
        async with open_chat_models(settings(server.base_url, **options)) as models:
            chunks = [chunk async for chunk in models.get("basic").astream(QUESTION)]
            return "".join(chunk.text for chunk in chunks), server.stats


async def failure(script: list[dict], **options) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await answer_of(script, **options)
    return caught.value


@pytest.mark.parametrize(
    ("fault", "code", "retryable", "words"),
    [
        ({"status": 401}, "model_auth", False, "Set BASIC_API_KEY in .env"),
        ({"status": 403}, "model_auth", False, "refused the API key"),
        ({"status": 404}, "model_not_found", False, "Check BASIC_MODEL and BASIC_BASE_URL"),
        ({"status": 429}, "model_rate_limited", True, "Wait and ask again"),
        ({"status": 500}, "model_overloaded", True, "failed with HTTP 500"),
        ({"status": 400, "error": "too long"}, "model_bad_request", False, "too long"),
        ({"hang": True}, "model_timeout", True, "models.basic.timeout_seconds"),
        ({"text": "a b c d", "cut_after": 2}, "model_stream_cut", True, "broke off in the middle"),
        ({"text": "a b c", "malformed_after": 1}, "model_bad_response", True, "not a chat completion"),
    ],
)
async def test_each_failure_names_the_endpoint_and_the_remedy(fault, code, retryable, words):
    error = await failure([fault], timeout_seconds=1 if "hang" in fault else 60)
    assert (error.code, error.retryable) == (code, retryable)
    assert words in str(error)
    assert "Model 'm' at http://127.0.0.1:" in str(error)


async def test_an_unreachable_endpoint_is_named_with_the_reason():
    async with open_chat_models(settings("http://127.0.0.1:9/v1")) as models:
        with pytest.raises(ModelError, match=r"127\.0\.0\.1:9/v1 .*reached \(.*[Cc]onnect") as caught:
            await ask(models.get("basic"), QUESTION)
    assert caught.value.code == "model_unreachable"


async def test_a_key_in_the_url_is_not_repeated():
    async with open_chat_models(settings("http://user:sk-secret@127.0.0.1:9/v1?key=sk-secret")) as models:
        with pytest.raises(ModelError) as caught:
            await ask(models.get("basic"), QUESTION)
    assert "sk-secret" not in str(caught.value)


async def test_rate_limits_are_waited_out():
    script = [{"status": 429, "headers": {"Retry-After": "0"}, "times": 2}, reply("fine")]
    text, stats = await answer_of(script, max_retries=2)
    assert (text, stats["calls"]) == ("fine", 3)


@pytest.mark.parametrize("wrong_by", [-86_400, 0, 86_400])
async def test_a_date_to_wait_for_is_heeded_though_our_clock_is_wrong(monkeypatch, wrong_by):
    class Clock:
        """The SDK's view of the module `time`."""

        def __getattr__(self, name):
            return getattr(time, name)

        def time(self):
            return time.time() + wrong_by

    monkeypatch.setattr(openai._base_client, "time", Clock())
    began = time.monotonic()
    date = formatdate(time.time() + 3, usegmt=True)
    text, stats = await answer_of(
        [{"status": 429, "headers": {"Retry-After": date}}, reply("fine")], max_retries=1
    )
    assert (text, stats["calls"]) == ("fine", 2)
    assert time.monotonic() - began > 1.5, "the endpoint's word counts, not a backoff of ours"


async def test_an_answer_that_breaks_off_is_requested_again():
    script = [{"text": "a b c d", "cut_after": 2, "times": 1}, reply("whole answer")]
    with serving({"other": script}) as server:
        async with open_chat_models(settings(server.base_url, max_retries=1)) as models:
            # A streaming run is what the graph makes of every call.
            parts = [e async for e in _events(models.get("basic"))]
    assert parts[-1] == "whole answer"


async def _events(model):
    from langchain_core.runnables import RunnableLambda

    async def body(_: object) -> str:
        return (await ask(model, QUESTION)).text

    node = RunnableLambda(body)
    async for event in node.astream_events("x", version="v2"):
        if event["event"] == "on_chain_end":
            yield event["data"]["output"]


async def test_reasoning_arrives_beside_the_text():
    with serving({"other": [reply("x", reasoning=["th", "ink"])]}) as server:
        async with open_chat_models(settings(server.base_url)) as models:
            chunks = [chunk async for chunk in models.get("basic").astream(QUESTION)]
    assert "".join(c.additional_kwargs.get("reasoning_content", "") for c in chunks) == "think"
    assert "".join(c.text for c in chunks) == "x"


async def test_after_a_refusal_usage_in_streams_is_never_requested_again():
    learned = []
    with serving({"other": [reply("x")], "reject": ["stream_options"]}) as server:
        async with open_chat_models(settings(server.base_url)) as models:
            model = models.get("basic")
            capabilities_of(model).on_learned = learned.append
            assert "".join([c.text async for c in model.astream(QUESTION)]) == "x"
            assert "".join([c.text async for c in model.astream(QUESTION)]) == "x"
        assert server.stats["calls"] == 3
    assert learned == [{"stream_usage": False}]


async def test_the_fallback_answers_when_the_endpoint_does_not():
    with serving({"other": [reply("from the second")]}) as server:
        fallback = {"model": "n", "base_url": server.base_url}
        async with open_chat_models(settings("http://127.0.0.1:9/v1", fallbacks=[fallback])) as models:
            chunks = [chunk async for chunk in models.get("basic").astream(QUESTION)]
            assert "".join(chunk.text for chunk in chunks) == "from the second"
            assert (await models.get("basic").ainvoke(QUESTION)).text == "from the second"


async def test_names_of_agents_and_new_field_names_stay_away_from_other_hosts():
    with serving({"other": [reply("x")]}) as server:
        async with open_chat_models(settings(server.base_url, max_output_tokens=7)) as models:
            await models.get("basic").ainvoke([HumanMessage("hi", name="coder")])
        request = server.requests[0]
    assert "name" not in request["messages"][0]
    assert request["max_tokens"] == 7


async def test_tool_calls_stream_through():
    with serving({"other": [call("f", x=1)]}) as server:
        async with open_chat_models(settings(server.base_url)) as models:
            message = await models.get("basic").ainvoke(QUESTION)
    assert message.tool_calls[0]["args"] == {"x": 1}


async def test_without_any_model_the_error_says_what_to_set():
    async with open_chat_models(ModelsSettings()) as models:
        with pytest.raises(ModelError, match="BASIC_API_KEY, BASIC_BASE_URL and BASIC_MODEL"):
            models.get("vision")


async def test_azure_deployments_have_their_own_path():
    async with open_site({"/openai/deployments/m/chat/completions": Reply("{}", "application/json")}) as site:
        async with open_chat_models(settings(site.url, provider="azure", api_key="k" * 8)) as models:
            with pytest.raises(ModelError):
                await models.get("basic").ainvoke(QUESTION)
    method, path, head = site.requests[0]
    assert (method, path) == ("POST", "/openai/deployments/m/chat/completions?api-version=2024-10-21")
    assert "api-key: kkkkkkkk" in head.lower()


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
async def test_an_answer_that_is_no_stream_is_named_and_the_fallback_used(kind):
    page = Reply('{"object": "no completion"}', kind)
    with serving({"other": [reply("from the second")]}) as server:
        async with open_site({"/chat/completions": page}) as site:
            error = None
            async with open_chat_models(settings(site.url)) as models:
                with pytest.raises(ModelError, match="not a chat completion") as error:
                    _ = [chunk async for chunk in models.get("basic").astream(QUESTION)]
            assert error.value.code == "model_bad_response"
            fallback = {"model": "n", "base_url": server.base_url}
            async with open_chat_models(settings(site.url, fallbacks=[fallback])) as models:
                chunks = [chunk async for chunk in models.get("basic").astream(QUESTION)]
    assert "".join(chunk.text for chunk in chunks) == "from the second"


async def test_a_stream_that_ends_before_the_answer_does_was_cut():
    choice = {"index": 0, "delta": {"role": "assistant", "content": "half a rep"}, "finish_reason": None}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    half = f"data: {json.dumps(chunk)}\n\n"
    async with open_site({"/chat/completions": Reply(half, "text/event-stream")}) as site:
        async with open_chat_models(settings(site.url)) as models:
            with pytest.raises(ModelError) as caught:
                _ = [chunk async for chunk in models.get("basic").astream(QUESTION)]
    assert caught.value.code == "model_stream_cut"


async def test_a_key_that_the_endpoint_repeats_is_hidden():
    error = await failure(
        [{"status": 400, "error": "Bad header: Bearer sk-canary-0123"}], api_key="sk-canary-0123"
    )
    assert "sk-canary" not in str(error)
    assert "***" in str(error)


async def test_a_reasoning_model_is_left_its_own_temperature():
    with serving({"other": [reply("x")]}) as server:
        each = {"model": "m", "base_url": server.base_url}
        both = ModelsSettings.model_validate({"basic": each, "reasoning": each})
        async with open_chat_models(both) as models:
            await models.get("basic").ainvoke(QUESTION)
            await models.get("reasoning").ainvoke(QUESTION)
        assert ["temperature" in request for request in server.requests] == [True, False]


async def test_types_with_the_same_model_learn_together():
    each = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
    by_hand = {**each, "capabilities": {"vision": False}, "fallbacks": [{**each, "model": "n"}]}
    types = ModelsSettings.model_validate(
        {"basic": each, "vision": by_hand, "reasoning": {**each, "model": "n"}}
    )
    async with open_chat_models(types) as models:
        basic, vision, reasoning = (models.get(kind) for kind in ("basic", "vision", "reasoning"))
        assert capabilities_of(basic) is capabilities_of(vision)
        assert capabilities_of(vision.fallback_models[0]) is capabilities_of(reasoning)
        assert capabilities_of(basic) is not capabilities_of(reasoning)
        assert not capabilities_of(basic).has("vision")


@pytest.mark.parametrize("streaming", [True, False])
async def test_when_no_model_answers_each_is_named_with_its_reason(streaming):
    with serving({"other": [{"status": 401}]}) as first, serving({"other": [{"status": 500}]}) as second:
        fallbacks = [
            {"model": "n", "base_url": second.base_url, "max_retries": 0},
            {"model": "o", "base_url": "http://127.0.0.1:9/v1", "max_retries": 0},
        ]
        async with open_chat_models(settings(first.base_url, fallbacks=fallbacks)) as models:
            with pytest.raises(ModelError) as caught:
                await models.get("basic").ainvoke(QUESTION, stream=streaming)
    words = str(caught.value)
    assert words.startswith(
        f"None of the 3 models answered. (1) Model 'm' at {first.base_url} refused the API key"
    )
    assert f"(2) Model 'n' at {second.base_url} failed with HTTP 500" in words
    assert "(3) Model 'o' at http://127.0.0.1:9/v1 cannot be reached" in words
    assert "is models.basic.fallbacks[1].base_url right?" in words
    assert (caught.value.code, caught.value.retryable) == ("model_auth", True)
    assert len(words) < 1000


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


async def parallel_fields(reject=(), *, streaming=True, **options) -> list[object]:
    """Return `parallel_tool_calls` of the requests of two calls with tools and one without."""
    with serving({"other": [reply("x")], "reject": list(reject)}) as server:
        async with open_chat_models(settings(server.base_url, **options)) as models:
            for tools in ({"tools": [TOOL]}, {"tools": [TOOL]}, {}):
                await models.get("basic").ainvoke(QUESTION, stream=streaming, **tools)
        return [request.get("parallel_tool_calls", "absent") for request in server.requests]


@pytest.mark.parametrize("streaming", [True, False])
async def test_the_setting_for_sequential_calls_is_sent_with_tools(streaming):
    by_hand = {"capabilities": {"parallel_tools": False}}
    assert await parallel_fields(streaming=streaming, **by_hand) == [False, False, "absent"]
    assert await parallel_fields(streaming=streaming) == ["absent"] * 3
    assert await parallel_fields(streaming=streaming, capabilities={"parallel_tools": True}) == ["absent"] * 3


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_refused_field_is_left_out_of_the_next_request(streaming):
    sent = await parallel_fields(
        ["parallel_tool_calls"], streaming=streaming, capabilities={"parallel_tools": False}
    )
    assert sent == [False, "absent", "absent", "absent"]


async def test_a_fallback_gets_only_the_fields_that_it_takes_itself():
    with serving({"other": [{"status": 500}]}) as first, serving({"other": [reply("x")]}) as second:
        fallback = {"model": "n", "base_url": second.base_url, "capabilities": {"stream_usage": False}}
        options = {"fallbacks": [fallback], "capabilities": {"parallel_tools": False}}
        async with open_chat_models(settings(first.base_url, **options)) as models:
            await models.get("basic").ainvoke(QUESTION, stream=True, tools=[TOOL])
        assert first.requests[0].keys() - second.requests[0].keys() == {
            "stream_options",
            "parallel_tool_calls",
        }


def connections_in_use(model: Any) -> int:
    """Return the number of connections to loopback that carry an answer."""
    transport = model.http_async_client._transport.routes.direct
    return len(transport._session.connector._acquired)


SLOW = {"text": "a b c d e f g h", "delay_seconds": 0.05}


@pytest.mark.parametrize("fallback", [False, True])
async def test_a_stream_that_is_left_gives_its_connection_back_at_once(fallback):
    with serving({"other": [SLOW]}) as server:
        plain = {"capabilities": {"unopened_thoughts": False}}
        other = {"model": "n", "base_url": server.base_url, **plain}
        options = {**plain, "fallbacks": [other] if fallback else []}
        url = "http://127.0.0.1:9/v1" if fallback else server.base_url
        async with open_chat_models(settings(url, **options)) as models:
            model = models.get("basic")
            stream = model._astream(QUESTION)
            assert await anext(stream)
            assert connections_in_use(model) == 1
            await stream.aclose()
            assert connections_in_use(model) == 0
        await asyncio.to_thread(server.wait_for, lambda stats: stats["active"] == 0)


async def test_a_run_that_is_cancelled_gives_its_connection_back_at_once():
    with serving({"other": [SLOW]}) as server:
        async with open_chat_models(settings(server.base_url)) as models:
            model, begun = models.get("basic"), asyncio.Event()

            async def listen() -> None:
                async for _ in model.astream(QUESTION):
                    begun.set()

            listening = asyncio.create_task(listen())
            await begun.wait()
            listening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await listening
            assert connections_in_use(model) == 0


class OutageHandler(logging.Handler):
    """Notes when it is logged that an endpoint is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.noted = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.noted.set()


@asynccontextmanager
async def gone(**options):
    """Yield a model whose endpoint has answered once and was then ended, its port, and when it is missed."""
    logger, missed = logging.getLogger(endpoint_errors.__name__), OutageHandler()
    async with AsyncExitStack() as stack:
        logger.addHandler(missed)
        stack.callback(logger.removeHandler, missed)
        with serving({"other": [reply("first")]}) as server:
            options = {"max_retries": 1, "unreachable_seconds": 600, **options}
            models = await stack.enter_async_context(open_chat_models(settings(server.base_url, **options)))
            model = models.get("basic")
            assert (await ask(model, QUESTION)).text == "first"
        yield model, urlsplit(server.base_url).port, missed.noted


@pytest.mark.parametrize("is_streaming", [True, False])
async def test_an_endpoint_that_restarts_is_waited_for(is_streaming):
    async with gone() as (model, port, missed):
        model.streaming, model.disable_streaming = is_streaming, not is_streaming
        asking = asyncio.create_task(ask(model, QUESTION))
        await missed.wait()
        with serving({"other": [{"status": 503, "times": 3}, reply("second")]}, port):
            assert (await asking).text == "second"


@pytest.mark.parametrize("is_streaming", [True, False])
async def test_a_run_reports_that_its_endpoint_does_not_answer_until_it_does(is_streaming, monkeypatch):
    monkeypatch.setattr(endpoint_errors, "OUTAGE_PAUSE_SECONDS", 0.01)
    many = asyncio.Event()

    def count(event):
        if isinstance(event, ModelUnreachable) and event.attempt == 3:
            many.set()
        return event

    async with gone() as (model, port, _):
        model.streaming, model.disable_streaming = is_streaming, not is_streaming
        team = build_graph(ChatModels({"basic": model}), {"reporter": Mock()})

        async def run():
            return [count(one) async for one in stream_run(team, QUESTION, is_live=True)]

        asking = asyncio.create_task(run())
        await many.wait()
        with serving({"coordinator": [reply("Hello!")]}, port):
            events = await asking
    missed = [one for one in events if isinstance(one, ModelUnreachable)]
    assert [one.attempt for one in missed] == list(range(2, len(missed) + 2))
    assert all(0 <= one.seconds <= one.left_seconds <= 600 for one in missed)
    assert {one.turn_id for one in missed} == {one.turn_id for one in events if isinstance(one, AgentStarted)}
    names = [one.type for one in events]
    assert names.index("start_of_llm") < names.index("model_unreachable") < names.index("message")


async def test_the_wait_for_an_endpoint_can_be_cancelled_and_ends_where_its_key_is_refused():
    async with gone() as (model, port, missed):
        asking = asyncio.create_task(ask(model, QUESTION))
        await missed.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        asking = asyncio.create_task(ask(model, QUESTION))
        with serving({"other": [{"status": 401}]}, port) as server, pytest.raises(ModelError) as caught:
            await asking
    assert caught.value.code == "model_auth"
    assert len(server.requests) == 1


async def test_all_requests_wait_for_an_endpoint_together_and_not_for_ever(monkeypatch):
    monkeypatch.setattr(endpoint_errors, "OUTAGE_PAUSE_SECONDS", 0.01)
    async with gone(unreachable_seconds=1) as (model, *_):
        for _ in range(3):
            with pytest.raises(ModelError) as caught:
                await ask(model, QUESTION)
            assert caught.value.code == "model_unreachable"
            assert model.outage.wait_seconds(caught.value.__cause__) is None


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1"])
async def test_an_endpoint_that_has_never_answered_is_not_waited_for(url):
    async with (
        asyncio.timeout(60),
        open_chat_models(settings(url, max_retries=1, unreachable_seconds=600)) as models,
    ):
        with pytest.raises(ModelError) as caught:
            await ask(models.get("basic"), QUESTION)
    assert caught.value.code == "model_unreachable"


async def test_for_an_unresolvable_host_the_fallback_is_used_immediately():
    outage = EndpointOutage(EndpointName("m", "http://no-such-host.invalid/v1"), 600)
    outage.end()
    refused, unknown = openai.APIConnectionError(request=None), openai.APIConnectionError(request=None)
    refused.__cause__ = httpx2.ConnectError("refused")
    unknown.__cause__ = httpx2.ConnectError("no such host")
    unknown.__cause__.__cause__ = socket.gaierror(-2, "Name or service not known")
    assert outage.wait_seconds(unknown) is None
    assert outage.wait_seconds(refused)
    other = {"model": "n", "base_url": "http://127.0.0.1:9/v1"}
    async with open_chat_models(settings(other["base_url"], max_retries=1, fallbacks=[other])) as models:
        assert models.get("basic").outage is None


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_arguments_of_a_whole_answer_that_were_encoded_more_than_once_are_read(times):
    arguments = json.dumps({"a": 1})
    for _ in range(times - 1):
        arguments = json.dumps(arguments)
    script = {"other": [{"tool_calls": [{"name": "add", "arguments": arguments}]}]}
    with serving(script) as server:
        async with open_chat_models(settings(server.base_url)) as models:
            answer = await models.get("basic").ainvoke("hi")
    assert [one["args"] for one in answer.tool_calls] == [{"a": 1}]
