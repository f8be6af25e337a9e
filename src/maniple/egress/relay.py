"""Serves the connections of one way out: how many, how much and for how long."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from maniple.egress.connection import Streams


@dataclass(frozen=True, slots=True)
class Limits:
    """What one way out may be used for; a connection over its share is closed."""

    connections: int = 1_000
    """At once."""
    bytes_each_way: int = 50_000_000
    """Of a connection. More than any page worth reading; an endless one must not fill Chromium's memory."""
    opening_seconds: float = 15.0
    """For each of: saying where to, resolving that, connecting to it."""
    seconds: float | None = None
    """Of a whole connection."""


Converse = Callable[[Streams], Awaitable[None]]
"""Speaks with one client in a protocol and connects it; `EOFError` and `OSError` end the connection."""


class Relay:
    """Gives each client that connects its conversation, in a task of its own."""

    def __init__(self, converse: Converse, limits: Limits) -> None:
        self._converse = converse
        self._limits = limits
        self._connections: set[asyncio.Task[None]] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin with a client; the callback of asyncio's servers."""
        if len(self._connections) >= self._limits.connections:
            writer.close()
            return
        # A task of its own: one that is cancelled under asyncio's server is logged as a failure.
        connection = asyncio.create_task(self._serve((reader, writer)))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    @property
    def is_used(self) -> bool:
        """Whether there is a connection."""
        return bool(self._connections)

    def cancel(self) -> None:
        """Let every connection end soon."""
        for connection in self._connections:
            connection.cancel()

    async def aclose(self) -> None:
        """End every connection."""
        self.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, client: Streams) -> None:
        try:
            async with asyncio.timeout(self._limits.seconds):
                await self._converse(client)
        except* (OSError, EOFError):  # a timeout is an OSError
            pass  # Either side has gone; closing the other tells it.
        finally:
            client[1].close()


async def tunnel(client: Streams, server: Streams, limit_bytes: int) -> None:
    """Carry bytes both ways until both sides have ended, or one has gone."""
    async with asyncio.TaskGroup() as both:
        both.create_task(_copy(client[0], server[1], limit_bytes))
        both.create_task(_copy(server[0], client[1], limit_bytes))


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter, limit_bytes: int) -> None:
    copied = 0
    while data := await source.read(65_536):
        copied += len(data)
        if copied > limit_bytes:
            raise EOFError
        sink.write(data)
        await sink.drain()
    with suppress(OSError):  # it has gone by itself
        sink.write_eof()
