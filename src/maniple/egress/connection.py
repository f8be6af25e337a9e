"""Connections to hosts that were checked: a name is resolved once, and the address that passed is dialled."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Resolve(Protocol):
    """Decides what may be connected to."""

    async def __call__(self, host: str, port: int, /) -> str:
        """The IP address to connect to instead of `host`; raises `FetchError` when there must be none."""
        ...


class Dial(Protocol):
    """Opens a connection to an IP address; raises `OSError` when there is no way."""

    async def __call__(self, address: str, port: int, /) -> Streams: ...


@dataclass(frozen=True, slots=True)
class Exit:
    """The only two steps that lead out."""

    resolve: Resolve
    dial: Dial

    @asynccontextmanager
    async def open(self, host: str, port: int, timeout_seconds: float) -> AsyncIterator[Streams]:
        """A connection that ends with the context.

        Raises:
            FetchError: nobody may connect there.
            OSError: there is no way, or none in time.
        """
        async with asyncio.timeout(timeout_seconds):
            address = await self.resolve(host, port)
        async with asyncio.timeout(timeout_seconds):
            reader, writer = await self.dial(address, port)
        try:
            yield reader, writer
        finally:
            writer.close()
