"""What is written to a connection that has ended, on both event loops."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from maniple.egress import Streams, send_data
from maniple.egress.connections import tunnel
from tests.egress.proxy_servers import TestAuthority, authority

__all__ = ["authority"]

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": uses}) for uses in (False, True)]),
]


@asynccontextmanager
async def _connection(authority: TestAuthority | None = None) -> AsyncIterator[tuple[Streams, Streams]]:
    """Both ends of a connection, over TLS with an authority."""
    accepted: asyncio.Future[Streams] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(
        lambda *streams: accepted.set_result(streams), "127.0.0.1", 0, ssl=authority and authority.context
    )
    trusted = authority and ssl.create_default_context(cafile=str(authority.file))
    async with server:
        ours = await asyncio.open_connection(*server.sockets[0].getsockname(), ssl=trusted)
        theirs = await accepted
        try:
            yield ours, theirs
        finally:
            await _close(ours)
            await _close(theirs)


async def _close(connection: Streams) -> None:
    connection[1].transport.abort()
    with suppress(OSError):
        await connection[1].wait_closed()


async def test_writing_to_a_closed_connection_is_a_connection_error() -> None:
    async with _connection() as (ours, _):
        await _close(ours)
        with pytest.raises(ConnectionError):
            await send_data(ours[1], b"late")


async def test_a_tunnel_to_a_closed_connection_ends_with_a_connection_error() -> None:
    async with _connection() as (client, client_end), _connection() as (server, _):
        client_end[1].write(b"for the server")
        await _close(server)
        with pytest.RaisesGroup(ConnectionError):
            async with asyncio.timeout(60):
                await tunnel(client, server, 1_000)


async def test_a_client_that_ends_ends_a_tunnel_over_tls_which_has_no_half_closed_connections(
    authority: TestAuthority,
) -> None:
    async with _connection() as (client, client_end), _connection(authority) as (server, server_end):
        client_end[1].write(b"for the server")
        client_end[1].write_eof()
        with pytest.RaisesGroup(EOFError):
            async with asyncio.timeout(60):
                await tunnel(client, server, 1_000)
        assert await server_end[0].readexactly(14) == b"for the server"
