"""A loopback server that answers byte by byte as a test wants, well-behaved or not."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    headers: dict[str, str]


Answer = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[int]:
    """The port of a server that reads one request a connection and lets `answer` write what it likes."""
    handlers: set[asyncio.Task[None] | None] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.current_task())
        try:
            await answer(await _read_request(reader), writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has seen enough, or the test has
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for handler in handlers - {None}:
            handler.cancel()  # pyright: ignore[reportOptionalMemberAccess]
        await asyncio.gather(*(handler for handler in handlers if handler), return_exceptions=True)


async def _read_request(reader: asyncio.StreamReader) -> Request:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return Request(first.split()[1], headers)


def write_head(writer: asyncio.StreamWriter, status: int, **headers: object) -> None:
    """Write a status line and headers; `content_length=3` writes `Content-Length: 3`."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())


def write_reply(writer: asyncio.StreamWriter, body: bytes | object, status: int = 200) -> None:
    """Write a whole reply; anything but bytes becomes JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    write_head(writer, status, content_length=len(content))
    writer.write(content)


async def unused_port() -> int:
    """A loopback port without a listener."""
    async with serving(lambda request, writer: asyncio.sleep(0)) as port:
        return port
