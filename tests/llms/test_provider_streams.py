"""Streams of providers and local servers, read by maniple and by the SDK with LangChain side by side."""

import asyncio
import json
from contextlib import aclosing
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessageChunk
from pydantic import BaseModel

from maniple.config import ModelSettings, ModelsSettings
from maniple.errors import ModelError
from maniple.llms import open_chat_models
from maniple.llms.raw_streams import EventDecoder, RawCompletions
from tests.crawler.web import Reply, open_site
from tests.llms.network_pieces import QUESTION, SETTINGS, open_model, read, run
from tests.llms.provider_streams import STREAMS, Json, ProviderStream, lines

# The SDK's stream warns of what Mistral sends.
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")


def meaning(message: AIMessageChunk | None, error: str | None) -> Json:
    """Return what a message means to the product."""
    if message is None:
        return {"text": "", "error": error}
    usage = message.usage_metadata
    found: Json = {
        "text": message.text,
        "reasoning": message.additional_kwargs.get("reasoning_content", ""),
        "calls": [{name: call[name] for name in ("name", "args", "id")} for call in message.tool_calls],
        "error": error,
    }
    if error is None:
        found["usage"] = usage and (
            usage["input_tokens"],
            usage["output_tokens"],
            usage.get("input_token_details", {}).get("cache_read", 0),
        )
        found["finish"] = message.response_metadata.get("finish_reason")
        found["model"] = message.response_metadata.get("model_name")
    return found


def expected(stream: ProviderStream) -> Json:
    """Return what the table says."""
    fields = (
        ["text", "error"] if stream.error and not stream.text else ["text", "reasoning", "calls", "error"]
    )
    fields += [] if stream.error else ["usage", "finish", "model"]
    return {name: getattr(stream, name) for name in fields}


def body_of(stream: ProviderStream) -> bytes:
    return stream.body if isinstance(stream.body, bytes) else stream.body.encode()


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_in_one_piece_has_the_meaning_that_the_provider_documents(name):
    message, error, _ = run([body_of(STREAMS[name])])
    assert meaning(message, error) == expected(STREAMS[name])


@pytest.mark.parametrize("name", STREAMS)
def test_the_sdk_reads_the_same_but_for_what_the_table_names(name):
    stream = STREAMS[name]
    message, error, _ = run([body_of(stream)], by_sdk=True)
    found, wanted = meaning(message, error), {**expected(stream), **stream.sdk}
    if "error" in stream.sdk:
        assert error == stream.sdk["error"]
    else:
        assert found == wanted


@pytest.mark.parametrize(
    "name", [name for name, stream in STREAMS.items() if not (stream.sdk or stream.error)]
)
def test_the_whole_message_is_the_one_that_the_sdk_gives(name):
    # Log probabilities, parts of a content and the old function call are in no field of the table.
    ours, theirs = (run([body_of(STREAMS[name])], by_sdk=by_sdk)[0] for by_sdk in (False, True))
    assert ours is not None
    assert theirs is not None
    assert ours.model_dump(exclude={"id"}) == theirs.model_dump(exclude={"id"})


@given(name=st.sampled_from(sorted(STREAMS)), data=st.data())
def test_any_split_into_network_pieces_gives_the_same_message(name, data):
    body = body_of(STREAMS[name])
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=30).map(sorted))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    whole, whole_error, _ = run([body])
    split, split_error, _ = run(pieces)
    assert split_error == whole_error
    assert (split and split.model_dump(exclude={"id"})) == (whole and whole.model_dump(exclude={"id"}))


@pytest.mark.parametrize("name", STREAMS)
def test_a_byte_at_a_time_gives_the_same_message(name):
    body = body_of(STREAMS[name])
    message, error, _ = run([bytes([byte]) for byte in body])
    assert meaning(message, error) == expected(STREAMS[name])


def test_what_arrives_together_is_one_chunk():
    _, _, together = run([body_of(STREAMS["OpenAI"])])
    _, _, apart = run(body_of(STREAMS["OpenAI"]).splitlines(keepends=True))
    # The last one is the usage.
    assert (together, apart) == (2, 5)


def test_reasoning_text_and_calls_stay_in_their_order():
    body = body_of(STREAMS["Zhipu"])
    kinds = []

    async def collect() -> None:
        async with aclosing(open_model([body])._astream(QUESTION)) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                message = chunk.message
                assert isinstance(message, AIMessageChunk)
                kinds.append(
                    (bool(message.additional_kwargs), bool(message.content), bool(message.tool_call_chunks))
                )

    asyncio.run(collect())
    assert kinds == [(True, False, False), (False, True, False), (False, False, True), (False, False, False)]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(
    st.lists(
        st.tuples(st.sampled_from(["content", "reasoning_content", "reasoning", "call", "piece"]), TEXTS),
        max_size=25,
    ),
    st.data(),
)
def test_any_answer_is_the_one_that_the_sdk_gives(parts, data):
    deltas: list[Json] = []
    calls = 0
    for kind, text in parts:
        if kind == "call":
            function = {"name": f"f{calls}", "arguments": text}
            deltas.append({"tool_calls": [{"index": calls, "id": f"id{calls}", "function": function}]})
            calls += 1
        elif kind == "piece" and calls:
            index = data.draw(st.integers(0, calls - 1))
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
        elif kind != "piece":
            deltas.append({kind: text})
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in [{"role": "assistant"}, *deltas]]
    chunks.append({"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode() + b"data: [DONE]\n\n"
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=9).map(sorted))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    (ours, our_error, _), (theirs, their_error, _) = run(pieces), run([body], by_sdk=True)
    assert our_error == their_error
    assert (ours and ours.model_dump(exclude={"id"})) == (theirs and theirs.model_dump(exclude={"id"}))


@given(
    st.lists(st.sampled_from(["data: a", "data:b", "data", ": note", "event: e", "", "dat", "a: b"])),
    st.data(),
)
def test_events_are_those_of_the_line_by_line_rules(lines, data):
    ends = [data.draw(st.sampled_from(["\n", "\r", "\r\n"])) for _ in lines]
    body = "".join(line + end for line, end in zip(lines, ends, strict=True))
    # A line that ends with CR and an empty one that ends with LF are one line that ends with CRLF.
    events, current = [], []
    for line in body.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]:
        if line.startswith("data:"):
            current.append(line[5:].removeprefix(" "))
        elif line == "data":
            current.append("")
        elif not line and current:
            events.append("\n".join(current))
            current = []
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=9).map(sorted))
    decoder = EventDecoder()
    found = [
        event.decode()
        for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)
        for event in decoder.feed(body[start:end].encode())
    ]
    assert found == events


def test_an_endless_event_ends_the_answer(monkeypatch):
    monkeypatch.setattr("maniple.llms.raw_streams.MAX_EVENT_BYTES", 1_000)
    assert run([b"data: " + b"x" * 600] * 3)[1] == "model_bad_response"
    with pytest.raises(ValueError, match="event"):
        list(EventDecoder().feed(b"data: x\n" * 200))
    assert run([b"{" + b" " * 600] * 3)[1] == "model_bad_response"


class Answer(BaseModel):
    text: str


@pytest.mark.parametrize(
    ("delta", "finish", "cause"),
    [
        ({"content": '{"text":"a"}'}, "stop", None),
        ({"content": '{"te'}, "length", openai.LengthFinishReasonError),
        ({"content": ""}, "content_filter", openai.ContentFilterFinishReasonError),
        ({"refusal": "I will not."}, "stop", None),
    ],
)
def test_a_request_with_a_response_format_keeps_the_errors_of_the_sdk(delta, finish, cause):
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    delta = {"role": "assistant", **delta}
    choices = [{"index": 0, "delta": delta}, {"index": 0, "delta": {}, "finish_reason": finish}]
    body = lines(*[json.dumps({**head, "choices": [choice]}) for choice in choices]).encode()
    if cause is not None:
        with pytest.raises(ModelError) as caught:
            asyncio.run(open_model([body]).ainvoke(QUESTION, stream=True, response_format=Answer))
        assert isinstance(caught.value.__cause__, cause)
        return
    message, _, _ = asyncio.run(read(open_model([body]), response_format=Answer))
    assert message is not None
    assert message.additional_kwargs.get("refusal") == delta.get("refusal")
    assert message.additional_kwargs.get("parsed") == (Answer(text="a") if "content" in delta else None)


class _UsageReader(AsyncCallbackHandler):
    """Reads the end of a call; notes how often LangChain asks whether to call it."""

    asked = 0
    ended = 0

    @property
    def ignore_llm(self) -> bool:
        type(self).asked += 1
        return False

    async def on_llm_end(self, *_: Any, **__: Any) -> None:
        type(self).ended += 1


class _TokenReader(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.tokens: list[str] = []

    async def on_llm_new_token(self, token: Any, **_: Any) -> None:
        self.tokens.append(token)


def test_only_handlers_that_read_tokens_are_called_for_each():
    body = body_of(STREAMS["OpenAI"]).splitlines(keepends=True)
    asked = []
    for pieces in ([b"".join(body)], body):
        _UsageReader.asked = _UsageReader.ended = 0
        reader = _TokenReader()
        callbacks = {"callbacks": [_UsageReader(), reader]}
        answer = asyncio.run(open_model(pieces).ainvoke(QUESTION, config=callbacks, stream=True))
        assert (answer.text, "".join(reader.tokens)) == ("Hi there", "Hi there")
        assert _UsageReader.ended == 1
        asked.append((_UsageReader.asked, len(reader.tokens)))
    (once, few), (again, many) = asked
    assert once == again
    assert many > few


@pytest.mark.anyio
async def test_a_request_is_the_one_that_the_sdk_sends():
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    options = {
        "tools": [tool],
        "stop": ["\n"],
        "extra_body": {"response_format": {"type": "json_object"}, "temperature": 0.5},
        "extra_headers": {"X-Team": "a"},
        "extra_query": {"q": "1"},
        "timeout": 30,
        "top_p": 0.9,
    }
    async with open_site(
        {"/v1/chat/completions": Reply(body_of(STREAMS["OpenAI"]), "text/event-stream")}
    ) as site:
        basic = ModelSettings.model_validate({**SETTINGS, "base_url": f"{site.url}/v1", "temperature": 0.1})
        for by_sdk in (False, True):
            async with open_chat_models(ModelsSettings(basic=basic)) as models:
                model: Any = models.get("basic")
                if by_sdk:
                    model.async_client = model.async_client._completions
                assert (await model.ainvoke("hi 😀", stream=True, **options)).text == "Hi there"
    ours, theirs = (json.loads(body) for body in site.bodies)
    assert ours == theirs
    assert (ours["stream"], ours["temperature"], ours["messages"][0]["content"]) == (True, 0.5, "hi 😀")
    heads = [sorted(line.lower() for line in head.splitlines()[1:]) for *_, head in site.requests]
    names = ("x-team", "authorization", "content-type", "accept:", "user-agent", "content-length", "host")
    for name in names:
        assert [line for line in heads[0] if line.startswith(name)], name
    assert [path for _, path, _ in site.requests] == ["/v1/chat/completions?q=1"] * 2
    sent = [
        [line for line in head if not line.startswith(("x-stainless-raw", "content-length"))]
        for head in heads
    ]
    assert sent[0] == sent[1]


def test_the_models_of_both_providers_read_streams_raw():
    # LangChain calls `async_client.create`, and takes dictionaries from it.
    for provider in ("openai", "azure"):
        model = open_model([body_of(STREAMS["OpenAI"])], provider=provider)
        assert isinstance(model.async_client, RawCompletions)
        message, error, chunks = asyncio.run(read(model))
        assert (message and message.text, error, chunks) == ("Hi there", None, 2)
