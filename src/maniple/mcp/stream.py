"""What every server's messages pass on their way to the SDK: a brake, and a bell for their end."""

from collections.abc import Callable
from types import TracebackType
from typing import Any

import anyio
from mcp.client._transport import ReadStream
from mcp.shared.message import SessionMessage

MOST_MESSAGES = 2_000
"""In one second: a server that floods waits for the next one, and so do its pipe or its connection."""


class WatchedStream:
    """The reading end of a transport, as the SDK wants it; `on_end` is called when nothing more comes."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], on_end: Callable[[], object]) -> None:
        self._stream = stream
        self._on_end = on_end
        self._since = 0.0
        self._number = 0

    @property
    def last_context(self) -> Any:
        """The context that the message was sent in, of streams that know it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        await self._keep_pace()
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._on_end()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> "WatchedStream":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "WatchedStream":
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _keep_pace(self) -> None:
        now = anyio.current_time()
        if now - self._since >= 1.0:
            self._since, self._number = now, 0
        self._number += 1
        if self._number > MOST_MESSAGES:
            await anyio.sleep(self._since + 1.0 - now)
