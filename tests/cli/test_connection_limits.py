"""Half-open, slow and too many connections, over real sockets.

What must outlast a deadline waits until another connection was closed by it.
"""

import asyncio
import logging
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import httpx
import pytest
import uvicorn
import uvicorn.server
from pydantic import ValidationError
from websockets.asyncio.client import connect

from maniple.cli import connection_limits
from maniple.cli.connection_limits import (
    KEYLESS_SHARE,
    MAX_PIPELINED,
    ClientLimits,
    ConnectionTable,
    LimitedConnection,
)
from maniple.cli.services import bind_address, uvicorn_config
from maniple.config import ServerSettings
from tests.cli.processes import SERVER, environment
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio
HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: x\r\nX-A: "
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
HALF_A_BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345"
LARGE_REQUEST = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n"
KEYLESS_REQUEST = b"GET /keyless HTTP/1.1\r\nHost: x\r\n\r\n"
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
OUTSIDE = "203.0.113.5"
CLOSING_REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
LARGE_BYTES = 32_000_000
"""More than the kernel takes for a client that does not read."""


@pytest.fixture(autouse=True)
def _log_levels_as_before() -> Iterator[None]:
    """`uvicorn.Config` sets the levels of its loggers for the whole process."""
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "uvicorn.access", "uvicorn.asgi")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


class Service:
    """Answers with the length of the body.

    `/held` begins an answer and ends it when `released` is set. `/large` sends more than the kernel takes,
    and then waits for its client; with a query it ends there, with `held` once `released` is set. A request
    has a key, but for `/keyless`.
    """

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.left = asyncio.Event()
        self.sent = asyncio.Event()
        self.address = ("127.0.0.1", 0)

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        await (
            hold_socket(receive, send) if scope["type"] == "websocket" else self.answer(scope, receive, send)
        )

    async def answer(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        scope["state"]["caller"] = None if scope["path"] == "/keyless" else "somebody"
        length, message = 0, await receive()
        while message["type"] == "http.request":
            length += len(message.get("body", b""))
            if not message.get("more_body"):
                break
            message = await receive()
        if message["type"] == "http.disconnect":
            self.left.set()
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-length", b"%d" % length)]})
        if scope["path"] == "/large":
            await send({"type": "http.response.body", "body": bytes(LARGE_BYTES), "more_body": True})
            self.sent.set()
            if scope["query_string"] == b"held":
                await self.released.wait()
            if not scope["query_string"]:
                await send({"type": "http.response.body", "body": b"more", "more_body": True})
            return
        if scope["path"] == "/held":
            await send({"type": "http.response.body", "body": b"begun ", "more_body": True})
            await self.released.wait()
        await send({"type": "http.response.body", "body": b"done"})

    async def connect(self, data: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(data)
        await writer.drain()
        return reader, writer


async def hold_socket(receive: Callable[[], Awaitable[Any]], send: Any) -> None:
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


@asynccontextmanager
async def running(**given: Any) -> AsyncIterator[Service]:
    service = Service()
    settings = ServerSettings(port=0, **given)
    with bind_address(settings) as listener:
        service.address = listener.getsockname()
        server = uvicorn.Server(uvicorn_config(service, settings))
        serving = asyncio.create_task(server._serve(sockets=[listener]))
        try:
            async with asyncio.timeout(60):
                yield service
        finally:
            service.released.set()
            server.should_exit = True
            await serving


async def status_of(reader: asyncio.StreamReader) -> int:
    return int((await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1])


async def count_received(reader: asyncio.StreamReader) -> int:
    """Return the number of bytes that arrive before the connection is closed or reset."""
    received = 0
    with suppress(ConnectionError):
        while piece := await reader.read(LARGE_BYTES):
            received += len(piece)
    return received


async def answer_to(service: Service, data: bytes) -> bytes:
    """What a connection gets until the service closes it."""
    reader, writer = await service.connect(data)
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_a_head_that_does_not_arrive_in_time_is_answered_with_408_and_closed() -> None:
    async with running(header_seconds=0.05) as service:
        assert (await answer_to(service, HALF_A_HEAD)).startswith(b"HTTP/1.1 408 ")


async def test_the_spare_connection_of_a_browser_is_closed_without_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(header_seconds=0.05) as service:
        assert await answer_to(service, b"") == b""
        assert not caplog.records
        await answer_to(service, HALF_A_HEAD)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_a_late_body_closes_the_connection_and_its_handler_is_notified() -> None:
    async with running(body_seconds=0.05) as service:
        assert (await answer_to(service, HALF_A_BODY)).startswith(b"HTTP/1.1 408 ")
        await service.left.wait()


async def test_a_slow_body_behind_an_answered_request_is_closed_too() -> None:
    async with running(body_seconds=0.05) as service:
        answers = await answer_to(service, REQUEST + HALF_A_BODY)
    assert [answers.count(b"HTTP/1.1 200 "), answers.count(b"HTTP/1.1 408 ")] == [1, 1]


async def test_an_open_websocket_keeps_its_place_and_a_closed_one_gives_it_back() -> None:
    async with running(max_connections=1, header_seconds=0.05, body_seconds=0.05) as service:
        url = f"ws://127.0.0.1:{service.address[1]}/"
        for _ in range(3):
            async with connect(url) as socket:
                assert (await answer_to(service, REQUEST)).startswith(b"HTTP/1.1 503 ")
                await (await socket.ping())


async def test_a_websocket_has_no_deadline() -> None:
    async with running(header_seconds=0.05, body_seconds=0.05) as service:
        async with connect(f"ws://127.0.0.1:{service.address[1]}/") as socket:
            for late in (HALF_A_HEAD, HALF_A_BODY):
                assert (await answer_to(service, late)).startswith(b"HTTP/1.1 408 ")
            await (await socket.ping())


async def test_a_silent_websocket_is_pinged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maniple.cli.services.SOCKET_PING_SECONDS", 0.01)
    async with running() as service:
        reader, writer = await service.connect(HANDSHAKE)
        assert await status_of(reader) == 101
        for _ in range(3):
            assert (await reader.readexactly(6))[:2] == bytes((0x89, 4))
        writer.close()


@pytest.mark.parametrize("path", [b"/large", b"/large?closed"])
async def test_a_client_that_reads_nothing_loses_its_connection(
    monkeypatch: pytest.MonkeyPatch, path: bytes
) -> None:
    async with running(max_connections=1) as service:
        monkeypatch.setattr(connection_limits, "UNREAD_SECONDS", 0.05)
        reader, writer = await service.connect(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        cast("asyncio.Transport", writer.transport).pause_reading()
        await service.sent.wait()
        # Another client is served when its place is free; it gets what the kernel had taken, and no more.
        while not (await answer_to(service, CLOSING_REQUEST)).startswith(b"HTTP/1.1 200 "):
            continue
        cast("asyncio.Transport", writer.transport).resume_reading()
        received = await count_received(reader)
        writer.close()
    assert 0 < received < LARGE_BYTES


async def test_only_a_client_that_reads_nothing_between_two_checks_is_found() -> None:
    waiting = iter([0, 100, 60, 60, 200, 0, 0])
    connection = LimitedConnection.__new__(LimitedConnection)
    connection._unread_bytes = 0
    connection.transport = Mock(get_write_buffer_size=lambda: next(waiting))
    found = [connection.has_read_nothing() for _ in range(7)]
    assert found == [False, False, False, True, True, False, False]


async def test_a_head_in_pieces_is_read() -> None:
    async with running() as service:
        reader, writer = await service.connect(HALF_A_HEAD)
        writer.write(b"1\r\n\r\n")
        assert await status_of(reader) == 200
        writer.close()


async def test_a_streamed_answer_outlasts_the_deadlines() -> None:
    async with running(header_seconds=0.05, body_seconds=0.05) as service:
        reader, writer = await service.connect(
            b"POST /held HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1"
        )
        await reader.readuntil(b"begun ")
        await answer_to(service, HALF_A_HEAD)
        await answer_to(service, HALF_A_BODY)
        service.released.set()
        assert b"done" in await reader.readuntil(b"0\r\n\r\n")
        writer.close()


async def test_an_idle_connection_outlasts_the_deadline_of_heads_and_its_next_head_does_not() -> None:
    async with running(header_seconds=0.05) as service:
        reader, writer = await service.connect(REQUEST)
        await reader.readuntil(b"0\r\n\r\n")
        await answer_to(service, HALF_A_HEAD)
        writer.write(REQUEST)
        assert await status_of(reader) == 200
        await reader.readuntil(b"0\r\n\r\n")
        writer.write(HALF_A_HEAD)
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_a_body_that_arrives_fast_may_take_longer() -> None:
    size = 500_000  # 50 seconds more
    async with running(body_seconds=0.05) as service:
        head = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {size + 1}\r\n\r\n".encode()
        reader, writer = await service.connect(head + b"x" * size)
        await answer_to(service, HALF_A_BODY)
        writer.write(b"x")
        assert f"x-length: {size + 1}".encode() in await reader.readuntil(b"\r\n\r\n")
        writer.close()


async def test_new_connections_take_the_place_of_the_oldest_that_wait_and_never_of_a_request() -> None:
    async with running(max_connections=3) as service:
        held, held_writer = await service.connect(b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n")
        await held.readuntil(b"begun ")
        waits_for_us = HALF_A_BODY.replace(b"Host: x", b"Host: x\r\nExpect: 100-continue")
        body, body_writer = await service.connect(waits_for_us)
        assert await status_of(body) == 100, "its body is being read"
        half_open = [await service.connect(HALF_A_HEAD) for _ in range(5)]
        for reader, _ in half_open[:-1]:
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readexactly(1)
        reader, writer = await service.connect(REQUEST)
        assert await status_of(reader) == 200
        body_writer.write(b"67890")
        assert await status_of(body) == 200, "a body is closed only when nothing else waits"
        service.released.set()
        assert b"done" in await held.readuntil(b"0\r\n\r\n")
        for one in (held_writer, body_writer, writer, *(writer for _, writer in half_open)):
            one.close()


async def test_a_connection_is_refused_when_all_have_a_request() -> None:
    async with running(max_connections=1) as service:
        held, writer = await service.connect(b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n")
        await held.readuntil(b"begun ")
        refused = await answer_to(service, b"")
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after" in refused
        service.released.set()
        assert b"done" in await held.readuntil(b"0\r\n\r\n")
        writer.close()


async def slow_reader(service: Service) -> asyncio.StreamWriter:
    """Ask for more than the kernel takes, and read nothing of it."""
    service.sent.clear()
    _, writer = await service.connect(LARGE_REQUEST)
    cast("asyncio.Transport", writer.transport).pause_reading()
    await service.sent.wait()
    return writer


async def test_clients_that_do_not_read_lose_their_places_to_new_ones() -> None:
    async with running(max_connections=3) as service:
        slow = [await slow_reader(service) for _ in range(9)]
        for _ in range(9):
            assert (await answer_to(service, CLOSING_REQUEST)).startswith(b"HTTP/1.1 200 ")
        for writer in slow:
            writer.close()


async def test_a_client_that_does_not_read_goes_before_one_that_is_idle_or_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_limits, "SLOW_SECONDS", 0.0)
    async with running(max_connections=3) as service:
        idle, idle_writer = await service.connect(REQUEST)
        await idle.readuntil(b"0\r\n\r\n")
        held, held_writer = await service.connect(b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n")
        await held.readuntil(b"begun ")
        for _ in range(5):
            slow = await slow_reader(service)
            assert (await answer_to(service, CLOSING_REQUEST)).startswith(b"HTTP/1.1 200 ")
            slow.close()
        idle_writer.write(REQUEST)
        assert await status_of(idle) == 200
        service.released.set()
        assert b"done" in await held.readuntil(b"0\r\n\r\n")
        idle_writer.close()
        held_writer.close()


async def test_a_client_that_reads_again_is_no_slow_reader() -> None:
    async with running(max_connections=2) as service:
        reader, writer = await service.connect(LARGE_REQUEST.replace(b"large", b"large?held"))
        transport = cast("asyncio.Transport", writer.transport)
        transport.pause_reading()
        await service.sent.wait()
        transport.resume_reading()
        await reader.readuntil(b"\r\n\r\n")
        received = len(await reader.readexactly(LARGE_BYTES))
        held, held_writer = await service.connect(b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n")
        await held.readuntil(b"begun ")
        assert (await answer_to(service, b"")).startswith(b"HTTP/1.1 503 ")
        assert received == LARGE_BYTES
        service.released.set()
        writer.close()
        held_writer.close()


async def test_connections_without_a_key_take_each_others_places_only() -> None:
    places = 2 * KEYLESS_SHARE
    async with running(max_connections=places) as service:
        keyed = [await service.connect(REQUEST) for _ in range(places - 3)]
        for reader, _ in keyed:
            await reader.readuntil(b"0\r\n\r\n")
        keyless = []
        for _ in range(9):
            keyless.append(await service.connect(KEYLESS_REQUEST))
            await keyless[-1][0].readuntil(b"0\r\n\r\n")
        for reader, _ in keyless[:-3]:
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readexactly(1)
        for reader, writer in keyed:
            writer.write(REQUEST)
            assert await status_of(reader) == 200
        for _, writer in [*keyed, *keyless]:
            writer.close()


async def test_a_connection_whose_requests_wait_for_no_answer_is_closed_after_a_few() -> None:
    async with running() as service:
        few = await answer_to(service, REQUEST * MAX_PIPELINED + CLOSING_REQUEST)
        many = await answer_to(service, REQUEST * 1_000)
    assert few.count(b"HTTP/1.1 200 ") == MAX_PIPELINED + 1
    assert many.count(b"HTTP/1.1 200 ") == MAX_PIPELINED + 1


async def test_an_address_has_a_limit_and_a_proxy_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uvicorn.protocols.http.h11_impl.get_remote_addr", lambda _: (OUTSIDE, 1))
    async with running(max_connections_per_address=2) as service:
        first, second = await service.connect(REQUEST), await service.connect(REQUEST)
        for reader, _ in (first, second):
            assert await status_of(reader) == 200
        assert (await answer_to(service, REQUEST)).startswith(b"HTTP/1.1 503 ")
        first[1].close()
        second[1].close()
    async with running(max_connections_per_address=1, proxies=("203.0.113.0/24",)) as service:
        opened = [await service.connect(REQUEST) for _ in range(3)]
        for reader, writer in opened:
            assert await status_of(reader) == 200
            writer.close()


@pytest.mark.parametrize(
    ("hosts", "admitted"),
    [
        ([OUTSIDE] * 3, [True, True, False]),
        ([OUTSIDE, f"::ffff:{OUTSIDE}", OUTSIDE], [True, True, False]),
        (["2001:db8::1", "2001:db8::2", "2001:db8::3"], [True, True, False]),
        (["2001:db8::1", "2001:db8:0:1::1", "2001:db8:0:2::1"], [True, True, True]),
        (["127.0.0.1", "127.0.0.2", "127.0.0.1"], [True, True, True]),
        (["::1"] * 3, [True, True, True]),
        (["fe80::1%eth0"] * 3, [True, True, False]),
        ([None] * 3, [True, True, True]),
    ],
)
async def test_connections_are_counted_by_address(hosts: list[str | None], admitted: list[bool]) -> None:
    table = ConnectionTable(ClientLimits(1, 1, max_connections=9, max_per_address=2))
    connections = [connection(table) for _ in hosts]
    assert [table.admit(one, host) for one, host in zip(connections, hosts, strict=True)] == admitted
    for one in connections:
        table.remove(one)
        table.remove(one)
    assert len(table) == 0
    assert table.admit(connections[0], hosts[0]), "what has left is not counted"


def connection(table: ConnectionTable) -> LimitedConnection:
    config = uvicorn.Config(Service(), log_config=None)
    config.load()
    return LimitedConnection(table, config=config, server_state=uvicorn.server.ServerState(), app_state={})


def test_half_of_the_descriptors_are_reserved() -> None:
    settings = ServerSettings(max_connections=2_000)
    assert ClientLimits.of(settings, 10_000).max_connections == 2_000
    assert ClientLimits.of(settings, 512).max_connections == 256


@pytest.mark.parametrize("network", ["10.0.0.0/33", "proxy.example", ""])
def test_a_proxy_is_an_address_or_a_network(network: str) -> None:
    with pytest.raises(ValidationError):
        ServerSettings(proxies=(network,))


@pytest.mark.slow
async def test_the_service_answers_beside_600_half_open_connections_with_512_descriptors(
    tmp_path: Path,
) -> None:
    command = ("prlimit", "--nofile=512:512", sys.executable, str(SERVER), "--port", "0")
    with serving(SIMPLE) as model:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=tmp_path, env=environment(tmp_path, model.base_url), stdout=DEVNULL, stderr=PIPE
        )
        assert process.stderr
        log: list[bytes] = []
        half_open: list[asyncio.StreamWriter] = []
        try:
            async with asyncio.timeout(120):
                while not (found := re.search(rb"Serving on http://([0-9.]+):(\d+) ", b"".join(log))):
                    log.append(await process.stderr.readline())
                    assert log[-1], log
                reading = asyncio.create_task(read_to_the_end(process.stderr, log))
                host, port = found[1].decode(), int(found[2])
                for _ in range(600):
                    _, writer = await asyncio.open_connection(host, port)
                    half_open.append(writer)
                    writer.write(HALF_A_HEAD)
                async with httpx.AsyncClient(base_url=f"http://{host}:{port}", trust_env=False) as client:
                    assert (await client.get("/healthz", timeout=60)).status_code == 200
                    body = {"messages": [{"role": "user", "content": "1+3=?"}]}
                    answer = await client.post("/api/chat/stream", json=body, timeout=60)
                assert "event: end_of_workflow" in answer.text
                process.terminate()
                await process.wait()
                await reading
        finally:
            for writer in half_open:
                writer.close()
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert len(log) < 100, "the log does not grow with the attack"


async def read_to_the_end(stream: asyncio.StreamReader, lines: list[bytes]) -> None:
    while line := await stream.readline():
        lines.append(line)
