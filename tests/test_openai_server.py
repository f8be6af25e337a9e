"""The scripted server, driven by the clients that the project itself uses."""

import asyncio
import json
import signal
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI

from tests.openai_server import SIMPLE, OpenAIServer, approximate_tokens, call, reply, serving

pytestmark = pytest.mark.anyio

ADD = {"type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 3}'}}


@asynccontextmanager
async def client_of(base_url: str, **options: Any) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=base_url, api_key="none", **{"max_retries": 0, **options}) as client:
        yield client


@asynccontextmanager
async def talk(script: Any, **options: Any) -> AsyncIterator[tuple[OpenAIServer, AsyncOpenAI]]:
    with serving(script) as server:
        async with client_of(server.base_url, **options) as client:
            yield server, client


@asynccontextmanager
async def chain(script: Any, **options: Any) -> AsyncIterator[tuple[OpenAIServer, ChatOpenAI]]:
    # The HTTP client is ours to close: the one that ChatOpenAI caches would outlive the event loop.
    options |= {"model": "scripted", "api_key": "none", "max_retries": 0}
    with serving(script) as server:
        async with httpx.AsyncClient() as http:
            yield server, ChatOpenAI(base_url=server.base_url, http_async_client=http, **options)


async def until(server: OpenAIServer, **totals: int) -> None:
    await asyncio.to_thread(server.wait_for, lambda stats: totals.items() <= stats.items())


async def ask(client: AsyncOpenAI, text: str = "hello", **fields: Any) -> Any:
    messages: Any = [{"role": "user", "content": text}]
    return await client.chat.completions.create(model="scripted", messages=messages, **fields)


async def chunks_of(client: AsyncOpenAI, text: str = "hello", **fields: Any) -> list[Any]:
    return [chunk async for chunk in await ask(client, text, stream=True, **fields)]


def joined(chunks: list[Any], field: str = "content") -> str:
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    return "".join(getattr(delta, field, None) or "" for delta in deltas)


def contents(chunks: list[Any]) -> list[str]:
    return [choice.delta.content for chunk in chunks for choice in chunk.choices if choice.delta.content]


async def test_text_arrives_whole_and_in_pieces() -> None:
    async with talk({"other": [reply("Hello 世界, again.")]}) as (_, client):
        whole = (await ask(client)).choices[0]
        chunks = await chunks_of(client)
    assert (whole.message.content, whole.finish_reason) == ("Hello 世界, again.", "stop")
    assert contents(chunks) == ["Hello", " ", "世", "界", ",", " again."]
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_chunks_are_sent_exactly_as_given() -> None:
    pieces = ["on", "e t", "wo\n", "\n", "三"]
    async with talk({"other": [{"chunks": pieces}]}) as (_, client):
        assert contents(await chunks_of(client)) == pieces


async def test_reasoning_comes_before_content() -> None:
    async with talk({"other": [reply("4", reasoning=["1 and ", "3"])]}) as (_, client):
        whole = (await ask(client)).choices[0].message
        chunks = await chunks_of(client)
    assert (whole.reasoning_content, whole.content) == ("1 and 3", "4")
    assert joined(chunks[:3], "reasoning_content") == "1 and 3"
    assert joined(chunks[3:]) == "4"


async def test_tool_calls_arrive_whole_and_in_pieces() -> None:
    script = {"other": [{"tool_calls": call("add", a=1, b=3)["tool_calls"] * 2}]}
    async with talk(script) as (_, client):
        whole = (await ask(client)).choices[0]
        chunks = await chunks_of(client)
    assert whole.finish_reason == chunks[-1].choices[0].finish_reason == "tool_calls"
    assert [made.model_dump(exclude={"id"}) for made in whole.message.tool_calls] == [ADD, ADD]
    parts = [part for chunk in chunks for part in chunk.choices[0].delta.tool_calls or []]
    assert len({part.id for part in parts if part.id}) == 2
    texts = ["".join(part.function.arguments for part in parts if part.index == index) for index in (0, 1)]
    assert texts == ['{"a": 1, "b": 3}'] * 2


async def test_broken_tool_arguments_are_sent_as_they_are() -> None:
    async with chain({"other": [{"tool_calls": [{"name": "add", "arguments": '{"a": '}]}]}) as (_, model):
        message = await model.ainvoke("hello")
    assert message.invalid_tool_calls[0]["args"] == '{"a": '


@pytest.mark.parametrize("stream_usage", [True, False])
async def test_langchain_reads_text_tool_calls_and_usage(stream_usage: bool) -> None:
    script = {"other": [reply("four words are here"), call("add", a=1, b=3)]}
    async with chain(script, stream_usage=stream_usage) as (server, model):
        said = await model.ainvoke("hello")
        asked = await model.ainvoke("hello")
        server.reset()
        streamed = [chunk async for chunk in model.astream("hello")]
        called = [chunk async for chunk in model.astream("hello")]
    assert said.text == "".join(chunk.text for chunk in streamed) == "four words are here"
    merged = reduce(add, called)
    assert asked.tool_calls[0]["args"] == merged.tool_calls[0]["args"] == {"a": 1, "b": 3}
    assert said.usage_metadata and said.usage_metadata["total_tokens"] == 2 + 4 + 5
    assert bool(merged.usage_metadata) is stream_usage


async def test_usage_is_sent_if_requested_and_not_withheld() -> None:
    async with talk({"other": [reply("four"), reply("four", usage=False)]}) as (server, client):
        asked = await chunks_of(client, "#run=a", stream_options={"include_usage": True})
        unasked = await chunks_of(client, "#run=b")
        withheld = await chunks_of(client, "#run=a", stream_options={"include_usage": True})
        unseen = await ask(client, "#run=b")
        stats = server.stats
    assert asked[-1].choices == [] and asked[-1].usage.completion_tokens == 1
    assert not any(chunk.usage for chunk in [*unasked, *withheld, unseen])
    assert stats["completion_tokens"] == 4
    assert stats["prompt_tokens"] == 4 * (approximate_tokens("#run=a") + 4)


def test_tokens_count_cjk_characters_one_by_one() -> None:
    assert [approximate_tokens(text) for text in ("", "abcd", "abcde", "世界", "世界a")] == [0, 1, 2, 2, 3]


@pytest.mark.parametrize("stream", [True, False])
async def test_an_error_status_has_its_message_and_headers_and_goes_after_its_times(stream: bool) -> None:
    busy = {"status": 429, "error": "Slow down.", "headers": {"Retry-After": "0"}, "times": 2}
    async with talk({"other": [busy, reply("fine")]}) as (server, client):
        with pytest.raises(openai.RateLimitError, match=r"Slow down\.") as caught:
            await ask(client, stream=stream)
        assert caught.value.response.headers["retry-after"] == "0"
        assert joined(await chunks_of(client.with_options(max_retries=1))) == "fine"
        assert server.stats["calls"] == 3


async def test_a_cut_stream_ends_in_an_error_after_so_many_pieces() -> None:
    seen = []
    async with talk({"other": [reply("one two three", cut_after=2)]}) as (server, client):
        with pytest.raises(openai.APIConnectionError):
            async for chunk in await ask(client, stream=True):
                seen.append(chunk)
        with pytest.raises(openai.APIConnectionError):
            await ask(client)
        assert server.stats["active"] == server.stats["aborted"] == 0
    assert joined(seen) == "one two"


async def test_a_malformed_chunk_comes_after_so_many_pieces() -> None:
    seen = []
    async with talk({"other": [reply("one two three", malformed_after=1)]}) as (_, client):
        with pytest.raises(json.JSONDecodeError):
            async for chunk in await ask(client, stream=True):
                seen.append(chunk)
        with pytest.raises(json.JSONDecodeError):
            await ask(client)
    assert joined(seen) == "one"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_hanging_call_is_active_until_its_client_leaves(stream: bool) -> None:
    async with talk({"other": [{"hang": True}]}) as (server, client):
        asking = asyncio.create_task(ask(client, stream=stream))
        await until(server, active=1)
        asking.cancel()
        await until(server, aborted=1, active=0)


async def test_a_release_before_its_call_has_arrived_waits_for_that_call() -> None:
    async with talk({"other": [reply("first"), {**reply("second"), "hang": True}]}) as (server, client):
        assert joined(await chunks_of(client, "one")) == "first"
        releasing = asyncio.create_task(asyncio.to_thread(server.release))
        async with asyncio.timeout(60):
            assert joined(await chunks_of(client, "two")) == "second"
        await releasing
        with pytest.raises(TimeoutError):
            server.release(timeout_seconds=0)


async def test_a_client_that_leaves_a_stream_is_counted() -> None:
    async with talk({"other": [reply("one two three", delay_seconds=60)]}) as (server, client):
        async with await ask(client, stream=True) as stream:
            seen = [await anext(stream), await anext(stream)]
        await until(server, aborted=1, active=0)
    assert joined(seen) == "one"


async def test_a_delay_holds_a_body_back() -> None:
    async with talk({"other": [reply("late", delay_seconds=60)]}, timeout=0.2) as (_, client):
        with pytest.raises(openai.APITimeoutError):
            await ask(client)


@pytest.mark.parametrize("field", ["response_format", "tools", "parallel_tool_calls", "grammar"])
async def test_a_rejected_field_is_named_and_costs_no_reply(field: str) -> None:
    async with talk({"reject": [field], "other": [reply("first"), reply("second")]}) as (_, client):
        with pytest.raises(openai.BadRequestError, match=field):
            await ask(client, extra_body={field: {}})
        assert joined(await chunks_of(client)) == "first"


@pytest.mark.parametrize("name", ["coordinator of a team", "file_manager", "file manager"])
async def test_the_role_is_read_from_the_prompt(name: str) -> None:
    role = "coordinator" if "coordinator" in name else "file_manager"
    async with chain({role: [reply(role)]}) as (server, model):
        said = await model.ainvoke([("system", f"You are the {name}."), ("user", "hello")])
        assert server.stats["by_role"] == {role: 1}
        assert server.requests[0]["messages"][0]["content"] == f"You are the {name}."
    assert said.text == role


async def test_a_role_without_replies_is_an_error_that_names_it() -> None:
    async with talk(SIMPLE) as (_, client):
        with pytest.raises(openai.BadRequestError, match="gardener"):
            await ask(client, "You are the gardener.")


async def test_fifty_conversations_each_follow_the_script() -> None:
    async with talk({"other": [reply("first of {run}"), reply("second of {run}")]}) as (server, client):

        async def converse(run: int) -> list[str]:
            return [joined(await chunks_of(client, f"hello #run={run}")) for _ in range(3)]

        told = await asyncio.gather(*(converse(run) for run in range(50)))
        stats = server.stats
    assert told == [[f"first of {run}", f"second of {run}", f"second of {run}"] for run in range(50)]
    assert (stats["calls"], stats["active"], stats["aborted"]) == (150, 0, 0)
    assert 1 < stats["max_active"] <= 50


async def test_the_simple_script_plays_a_whole_run() -> None:
    async with chain(SIMPLE) as (_, model):

        async def turn(role: str) -> Any:
            return await model.ainvoke([("system", f"You are the {role} of a team"), ("user", "1+3=?")])

        assert (await turn("coordinator")).tool_calls[0]["name"] == "handoff_to_planner"
        plan = json.loads((await turn("planner")).text)
        assert [step["agent_name"] for step in plan["steps"]] == ["coder", "reporter"]
        assert (await turn("coder")).tool_calls[0]["args"] == {"code": "print(1+3)"}
        assert (await turn("coder")).text == "1 + 3 = 4"
        assert "4" in (await turn("reporter")).text


async def test_the_admin_pages_show_and_reset() -> None:
    async with talk({"other": [reply("old"), reply("older")]}) as (server, client):
        assert [model.id async for model in client.models.list()] == ["scripted"]
        assert joined(await chunks_of(client)) == "old"
        async with httpx.AsyncClient(base_url=server.base_url) as http:
            assert (await http.get("/admin/requests")).json() == server.requests != []
            assert (await http.get("/admin/stats")).json() == server.stats
            assert (await http.post("/admin/reset")).json()["calls"] == 0
            assert joined(await chunks_of(client)) == "old"
            await http.post("/admin/reset", json={"other": [reply("new")]})
            assert joined(await chunks_of(client)) == "new"
            assert (await http.get("/nothing")).status_code == 404


async def test_leaving_the_context_ends_the_thread_even_when_a_call_hangs() -> None:
    others = set(threading.enumerate())  # a server that other tests share may be among them
    with serving({"other": [{"hang": True}]}) as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0)
        asking = asyncio.create_task(ask(client))
        await until(server, active=1)
    assert "openai-server" not in [thread.name for thread in set(threading.enumerate()) - others]
    async with client:
        with pytest.raises(openai.APIError):
            await asking


async def test_it_runs_as_its_own_process(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"other": [reply("from {run}")]}))
    arguments = ["-m", "tests.openai_server", "--port", "0", "--script", str(script)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=Path(__file__).parent.parent, stdout=PIPE, stderr=PIPE
    )
    try:
        assert process.stdout
        base_url = (await process.stdout.readline()).decode().strip()
        async with client_of(base_url) as client:
            assert joined(await chunks_of(client, "#run=afar")) == "from afar"
    finally:
        process.terminate()
        _, complaints = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode in (0, -signal.SIGTERM)
    assert complaints == b""
