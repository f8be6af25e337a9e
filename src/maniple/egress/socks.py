"""SOCKS5 (RFC 1928), which Chromium speaks: a client names a host, and gets a connection to it."""

import asyncio
from ipaddress import ip_address
from struct import unpack

from maniple.egress.connection import Exit, Streams
from maniple.egress.relay import Limits, tunnel
from maniple.errors import FetchError

_GRANTED, _FORBIDDEN, _UNREACHABLE, _UNKNOWN_COMMAND, _UNKNOWN_ADDRESS = 0, 2, 4, 7, 8


class _RefusedError(Exception):
    def __init__(self, reply: int) -> None:
        super().__init__(reply)
        self.reply = reply


class Socks:
    """One conversation after the other."""

    def __init__(self, way_out: Exit, limits: Limits) -> None:
        self._exit = way_out
        self._limits = limits

    async def __call__(self, client: Streams) -> None:
        """Grant what may be connected to, and refuse everything else."""
        try:
            await self._connect(client)
        except _RefusedError as error:
            reply = error.reply
        except FetchError:
            reply = _FORBIDDEN
        else:
            return
        client[1].write(_answer(reply))
        await client[1].drain()

    async def _connect(self, client: Streams) -> None:
        async with asyncio.timeout(self._limits.opening_seconds):
            host, port = await _read_request(*client)
        granted = False
        try:
            async with self._exit.open(host, port, self._limits.opening_seconds) as server:
                granted = True
                client[1].write(_answer(_GRANTED))
                await tunnel(client, server, self._limits.bytes_each_way)
        except OSError as error:
            if granted:
                raise
            raise _RefusedError(_UNREACHABLE) from error


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
