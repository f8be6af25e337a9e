"""Finding a model server that already runs on this machine."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from maniple.llms.embedded import LocalEndpoint, find_local_server
from tests.llms.embedded.loopback import Answer, Request, serving, unused_port, write_head, write_reply

pytestmark = pytest.mark.anyio

OLLAMA = {"object": "list", "data": [{"id": "llama3.2:3b", "object": "model", "owned_by": "library"}]}
LM_STUDIO = {
    "object": "list",
    "data": [{"id": "text-embedding-nomic-embed-text-v1.5"}, {"id": "qwen2.5-7b-instruct"}],
}
LLAMA_CPP = {
    "models": [{"name": "model.gguf"}],
    "object": "list",
    "data": [{"id": "model.gguf", "meta": {"n_ctx_train": 32768}}],
}


def listing(models: object, properties: object = None) -> Answer:
    """A server that lists `models`; `/props` is llama.cpp's and unknown to the others."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.path == "/v1/models":
            write_reply(writer, models)
        elif request.path == "/props" and properties is not None:
            write_reply(writer, properties)
        else:
            write_reply(writer, {"error": "not found"}, 404)

    return answer


def saying(content: bytes) -> Answer:
    """A program that answers every request with `content`, be it HTTP or not."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(content)

    return answer


async def find(*answers: Answer | None, timeout_seconds: float = 5) -> LocalEndpoint | None:
    """What is found where `answers` are the programs on the three ports; None is no program."""
    async with AsyncExitStack() as stack:
        ports = [
            await stack.enter_async_context(serving(answer)) if answer else await unused_port()
            for answer in answers
        ]
        found = await find_local_server(
            timeout_seconds, list(zip(["first", "second", "third"], ports, strict=False))
        )
        if found:
            assert found.base_url in {f"http://127.0.0.1:{port}/v1" for port in ports}
        return found


@pytest.mark.parametrize(
    ("models", "name"),
    [(OLLAMA, "llama3.2:3b"), (LM_STUDIO, "qwen2.5-7b-instruct"), (LLAMA_CPP, "model.gguf")],
)
async def test_each_kind_of_server_is_found_with_its_first_chat_model(models: object, name: str) -> None:
    found = await find(None, listing(models), None)
    assert found is not None
    assert (found.model, found.server, found.context_tokens) == (name, "second", None)


async def test_llama_cpp_also_reports_its_window() -> None:
    found = await find(listing(LLAMA_CPP, {"default_generation_settings": {"n_ctx": 8192}}))
    assert found is not None
    assert found.context_tokens == 8192


async def test_the_earlier_port_is_preferred_even_when_it_answers_later() -> None:
    asked = asyncio.Event()

    async def late(request: Request, writer: asyncio.StreamWriter) -> None:
        await asked.wait()
        await listing(OLLAMA)(request, writer)

    async def early(request: Request, writer: asyncio.StreamWriter) -> None:
        await listing(LLAMA_CPP)(request, writer)
        asked.set()

    found = await find(late, early)
    assert found is not None
    assert found.server == "first"


async def test_nothing_is_found_without_a_listener() -> None:
    assert await find(None, None, None) is None


async def test_a_server_with_embedding_models_only_is_passed_over() -> None:
    names = [
        "nomic-embed-text:latest",
        "BAAI/bge-m3",
        "jina-reranker-v2",
        "all-minilm:l6",
        "intfloat/e5-large",
    ]
    assert await find(listing({"data": [{"id": name} for name in names]})) is None


async def test_a_llama_cpp_that_requires_a_key_is_skipped_although_it_lists_its_model() -> None:
    async def guarded(request: Request, writer: asyncio.StreamWriter) -> None:
        write_reply(
            writer,
            LLAMA_CPP if request.path == "/v1/models" else {},
            200 if "models" in request.path else 401,
        )

    found = await find(guarded, listing(OLLAMA))
    assert found is not None
    assert found.server == "second"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="not HTTP"),
        pytest.param(b"", id="hangs up"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n<!doctype html><title>Jenkins</title>", id="a page"),
        pytest.param(b"HTTP/1.1 404 Not Found\r\n\r\n", id="not found"),
        pytest.param(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", id="a redirect"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 200_000, id="deep JSON"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe\x00", id="not text"),
        pytest.param(b'HTTP/1.1 200 OK\r\n\r\n{"data": {"id": "x"}}', id="data that is no list"),
        pytest.param(
            b'HTTP/1.1 200 OK\r\n\r\n{"data": [1, {"id": 2}, {"id": ""}, {}]}', id="names that are none"
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nnot gzip", id="broken compression"),
        pytest.param(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"data"', id="cut short"),
    ],
)
async def test_another_program_on_the_port_is_passed_over(content: bytes) -> None:
    found = await find(saying(content), listing(OLLAMA))
    assert found is not None
    assert found.server == "second"


async def test_a_program_that_never_answers_costs_the_timeout_and_no_more() -> None:
    async def hanging(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with asyncio.timeout(60):
        found = await find(hanging, hanging, listing(OLLAMA), timeout_seconds=1)
    assert found is not None
    assert found.server == "third"


async def test_a_program_that_never_ends_is_left_at_a_megabyte() -> None:
    async def endless(request: Request, writer: asyncio.StreamWriter) -> None:
        write_head(writer, 200)
        while True:
            writer.write(b" " * 65_536)
            await writer.drain()

    async with asyncio.timeout(60):
        assert await find(endless, timeout_seconds=60) is None
