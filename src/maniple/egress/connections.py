"""Both ends of a proxied connection: how bytes are sent and copied, and the server that limits clients."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

_CHUNK_BYTES = 65_536

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def send_data(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write data and wait until the buffer has room for more; raises `ConnectionError` if it is closed.

    A closed transport ignores what is written on asyncio's loop, and raises `RuntimeError` on uvloop.
    """
    if writer.is_closing():
        raise ConnectionResetError("the connection is closed")
    writer.write(data)
    await writer.drain()


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of one proxy; a connection that exceeds them is closed."""

    connections: int = 1_000
    """The number of concurrent connections."""
    bytes_each_way: int = 50_000_000
    """Per connection. More than any page worth reading; an endless one must not fill Chromium's memory."""
    opening_seconds: float = 15.0
    """For each of: reading the request, resolving the host, connecting to it."""
    seconds: float | None = None
    """For the whole connection."""


ClientHandler = Callable[[Streams], Awaitable[None]]
"""Serves one client connection in some protocol; `EOFError` and `OSError` end the connection."""


class ConnectionServer:
    """Runs a handler for each client that connects, each in a task of its own."""

    def __init__(self, handler: ClientHandler, limits: ConnectionLimits) -> None:
        self._handler = handler
        self._limits = limits
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def has_connections(self) -> bool:
        return bool(self._connections)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Start serving a client; asyncio's servers call this."""
        if len(self._connections) >= self._limits.connections:
            writer.close()
            return
        # A task of its own: asyncio's server logs a cancelled callback as a failure.
        connection = asyncio.create_task(self._serve((reader, writer)))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    def cancel(self) -> None:
        """Cancel every connection without waiting for its end."""
        for connection in self._connections:
            connection.cancel()

    async def aclose(self) -> None:
        """Cancel every connection and wait for its end."""
        self.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, client: Streams) -> None:
        try:
            async with asyncio.timeout(self._limits.seconds):
                await self._handler(client)
        except* (OSError, EOFError):  # a timeout is an OSError
            pass  # One side has disconnected; closing the other side informs it.
        finally:
            client[1].close()


async def tunnel(client: Streams, server: Streams, limit_bytes: int) -> None:
    """Copy bytes in both directions until both sides have ended, or one has disconnected.

    Where a side cannot be told of the end of one direction, that is the end of both.
    """
    async with asyncio.TaskGroup() as both:
        both.create_task(_copy(client[0], server[1], limit_bytes))
        both.create_task(_copy(server[0], client[1], limit_bytes))


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter, limit_bytes: int) -> None:
    copied = 0
    while data := await source.read(_CHUNK_BYTES):
        copied += len(data)
        if copied > limit_bytes:
            raise EOFError
        await send_data(sink, data)
    if not sink.is_closing():
        if not sink.can_write_eof():
            raise EOFError  # TLS, as to a proxy, has no end of one direction
        with suppress(OSError):  # the receiver has disconnected already
            sink.write_eof()
