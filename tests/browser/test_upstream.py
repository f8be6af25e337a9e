"""Connecting through the proxy that the settings name."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pydantic import SecretStr

from maniple.browser.drivers.chromium import dialer_for
from maniple.config import BrowserSettings
from maniple.egress import AddressGuard, open_socks_proxy
from maniple.errors import ConfigError
from tests.egress.test_socks import NAME, ask, connected

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]


@asynccontextmanager
async def http_proxy(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A proxy that grants or refuses as configured and records its requests."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def test_a_proxy_of_the_operator_is_used_with_the_checked_address(guard: AddressGuard) -> None:
    async with http_proxy(b"HTTP/1.1 200 OK\r\n\r\nhello") as (url, asked):
        settings = BrowserSettings(proxy_server=url, proxy_username="u", proxy_password=SecretStr("p"))
        async with open_socks_proxy(guard.resolve, dialer_for(settings)) as port, connected(port) as streams:
            assert await ask(streams, NAME, b"\x09127.0.0.2", 8080) == 0
            assert await streams[0].read() == b"hello"
    head = (
        b"CONNECT 127.0.0.2:8080 HTTP/1.1\r\nHost: 127.0.0.2:8080\r\nProxy-Authorization: Basic dTpw\r\n\r\n"
    )
    assert asked == [head]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 Who are you\r\n\r\n", b"HTTP/1.1 200", b"", b"\r\n\r\n"])
async def test_a_proxy_that_refuses_is_no_way(answer: bytes, guard: AddressGuard) -> None:
    async with http_proxy(answer) as (url, _):
        settings = BrowserSettings(proxy_server=url)
        async with open_socks_proxy(guard.resolve, dialer_for(settings)) as port, connected(port) as streams:
            assert await ask(streams, NAME, b"\x09127.0.0.2", 8080) == 4


@pytest.mark.parametrize("server", ["socks5://127.0.0.1:1", "127.0.0.1:3128", "http://"])
def test_what_is_no_http_proxy_is_a_mistake_in_the_settings(server: str) -> None:
    with pytest.raises(ConfigError, match=r"browser\.proxy_server"):
        dialer_for(BrowserSettings(proxy_server=server))
