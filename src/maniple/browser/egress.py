"""The only way out for the browser: a SOCKS5 proxy on loopback that checks every address.

Chromium's own requests slip past interception on redirects, WebSockets and popups. With this proxy and
no name resolution of its own it has nowhere else to go: it names a host, the host is resolved and
checked once, and the connection is made to the checked address. See RFC 1928 for the bytes.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from struct import unpack

from maniple.browser.page import Resolve
from maniple.browser.upstream import Dial
from maniple.errors import FetchError

_CONNECT_SECONDS = 15.0
# More than any page worth reading; an endless one must not fill Chromium's memory.
_MAX_BYTES_PER_CONNECTION = 50_000_000

_GRANTED, _FORBIDDEN, _UNREACHABLE, _UNKNOWN_COMMAND, _UNKNOWN_ADDRESS = 0, 2, 4, 7, 8


class _RefusedError(Exception):
    def __init__(self, reply: int) -> None:
        super().__init__(reply)
        self.reply = reply


@asynccontextmanager
async def open_egress(resolve: Resolve, dial: Dial) -> AsyncIterator[int]:
    """Serve while the context is open; gives the port on 127.0.0.1. Leaving ends every connection."""
    egress = _Egress(resolve, dial)
    server = await asyncio.start_server(egress.serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await egress.aclose()


class _Egress:
    def __init__(self, resolve: Resolve, dial: Dial) -> None:
        self._resolve = resolve
        self._dial = dial
        self._connections: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of its own: one that is cancelled under asyncio's server is logged as a failure.
        connection = asyncio.create_task(self._relay(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def aclose(self) -> None:
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        outer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                answers, outer = await self._connect(reader, writer)
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(reader, outer))
                both.create_task(_copy(answers, writer))
        except* (OSError, EOFError, TimeoutError):
            pass  # Either side has gone; closing the other tells it.
        finally:
            for side in filter(None, (writer, outer)):
                side.close()

    async def _connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            host, port = await _read_request(reader, writer)
            streams = await self._dial(await self._resolve(host, port), port)
        except _RefusedError as error:
            reply = error.reply
        except FetchError:
            reply = _FORBIDDEN
        except OSError:
            reply = _UNREACHABLE
        else:
            writer.write(_answer(_GRANTED))
            return streams
        writer.write(_answer(reply))
        await writer.drain()
        raise EOFError


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    version, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    if version != 5:
        raise EOFError
    writer.write(b"\x05\x00")
    _, command, _, kind = await reader.readexactly(4)
    if command != 1:
        raise _RefusedError(_UNKNOWN_COMMAND)
    if kind == 3:
        host = (await reader.readexactly((await reader.readexactly(1))[0])).decode("ascii", "replace")
    elif kind in (1, 4):
        host = str(ip_address(await reader.readexactly(4 if kind == 1 else 16)))
    else:
        raise _RefusedError(_UNKNOWN_ADDRESS)
    (port,) = unpack("!H", await reader.readexactly(2))
    return host, port


def _answer(reply: int) -> bytes:
    return bytes((5, reply, 0, 1)) + bytes(6)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    copied = 0
    while copied < _MAX_BYTES_PER_CONNECTION and (data := await source.read(65_536)):
        copied += len(data)
        sink.write(data)
        await sink.drain()
    if copied >= _MAX_BYTES_PER_CONNECTION:
        raise EOFError
    sink.write_eof()
