"""Reads what a process prints into bounded memory."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import FileIO
from typing import cast

# An endless writer would keep the event loop reading: past the limit it gets a pipe (64 KiB) per pause.
_PAUSE_SECONDS = 0.005


class Capture(asyncio.Protocol):
    """The first and the last half of `limit_bytes`; what came between is counted and dropped."""

    def __init__(self, limit_bytes: int) -> None:
        self._half = limit_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._transport: asyncio.ReadTransport | None = None
        self._resumption: asyncio.TimerHandle | None = None
        self.closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have its methods and not its name.
        self._transport = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        self._total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: -self._half]
        if self._total > 2 * self._half and self._transport is not None:
            self._transport.pause_reading()
            loop = asyncio.get_running_loop()
            self._resumption = loop.call_later(_PAUSE_SECONDS, self._transport.resume_reading)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._resumption is not None:
            self._resumption.cancel()
        self.closed.set()

    def text(self) -> str:
        """Everything kept, with a line that says how much is missing in the middle."""
        missing = self._total - len(self._head) - len(self._tail)
        notice = f"\n[… {missing} bytes cut …]\n" if missing else ""
        # Decoded together, so that a character across the seam survives when nothing was cut.
        return (bytes(self._head) + notice.encode() + bytes(self._tail)).decode(errors="replace")


@asynccontextmanager
async def captured_pipe(limit_bytes: int) -> AsyncIterator[tuple[FileIO, Capture]]:
    """A pipe's writing end, which the caller closes once a process has it, and what reads the other."""
    reading, writing = os.pipe()
    with FileIO(writing, "wb") as writing_end:
        transport, capture = await asyncio.get_running_loop().connect_read_pipe(
            lambda: Capture(limit_bytes), FileIO(reading, "rb")
        )
        try:
            yield writing_end, capture
        finally:
            # Closed whoever still holds the other end.
            transport.close()
            await capture.closed.wait()
