"""How many clients a proxy serves at once."""

import asyncio

import pytest

from maniple.egress.connections import ConnectionLimits, ConnectionServer, Streams

pytestmark = pytest.mark.anyio


async def answered(client: Streams) -> bool:
    try:
        return bool(await client[0].readline())
    except ConnectionError:
        return False


async def test_as_many_clients_as_allowed_are_served_and_the_next_one_is_closed() -> None:
    async def echo(client: Streams) -> None:
        while line := await client[0].readline():
            client[1].write(line)

    served = ConnectionServer(echo, ConnectionLimits(connections=2))
    async with asyncio.timeout(30), await asyncio.start_server(served.accept, "127.0.0.1") as server:
        address = server.sockets[0].getsockname()

        async def connect() -> Streams:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"hello\n")
            return reader, writer

        first, second = await connect(), await connect()
        assert [await one[0].readline() for one in (first, second)] == [b"hello\n"] * 2
        refused = await connect()
        assert not await answered(refused)
        first[1].close()
        while True:
            again = await connect()
            if await answered(again):
                break
        for _, writer in (second, refused, again):
            writer.close()
        await served.aclose()
