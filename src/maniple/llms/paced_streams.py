"""Streams that are read at a limited rate: a task reads ahead, and what has arrived is handed over together.

This is the one place for all transports and providers. To hand over a piece costs far more than to read it:
LangChain's conversion and callbacks, events, the store, the client.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from typing import Generic, TypeVar, cast

import httpx2

MAX_READ_AHEAD = 2**20
"""So many bytes are read before the reader takes them; they end a pause."""
_EXTENSION = "maniple.paced_stream"

T = TypeVar("T")


class PacedReader(Generic[T]):
    """Reads a source in a task; its reader gets all that has arrived since the last time. Close it.

    Between two times are at least 1 / `rate` seconds (0: no limit). The end and an error are not delayed, and
    what comes after a longer silence is handed over immediately.
    """

    def __init__(self, source: AsyncIterable[T], rate: float, size_of: Callable[[T], int]) -> None:
        self.is_limited = True
        """False hands over each item as soon as it has arrived: before the first piece of an answer."""
        self._source = source
        self._pause_seconds = 1 / rate if rate else 0.0
        self._next_at = 0.0
        self._size_of = size_of
        self._items: list[T] = []
        self._size = 0
        self._reading: asyncio.Task[None] | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._is_pausing = False
        self._taken = asyncio.Event()

    async def read(self) -> list[T]:
        """Return all that has arrived, one item at least; nothing at the end. Raises the source's error."""
        loop, reading = asyncio.get_running_loop(), self._start()
        left = self._next_at - loop.time()
        if self.is_limited and left > 0 and self._size <= MAX_READ_AHEAD:
            await self._pause(left)
        while not (self._items or reading.done()):
            await self._wait()
        items, self._items, self._size = self._items, [], 0
        self._taken.set()
        self._next_at = loop.time() + self._pause_seconds
        if not items:
            reading.result()
        return items

    async def aclose(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    def _start(self) -> asyncio.Task[None]:
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_ahead())
            self._reading.add_done_callback(self._note_end)
        return self._reading

    def _note_end(self, reading: asyncio.Task[None]) -> None:
        if not reading.cancelled():
            reading.exception()  # asyncio would log it if the reader has left
        self._wake()

    async def _pause(self, seconds: float) -> None:
        """Wait until the time is over, the source has ended, or too much has arrived."""
        timer = asyncio.get_running_loop().call_later(seconds, self._wake)
        self._is_pausing = True
        try:
            await self._wait()
        finally:
            self._is_pausing = False
            timer.cancel()

    async def _wait(self) -> None:
        if self._reading is None or self._reading.done():
            return
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def _read_ahead(self) -> None:
        source = aiter(self._source)
        try:
            async for item in source:
                self._items.append(item)
                self._size += self._size_of(item)
                is_full = self._size > MAX_READ_AHEAD
                if is_full or not self._is_pausing:
                    self._wake()
                if is_full:
                    self._taken.clear()
                    await self._taken.wait()
        finally:
            if isinstance(source, AsyncGenerator):
                await source.aclose()


class PacedStream(httpx2.AsyncByteStream):
    """The body of a response in the pieces of a `PacedReader`."""

    def __init__(self, source: httpx2.AsyncByteStream, rate: float) -> None:
        self._source = source
        self.reader = PacedReader(source, rate, len)

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        try:
            while pieces := await self.reader.read():
                yield b"".join(pieces)
        finally:
            await self.reader.aclose()

    async def aclose(self) -> None:
        """Close the connection, or give it back if the body was read to its end."""
        await self.reader.aclose()
        await self._source.aclose()


def pace_response(response: httpx2.Response, rate: float) -> httpx2.Response:
    """Let the body of a response be read in at most `rate` pieces a second after the first one."""
    stream = PacedStream(cast("httpx2.AsyncByteStream", response.stream), rate)
    response.stream = stream
    response.extensions[_EXTENSION] = stream
    return response


def limit_response(response: httpx2.Response, *, is_limited: bool) -> None:
    """Turn the limit of a response on or off; only who reads an answer knows which pieces are part of it."""
    stream = response.extensions.get(_EXTENSION)
    if isinstance(stream, PacedStream):
        stream.reader.is_limited = is_limited
