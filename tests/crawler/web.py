"""A loopback web for tests: sites with scripted answers, and a canary that nothing may reach."""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Send = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True)
class Reply:
    """One answer. `stream` continues sending after the body until it returns or the client disconnects."""

    body: bytes | str = b""
    content_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    stream: Callable[[Send], Awaitable[None]] | None = None

    def head(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} Told", "Connection: close"]
        if self.content_type:
            lines.append(f"Content-Type: {self.content_type}")
        if self.stream is None:
            lines.append(f"Content-Length: {len(self.payload)}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    @property
    def payload(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else self.body


def redirect(location: str, status: int = 302) -> Reply:
    return Reply(status=status, headers=(("Location", location),))


@dataclass
class Site:
    """A running site; `requests` holds method, path and head of what came.

    Being asked for a robots.txt that it does not have counts in `robots_asked` alone.
    """

    url: str
    port: int
    pages: dict[str, Reply]
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    """What came after the heads that announced something."""
    robots_asked: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, path, _ = head.split(" ", 2)
            if path == "/robots.txt" and path not in self.pages:
                self.robots_asked += 1
            else:
                self.requests.append((method, path, head))
            if length := re.search(r"\r\ncontent-length: (\d+)", head, re.IGNORECASE):
                self.bodies.append(await reader.readexactly(int(length[1])))
            named = path if path in self.pages else path.partition("?")[0]
            reply = self.pages.get(named, Reply("not here", status=404))
            writer.write(reply.head() + reply.payload)
            await writer.drain()
            if reply.stream is not None:
                await reply.stream(lambda data: _send(writer, data))
        except (OSError, EOFError):
            pass  # The client has gone.
        finally:
            writer.close()


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


@asynccontextmanager
async def open_site(
    pages: dict[str, Reply], host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Site]:
    async with serve_connections([host], lambda: site.answer, tls) as port:
        site = Site(f"http://{host}:{port}", port, pages)
        yield site


@dataclass
class Canary:
    """What must not be reached: TCP on 127.0.0.1 and ::1, and UDP on 127.0.0.1, all on one port."""

    port: int
    hits: list[str] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.hits.append(f"tcp from {writer.get_extra_info('peername')}")
        song = Reply("the canary sings")
        writer.write(song.head() + song.payload)
        writer.close()


@asynccontextmanager
async def open_canary() -> AsyncIterator[Canary]:
    async with serve_connections(["127.0.0.1", "::1"], lambda: canary.answer) as port:
        canary = Canary(port)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.setblocking(False)
            datagrams.bind(("127.0.0.1", port))
            loop = asyncio.get_running_loop()
            loop.add_reader(datagrams, lambda: canary.hits.append(f"udp {datagrams.recv(2048)!r}"))
            try:
                yield canary
            finally:
                loop.remove_reader(datagrams)


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serve_connections(
    hosts: Iterable[str], answer: Callable[[], Answer], tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(answer()(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    servers: list[asyncio.Server] = []
    port = 0
    for host in hosts:
        servers.append(await asyncio.start_server(accept, host, port, ssl=tls))
        port = servers[0].sockets[0].getsockname()[1]
    try:
        yield port
    finally:
        for server in servers:
            server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
