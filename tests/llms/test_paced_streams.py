"""Streams at a limited rate: what is joined, what is not delayed, and what remains when a reader leaves."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, nullcontext
from typing import Any

import pytest

from maniple.errors import ModelError
from maniple.llms import open_chat_models
from maniple.llms.http_client import open_http_client
from maniple.llms.paced_streams import PacedReader
from tests.crawler.web import Reply, Send, open_site
from tests.llms.test_chat import QUESTION, settings
from tests.llms.test_http_client import socks_proxy

pytestmark = pytest.mark.anyio

PAUSE_SECONDS = 900
RATE = 1 / PAUSE_SECONDS
"""A test that waits for a pause does not end."""
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def event(**delta: Any) -> bytes:
    fields = ",".join(f'"{name}":"{value}"' for name, value in delta.items())
    return b'data: {"choices":[{"index":0,"delta":{%b}}]}\n\n' % fields.encode()


class Source:
    """A source that a test writes to; an error in it is raised."""

    def __init__(self) -> None:
        self._written = asyncio.Queue[str | Exception | None]()
        self.is_closed = False

    async def write(self, *items: str | Exception | None) -> None:
        """Write items (None: the end) and let them be read."""
        for item in items:
            self._written.put_nowait(item)
        for _ in range(10):
            await asyncio.sleep(0)

    async def __aiter__(self) -> AsyncGenerator[str]:
        try:
            while (item := await self._written.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.is_closed = True


@pytest.fixture
async def source() -> Source:
    return Source()


@pytest.fixture
async def reader(source: Source) -> Any:
    async with asyncio.timeout(20), aclosing(PacedReader(source, RATE, len)) as reader:
        yield reader


async def test_the_first_piece_comes_at_once_and_the_rest_together_with_the_end(source, reader):
    await source.write("a")
    assert await reader.read() == ["a"]
    later = asyncio.create_task(reader.read())
    await source.write("b", "c")
    assert not later.done()
    await source.write("d", None)
    assert await later == ["b", "c", "d"]
    assert await reader.read() == []
    assert source.is_closed


async def test_an_error_is_not_delayed_and_comes_after_all_that_was_read_before_it(source, reader):
    await source.write("a")
    await reader.read()
    await source.write("b", ValueError("broken"))
    assert await reader.read() == ["b"]
    with pytest.raises(ValueError, match="broken"):
        await reader.read()


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Yield the seconds by which the clock of the event loop is ahead."""
    loop, ahead = asyncio.get_running_loop(), [0.0]
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + ahead[0])
    yield ahead
    monkeypatch.undo()


async def test_a_pause_ends_by_itself(source, clock):
    async with aclosing(PacedReader(source, RATE, len)) as reader:
        await source.write("a")
        await reader.read()
        later = asyncio.create_task(reader.read())
        await source.write("b", "c")
        assert not later.done()
        clock[0] += PAUSE_SECONDS
        assert await later == ["b", "c"]


async def test_what_comes_after_a_longer_silence_comes_at_once(source, clock):
    async with aclosing(PacedReader(source, RATE, len)) as reader:
        await source.write("a")
        await reader.read()
        later = asyncio.create_task(reader.read())
        await source.write()
        clock[0] += PAUSE_SECONDS + 1
        await source.write()
        await source.write("b")
        assert later.done()
        assert await later == ["b"]


async def test_without_a_limit_each_piece_comes_at_once(source, reader):
    reader.is_limited = False
    for item in ("a", "b", "c"):
        await source.write(item)
        assert await reader.read() == [item]


async def test_so_much_is_read_ahead_and_no_more_until_it_is_taken(monkeypatch, source, reader):
    monkeypatch.setattr("maniple.llms.paced_streams.MAX_READ_AHEAD", 3)
    await source.write("a")
    assert await reader.read() == ["a"]
    later = asyncio.create_task(reader.read())
    await source.write("bb", "cc", "dd", None)
    assert await later == ["bb", "cc"]
    assert await reader.read() == ["dd"]


async def test_a_reader_that_is_cancelled_in_a_pause_closes_the_source(source):
    async def read() -> None:
        async with aclosing(PacedReader(source, RATE, len)) as reader:
            while await reader.read():
                pass

    reading = asyncio.create_task(read())
    await source.write("a", "b")
    assert not source.is_closed
    reading.cancel()
    await asyncio.wait({reading})
    assert source.is_closed


@pytest.mark.parametrize("is_proxied", [False, True])
async def test_what_arrived_before_a_cut_is_not_lost(monkeypatch, is_proxied):
    read = asyncio.Event()
    pieces: list[bytes] = []

    async def write(send: Send) -> None:
        await send(b"5\r\nfirst\r\n")
        await read.wait()
        await send(b"6\r\nsecond\r\n")

    page = Reply("", "text/event-stream", stream=write, headers=(("Transfer-Encoding", "chunked"),))
    async with open_site({"/": page}) as site, socks_proxy(monkeypatch) if is_proxied else nullcontext():
        async with asyncio.timeout(20), open_http_client(stream_rate=RATE) as http:
            with pytest.raises(Exception, match=r"(?i)complete"):
                async with http.stream("GET", f"{site.url}/") as response:
                    async for piece in response.aiter_bytes():
                        pieces.append(piece)
                        read.set()
    assert pieces == [b"first", b"second"]


@pytest.mark.parametrize("first", [event(content="Hi"), event(reasoning="Hm")])
async def test_the_first_piece_of_an_answer_comes_at_once_also_after_its_role(first):
    shown = asyncio.Event()

    async def write(send: Send) -> None:
        for opening in (b": processing\n\n", event(role="assistant", content=""), first):
            await send(opening)
            for _ in range(20):
                await asyncio.sleep(0)
        await shown.wait()
        for one in (event(content=" there"), event(content="."), END):
            await send(one)
            await asyncio.sleep(0)

    async with (
        asyncio.timeout(20),
        open_site({"/chat/completions": Reply("", "text/event-stream", stream=write)}) as site,
        open_chat_models(settings(site.url), stream_rate=RATE) as models,
    ):
        texts = []
        async for piece in models.get("basic").astream(QUESTION):
            texts.append(piece.text)
            if piece.text or piece.additional_kwargs:
                shown.set()
    assert [text for text in texts if text][-1] == " there."


async def test_a_call_that_is_cancelled_while_pieces_are_joined_closes_the_connection():
    shown, left = asyncio.Event(), asyncio.Event()

    async def write(send: Send) -> None:
        try:
            while True:
                await send(event(content="word "))
                await asyncio.sleep(0)
        finally:
            left.set()

    async def read(model: Any) -> None:
        async for piece in model.astream(QUESTION):
            if piece.text:
                shown.set()

    async with (
        asyncio.timeout(20),
        open_site({"/chat/completions": Reply("", "text/event-stream", stream=write)}) as site,
        open_chat_models(settings(site.url), stream_rate=RATE) as models,
    ):
        reading = asyncio.create_task(read(models.get("basic")))
        await shown.wait()
        reading.cancel()
        await left.wait()
        assert (await asyncio.wait({reading}))[0] == {reading}


async def test_an_error_within_an_answer_is_not_delayed():
    async def write(send: Send) -> None:
        await send(event(content="Hi"))
        await asyncio.sleep(0)
        await send(b'data: {"error": {"message": "overloaded"}}\n\ndata: [DONE]\n\n')

    async with (
        asyncio.timeout(20),
        open_site({"/chat/completions": Reply("", "text/event-stream", stream=write)}) as site,
        open_chat_models(settings(site.url, max_retries=0), stream_rate=RATE) as models,
    ):
        with pytest.raises(ModelError, match="overloaded"):
            _ = [piece async for piece in models.get("basic").astream(QUESTION)]
