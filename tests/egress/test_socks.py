"""The way out, without a browser: spoken to in SOCKS5 as Chromium would."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from struct import pack

import pytest

from maniple.egress import AddressGuard, EgressRoute, open_socks_proxy
from tests.crawler.web import Canary, Reply, Site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

V4, NAME, V6 = 1, 3, 4
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Streams]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def ask(streams: Streams, kind: int, host: bytes, port: int, command: int = 1) -> int:
    """The proxy's reply to a request to connect; 0 is granted, 2 forbidden."""
    reader, writer = streams
    writer.write(b"\x05\x01\x00" + bytes((5, command, 0, kind)) + host + pack("!H", port))
    assert await reader.readexactly(2) == b"\x05\x00"
    return (await reader.readexactly(10))[1]


@pytest.mark.parametrize("kind, host", [(V4, bytes((127, 0, 0, 2))), (NAME, b"\x09127.0.0.2")])
async def test_an_allowed_address_is_reached(kind: int, host: bytes, guard: AddressGuard, site: Site) -> None:
    site.pages["/"] = Reply("through")
    async with open_socks_proxy(EgressRoute(guard.resolve)) as port, connected(port) as streams:
        assert await ask(streams, kind, host, site.port) == 0
        streams[1].write(b"GET / HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(60):
            assert (await streams[0].read()).endswith(b"through")


@pytest.mark.parametrize(
    ("kind", "host"),
    [
        (V4, bytes((127, 0, 0, 1))),
        (V4, bytes(4)),
        (V4, bytes((169, 254, 169, 254))),
        (V6, bytes(15) + b"\x01"),
        (V6, bytes(10) + b"\xff\xff" + bytes((127, 0, 0, 1))),
        (NAME, b"\x09127.0.0.1"),
        (NAME, b"\x0a2130706433"),
        (NAME, b"\x09localhost"),
        (NAME, b"\x03::1"),
        (NAME, b"\x00"),
        (NAME, b"\x04\xff\xfe\x00\x01"),
    ],
)
async def test_what_may_not_be_reached_is_not(
    kind: int, host: bytes, guard: AddressGuard, canary: Canary
) -> None:
    async with open_socks_proxy(EgressRoute(guard.resolve)) as port, connected(port) as streams:
        async with asyncio.timeout(60):
            assert await ask(streams, kind, host, canary.port) == 2
            assert await streams[0].read() == b""
    assert canary.hits == []


@pytest.mark.parametrize("command", [2, 3])
async def test_only_connecting_is_offered(command: int, guard: AddressGuard, canary: Canary) -> None:
    async with open_socks_proxy(EgressRoute(guard.resolve)) as port, connected(port) as streams:
        assert await ask(streams, V4, bytes((127, 0, 0, 2)), canary.port, command) == 7


@pytest.mark.parametrize(
    "noise", [b"GET / HTTP/1.1\r\n\r\n", b"\x04\x01\x00\x50", b"\x05\x01\x00\x05\x01\x00\x09" + b"x" * 9]
)
async def test_what_is_no_request_is_left(noise: bytes, guard: AddressGuard) -> None:
    async with (
        open_socks_proxy(EgressRoute(guard.resolve)) as port,
        connected(port) as (reader, writer),
    ):
        writer.write(noise)
        writer.write_eof()
        async with asyncio.timeout(60):
            assert b"\x05\x00\x00" not in await reader.read()


async def test_closing_it_ends_the_connections(guard: AddressGuard, site: Site) -> None:
    async with open_socks_proxy(EgressRoute(guard.resolve)) as port:
        streams = await asyncio.open_connection("127.0.0.1", port)
        assert await ask(streams, V4, bytes((127, 0, 0, 2)), site.port) == 0
    async with asyncio.timeout(60):
        assert await streams[0].read() == b""
    streams[1].close()
