"""A model whose endpoint sends a body in given network pieces, without a network."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from functools import reduce
from operator import add
from typing import Any

import httpx2
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGenerationChunk

from maniple.config import ModelSettings, ModelsSettings
from maniple.errors import ModelError
from maniple.llms.capabilities import Capabilities
from maniple.llms.chat import EndpointModel
from maniple.llms.models import Connector

QUESTION = [HumanMessage("hi")]
SETTINGS = {
    "model": "m",
    "base_url": "http://127.0.0.1:1/v1",
    "max_retries": 0,
    "api_key": "k",
    "capabilities": {"unopened_thoughts": False},
}


class _Body(httpx2.AsyncByteStream):
    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            await asyncio.sleep(0)
            yield piece


class _Pieces(httpx2.AsyncBaseTransport):
    """Answers every request with the same body in these network pieces."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        return httpx2.Response(200, stream=_Body(self._pieces), extensions={"http_version": b"HTTP/1.1"})


def open_model(pieces: Sequence[bytes], **settings: Any) -> EndpointModel:
    """Return a model whose endpoint sends `pieces`."""
    http = httpx2.AsyncClient(transport=_Pieces(pieces))
    basic = ModelSettings.model_validate({**SETTINGS, **settings})
    model = Connector(http, lambda url, name: Capabilities()).connect_all(ModelsSettings(basic=basic))
    basic_model = model.get("basic")
    assert isinstance(basic_model, EndpointModel)
    return basic_model


async def read_chunks(model: EndpointModel) -> tuple[list[AIMessageChunk], str | None]:
    """Return the messages of all chunks, and the code of the error that ended them."""
    messages: list[AIMessageChunk] = []
    try:
        async with aclosing(model._astream(QUESTION)) as stream:  # type: ignore[type-var]
            async for chunk in stream:
                assert isinstance(chunk.message, AIMessageChunk)
                messages.append(chunk.message)
    except ModelError as error:
        return messages, error.code
    return messages, None


async def read(model: EndpointModel, **options: Any) -> tuple[AIMessageChunk | None, str | None, int]:
    """Return the whole message, the code of the error that ended it, and the number of its chunks."""
    chunks: list[ChatGenerationChunk] = []
    try:
        async with aclosing(model._astream(QUESTION, **options)) as stream:  # type: ignore[type-var]
            chunks = [chunk async for chunk in _collect(stream, chunks)]
    except ModelError as error:
        return (_message(chunks), error.code, len(chunks))
    return (_message(chunks), None, len(chunks))


async def _collect(stream: Any, chunks: list[ChatGenerationChunk]) -> AsyncIterator[ChatGenerationChunk]:
    async for chunk in stream:
        chunks.append(chunk)
        yield chunk


def _message(chunks: Sequence[ChatGenerationChunk]) -> AIMessageChunk | None:
    if not chunks:
        return None
    whole = reduce(add, chunks)
    assert isinstance(whole.message, AIMessageChunk)
    whole.message.response_metadata |= whole.generation_info or {}
    return whole.message


def run(body: Sequence[bytes], *, by_sdk: bool = False) -> tuple[AIMessageChunk | None, str | None, int]:
    """Read a stream in a loop of its own."""
    model = open_model(body)
    if by_sdk:
        model.async_client = model.async_client._completions
    return asyncio.run(read(model))
