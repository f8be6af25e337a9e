"""The contract that the chat models of all providers keep, over the real formats of their APIs."""

import errno
import json
from contextlib import asynccontextmanager
from functools import reduce
from operator import add

import httpx2
import openai
import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from pydantic import BaseModel, SecretStr, ValidationError

from maniple.config import ModelSettings, ModelsSettings, model_providers
from maniple.config.model_providers import Provider
from maniple.errors import ConfigError, ModelError
from maniple.llms import Shape, ask_for, capabilities_of, open_chat_models
from maniple.llms.endpoint_errors import ClientFailed
from maniple.llms.provider_model import as_answering, as_endpoint_failure, normalize
from maniple.llms.providers import base_url_of
from tests.llms.provider_servers import CACHED, INPUT, OUTPUT, Answer, ProviderServer, provider_serving

# google-genai's own use of aiohttp.
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")]

NO_PIECE = 1 / 900
"""A rate of the pieces; a test that waits for the next one does not end."""
KEY = "sk-canary-0123456789"
AWS = {"region_name": "us-east-1", "aws_access_key_id": "k", "aws_secret_access_key": KEY}
OPTIONS = {"bedrock": AWS, "ollama": {"reasoning": True}}
PROVIDERS = ["anthropic", "gemini", "bedrock", "ollama"]
TOOL = {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": {}}}
TOOL["function"]["parameters"] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
}


class Sum(BaseModel):
    a: int


def settings_of(provider: str, server: ProviderServer, **more) -> ModelSettings:
    return ModelSettings.model_validate(
        {
            "model": "anthropic.claude-m" if provider == "bedrock" else "m",
            "provider": provider,
            "base_url": server.base_url,
            "api_key": None if provider in ("bedrock", "ollama") else SecretStr(KEY),
            "max_retries": 0,
            "timeout_seconds": 20,
            "options": OPTIONS.get(provider, {}),
            **more,
        }
    )


@asynccontextmanager
async def opened(provider: str, server: ProviderServer, stream_rate: float = 0, **more):
    settings = ModelsSettings(basic=settings_of(provider, server, **more))
    async with open_chat_models(settings, stream_rate=stream_rate) as models:
        yield models.get("basic")


async def streamed(model, messages, **options) -> tuple[list[AIMessageChunk], AIMessageChunk]:
    pieces = [piece async for piece in model.astream(messages, **options)]
    whole = pieces[0]
    for piece in pieces[1:]:
        whole += piece
    return pieces, whole


async def released_at_first_text(server, model) -> tuple[list[AIMessageChunk], AIMessageChunk]:
    """Read an answer, the rest of which is sent after its first text has come."""
    pieces = []
    async for piece in model.astream([HumanMessage("hi")]):
        pieces.append(piece)
        if piece.content:
            server.release.set()
    return pieces, reduce(add, pieces)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_after_the_first_piece_text_and_calls_are_each_joined(provider):
    answer = Answer(("Hel", "lo", ", ", "you."), calls=(("add", {"a": 1, "b": 2}),))
    with provider_serving(answer) as server:
        server.held = b'"lo"'
        async with opened(provider, server, NO_PIECE) as model:
            pieces, whole = await released_at_first_text(server, model.bind_tools([TOOL]))
    shown = [(piece.content, bool(piece.tool_call_chunks)) for piece in pieces]
    assert [one for one in shown if any(one)] == [("Hel", False), ("lo, you.", False), ("", True)]
    assert whole.tool_calls[0]["args"] == {"a": 1, "b": 2}
    assert whole.response_metadata["finish_reason"] == "stop"
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] == OUTPUT


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_text_is_streamed_in_pieces_with_its_thoughts_and_usage(provider):
    with provider_serving(Answer(("Hel", "lo."), thoughts="I greet.")) as server:
        server.held = b"lo."
        async with opened(provider, server) as model:
            pieces, whole = await released_at_first_text(server, model)
    assert whole.content == "Hello."
    assert [piece.content for piece in pieces if piece.content] == ["Hel", "lo."]
    assert whole.additional_kwargs["reasoning_content"] == "I greet."
    assert whole.response_metadata["finish_reason"] == "stop"
    usage = whole.usage_metadata
    assert usage is not None
    assert (usage["input_tokens"], usage["output_tokens"]) == (INPUT, OUTPUT)
    if provider != "ollama":
        assert usage["input_token_details"]["cache_read"] == CACHED


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_two_calls_are_read_and_their_results_go_back_with_what_the_provider_wants(provider):
    calls = (("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4}))
    with provider_serving(Answer(("I add.",), thoughts="Two sums.", calls=calls), Answer(("10",))) as server:
        async with opened(provider, server) as model:
            bound = model.bind_tools([TOOL])
            question = HumanMessage("sums?")
            _, first = await streamed(bound, [question])
            assert [one["args"] for one in first.tool_calls] == [arguments for _, arguments in calls]
            assert len({one["id"] for one in first.tool_calls}) == 2
            results = [ToolMessage("3", tool_call_id=one["id"], name="add") for one in first.tool_calls]
            stored = AIMessage(
                first.content,
                tool_calls=first.tool_calls,
                additional_kwargs=first.additional_kwargs,
                response_metadata=first.response_metadata,
            )
            _, last = await streamed(bound, [question, stored, *results])
    assert last.content == "10"
    sent = json.dumps(server.requests[1])
    assert "add" in json.dumps(server.requests[0])
    if provider in ("anthropic", "bedrock"):
        assert "c2lnbmVk" in sent, "signed thoughts go back"
        assert "Two sums." in sent


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_refusal_is_shown_in_the_words_of_the_provider(provider):
    with provider_serving(Answer(("x",)), refusals=((400, f"The moon is wrong: {KEY}"),) * 5) as server:
        async with opened(provider, server) as model:
            with pytest.raises(ModelError, match="The moon is wrong") as caught:
                await streamed(model, [HumanMessage("hi")])
    assert caught.value.code == "model_bad_request"
    if provider in ("anthropic", "gemini"):
        assert KEY not in str(caught.value)


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "bedrock", "ollama"])
@pytest.mark.parametrize(("status", "code"), [(401, "model_auth"), (404, "model_not_found")])
async def test_a_status_becomes_the_code_of_the_error(provider, status, code):
    with provider_serving(Answer(("x",)), refusals=((status, "no"),) * 5) as server:
        async with opened(provider, server) as model:
            with pytest.raises(ModelError) as caught:
                await streamed(model, [HumanMessage("hi")])
    assert caught.value.code == code


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_refused_temperature_is_learned_and_the_call_goes_on(provider):
    refusal = (400, "`temperature` is not supported with this model.")
    with provider_serving(Answer(("Hello.",)), refusals=(refusal,)) as server:
        async with opened(provider, server, temperature=0.5) as model:
            _, whole = await streamed(model, [HumanMessage("hi")])
            assert capabilities_of(model).has("temperature") is False
    assert whole.content == "Hello."
    assert ["0.5" in json.dumps(one) for one in server.requests] == [True, False]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_stream_that_was_cut_is_no_answer(provider):
    with provider_serving(Answer(("Hel",), is_cut=True)) as server:
        async with opened(provider, server) as model:
            with pytest.raises(ModelError):
                await streamed(model, [HumanMessage("hi")])


PAGE = b"<html><body>Sign in</body></html>"
LIST = b"event: message_start\ndata: [1]\n\n"


@pytest.mark.parametrize(
    ("provider", "body", "words"),
    [
        ("anthropic", LIST, "no attribute"),
        ("gemini", PAGE, "Failed to parse"),
        ("bedrock", PAGE, "Checksum mismatch"),
        ("ollama", PAGE, "Expecting value"),
        ("ollama", b"[]\n", "no attribute"),
        ("ollama", b"{}\n", "validation error"),
    ],
)
async def test_an_answer_that_the_client_cannot_read_is_a_malformed_one(provider, body, words):
    with provider_serving(Answer(body=body)) as server:
        async with opened(provider, server) as model:
            for ask in (streamed, _invoked):
                with pytest.raises(ModelError, match=words) as caught:
                    await ask(model, [HumanMessage("hi")])
                assert (caught.value.code, caught.value.retryable) == ("model_bad_response", True)


async def _invoked(model, messages):
    return await model.ainvoke(messages)


class RelayedError(Exception):
    """An error of a client that hides its cause."""


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (KeyError("choices"), ValueError),
        (ConnectionResetError("reset"), openai.APIConnectionError),
        (TypeError("odd"), ValueError),
        (httpx2.ReadTimeout("slow"), openai.APIConnectionError),
        (OSError(errno.ENETUNREACH, "no way"), openai.APIConnectionError),
        (FileNotFoundError(errno.ENOENT, "no file"), ClientFailed),
        (RuntimeError("odd"), ClientFailed),
    ],
)
def test_the_cause_of_an_error_decides_what_it_is(cause, kind):
    error = RelayedError("failed")
    error.__cause__ = cause
    assert isinstance(as_endpoint_failure(error, "http://127.0.0.1"), kind)


class BrokenModel(GenericFakeChatModel):
    error: Exception

    async def _astream(self, *args, **kwargs):
        raise self.error
        yield


@pytest.mark.parametrize("error", [RuntimeError("out of cheese"), ValueError("out of cheese")])
async def test_an_error_of_a_program_s_own_model_is_shown_in_its_own_words(error):
    model = as_answering(BrokenModel(messages=iter(()), error=error), "models.basic")
    for ask in (streamed, _invoked):
        with pytest.raises(ModelError, match="out of cheese") as caught:
            await ask(model, [HumanMessage("hi")])
        assert type(error).__name__ in str(caught.value)
        assert not any(word in str(caught.value) for word in ("base_url", "reached", "completion"))
        assert not caught.value.retryable


async def test_a_request_that_boto_refuses_is_shown_in_its_words():
    with provider_serving(Answer(("x",))) as server:
        options = {**AWS, "guardrail_config": {"odd": "x"}}
        async with opened("bedrock", server, options=options) as model:
            with pytest.raises(ModelError, match="Unknown parameter") as caught:
                await model.ainvoke([HumanMessage("hi")])
    assert caught.value.code == "model_bad_request" and not server.requests
    assert "reached" not in str(caught.value)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_answer_that_reached_its_limit_says_so(provider):
    with provider_serving(Answer(("Hel",), reaches_limit=True)) as server:
        async with opened(provider, server) as model:
            _, whole = await streamed(model, [HumanMessage("hi")])
    assert whole.response_metadata["finish_reason"] == "length"


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_object_is_asked_for_by_a_tool(provider):
    shape = Shape("Sum", {"type": "object", "properties": {"a": {"type": "integer"}}}, Sum)
    with provider_serving(Answer(calls=(("Sum", {"a": 4}),))) as server:
        async with opened(provider, server) as model:
            value, _ = await ask_for(model, [HumanMessage("1+3")], shape, receive=_ignore)
    assert value.a == 4
    assert "Sum" in json.dumps(server.requests[0])


async def _ignore(answer) -> None:
    pass


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_endpoint_that_is_not_there_is_unreachable(provider):
    with provider_serving(Answer(("x",))) as server:
        gone = server.base_url
    server.base_url = gone
    async with opened(provider, server) as model:
        with pytest.raises(ModelError) as caught:
            await streamed(model, [HumanMessage("hi")])
    assert caught.value.code == "model_unreachable"


async def test_the_beginning_of_prompts_is_marked_for_the_cache_of_anthropic():
    with provider_serving(Answer(("Hello.",))) as server:
        async with opened("anthropic", server) as model:
            await streamed(model, [SystemMessage("Be brief."), HumanMessage("hi")])
    assert server.requests[0]["system"][0]["cache_control"] == {"type": "ephemeral"}


async def test_a_fallback_of_another_provider_gets_the_tools_in_its_form():
    with provider_serving(Answer(calls=(("add", {"a": 1}),)), refusals=((500, "down"),)) as server:
        other = settings_of("anthropic", server).model_dump()
        async with opened("gemini", server, fallbacks=[{**other, "api_key": SecretStr(KEY)}]) as model:
            _, whole = await streamed(model.bind_tools([TOOL]), [HumanMessage("hi")])
    assert whole.tool_calls[0]["args"] == {"a": 1}
    assert "input_schema" in json.dumps(server.requests[-1])


class EchoModel(GenericFakeChatModel):
    """A model of a user's own package."""


async def test_any_chat_model_can_be_named(monkeypatch):
    options = {"messages": iter([AIMessage("Hello there.")])}
    settings = ModelSettings(model="m", provider=f"{__name__}:EchoModel", options=options)
    async with open_chat_models(ModelsSettings(basic=settings)) as models:
        pieces, whole = await streamed(models.get("basic"), [HumanMessage("hi")])
    assert whole.content == "Hello there."
    assert len(pieces) > 1


async def test_a_provider_is_one_row_of_the_table(monkeypatch):
    row = Provider(f"{__name__}:EchoModel", "https://echo.test", names_end=False)
    monkeypatch.setattr(model_providers, "PROVIDERS", {"echo": row})
    options = {"messages": iter([AIMessage("Hello there.")])}
    settings = ModelSettings(model="m", provider="echo", options=options)
    async with open_chat_models(ModelsSettings(basic=settings)) as models:
        _, whole = await streamed(models.get("basic"), [HumanMessage("hi")])
    assert base_url_of(settings) == "https://echo.test"
    assert whole.content == "Hello there."
    with pytest.raises(ValidationError, match="echo"):
        ModelSettings(model="m", provider="other")


@pytest.mark.parametrize(
    ("provider", "says"),
    [
        ("no_such_package:Chat", "not installed"),
        ("json:Chat", "has no Chat"),
        ("json:JSONDecoder", "no chat model"),
    ],
)
async def test_a_class_that_cannot_be_used_is_named(provider, says):
    with pytest.raises(ConfigError, match=says):
        async with open_chat_models(ModelsSettings(basic=ModelSettings(model="m", provider=provider))):
            pass


def test_an_unknown_provider_is_refused_with_the_known_ones():
    with pytest.raises(ValidationError, match="anthropic"):
        ModelSettings(model="m", provider="claude")


async def test_thoughts_in_a_text_are_no_answer_streamed_or_whole():
    text = AIMessage("<think>SECRET</think>Hi")
    model = as_answering(GenericFakeChatModel(messages=iter([text, text])), "models.basic")
    whole = await model.ainvoke([HumanMessage("hi")])
    _, joined = await streamed(model, [HumanMessage("hi")])
    for answer in (whole, joined):
        assert answer.text == "Hi"
        assert answer.additional_kwargs["reasoning_content"] == "SECRET"


def test_a_block_without_a_text_adds_nothing():
    blocks = [{"type": "text", "text": None}, {"type": "text", "text": "Hi"}]
    chunk = ChatGenerationChunk(message=AIMessageChunk(content=blocks))
    assert normalize(chunk, "a").message.text == "Hi"
